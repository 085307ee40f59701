// Words and amounts that nobody means: what a provider or a model can send, and a receipt must survive.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { STOP_CAUSES } from '../src/words.js';
import { scriptedModel } from './support/models.js';
import { call, classified, says, toolsOf, watched } from './support/regress.js';
import './support/watchful.js';

/** Names that every object has: a table that is asked with them answers with what nobody put in. */
const INHERITED = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf'];

const turns = {
  'as a finish reason': (word) => [{ text: 'x', finish: word, raw: word }],
  'as a finish reason with a call': (word) => [{ calls: [call('lookup')], finish: word, raw: word }],
  'as the code of an error': (word) => [{ fail: Object.assign(new Error('x'), { code: word }) }],
  'as the name of an error': (word) => [{ fail: Object.assign(new Error('x'), { name: word }) }],
  'as the name of a tool': (word) => [{ calls: [call(word)] }, { text: 'x' }],
  'as the id of a call': (word) => [{ calls: [call('ask_user', { id: word })] }],
};

/** The receipts that `drive` leaves, as the Python reader finds them: none refused, one verdict for each. */
async function readable(drive) {
  const api = watched();
  await drive(api);
  const records = await api.records();
  const stops = records.filter((record) => record.kind === 'run.stopped');
  const folder = await mkdtemp(join(tmpdir(), 'hostile-'));
  try {
    const path = join(folder, 'receipts.ndjson');
    await writeFile(path, records.map((record) => `${JSON.stringify(record)}\n`).join(''));
    const { code, complained, verdicts } = await classified(path);
    assert.equal(code, 0, complained);
    assert.equal(verdicts.length, stops.length, complained);
  } finally {
    await rm(folder, { recursive: true });
  }
  assert.equal(api.stats().faults, 0);
  return stops;
}

const given = (model, runId) => ({ model, tools: toolsOf(), prompt: 'x', maxRetries: 0, stopcause: { runId } });

for (const [where, script] of Object.entries(turns)) {
  test(`a word that every object has, ${where}`, async () => {
    const stops = await readable(async (api) => {
      for (const [n, word] of INHERITED.entries()) {
        await api.generateText(given(scriptedModel(script(word)), `generate-${n}`)).catch(() => {});
        await api.streamText({ ...given(scriptedModel(script(word)), `stream-${n}`), onError() {} }).consumeStream();
      }
    });
    assert.equal(stops.length, 2 * INHERITED.length);
    for (const stop of stops) assert.ok(STOP_CAUSES.has(stop.stop_cause), `${stop.run_id}: ${stop.stop_cause}`);
    if (!where.startsWith('as a finish')) return;
    assert.deepEqual([...new Set(stops.map((stop) => stop.finish_reason.normalized))], ['unknown']);
  });
}

test('a name that every object has, for whatever the application names', async () => {
  const stops = await readable(async (api) => {
    for (const [n, word] of INHERITED.entries()) {
      const named = JSON.parse(`{${JSON.stringify(word)}: 1}`);
      const stopWhen = Object.fromEntries(Object.keys(named).map((name) => [name, () => true]));
      const stopcause = { runId: `named-${n}`, agent: word, labels: named, doneTools: [word], contract: word };
      await api.generateText({ ...given(scriptedModel([{ calls: [call('lookup')] }])), stopWhen, stopcause });
    }
  });
  assert.deepEqual(
    stops.map((stop) => stop.conditions[0].name),
    INHERITED,
  );
});

test('a step that asks for more approvals than a line can hold is a receipt all the same', async () => {
  const long = (n) => `${'i'.repeat(180)}-${n}`;
  const calls = Array.from({ length: 3000 }, (_, n) => call('refund', { id: long(n) }));
  const api = watched({ route: { owner: `team:${'o'.repeat(190)}`, dueMs: 1000, resumeToken: 't'.repeat(200) } });
  await api.generateText(given(scriptedModel([{ calls }]), 'many'));
  const stop = await api.stopped();
  assert.ok(Buffer.byteLength(JSON.stringify(stop)) < 1 << 20);
  assert.equal(stop.stop_cause, 'approval_pending');
  assert.equal(stop.approvals.length, 500);
  assert.ok(stop.findings.some(({ code }) => code === 'approvals_cut'));
});

test('a megabyte of text where a word should be leaves no trace', async () => {
  const huge = 'w'.repeat(1 << 20);
  const stops = await readable(async (api) => {
    await api.generateText(given(scriptedModel([{ text: 'x', finish: huge, raw: huge }]), 'finish'));
    await api.generateText({ ...given(says('x')), stopcause: { runId: huge, agent: huge, subject: huge } });
  });
  assert.ok(stops.every((stop) => JSON.stringify(stop).length < 4000));
});
