// Paths over a socket (see socket.js): who reads a stream, and whether they stay. Here: readers in the process, and a
// browser behind a real response. Where a reader leaves, the SDK calls nothing back, and the request to the provider
// stays open: the hook must see the one and change nothing about the other.

import { copiesText, copiesUi, isSlow, leavesAt, page, pipesUi, stays } from '../support/page.js';
import { breaksOff, drips, says, stalls } from '../support/provider.js';
import { bounded, each, failed, UNPROVEN } from './each.js';
import { over, text } from './socket.js';

/** Opens the stream, hands it to `use`, and lets what follows from that come in. */
const opened = (use) => async (api, kit, entry, options) => {
  const result = await kit.open(api, entry, options);
  const said = await use(result, kit);
  await kit.sleep(20);
  return said;
};

const served = (respond, visit) => opened((result, kit) => page(respond(result, kit), visit));

const LEFT = { cause: 'caller_abort', expected: bounded('caller_abort') };
const FINISHED = { cause: 'natural', expected: UNPROVEN };
const STREAMS = ['streamText', 'agent.stream'];
const CALL = ['streamText'];
const never = () => ({});

const readers = [
  ...each(STREAMS, {
    id: 'socket-reader-cancels',
    why: 'the reader cancels in the middle of the body',
    ...LEFT,
    run: over(
      (kit) => [stalls(text(kit))],
      never,
      opened((result, kit) => kit.read(result, 5, kit.canary)),
    ),
  }),
  ...each(CALL, {
    id: 'socket-loop-is-left',
    why: 'the loop over the text is left with break',
    ...LEFT,
    run: over((kit) => [stalls(text(kit))], never, opened(firstWord)),
  }),
  ...each(CALL, {
    id: 'socket-reader-cancels-others-read-on',
    why: 'one reader cancels, the application consumes the stream all the same: the run goes to its end',
    ...FINISHED,
    run: over((kit) => [says(text(kit))], never, opened(cancelAndConsume)),
  }),
];

/** Takes a moment for the word: how much a reader that leaves at once had already set in motion is nobody's promise. */
async function firstWord(result, kit) {
  for await (const word of result.textStream) {
    await kit.sleep(20);
    return word;
  }
}

async function cancelAndConsume(result, kit) {
  const consumed = result.consumeStream();
  const chunks = await kit.read(result, 2);
  await consumed;
  return chunks;
}

/** The browser leaves, and a second branch of the response is read to its end by the application. */
async function leftAndConsumed(result) {
  let consumed;
  const options = { consumeSseStream: ({ stream }) => (consumed = Array.fromAsync(stream)) };
  const { handler } = await page(pipesUi(result, options), leavesAt('text-delta'));
  return { handler, events: (await consumed).length };
}

const pages = [
  ...each(STREAMS, {
    id: 'socket-page-piped',
    why: 'the SDK writes into the response, the browser reads to the end',
    ...FINISHED,
    run: over((kit) => [says(text(kit))], never, served(pipesUi, stays)),
  }),
  ...each(CALL, {
    id: 'socket-page-copied',
    why: 'a framework copies the Response of the SDK, the browser reads to the end',
    ...FINISHED,
    run: over((kit) => [says(text(kit))], never, served(copiesUi, stays)),
  }),
  ...each(CALL, {
    id: 'socket-page-of-text',
    why: 'the response has the text alone, the browser reads to the end',
    ...FINISHED,
    run: over((kit) => [says(text(kit))], never, served(copiesText, stays)),
  }),
  ...each(STREAMS, {
    id: 'socket-page-left',
    why: 'the browser is closed in the middle of the answer that the SDK writes',
    ...LEFT,
    run: over((kit) => [stalls(text(kit))], never, served(pipesUi, leavesAt('text-delta'))),
  }),
  ...each(CALL, {
    id: 'socket-page-copied-left',
    why: 'the browser is closed in the middle of the answer that a framework copies',
    ...LEFT,
    run: over((kit) => [stalls(text(kit))], never, served(copiesUi, leavesAt('text-delta'))),
  }),
  ...each(CALL, {
    id: 'socket-page-left-consumed',
    why: 'the browser is closed, the application consumes the stream all the same: the run goes to its end',
    ...FINISHED,
    run: over(() => [drips({ words: 10 })], never, opened(leftAndConsumed)),
  }),
  ...each(CALL, {
    id: 'socket-page-slow',
    why: 'the browser takes nothing off the socket for a while; the answer waits for it and is then complete',
    ...FINISHED,
    run: over(() => [drips({ words: 40, size: 60_000, everyMs: 0 })], never, served(pipesUi, isSlow(100))),
  }),
  ...each(CALL, {
    id: 'socket-page-broken',
    why: 'the line to the provider breaks while the browser reads: the response breaks off, too',
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: over(
      (kit) => [breaksOff(text(kit))],
      never,
      served(pipesUi, (url) => stays(url).catch((error) => error.name)),
    ),
  }),
];

export const paths = [...readers, ...pages];
