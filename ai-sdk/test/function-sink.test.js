// Records to a function of the host's, which may do anything.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { functionSink } from '../src/sinks.js';
import { fill, receipt, receipts } from './support/watchful.js';

test('a function gets each record, outside of the run', async () => {
  const taken = [];
  const sink = functionSink((record) => void taken.push(record));
  const records = receipts(3);

  fill(sink, records);
  assert.deepEqual(taken, []);
  await sink.flush();

  assert.deepEqual(taken, records);
  assert.notEqual(taken[0], records[0]);
});

test('a function that throws, rejects or hangs costs that record', async () => {
  const taken = [];
  const deeds = [() => assert.fail('at once'), async () => assert.fail('later'), () => new Promise(() => {})];
  const sink = functionSink((record) => (deeds.length ? deeds.shift()() : taken.push(record)), { timeoutMs: 20 });

  fill(sink, receipts(4));
  await sink.flush();

  assert.deepEqual(sink.stats(), { accepted: 4, delivered: 1, dropped: 3, waiting: 0 });
  fill(sink, receipts(1));
  await sink.flush();
  assert.deepEqual(
    taken.map(({ dropped }) => dropped),
    [undefined, 3],
  );
});

test('a function that watches a run of its own does not go round in one turn', async () => {
  let left = 50;
  const sink = functionSink(() => {
    left -= 1;
    if (left > 0) sink.accept(receipt());
  });

  sink.accept(receipt());
  let turns = 0;
  while (left > 0) {
    await turn();
    turns += 1;
  }

  assert.ok(turns >= 25, `${turns} turns`);
});
