// How a process ends: what is written then, and what is not. Each case is a process of its own.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { receiver } from './support/receiver.js';
import './support/watchful.js';

const source = (name) => JSON.stringify(new URL(`../src/${name}`, import.meta.url).href);
const HEAD = `
  import { fileSink } from ${source('file-sink.js')};
  import { httpSink, functionSink } from ${source('sinks.js')};
  import { fillIn } from ${source('node-platform.js')};
  const [target] = process.argv.slice(1);
  const fill = (sink, many) => {
    for (let each = 0; each < many; each += 1) sink.accept({ kind: 'run.stopped', run_id: 'r' + each, at: 'then' });
  };
  const turn = () => new Promise((resolve) => setImmediate(resolve));
`;

// Nothing here may reach the spool of this machine.
const env = { ...process.env, STOPCAUSE_SPOOL: '/dev/null/spool' };

/** What becomes of a process that runs `script`. */
async function end(script, target, { during } = {}) {
  const start = performance.now();
  const child = spawn(process.execPath, ['--input-type=module', '-e', HEAD + script, target], { env });
  const [said, complained] = [text(child.stdout), text(child.stderr)];
  await during?.(child);
  const [code, signal] = await once(child, 'close');
  return { code, signal, ms: performance.now() - start, said: await said, complained: await complained };
}

async function idsIn(path) {
  const lines = (await readFile(path, 'utf8').catch(() => '')).split('\n').filter(Boolean);
  return new Set(lines.map((line) => JSON.parse(line).run_id)).size;
}

const withFile = (name, body) =>
  test(name, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'exit-'));
    t.after(() => rm(folder, { recursive: true }));
    await body(join(folder, 'new', 'receipts.ndjson'), t);
  });

for (const [how, script, expected] of [
  ['ends by itself', '', { code: 0 }],
  ['calls process.exit()', 'process.exit(3);', { code: 3 }],
  [
    'calls process.exit() while a write is in flight',
    'await turn(); await turn(); fill(sink, 1000); process.exit(3);',
    { code: 3 },
  ],
  ['throws', "throw new Error('of the host');", { code: 1 }],
  ['rejects', "Promise.reject(new Error('of the host'));", { code: 1 }],
  ['throws in a timer', "setTimeout(() => { fill(sink, 1000); throw new Error('of the host'); }, 5);", { code: 1 }],
]) {
  withFile(`a process that ${how} leaves every record in the file`, async (path) => {
    const { code, complained } = await end(`const sink = fileSink(target); fill(sink, 1000); ${script}`, path);

    assert.equal(code, expected.code, complained);
    assert.equal(await idsIn(path), 1000);
    assert.doesNotMatch(complained, /stopcause/);
  });
}

withFile('a worker thread that ends leaves every record in the file', async (path) => {
  const worker = `
    const { Worker } = await import('node:worker_threads');
    const code = \`import(${source('file-sink.js').replaceAll('"', "'")}).then(({ fileSink }) => {
      const sink = fileSink(process.argv.at(-1));
      for (let each = 0; each < 1000; each += 1) sink.accept({ kind: 'run.stopped', run_id: 'r' + each, at: 'then' });
      process.exit();
    })\`;
    new Worker(code, { eval: true, argv: [target] });
  `;
  const { code, complained } = await end(worker, path);

  assert.equal(code, 0, complained);
  assert.equal(await idsIn(path), 1000);
});

withFile('SIGTERM ends the process at once as it does without us: what had been written stays', async (path) => {
  const script = `
    const sink = fileSink(target);
    fill(sink, 1000);
    await sink.flush();
    console.log('ready');
    setInterval(() => {}, 1000);
  `;
  const { code, signal } = await end(script, path, {
    during: async (child) => {
      await once(child.stdout, 'data');
      child.kill('SIGTERM');
    },
  });

  assert.deepEqual([code, signal], [null, 'SIGTERM']);
  assert.equal(await idsIn(path), 1000);
});

withFile('SIGTERM takes what is accepted in the same turn with it, and nothing older', async (path) => {
  const script = `
    const sink = fileSink(target);
    fill(sink, 100);
    await sink.flush();
    for (let each = 0; each < 50; each += 1) sink.accept({ kind: 'run.stopped', run_id: 'late' + each, at: 'then' });
    process.kill(process.pid, 'SIGTERM');
    for (;;);
  `;
  const { signal } = await end(script, path);

  assert.equal(signal, 'SIGTERM');
  assert.equal(await idsIn(path), 100);
});

withFile('there is no listener that changes how the host ends', async (path) => {
  const script = `
    const before = ['beforeExit', 'exit'].map((each) => process.listenerCount(each));
    const names = process.eventNames();
    const sink = fileSink(target);
    fill(sink, 1);
    fill(fileSink(target + '2'), 1);
    const after = ['beforeExit', 'exit'].map((each, index) => process.listenerCount(each) - before[index]);
    const others = process.eventNames().filter((each) => ![...names, 'beforeExit', 'exit'].includes(each));
    console.log(JSON.stringify([after, others]));
  `;
  const { said } = await end(script, path);

  assert.deepEqual(JSON.parse(said), [[1, 1], []]);
});

withFile('a sink that waits keeps no process alive', async (path) => {
  const { code, ms } = await end(
    'fileSink(target); functionSink(() => {}); httpSink({ url: "http://x.example" });',
    path,
  );

  assert.equal(code, 0);
  assert.ok(ms < 5000);
});

withFile('a file that cannot be written does not hold the process up, and says that records are lost', async (path) => {
  const { code, ms, complained } = await end('fill(fileSink("/dev/null/receipts.ndjson"), 10);', path);

  assert.equal(code, 0);
  assert.ok(ms < 1500, String(ms));
  assert.match(complained, /fileSink cannot deliver \(E(NOTDIR|EXIST)\)/);
  assert.match(complained, /records for fileSink could not be written when the process ended \(E(NOTDIR|EXIST)\)/);
});

test('over HTTP a process that ends by itself sends what waits', async (t) => {
  const place = await receiver();
  t.after(place.close);

  const { code } = await end('fillIn(); fill(httpSink({ url: target, batch: 300 }), 1000);', place.url);

  assert.equal(code, 0);
  assert.equal(place.received.length, 1000);
});

test('over HTTP process.exit() loses what waits, and says how many', async (t) => {
  const place = await receiver();
  t.after(place.close);

  const { code, complained } = await end('fillIn(); fill(httpSink({ url: target }), 10); process.exit(3);', place.url);

  assert.equal(code, 3);
  assert.equal(place.received.length, 0);
  assert.match(complained, /10 records for httpSink could not be sent before the process ended/);
});

test('an address that never answers ends the process late by no more than its timeout', async (t) => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.after(() => silent.close());

  const script = 'fillIn(); fill(httpSink({ url: target, timeoutMs: 300 }), 10);';
  const { code, ms, complained } = await end(script, `http://127.0.0.1:${silent.address().port}/`);

  assert.equal(code, 0);
  assert.ok(ms < 6000, String(ms));
  assert.match(complained, /10 records for httpSink could not be sent/);
});

test('a host that waits for a flush gets its answer, also over a dead sink', async () => {
  const script = `
    const sink = functionSink(() => new Promise(() => {}), { flushMs: 100 });
    fill(sink, 10);
    await sink.flush();
    console.log('flushed');
  `;
  const { code, said } = await end(script, '');

  assert.equal(code, 0);
  assert.equal(said, 'flushed\n');
});
