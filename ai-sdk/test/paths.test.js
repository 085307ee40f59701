// Every path runs again with the real SDK and must leave the records that fixtures/ai_sdk keeps, ids and times aside.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import * as ai from 'ai';
import { allPaths } from './paths/index.js';
import { caseOf, FIXTURES } from './support/cases.js';
import { runPath } from './support/transcript.js';

const paths = await allPaths();

test('every path has a case file, and every case file a path', async () => {
  const files = (await readdir(FIXTURES)).map((name) => name.replace(/\.json$/, '')).sort();
  assert.deepEqual(files, paths.map(({ id }) => id).sort());
});

for (const path of paths) {
  test(path.id, async () => {
    const kept = JSON.parse(await readFile(new URL(`${path.id}.json`, FIXTURES), 'utf8'));
    const ran = await runPath(path, { ai, hooked: true });
    const made = caseOf(path, ran);
    assert.deepEqual({ ...made, source: kept.source }, kept);
    assert.equal(causeOf(made, path), path.cause);
    assert.deepEqual(ran.transcript.unhandled, []);
  });
}

function causeOf({ records }, { id, judged = id, attempt }) {
  const stops = records.filter((record) => record.kind === 'run.stopped' && record.run_id === judged);
  const stop = attempt === undefined ? stops.at(-1) : stops.find((record) => (record.attempt ?? 1) === attempt);
  return stop?.stop_cause ?? null;
}
