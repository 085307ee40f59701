// The queue between a run and a sink: what is delivered, what is lost, and that the host never notices.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import { platform } from '../src/platform.js';
import { FAST, fails, outbox } from './support/outbox.js';
import { complaints, fill, idsOf, receipt, receipts } from './support/watchful.js';

test('records come out in order, each with an id of its own, in batches', async () => {
  const { batches, box } = outbox(undefined, { maxBatch: 200 });
  const records = receipts(450);

  fill(box, records);
  assert.equal(batches.length, 0); // nothing happens on the way of the host
  await box.flush();

  assert.deepEqual(
    batches.map((each) => each.length),
    [200, 200, 50],
  );
  assert.deepEqual(idsOf(batches.flat()), idsOf(records));
  assert.equal(new Set(batches.flat().map(({ record_id }) => record_id)).size, 450);
  assert.deepEqual(box.stats(), { accepted: 450, delivered: 450, dropped: 0, waiting: 0 });
});

test('two sinks that take one record give it one id', async () => {
  const [one, other] = [outbox(), outbox()];
  const record = receipt();

  one.box.accept(record);
  other.box.accept(record);
  one.box.accept(Object.freeze(receipt()));
  await Promise.all([one.box.flush(), other.box.flush()]);

  assert.equal(one.batches[0][0].record_id, other.batches[0][0].record_id);
  assert.ok(one.batches[0][1].record_id);
});

test('a batch is bounded in length too', async () => {
  const { batches, box } = outbox(undefined, { maxBytes: 500 });

  fill(box, receipts(10));
  await box.flush();

  assert.ok(batches.length > 2);
  assert.ok(batches.every((each) => each.length < 5));
  assert.equal(batches.flat().length, 10);
});

test('there is one delivery at a time', async () => {
  let running = 0;
  const { batches, box } = outbox(
    async () => {
      running += 1;
      assert.equal(running, 1);
      await wait(3);
      running -= 1;
    },
    { maxBatch: 2 },
  );

  fill(box, receipts(3));
  await turn();
  fill(box, receipts(3));
  await box.flush();

  assert.equal(batches.length, 3);
  assert.equal(box.stats().delivered, 6);
});

for (const [how, answer] of Object.entries({
  'says so': fails,
  throws: () => assert.fail('at once'),
  rejects: async () => assert.fail('later'),
})) {
  test(`a delivery that ${how} is tried again`, async () => {
    const { batches, box } = outbox((number) => (number < 4 ? answer() : undefined));

    fill(box, receipts(3));
    await box.flush();

    assert.deepEqual(
      batches.map((each) => idsOf(each)),
      Array(4).fill(idsOf(batches[0])),
    );
    assert.deepEqual(box.stats(), { accepted: 3, delivered: 3, dropped: 0, waiting: 0 });
    assert.match(complaints().join(), /box\d+ cannot deliver/);
  });
}

test('a delivery that hangs is told to stop, given up and tried again', async () => {
  let told = false;
  const { box } = outbox(
    (number, _lines, signal) => {
      if (number > 1) return undefined;
      signal.addEventListener('abort', () => {
        told = true;
      });
      return new Promise(() => {});
    },
    { timeoutMs: 20 },
  );

  box.accept(receipt());
  await box.flush();

  assert.equal(told, true);
  assert.equal(box.stats().delivered, 1);
});

test('a delivery that fails after it was given up harms nobody', async () => {
  const { box } = outbox((number) => (number === 1 ? wait(30).then(() => assert.fail('late')) : undefined), {
    timeoutMs: 5,
  });

  box.accept(receipt());
  await box.flush();
  await wait(40);

  assert.equal(box.stats().delivered, 1);
});

test('a full queue loses what comes, and the next record says how many', async () => {
  let isOpen = false;
  const { batches, box } = outbox(() => (isOpen ? undefined : { rest: 'retry' }), { maxQueue: 10 });

  fill(box, receipts(25));
  assert.deepEqual(box.stats(), { accepted: 25, delivered: 0, dropped: 15, waiting: 10 });
  isOpen = true;
  await box.flush();
  fill(box, receipts(2));
  await box.flush();

  assert.deepEqual(
    batches.at(-1).map(({ dropped }) => dropped),
    [15, undefined],
  );
  assert.deepEqual(box.stats(), { accepted: 27, delivered: 12, dropped: 15, waiting: 0 });
  assert.match(complaints().join(), /queue full/);
});

test('records that are refused are given up, and the next record says how many', async () => {
  const { batches, box } = outbox((number) => (number <= 2 ? { rest: 'give_up' } : undefined));

  fill(box, receipts(3));
  await box.flush();
  fill(box, receipts(2)); // the first of them carries the count of the three, and is lost with it
  await box.flush();
  fill(box, receipts(1));
  await box.flush();

  assert.deepEqual(
    batches.map(([{ dropped }]) => dropped),
    [undefined, 3, 5],
  );
  assert.deepEqual(box.stats(), { accepted: 6, delivered: 1, dropped: 5, waiting: 0 });
});

test('what is delivered of a batch is not delivered again', async () => {
  const { batches, box } = outbox((number) => (number === 1 ? { rest: 'retry', done: 2 } : undefined));
  const records = receipts(5);

  fill(box, records);
  await box.flush();

  assert.deepEqual(batches.map(idsOf), [idsOf(records), idsOf(records.slice(2))]);
  assert.equal(box.stats().delivered, 5);
});

test('a batch that is too large is halved until it fits, and one that never fits is lost', async () => {
  const poison = 'r-too-large';
  const { batches, box } = outbox((_number, lines) =>
    lines.length > 3 || lines.some((line) => line.includes(poison)) ? { rest: 'halve' } : undefined,
  );

  fill(box, [...receipts(8), receipt({ run_id: poison }), ...receipts(4)]);
  await box.flush();

  assert.deepEqual(box.stats(), { accepted: 13, delivered: 12, dropped: 1, waiting: 0 });
  assert.ok(batches.length < 20);
});

test('after a while a batch is given up, so that one bad record does not hold the others for ever', async () => {
  const { box } = outbox((_number, lines) => (lines.some((line) => line.includes('bad')) ? fails() : undefined), {
    retry: { ...FAST, forMs: 30 },
    maxBatch: 1,
  });

  fill(box, [receipt({ run_id: 'bad' }), receipt()]);
  await box.flush();

  assert.deepEqual(box.stats(), { accepted: 2, delivered: 1, dropped: 1, waiting: 0 });
});

test('what cannot be written costs itself only', async () => {
  const { batches, box } = outbox();
  const trap = Object.defineProperty(receipt(), 'steps', { enumerable: true, get: () => assert.fail('of the host') });
  const loop = receipt();
  loop.self = loop;

  fill(box, [undefined, null, 'text', 7, receipt({ steps: 1n }), trap, loop, receipt({ agent: 'x'.repeat(1 << 21) })]);
  const good = receipt();
  box.accept(good);
  await box.flush();

  assert.deepEqual(idsOf(batches.flat()), [good.run_id]);
  assert.deepEqual(box.stats(), { accepted: 9, delivered: 1, dropped: 8, waiting: 0 });
});

test('a personal value is hashed behind, by WebCrypto, and what follows keeps its place', async (t) => {
  t.mock.method(platform, 'env', (name) => (name === 'STOPCAUSE_HMAC_KEY' ? 'key' : undefined));
  const { batches, box } = outbox();

  fill(box, [receipt({ thread_id: 'ann@example.com' }), receipt({ thread_id: 't1' })]);
  await box.flush();

  assert.match(batches[0][0].thread_id, /^hmac:[0-9a-f]{32}$/);
  assert.equal(batches[0][1].thread_id, 't1');
});

test('what is said of a failure holds its code, never its text', async () => {
  const canary = 'some words of a prompt';
  const { box } = outbox((number) => {
    if (number === 1) throw Object.assign(new Error(canary), { name: canary });
    if (number === 2) throw Object.assign(new TypeError(canary), { cause: { code: 'ECONNRESET' } });
  });

  box.accept(receipt());
  await box.flush();

  assert.match(complaints()[0], /cannot deliver \(unknown\)/);
  assert.match(complaints()[1], /cannot deliver \(ECONNRESET\)/);
  assert.ok(!complaints().join().includes(canary));
});
