// How a stream is read: to the end, in part, twice, not at all, through a UI response.
import { bounded, each, STREAM, UNPROVEN } from './each.js';

const roomy = (api, kit) => ({ stopWhen: kit.stopWhen({ step_limit: api.isStepCount(8) }) });
const script = (kit) => [{ calls: [kit.call('lookup')] }, { text: `${kit.say.text} and more of it` }];
const opened = (read) => async (api, kit, entry) => {
  const result = await kit.open(api, entry, { model: kit.model(script(kit)), ...roomy(api, kit) });
  return read(result, kit);
};
async function drained(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

const CANCELLED = { cause: 'caller_abort', expected: bounded('caller_abort') };
const READ = { cause: 'natural', expected: UNPROVEN };

const whole = [
  ...each(STREAM, {
    id: 'text-stream',
    why: 'only the text is read, to its end',
    ...READ,
    run: opened(async (result) => drained(result.textStream)),
  }),
  ...each(['streamText'], {
    id: 'read-twice',
    why: 'two readers read the same stream to its end: one run, one receipt',
    ...READ,
    run: opened(async (result) => Promise.all([drained(result.fullStream), drained(result.textStream)])),
  }),
  ...each(['streamText'], {
    id: 'consume-stream',
    why: 'nobody reads; consumeStream drives it to its end',
    ...READ,
    run: opened(async (result) => {
      await result.consumeStream();
      return result.text;
    }),
  }),
  ...each(['streamText'], {
    id: 'promises-only',
    why: 'nobody reads the stream; the promises drive it to its end',
    ...READ,
    run: opened(async (result) => [await result.text, await result.finishReason]),
  }),
  ...each(['streamText'], {
    id: 'ui-response',
    why: 'piped to a UI response that is read to its end',
    ...READ,
    run: opened(async (result) => {
      const response = result.toUIMessageStreamResponse();
      return { status: response.status, headers: [...response.headers], body: await response.text() };
    }),
  }),
  ...each(STREAM, {
    id: 'ui-stream',
    why: 'the parts for a UI, read to their end',
    ...READ,
    run: opened(async (result) => drained(result.toUIMessageStream())),
  }),
  ...each(['streamText'], {
    id: 'cancelled-branch',
    why: 'one of two readers stops early; the other reads to the end, so the run ends by itself',
    ...READ,
    run: opened(async (result, kit) => {
      const first = result.textStream;
      const second = result.fullStream;
      await first.getReader().cancel(kit.canary);
      return drained(second);
    }),
  }),
];

const partly = [
  ...each(STREAM, {
    id: 'reader-cancels',
    why: 'the reader cancels after three parts: no callback ever says so',
    ...CANCELLED,
    run: opened((result, kit) => kit.read(result, 3, kit.canary)),
  }),
  ...each(['streamText'], {
    id: 'reader-cancels-at-once',
    why: 'the reader cancels before it has read anything',
    ...CANCELLED,
    run: opened((result, kit) => kit.read(result, 0)),
  }),
  ...each(['streamText'], {
    id: 'reader-cancels-later',
    why: 'the reader cancels in the second step',
    ...CANCELLED,
    run: opened((result, kit) => kit.read(result, 9)),
  }),
  ...each(STREAM, {
    id: 'reader-breaks',
    why: 'for await … break',
    ...CANCELLED,
    run: opened(async (result) => {
      const chunks = [];
      for await (const chunk of result.fullStream) {
        chunks.push(chunk);
        if (chunks.length === 3) break;
      }
      return chunks;
    }),
  }),
  ...each(['streamText'], {
    id: 'text-reader-breaks',
    why: 'for await over the text … break',
    ...CANCELLED,
    run: opened(async (result, kit) => {
      for await (const text of result.textStream) {
        await kit.tick(); // what is read ahead is a race of microtasks until the turn is over
        return text;
      }
      return undefined;
    }),
  }),
  ...each(['streamText'], {
    id: 'reader-throws',
    why: 'the application throws while it reads',
    ...CANCELLED,
    run: opened(async (result, kit) => {
      for await (const chunk of result.fullStream) if (chunk.type === 'tool-call') throw kit.say.error('ReaderTrouble');
    }),
  }),
  ...each(['streamText'], {
    id: 'ui-response-cancelled',
    why: 'piped to a UI response whose client goes away',
    ...CANCELLED,
    run: opened(async (result) => {
      const reader = result.toUIMessageStreamResponse().body.getReader();
      const { value } = await reader.read();
      await reader.cancel();
      return new TextDecoder().decode(value);
    }),
  }),
  ...each(['streamText'], {
    id: 'ui-response-cancelled-and-consumed',
    why: 'the client of a UI response goes away, and the application drives the run to its end all the same',
    ...READ,
    run: opened(async (result) => {
      const consumed = result.consumeStream();
      const reader = result.toUIMessageStreamResponse().body.getReader();
      await reader.read();
      await reader.cancel();
      await consumed;
      return result.text;
    }),
  }),
  ...each(['streamText'], {
    id: 'consumed-after-cancel',
    why: 'the reader cancels, and the application drives the run to its end afterwards',
    ...READ,
    run: opened(async (result, kit) => {
      const chunks = await kit.read(result, 3);
      await result.consumeStream();
      return chunks;
    }),
  }),
];

const unread = [
  ...each(STREAM, {
    id: 'unread',
    why: 'the application drops the stream without reading it: what is left of it is collected',
    ...CANCELLED,
    run: async (api, kit, entry) => {
      await kit.open(api, entry, { model: kit.model(script(kit)), ...roomy(api, kit) });
      return 'dropped';
    },
    settle: collected,
  }),
];

/** Lets what nobody holds any more be collected, and gives those who watch for it time to say so. */
async function collected(kit) {
  for (let round = 0; round < 10; round += 1) {
    await kit.sleep(1);
    globalThis.gc?.();
  }
}

export const paths = [...whole, ...partly, ...unread];
