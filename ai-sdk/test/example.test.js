// The example as somebody starts it, in an empty folder; and what the command line says of what it left.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const start = promisify(execFile);
const example = fileURLToPath(new URL('../example/ticket.js', import.meta.url));
const command = fileURLToPath(new URL('../../.venv/bin/stopcause', import.meta.url));
let cwd;
let said;

before(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'stopcause-example-'));
  said = await start(process.execPath, [example], { cwd });
});
after(() => rm(cwd, { recursive: true }));

test('the SDK says the same of three runs that stopped for different reasons', () => {
  const words = said.stdout.match(/the SDK says: \S+/g).map((line) => line.split(' ').at(-1));
  assert.deepEqual(words, ['tool-calls', 'tool-calls', 'tool-calls', 'stop']);
  assert.equal(said.stderr, '');
});

test('each run left its start and its stop, and why', async () => {
  const lines = (await readFile(join(cwd, 'receipts.ndjson'), 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(lines.length, 8);
  const stops = lines.filter((line) => line.kind === 'run.stopped').map((line) => [line.run_id, line.stop_cause]);
  assert.deepEqual(Object.fromEntries(stops), {
    deadline: 'time_limit',
    approval: 'approval_pending',
    'step-limit': 'step_limit',
    finished: 'natural',
  });
});

test('the commands that it names tell the four apart', async () => {
  const commands = said.stdout.match(/^ {2}stopcause .*/gm).map((line) => line.trim().split(' ').slice(1));
  assert.deepEqual(
    commands.map(([verb]) => verb),
    ['classify', 'explain'],
  );
  const [listed, explained] = await Promise.all(commands.map((words) => start(command, words, { cwd })));
  const verdicts = listed.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).verdict);
  assert.deepEqual(verdicts, ['STUCK', 'WAITING', 'BOUNDED_STOP', 'FALSE_COMPLETE']);
  assert.equal(JSON.parse(explained.stdout).run_id, 'deadline');
});
