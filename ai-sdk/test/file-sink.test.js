// Records in a file: whole lines, whatever happens to the file, the folder and the disk.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { appendFile, readdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { fileSink } from '../src/file-sink.js';
import { dataFolder, spoolFolder } from '../src/folders.js';
import { inFolder, read, recordsIn } from './support/folder.js';
import { fill, idsOf, receipt, receipts } from './support/watchful.js';

const retry = { firstMs: 1, mostMs: 5 };
const run = promisify(execFile);

inFolder('each record is a line, and a second sink on the path shares the file', async (folder) => {
  const path = join(folder, 'receipts.ndjson');
  const [one, other] = [fileSink(path), fileSink(pathToFileURL(path))];
  const records = receipts(300);

  fill(one, records.slice(0, 100));
  fill(other, records.slice(100, 200));
  await one.close();
  await one.close();
  fill(other, records.slice(200));
  await other.close();

  assert.deepEqual(idsOf(await recordsIn(path)), idsOf(records));
  assert.deepEqual(other.stats(), { accepted: 300, delivered: 300, dropped: 0, waiting: 0 });
});

inFolder('a path that was closed can be opened again', async (folder) => {
  const path = join(folder, 'receipts.ndjson');
  for (const sink of [fileSink(path), fileSink(path)]) {
    sink.accept(receipt());
    await sink.close();
  }
  const again = fileSink(path);
  again.accept(receipt());
  await again.close();

  assert.equal((await read(path)).length, 3);
});

inFolder("without a path the file is this process's own in the spool, which only its user reads", async (folder) => {
  process.env.STOPCAUSE_DATA = join(folder, 'data');
  const sink = fileSink();

  sink.accept(receipt());
  await sink.close();

  const spool = join(folder, 'data', 'spool');
  const [name, ...others] = await readdir(spool);
  assert.deepEqual(others, []);
  assert.match(name, new RegExp(`^ai-sdk-${process.pid}-[0-9a-f]{8}\\.ndjson$`));
  const modes = [spool, join(spool, name)].map(async (each) => (await stat(each)).mode & 0o777);
  assert.deepEqual(await Promise.all(modes), [0o700, 0o600]);
});

inFolder('a sink that gets no record makes no file', async (folder) => {
  await fileSink(join(folder, 'none', 'receipts.ndjson')).close();

  assert.deepEqual(await readdir(folder), []);
});

inFolder('the folders are those of the settings', async (folder) => {
  process.env.XDG_DATA_HOME = folder;
  assert.deepEqual([dataFolder(), spoolFolder()], [join(folder, 'stopcause'), join(folder, 'stopcause', 'spool')]);
  delete process.env.XDG_DATA_HOME;
  process.env.HOME = folder;
  assert.equal(dataFolder(), join(folder, '.local', 'share', 'stopcause'));
  process.env.STOPCAUSE_DATA = join(folder, 'data');
  assert.equal(spoolFolder(), join(folder, 'data', 'spool'));
  process.env.STOPCAUSE_SPOOL = join(folder, 'elsewhere');
  assert.equal(spoolFolder(), join(folder, 'elsewhere'));
});

inFolder('a folder that is missing is made, also when it goes away later', async (folder) => {
  const path = join(folder, 'a', 'b', 'receipts.ndjson');
  const sink = fileSink(path, { retry });
  const records = receipts(6);

  fill(sink, records.slice(0, 2));
  await sink.flush();
  await rm(join(folder, 'a'), { recursive: true });
  fill(sink, records.slice(2));
  await sink.close();

  assert.deepEqual(idsOf(await recordsIn(path)), idsOf(records.slice(2)));
  assert.equal(sink.stats().delivered, 6);
});

inFolder('after a rotation the lines go into the new file, and none is lost', async (folder) => {
  const [path, moved] = ['receipts.ndjson', 'receipts.1.ndjson'].map((name) => join(folder, name));
  const sink = fileSink(path, { retry });
  const records = receipts(3);

  for (const record of records) {
    sink.accept(record);
    await sink.flush();
    if (record === records[0]) await rename(path, moved);
  }
  await sink.close();

  assert.deepEqual(
    [idsOf(await recordsIn(moved)), idsOf(await recordsIn(path))],
    [idsOf(records.slice(0, 2)), idsOf(records.slice(2))],
  );
});

inFolder('a line that somebody tore gets its end before ours begins', async (folder) => {
  const path = join(folder, 'receipts.ndjson');
  await writeFile(path, '{"torn":');
  const sink = fileSink(path);

  sink.accept(receipt());
  await sink.close();

  const [torn, ours] = await read(path);
  assert.equal(torn, '{"torn":');
  assert.ok(JSON.parse(ours).run_id);
});

inFolder('a pipe takes lines too, though it keeps nothing', async (folder) => {
  const path = join(folder, 'pipe');
  await run('mkfifo', [path]);
  const reader = run('head', ['-n', '2', path]);
  const sink = fileSink(path, { retry });
  const records = receipts(2);

  fill(sink, records);
  await sink.flush();
  const { stdout } = await reader;

  assert.deepEqual(
    idsOf(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ),
    idsOf(records),
  );
  assert.equal(sink.stats().delivered, 2);
  await sink.close();
});

inFolder('a link is followed', async (folder) => {
  const [path, link] = ['real.ndjson', 'link.ndjson'].map((name) => join(folder, name));
  await writeFile(path, '');
  await symlink(path, link);
  const sink = fileSink(link, { retry });

  for (const record of receipts(2)) {
    sink.accept(record);
    await sink.flush();
  }
  await sink.close();

  assert.equal((await read(path)).length, 2);
});

inFolder('several processes may share a path', async (folder) => {
  const path = join(folder, 'receipts.ndjson');
  const script = `
    import { fileSink } from ${JSON.stringify(new URL('../src/file-sink.js', import.meta.url).href)};
    const sink = fileSink(process.argv[1]);
    for (let each = 0; each < 300; each += 1) {
      sink.accept({ kind: 'run.stopped', run_id: process.pid + '-' + each, at: 'then' });
      if (each % 10 === 0) await sink.flush();
    }
  `;
  const one = () => run(process.execPath, ['--input-type=module', '-e', script, path]);

  await Promise.all([one(), one(), one()]);

  assert.equal(new Set(idsOf(await recordsIn(path))).size, 900);
});

inFolder('what is appended beside it stays', async (folder) => {
  const path = join(folder, 'receipts.ndjson');
  const sink = fileSink(path);
  sink.accept(receipt());
  await sink.flush();
  await appendFile(path, '{"run_id":"theirs"}\n');
  sink.accept(receipt());
  await sink.close();

  assert.equal((await recordsIn(path))[1].run_id, 'theirs');
  assert.equal((await readdir(dirname(path))).length, 1);
});

for (const path of [null, 7, new URL('https://stopcause.example/')]) {
  test(`${path} is no file: it is said, nothing is thrown, records are counted`, async () => {
    const sink = fileSink(path);

    sink.accept(receipt());
    await sink.close();

    assert.deepEqual(sink.stats(), { accepted: 1, delivered: 0, dropped: 1, waiting: 0 });
  });
}
