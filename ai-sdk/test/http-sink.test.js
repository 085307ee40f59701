// Records over HTTP, against a receiver that really reads them.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { httpSink } from '../src/sinks.js';
import { receiver } from './support/receiver.js';
import { complaints, fill, idsOf, receipt, receipts, until } from './support/watchful.js';

const retry = { firstMs: 1, mostMs: 5 };

/** A test with a receiver that is closed after it. */
const over = (name, answer, run) =>
  test(name, async (t) => {
    const place = await receiver(answer);
    t.after(place.close);
    await run(place, t);
  });

const saying =
  (status, headers = {}, until_ = Infinity) =>
  ({ response, number }) =>
    response.writeHead(number < until_ ? status : 202, headers).end('an answer that somebody has to read');

over(
  'records arrive as NDJSON by POST, with the headers of the host',
  undefined,
  async ({ url, received, headers }) => {
    const sink = httpSink({ url: new URL(url), headers: { authorization: 'Bearer t' } });
    const records = receipts(3);

    fill(sink, records);
    await sink.flush();

    assert.deepEqual(received, JSON.parse(JSON.stringify(records)));
    const [{ method, url: path, authorization, 'content-type': type }] = headers;
    assert.deepEqual([method, path, authorization, type], ['POST', '/v1/records', 'Bearer t', 'application/x-ndjson']);
  },
);

const talkative = ({ response }) => response.writeHead(200).end('x'.repeat(100_000));
over(
  'a connection serves again for the next batch, also after an answer that is long',
  talkative,
  async ({ url, posts, headers }) => {
    const sink = httpSink({ url, batch: 10 });

    fill(sink, receipts(100));
    await sink.flush();

    assert.deepEqual(
      posts.map((each) => each.length),
      Array(10).fill(10),
    );
    const connections = new Set(headers.map(({ port }) => port)).size;
    assert.ok(connections <= 3, `${connections}`); // a second one where the next batch came before the answer was read
  },
);

for (const status of [429, 500, 502, 503, 504]) {
  over(`${status} is tried again until it is taken`, saying(status, {}, 3), async ({ url, posts, received }) => {
    const sink = httpSink({ url, retry });
    const records = receipts(2);

    fill(sink, records);
    await sink.flush();

    assert.equal(posts.length, 3);
    assert.deepEqual(idsOf(received), idsOf(records));
    assert.deepEqual(sink.stats(), { accepted: 2, delivered: 2, dropped: 0, waiting: 0 });
  });
}

over('Retry-After in seconds is kept', saying(429, { 'retry-after': '1' }, 2), async ({ url, posts }) => {
  const sink = httpSink({ url, retry });
  const start = performance.now();

  fill(sink, receipts(1));
  await until(() => posts.length === 1);
  await sink.flush();

  assert.equal(posts.length, 2);
  assert.ok(performance.now() - start >= 950);
});

const inASecond = ({ response, number }) =>
  response.writeHead(number < 2 ? 503 : 202, { 'retry-after': new Date(Date.now() + 1500).toUTCString() }).end();
over('Retry-After as a date is kept', inASecond, async ({ url, posts }) => {
  const sink = httpSink({ url, retry });
  const start = performance.now();

  fill(sink, receipts(1));
  await sink.flush();

  assert.equal(posts.length, 2);
  assert.ok(performance.now() - start >= 400); // a date has whole seconds
});

for (const said of ['soon', '-5', '1e3']) {
  over(`Retry-After ${said} is no time and ours holds`, saying(503, { 'retry-after': said }, 2), async ({ url }) => {
    const sink = httpSink({ url, retry });

    fill(sink, receipts(1));
    await sink.flush();

    assert.equal(sink.stats().delivered, 1);
  });
}

const small = ({ response, lines }) => response.writeHead(lines.length > 7 ? 413 : 200).end();
over('413 halves the batch', small, async ({ url, received, posts }) => {
  const sink = httpSink({ url });
  const records = receipts(50);

  fill(sink, records);
  await sink.flush();

  assert.deepEqual(idsOf(received), idsOf(records));
  assert.ok(posts.length < 25);
});

over('one record that is too large alone is lost, and counted', saying(413), async ({ url, posts }) => {
  const sink = httpSink({ url });

  fill(sink, receipts(2));
  await sink.flush();

  assert.deepEqual(
    posts.map((each) => each.length),
    [2, 1, 1],
  );
  assert.deepEqual(sink.stats(), { accepted: 2, delivered: 0, dropped: 2, waiting: 0 });
});

for (const [status, advice] of [
  [400, /address is the one for records/],
  [401, /set the header/],
  [404, /check the address/],
  [422, /look at its log/],
  [301, /set `url` to its new address/],
  [307, /set `url` to its new address/],
]) {
  over(
    `${status} gives the batch up, and says so once`,
    saying(status, { location: '/v2' }),
    async ({ url, posts }) => {
      const sink = httpSink({ url });

      for (let turn = 0; turn < 3; turn += 1) {
        fill(sink, receipts(2));
        await sink.flush();
      }

      assert.deepEqual(
        posts.map(([{ dropped }]) => dropped),
        [undefined, 2, 4],
      );
      assert.deepEqual(sink.stats(), { accepted: 6, delivered: 0, dropped: 6, waiting: 0 });
      const said = complaints().filter((text) => text.includes(String(status)));
      assert.equal(said.length, 1);
      assert.match(said[0], advice);
    },
  );
}

const cut = ({ response, number }) => (number < 3 ? response.destroy() : response.writeHead(200).end());
over('a connection that is cut is tried again', cut, async ({ url, received }) => {
  const sink = httpSink({ url, retry });

  fill(sink, receipts(2));
  await sink.flush();

  assert.equal(received.length, 2);
});

const silent = ({ response, number }) => number > 1 && response.writeHead(200).end();
over('a receiver that never answers is given up and tried again', silent, async ({ url, received }) => {
  const sink = httpSink({ url, retry, timeoutMs: 30 });

  fill(sink, receipts(1));
  await sink.flush();

  assert.equal(received.length, 1);
});

const endless = ({ response }) => {
  response.writeHead(200).write('x');
  const more = setInterval(() => response.write('x'.repeat(1000)), 1);
  response.on('close', () => clearInterval(more));
};
over('an answer without end holds up nothing', endless, async ({ url, received }) => {
  const sink = httpSink({ url, batch: 1 });
  const start = performance.now();

  fill(sink, receipts(3));
  await sink.flush();

  assert.equal(received.length, 3);
  assert.ok(performance.now() - start < 900);
});

test('nobody listens: records wait, the host does not, and it is said once', async () => {
  const gone = createServer().listen(0, '127.0.0.1');
  await once(gone, 'listening');
  const url = `http://127.0.0.1:${gone.address().port}/v1/records`;
  gone.close();
  const sink = httpSink({ url, retry, flushMs: 40, maxQueue: 5 });

  fill(sink, receipts(8));
  await sink.flush();

  assert.deepEqual(sink.stats(), { accepted: 8, delivered: 0, dropped: 3, waiting: 5 });
  assert.equal(complaints().filter((text) => text.includes('ECONNREFUSED')).length, 1);
  await sink.close();
});

for (const url of [undefined, '', 'stopcause.example', 'ftp://stopcause.example/', 7]) {
  test(`${url} is no address: said once, records are counted`, async () => {
    const sink = httpSink({ url });

    fill(sink, receipts(2));
    await sink.flush();

    assert.equal(sink.stats().dropped, 2);
  });
}

for (const [how, fetch] of Object.entries({
  'throws at once': () => assert.fail('of the host'),
  'has no body to read': async () => ({ ok: true, status: 200, headers: new Headers() }),
  'gives a body of another kind': async () => ({ ok: true, status: 200, headers: new Headers(), body: { pipe() {} } }),
})) {
  test(`a fetch of the host's that ${how} is survived`, async () => {
    const sink = httpSink({ url: 'http://stopcause.example/', fetch, retry, flushMs: 20 });

    fill(sink, receipts(1));
    await sink.flush();

    assert.equal(sink.stats().delivered, how === 'throws at once' ? 0 : 1);
    await sink.close();
  });
}

over('fetch is called as a plain function, as edge runtimes want it', undefined, async ({ url, received }) => {
  const sink = httpSink({
    url,
    fetch: function (...given) {
      assert.equal(this, undefined);
      return globalThis.fetch(...given);
    },
  });

  sink.accept(receipt());
  await sink.flush();

  assert.equal(received.length, 1);
});

const slow = async ({ response }) => {
  await wait(20);
  response.writeHead(202).end();
};
over('an edge runtime is kept until records are away', slow, async ({ url, received }) => {
  const held = [];
  const sink = httpSink({ url, waitUntil: (delivery) => held.push(delivery) });

  sink.accept(receipt());
  assert.equal(held.length, 1); // at once: after the answer to the request there may be no later turn
  await Promise.all(held);

  assert.equal(received.length, 1);
});
