// A file sink over a disk that refuses, is full, tears a line or hangs: records wait, and none is lost or broken.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdir, open, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import process from 'node:process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { fileSink } from '../src/file-sink.js';
import { LineFile } from '../src/line-file.js';
import { inFolder, read, recordsIn } from './support/folder.js';
import { complaints, fill, idsOf, receipts, until } from './support/watchful.js';

const retry = { firstMs: 1, mostMs: 5 };
const run = promisify(execFile);

/** What all file handles are made from: the only place where a disk can be made to fail for one of them. */
async function anyHandle(path) {
  const handle = await open(path);
  await handle.close();
  return Object.getPrototypeOf(handle);
}

for (const [what, prepare, mend] of [
  ['a folder that may not be written', (folder) => chmod(folder, 0o500), (folder) => chmod(folder, 0o700)],
  [
    'a file in place of a folder',
    (folder) => rm(folder, { recursive: true }).then(() => writeFile(folder, '')),
    (folder) => rm(folder),
  ],
]) {
  const skip = process.getuid?.() === 0 && what.includes('may not');
  (skip ? test.skip : inFolder)(
    `${what}: records wait, it is said, and they arrive once it is mended`,
    async (folder) => {
      const inner = join(folder, 'inner');
      await mkdir(inner);
      await prepare(inner);
      const path = join(inner, 'receipts.ndjson');
      const sink = fileSink(path, { retry, flushMs: 30 });
      const records = receipts(3);

      fill(sink, records);
      await sink.flush();
      assert.equal(sink.stats().waiting, 3);
      assert.match(complaints().join(), /fileSink cannot deliver \(E(ACCES|NOTDIR|EXIST)\)/);
      await mend(inner);
      await until(() => sink.stats().delivered === 3);
      await sink.close();

      assert.deepEqual(idsOf(await recordsIn(path)), idsOf(records));
    },
  );
}

inFolder('a full disk: what was written counts, what was torn is written again, once there is room', async (folder) => {
  const path = join(folder, 'receipts.ndjson');
  // A limit on the size of a file is a disk that is full at that point; it holds for one process.
  const script = `
    import { fileSink } from ${JSON.stringify(new URL('../src/file-sink.js', import.meta.url).href)};
    process.on('SIGXFSZ', () => {});
    const sink = fileSink(process.argv[1], { retry: { firstMs: 1, mostMs: 5 }, flushMs: 100 });
    for (let each = 0; each < 40; each += 1) sink.accept({ kind: 'run.stopped', run_id: 'r' + each, at: 'then' });
    await sink.flush();
    const full = sink.stats();
    (await import('node:fs')).renameSync(process.argv[1], process.argv[1] + '.full');
    await sink.flush();
    console.log(JSON.stringify([full, sink.stats()]));
  `;
  const node = [process.execPath, '--input-type=module', '-e', script, path];
  const { stdout, stderr } = await run('bash', ['-c', 'ulimit -f 3; exec "$0" "$@"', ...node]);

  const [full, after] = JSON.parse(stdout);
  assert.ok(full.delivered > 10 && full.waiting > 5, stdout);
  assert.deepEqual(after, { accepted: 40, delivered: 40, dropped: 0, waiting: 0 });
  assert.match(stderr, /fileSink cannot deliver \(EFBIG\)/);
  const [first, second] = [await read(`${path}.full`), await read(path)];
  const whole = [...first.slice(0, full.delivered), ...second].map((line) => JSON.parse(line).run_id);
  assert.deepEqual(
    whole,
    Array.from({ length: 40 }, (_, index) => `r${index}`),
  );
});

inFolder('a write that is torn goes on with the torn line on a line of its own', async (folder, t) => {
  const path = join(folder, 'receipts.ndjson');
  const file = new LineFile(path, false);
  await file.append(['first']);
  const handle = await anyHandle(path);
  const real = handle.write;
  const full = Object.assign(new Error(), { code: 'ENOSPC' });
  let writes = 0;
  t.mock.method(handle, 'write', function (bytes, at) {
    writes += 1;
    if (writes % 2 === 0) throw full;
    return real.call(this, bytes, at, [10, undefined, 3][writes - 1]); // room for "second\nthi", then for "\nth"
  });

  const answer = await file.append(['second', 'third', 'fourth']);
  assert.deepEqual(answer, { rest: 'retry', done: 1, why: 'ENOSPC' });
  assert.deepEqual(await file.append(['third', 'fourth']), { rest: 'retry', done: 0, why: 'ENOSPC' });
  assert.equal(await file.append(['third', 'fourth']), undefined);
  await file.close();

  assert.deepEqual(await read(path), ['first', 'second', 'thi', 'th', 'third', 'fourth']);
});

inFolder('a disk that does not keep what it took is no delivery', async (folder, t) => {
  const path = join(folder, 'receipts.ndjson');
  const file = new LineFile(path, false);
  await file.append(['first']);
  const handle = await anyHandle(path);
  const broken = t.mock.method(handle, 'datasync', () => Promise.reject(Object.assign(new Error(), { code: 'EIO' })));

  assert.deepEqual(await file.append(['second']), { rest: 'retry', done: 0, why: 'EIO' });
  broken.mock.restore();
  assert.equal(await file.append(['second']), undefined);
  await file.close();
});

inFolder('while a write hangs no second one is started', async (folder, t) => {
  const path = join(folder, 'receipts.ndjson');
  const file = new LineFile(path, false);
  await file.append(['first']);
  const handle = await anyHandle(path);
  const hung = t.mock.method(handle, 'datasync', () => new Promise(() => {}));

  void file.append(['second']);
  assert.deepEqual(await file.append(['second']), { rest: 'retry', why: 'EBUSY' });
  await until(() => hung.mock.callCount());

  assert.equal(hung.mock.callCount(), 1);
  await file.close();
});
