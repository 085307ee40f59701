// A browser behind a real response, for every way in which applications write one: what arrives is the same byte for
// byte, and the receipt says what became of the run. The common paths are in test/paths/socket-ui.js; here are the ways
// that the package `ai` itself adds, the moment of the receipt, and how far a slow browser holds the provider back.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as ai from 'ai';
import { functionSink, watch } from '../src/node.js';
import { copiesText, copiesUi, isSlow, leavesAt, page, pipesUi, stays } from './support/page.js';
import { breaksOff, drips, pause, says, stalls, withProvider } from './support/provider.js';

const unhandled = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason?.name ?? typeof reason));

function watched() {
  const records = [];
  const hook = watch(ai, { agent: 'ticket-agent', sink: functionSink((record) => void records.push(record)) });
  const receipts = async () => {
    await hook.flush();
    return records
      .filter(({ kind }) => kind === 'run.stopped')
      .map(({ stop_cause, reason_code }) => [stop_cause, reason_code]);
  };
  return { ...ai, ...hook, receipts };
}

const ids = { _internal: { generateId: () => 'id', generateCallId: () => 'call', now: () => 0 } };
const streamed = (api, model) => api.streamText({ model, prompt: 'go', maxRetries: 0, onError() {}, ...ids });
const fixed = { generateMessageId: () => 'message-1' };
const messages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'go' }] }];
const agentOf = (api, model) => new api.ToolLoopAgent({ model, maxRetries: 0, onError() {}, ...ids });

async function copied(answer, response) {
  await copiesUi({ toUIMessageStreamResponse: () => answer })(response);
}

/** What an application does with a model, in place of the result's own `pipeUIMessageStreamToResponse`. */
const WAYS = {
  'the result pipes': (api, model) => pipesUi(streamed(api, model)),
  'the result makes a response': (api, model) => copiesUi(streamed(api, model)),
  'the result makes a response of text': (api, model) => copiesText(streamed(api, model)),
  'the result pipes text': (api, model) => (response) => streamed(api, model).pipeTextStreamToResponse(response),
  'toUIMessageStream of the package': (api, model) => (response) =>
    ai.pipeUIMessageStreamToResponse({
      response,
      stream: ai.toUIMessageStream({ stream: streamed(api, model).stream, ...fixed }),
    }),
  'createUIMessageStream, merged': (api, model) => (response) => {
    const execute = ({ writer }) => writer.merge(streamed(api, model).toUIMessageStream());
    return ai.pipeUIMessageStreamToResponse({
      response,
      stream: ai.createUIMessageStream({ execute, generateId: () => 'm' }),
    });
  },
  'an agent, piped': (api, model) => (response) =>
    ai.pipeAgentUIStreamToResponse({ response, agent: agentOf(api, model), uiMessages: messages, ...fixed }),
  'an agent, as a response': (api, model) => async (response) =>
    copied(
      await ai.createAgentUIStreamResponse({ agent: agentOf(api, model), uiMessages: messages, ...fixed }),
      response,
    ),
};

/** Runs one way bare and watched; gives what each browser had and the causes of the watched side. */
async function compared(way, reply, visit) {
  const api = watched();
  const had = [];
  for (const side of [ai, api]) {
    await withProvider([reply()], async (provider) => {
      had.push(await page(WAYS[way](side, provider.model()), visit));
      await pause(30);
    });
  }
  return { bare: had[0], hooked: had[1], receipts: await api.receipts() };
}

for (const way of Object.keys(WAYS)) {
  const mark = way.includes('text') ? 'one ' : 'text-delta';

  test(`${way}: the browser reads to the end`, async () => {
    const { bare, hooked, receipts } = await compared(way, () => says({ text: 'one two three' }), stays);
    assert.ok(bare.visitor.includes('three'));
    assert.deepEqual(hooked, bare);
    assert.deepEqual(receipts, [['natural', undefined]]);
  });

  test(`${way}: the browser leaves`, async () => {
    const { bare, hooked, receipts } = await compared(way, () => stalls({ text: 'one ' }), leavesAt(mark));
    assert.deepEqual(hooked, bare);
    assert.deepEqual(receipts, [['caller_abort', 'reader_cancelled']]);
  });

  test(`${way}: the line to the provider breaks`, async () => {
    const visit = (url) => stays(url).catch((error) => error.name);
    const { bare, hooked, receipts } = await compared(way, () => breaksOff({ text: 'one two' }), visit);
    assert.deepEqual(hooked, bare);
    assert.deepEqual(receipts, [['model_failure', undefined]]);
  });
}

test('the receipt of a browser that left is written when it leaves; what breaks afterwards does not write another', async () => {
  const api = watched();
  await withProvider([stalls({ text: 'one ' })], async (provider) => {
    await page(pipesUi(streamed(api, provider.model())), leavesAt('text-delta'));
    await pause(30);
    assert.deepEqual(await api.receipts(), [['caller_abort', 'reader_cancelled']]);
    assert.equal((await provider.over(0))[0].ending, 'open');
  });
  assert.equal((await api.receipts()).length, 1);
});

test('a browser that left and a stream that the application consumes: the run ends when the provider does', async () => {
  const api = watched();
  await withProvider([drips({ words: 20, everyMs: 10 })], async (provider) => {
    const result = streamed(api, provider.model());
    const consumed = result.consumeStream();
    await page(pipesUi(result), leavesAt('text-delta'));
    await pause(30);
    assert.deepEqual(await api.receipts(), []);
    await consumed;
  });
  assert.deepEqual(await api.receipts(), [['natural', undefined]]);
});

test('a slow browser holds the provider back, with the hook as without, and the run is open until it has read', async () => {
  const api = watched();
  const words = [];
  const early = [];
  for (const side of [ai, api]) {
    await withProvider([drips({ words: 120, size: 200_000, everyMs: 0 })], async (provider) => {
      const look = async () => {
        words.push(provider.requests[0].words);
        early.push(...(await api.receipts()));
      };
      const { visitor } = await page(pipesUi(streamed(side, provider.model())), isSlow(700, look));
      assert.equal(visitor.split('"text-delta"').length - 1, 120);
    });
  }
  const [bare, hooked] = words;
  assert.deepEqual(early, []);
  assert.ok(bare < 120, `the provider was held back: ${bare} words`);
  assert.ok(hooked < 120, `${hooked} words with the hook`);
  assert.deepEqual(await api.receipts(), [['natural', undefined]]);
});

test('nothing above left a rejection unhandled', async () => {
  await pause(50);
  assert.deepEqual(unhandled, []);
});
