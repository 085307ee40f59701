// Everything that an application says in a path is marked: prompts, system, messages, tool descriptions, arguments,
// results, exception texts, abort reasons, metadata, labels with spaces. No record of any path holds the mark.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as ai from 'ai';
import { allPaths } from './paths/index.js';
import { CANARY } from './support/kit.js';
import { runPath } from './support/transcript.js';

const MARKS = [CANARY, CANARY.split(' ')[0], encodeURIComponent(CANARY), CANARY.replaceAll(' ', '_')];
const holdsMark = (text) => MARKS.some((mark) => text.includes(mark));
const IDENTIFIER = /^[A-Za-z0-9._:/@#+=~-]{1,200}$/;

const paths = await allPaths();
const unhandled = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason?.name ?? typeof reason));

/** Every string of a record, keys too. */
function* strings(value) {
  if (typeof value === 'string') yield value;
  if (typeof value !== 'object' || value === null) return;
  for (const [key, each] of Object.entries(value)) {
    if (!Array.isArray(value)) yield key;
    yield* strings(each);
  }
}

for (const path of paths) {
  test(path.id, async () => {
    const { records, transcript } = await runPath(path, { ai, hooked: true });
    assert.ok(holdsMark(JSON.stringify(transcript)), 'the path says something that is marked');
    for (const record of records) {
      assert.ok(!holdsMark(JSON.stringify(record)), `${record.kind} holds the mark`);
      const prose = [...strings(record)].filter((text) => !IDENTIFIER.test(text));
      assert.deepEqual(prose, [], `${record.kind} holds what is no identifier`);
    }
  });
}

test('the search would find the mark, wherever it stood', () => {
  const record = { kind: 'run.stopped', error: { type: 'Error' }, labels: {}, approvals: [{ tool: 'refund' }] };
  for (const put of [
    (text) => ({ ...record, error: { type: text } }),
    (text) => ({ ...record, labels: { [text]: 'x' } }),
    (text) => ({ ...record, approvals: [{ tool: `before ${text} after` }] }),
  ]) {
    for (const mark of MARKS) assert.ok(holdsMark(JSON.stringify(put(mark))));
  }
  assert.ok(!holdsMark(JSON.stringify(record)));
});

test('no rejection was left unhandled over all paths', () => {
  assert.deepEqual(unhandled, []);
});
