// What paths over a socket (test/paths/socket*.js) cannot show: when a request to the provider ends, who retries and when,
// what the records of two attempts say, and that many runs at a time do not mix. The paths themselves are run by
// paths.test.js, canary.test.js and long/transparent.test.js.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as ai from 'ai';
import { functionSink, runOf, watch } from '../src/node.js';
import {
  breaksOff,
  drips,
  failsInside,
  hangsUp,
  holds,
  pause,
  says,
  stalls,
  status,
  withProvider,
} from './support/provider.js';

const unhandled = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason?.name ?? typeof reason));

/** The SDK bare and watched; `records` are those of the watched one. */
function both() {
  const records = [];
  const hook = watch(ai, { agent: 'ticket-agent', sink: functionSink((record) => void records.push(record)) });
  const receipts = async () => {
    await hook.flush();
    return records.filter(({ kind }) => kind === 'run.stopped');
  };
  return { sides: { bare: ai, watched: { ...ai, ...hook } }, hook, records, receipts };
}

const quiet = { prompt: 'go', maxRetries: 0, onError() {} };
const lookup = ai.tool({ inputSchema: ai.jsonSchema({ type: 'object' }), execute: async () => ({ found: true }) });
const call = { calls: [{ name: 'lookup', input: {} }] };

/** Reads until the provider's word is there, in whatever shape: a part, a text, the bytes of a response. */
async function untilWord(stream) {
  const reader = stream.getReader();
  for (let said = ''; !said.includes('one '); ) {
    const { value } = await reader.read();
    said = value instanceof Uint8Array ? Buffer.from(value).toString() : JSON.stringify(value);
  }
  return reader;
}

async function leaveAtFirstWord(result) {
  for await (const _ of result.textStream) break;
}

/** Ways for a reader to go. */
const LEAVE = {
  'the parts': async (result) => (await untilWord(result.fullStream)).cancel(),
  'the text': async (result) => (await untilWord(result.textStream)).cancel(),
  'the chunks for a page': async (result) => (await untilWord(result.toUIMessageStream())).cancel(),
  'a response': async (result) => (await untilWord(result.toUIMessageStreamResponse().body)).cancel(),
  'a loop over the text': leaveAtFirstWord,
};

for (const [way, leave] of Object.entries(LEAVE)) {
  test(`who leaves ${way} leaves the request open, as without the hook`, async () => {
    const { sides, receipts } = both();
    for (const api of Object.values(sides)) {
      await withProvider([stalls({ text: 'one ' })], async (provider) => {
        await leave(api.streamText({ ...quiet, model: provider.model() }));
        const [{ ending }] = await provider.over(150);
        assert.equal(ending, 'open');
      });
    }
    assert.deepEqual(
      (await receipts()).map((stop) => [stop.stop_cause, stop.reason_code]),
      [['caller_abort', 'reader_cancelled']],
    );
  });

  test(`who leaves ${way} of a result with one reader ends the request, as without the hook`, async () => {
    const { sides, receipts } = both();
    for (const api of Object.values(sides)) {
      await withProvider([stalls({ text: 'one ' })], async (provider) => {
        const _internal = { retention: { replay: false, collectContent: true } };
        await leave(api.streamText({ ...quiet, model: provider.model(), _internal }));
        const [{ ending }] = await provider.over(2000);
        assert.equal(ending, 'left');
      });
    }
    assert.equal((await receipts())[0].stop_cause, 'caller_abort');
  });
}

test('a reader that leaves does not let the provider talk on for ever: the line fills up, with the hook as without', async () => {
  const { sides } = both();
  const words = {};
  for (const [side, api] of Object.entries(sides)) {
    await withProvider([drips({ words: 2000, everyMs: 0, size: 60_000 })], async (provider) => {
      await leaveAtFirstWord(api.streamText({ ...quiet, model: provider.model() }));
      await pause(300);
      words[side] = provider.requests[0].words;
    });
  }
  assert.ok(words.bare < 2000, `${words.bare} words without the hook`);
  assert.ok(words.watched < 2000, `${words.watched} words with the hook`);
});

test('an abort and a deadline end the request', async () => {
  const { sides } = both();
  const stops = {
    signal: () => ({ abortSignal: AbortSignal.timeout(60) }),
    timeout: () => ({ timeout: 60 }),
    deadline: () => ({ stopcause: { deadlineMs: 60 } }),
  };
  for (const [name, options] of Object.entries(stops)) {
    for (const entry of ['generateText', 'streamText']) {
      await withProvider([holds()], async (provider) => {
        const given = { ...quiet, model: provider.model(), ...options() };
        const result = await Promise.resolve(sides.watched[entry](given)).catch((error) => error);
        await result.consumeStream?.();
        await until(() => provider.requests.length === 1);
        assert.equal((await provider.over(2000))[0].ending, 'left', `${name} in ${entry}`);
      });
    }
  }
});

async function until(isSo, ms = 2000) {
  for (const end = Date.now() + ms; !isSo(); await pause(5)) assert.ok(Date.now() < end, 'waited too long');
}

test('the SDK alone retries: as often, and after the time that the provider asks for', async () => {
  const { sides, receipts } = both();
  for (const api of Object.values(sides)) {
    const asked = [];
    const late = (reply) => (response, seen) => {
      asked.push(performance.now());
      return reply(response, seen);
    };
    const replies = [late(status(429, { headers: { 'retry-after': '0.2' } })), late(says({ text: 'done' }))];
    await withProvider(replies, (provider) => api.generateText({ ...quiet, maxRetries: 2, model: provider.model() }));
    assert.equal(asked.length, 2);
    assert.ok(asked[1] - asked[0] >= 195, `${asked[1] - asked[0]} ms between them`);
  }
  const [stop] = await receipts();
  assert.equal(stop.stop_cause, 'natural');
  assert.equal(stop.error, undefined);
});

/** What the receipt says of an error: types, code and status, and nothing of what the provider wrote. */
const FAULTS = {
  'a status': [status(503), { type: 'AI_APICallError', chain: ['AI_APICallError'], code: '503', status: 503 }],
  'a hang-up': [
    hangsUp(),
    { type: 'AI_APICallError', chain: ['AI_APICallError', 'SocketError'], code: 'UND_ERR_SOCKET' },
  ],
  'a cut body': [
    breaksOff({ text: 'one two three' }),
    {
      type: 'AI_APICallError',
      chain: ['AI_APICallError', 'TypeError', 'SocketError'],
      code: 'UND_ERR_SOCKET',
    },
  ],
};

for (const [name, [reply, fault]] of Object.entries(FAULTS)) {
  for (const entry of ['generateText', 'streamText']) {
    test(`${name} in ${entry}: the error of the receipt`, async () => {
      const { hook, receipts } = both();
      await withProvider([reply], async (provider) => {
        const made = await Promise.resolve(hook[entry]({ ...quiet, model: provider.model() })).catch((error) => error);
        await made.consumeStream?.();
      });
      const [stop] = await receipts();
      assert.deepEqual(stop.error, fault);
    });
  }
}

test('an error event in a stream that began well has its code and status in the receipt', async () => {
  const { hook, receipts } = both();
  await withProvider([failsInside({ text: 'one ' })], async (provider) => {
    await hook.streamText({ ...quiet, model: provider.model() }).consumeStream();
  });
  const [stop] = await receipts();
  assert.deepEqual(stop.error, {
    type: 'AI_StreamProviderError',
    chain: ['AI_StreamProviderError'],
    code: '529',
    status: 529,
  });
});

test('two attempts of one run leave a start and a stop each, and the tool of the first one is counted in the first', async () => {
  const { hook, records } = both();
  const replies = [says(call), hangsUp(), says(call), says({ text: 'done' })];
  await withProvider(replies, async (provider) => {
    const attempt = (n) =>
      hook.generateText({
        ...quiet,
        model: provider.model(),
        tools: { lookup },
        stopWhen: ai.isStepCount(4),
        stopcause: { runId: 'run-1', attempt: n },
      });
    const lost = await attempt(1).catch((error) => error);
    assert.equal(runOf(lost), 'run-1');
    assert.equal(runOf(await attempt(2)), 'run-1');
  });
  await hook.flush();
  const ends = records.filter(({ kind }) => kind !== 'run.progress');
  assert.deepEqual(
    ends.map((record) => [
      record.kind,
      record.run_id,
      record.attempt,
      record.stop_cause,
      record.steps,
      record.tool_calls,
    ]),
    [
      ['run.started', 'run-1', 1, undefined, undefined, undefined],
      ['run.stopped', 'run-1', 1, 'model_failure', 1, 1],
      ['run.started', 'run-1', 2, undefined, undefined, undefined],
      ['run.stopped', 'run-1', 2, 'natural', 2, 1],
    ],
  );
});

/** Each kind of run with the cause that only it has. */
const KINDS = [
  { reply: () => [says({ text: 'done' })], cause: 'natural' },
  { reply: () => [says({ text: 'cut', finish: 'length' })], cause: 'output_cap' },
  { reply: () => [status(429)], cause: 'quota' },
  { reply: () => [breaksOff({ text: 'one two' })], cause: 'model_failure' },
  { reply: () => [stalls({ text: 'one ' })], cause: 'time_limit', options: { timeout: 300 } },
];

test('fifty runs at a time over real lines: each has its own receipt, and none is the child of another', async () => {
  const { hook, receipts } = both();
  const runs = Array.from({ length: 50 }, (_, n) => ({ runId: `run-${n}`, n, ...KINDS[n % KINDS.length] }));
  await Promise.all(runs.map((run) => finishes(hook, run)));
  const stops = await receipts();
  assert.deepEqual([stops.length, new Set(stops.map(({ run_id }) => run_id)).size], [50, 50]);
  const causes = Object.fromEntries(stops.map((stop) => [stop.run_id, stop.stop_cause]));
  assert.deepEqual(causes, Object.fromEntries(stops.map(({ run_id }) => [run_id, runs[run_id.slice(4)].cause])));
  assert.ok(stops.every((stop) => stop.parent_run_id === undefined));
});

function finishes(hook, { reply, options, runId, n }) {
  return withProvider(reply(), async (provider) => {
    const given = { ...quiet, model: provider.model(), stopcause: { runId }, ...options };
    if (n % 2 === 1) return hook.generateText(given).catch(() => undefined); // its receipt says why
    await hook.streamText(given).consumeStream({ onError() {} });
  });
}

test('nothing above left a rejection unhandled', async () => {
  await pause(50);
  assert.deepEqual(unhandled, []);
});
