// How waiting for an outbox ends: a flush, closing it, an edge runtime that stays, memory over a dead sink.
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { test } from 'node:test';
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import { fillIn } from '../src/node-platform.js';
import { fails, outbox } from './support/outbox.js';
import { complaints, fill, receipt, receipts, until } from './support/watchful.js';

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
  const { box } = outbox(fails, { maxQueue: 500, flushMs: 10, retry: { firstMs: 1, mostMs: 1 } });
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
