// The queue between a run and a sink: what is delivered, what is lost, and that the host never notices.
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { test } from 'node:test';
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import { fillIn } from '../src/node-platform.js';
import { Outbox } from '../src/outbox.js';
import { platform } from '../src/platform.js';
import { functionSink } from '../src/sinks.js';
import { complaints, receipt, receipts, until } from './support/watchful.js';

let boxes = 0; // a name each: what is said twice of one is said once
const FAST = { firstMs: 1, mostMs: 4, forMs: 10_000 };

/** An outbox and what its deliveries got; `answer` says what becomes of the number-th batch. */
function outbox(answer = () => undefined, options = {}) {
  boxes += 1;
  const batches = [];
  const deliver = (lines, signal) => {
    batches.push(lines.map((line) => JSON.parse(line)));
    return answer(batches.length, lines, signal);
  };
  return { batches, box: new Outbox({ name: `box${boxes}`, deliver, retry: FAST, ...options }) };
}

const fill = (box, records) => {
  for (const each of records) box.accept(each);
};
const idsOf = (records) => records.map(({ run_id }) => run_id);
const fails = () => ({ rest: 'retry' });

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

test('a flush ends in a bounded time and never rejects', async () => {
  const { box } = outbox(() => new Promise(() => {}), { flushMs: 30 });
  box.accept(receipt());
  const start = performance.now();

  await box.flush();

  assert.ok(performance.now() - start >= 25);
  assert.deepEqual(box.stats(), { accepted: 1, delivered: 0, dropped: 0, waiting: 1 });
  await outbox().box.flush(); // nothing to wait for
});

test('a flush waits for what was accepted before it, not for what comes after', async () => {
  const { box } = outbox((number) => (number === 1 ? undefined : new Promise(() => {})));
  box.accept(receipt());
  const flushed = box.flush();
  await turn();
  box.accept(receipt());

  await flushed;

  assert.equal(box.stats().delivered, 1);
});

test('a flush ends a pause of ours, not one that the receiver asked for', async () => {
  const asked = outbox((number) => (number === 1 ? { rest: 'retry', afterMs: 60 } : undefined));
  const ours = outbox((number) => (number === 1 ? fails() : undefined), { retry: { firstMs: 5000 } });
  const start = performance.now();
  for (const { box, batches } of [asked, ours]) {
    box.accept(receipt());
    await until(() => batches.length);
    await turn();
    await box.flush();
    assert.equal(box.stats().delivered, 1);
  }
  const took = performance.now() - start;
  assert.ok(took >= 55 && took < 2000, String(took));
});

test('a closed outbox delivers what it has, ends, and counts what comes after', async () => {
  let closed = 0;
  const onClosed = () => {
    closed += 1;
    assert.fail('of the sink');
  };
  const { batches, box } = outbox(undefined, { onClosed });
  fill(box, receipts(3));

  const closing = box.close();
  box.accept(receipt());
  await Promise.all([closing, box.close()]);

  assert.equal(closed, 1);
  assert.equal(batches.flat().length, 3);
  assert.deepEqual(box.stats(), { accepted: 4, delivered: 3, dropped: 1, waiting: 0 });
});

test('closing over a dead sink is bounded, and what is left is counted', async () => {
  const { box } = outbox(() => new Promise(() => {}), { flushMs: 20 });
  fill(box, receipts(3));

  await box.close();

  assert.deepEqual(box.stats(), { accepted: 3, delivered: 0, dropped: 3, waiting: 0 });
});

test('memory stays bounded over a dead sink', async () => {
  const { box } = outbox(fails, { maxQueue: 500, retry: { firstMs: 1, mostMs: 1 } });
  const held = () => {
    globalThis.gc();
    return process.memoryUsage().heapUsed;
  };
  const push = async (many) => {
    for (let each = 0; each < many; each += 1) {
      box.accept(receipt());
      if (each % 1000 === 0) await wait(1);
    }
  };
  await push(5000);
  const before = held();

  await push(50_000);

  const grown = held() - before;
  assert.ok(grown < 2_000_000, `${grown} bytes more`);
  assert.equal(box.stats().waiting, 500);
  await box.close();
});

test('an edge runtime is asked to stay for each delivery, also while the sink pauses', async () => {
  const held = [];
  const { box } = outbox((number) => (number < 3 ? fails() : undefined), {
    waitUntil: (delivery) => held.push(delivery),
  });

  fill(box, receipts(5));
  assert.equal(held.length, 1);
  await Promise.all(held);
  assert.equal(box.stats().delivered, 5);
  box.accept(receipt());
  assert.equal(held.length, 2);
  await Promise.all(held);
  assert.equal(box.stats().delivered, 6);
});

test('a waitUntil that throws is survived and said', async () => {
  const { box } = outbox(undefined, { waitUntil: () => assert.fail('no request here') });

  box.accept(receipt());
  await box.flush();

  assert.equal(box.stats().delivered, 1);
  assert.match(complaints().join(), /waitUntil of box\d+ throws/);
});

test('deliveries run outside of the async context of the run', async () => {
  fillIn();
  const context = new AsyncLocalStorage();
  const seen = [];
  const { box } = outbox(() => void seen.push(context.getStore()));

  await context.run('a trace of the host', async () => {
    box.accept(receipt());
    await box.flush();
  });

  assert.deepEqual(seen, [undefined]);
});

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
