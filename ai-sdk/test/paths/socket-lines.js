// Paths over a socket (see socket.js): the line breaks, time runs out, the application aborts.

import { andThen, breaksOff, hangsUp, holds, says, stalls } from '../support/provider.js';
import { bounded, each, failed, STREAM, stuck } from './each.js';
import { AGENTS, BOTH, HISTORY, look, over, text } from './socket.js';

const MS = 250; // until then a request and its first reply over the loopback have surely arrived

const broken = [
  ...each(BOTH, {
    id: 'socket-hang-up',
    why: 'the provider reads the request and hangs up without a byte',
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: over(() => [hangsUp()]),
  }),
  ...each(BOTH, {
    id: 'socket-cut-body',
    why: 'the line is cut in the middle of the body; the error has the status 200 of the headers',
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: over((kit) => [breaksOff(text(kit))]),
  }),
  ...each([...BOTH, ...AGENTS], {
    id: 'socket-cut-second-body',
    why: 'the line is cut in the body of the second answer; a tool has acted',
    cause: 'model_failure',
    expected: failed('model_failure'),
    history: HISTORY,
    run: over((kit) => [says(look(kit)), breaksOff(text(kit))]),
  }),
];

const timed = [
  ...each(BOTH, {
    id: 'socket-deadline',
    why: 'the provider is silent until the deadline of the hook; nothing was done',
    cause: 'time_limit',
    expected: stuck('time_limit'),
    run: over(
      () => [holds()],
      (_api, kit) => kit.deadline(MS),
    ),
  }),
  ...each(BOTH, {
    id: 'socket-deadline-in-body',
    why: 'the provider stops in the middle of its body until the deadline; words are no progress',
    cause: 'time_limit',
    expected: stuck('time_limit'),
    run: over(
      (kit) => [stalls(text(kit))],
      (_api, kit) => kit.deadline(MS),
    ),
  }),
  ...each(BOTH, {
    id: 'socket-deadline-after-tool',
    why: 'a tool answered, then the provider is silent until the deadline: time ran out with progress',
    cause: 'time_limit',
    expected: bounded('time_limit'),
    history: HISTORY,
    run: over(
      (kit) => [says(look(kit)), holds()],
      (_api, kit) => kit.deadline(MS),
    ),
  }),
  ...each([...BOTH, ...AGENTS], {
    id: 'socket-timeout',
    why: 'the provider is silent until the timer of the SDK, which the caller cannot look into',
    cause: 'time_limit',
    expected: stuck('time_limit'),
    run: over(
      () => [holds()],
      () => ({ timeout: MS }),
    ),
  }),
  ...each(['streamText'], {
    id: 'socket-chunk-timeout',
    why: 'the stream goes silent for longer than the SDK waits between two chunks',
    cause: 'time_limit',
    expected: stuck('time_limit'),
    run: over(
      (kit) => [stalls(text(kit))],
      () => ({ timeout: { chunkMs: MS } }),
    ),
  }),
  ...each(['streamText'], {
    id: 'socket-first-chunk-timeout',
    why: 'headers came and no word behind them for longer than the SDK waits for the first',
    cause: 'time_limit',
    expected: stuck('time_limit'),
    run: over(
      () => [stalls({})],
      () => ({ timeout: { firstChunkMs: MS } }),
    ),
  }),
];

/**
 * The application's own signal, aborted once the first bytes of the answer are there: a stream shows them, for generate
 * the server waits a moment.
 */
function abortedMidway(more = () => ({})) {
  return (api, kit, entry) => {
    const controller = new AbortController();
    const abort = () => controller.abort(kit.own('reason', new DOMException(kit.canary, 'AbortError')));
    const isStream = STREAM.includes(entry);
    const reply = isStream ? stalls(word(kit)) : andThen(stalls(word(kit)), abort);
    const options = () => ({ abortSignal: controller.signal, ...more(kit) });
    return over(() => [reply], options, isStream ? abortAtWord(abort) : undefined)(api, kit, entry);
  };
}

/** One chunk, so that none is under way when the abort comes. */
const word = (kit) => ({ text: kit.say.text.replaceAll(' ', '-') });

const abortAtWord = (abort) => async (api, kit, entry, options) => {
  const result = await kit.open(api, entry, options);
  const chunks = [];
  for await (const chunk of result.fullStream) {
    chunks.push(chunk);
    if (chunk.type === 'text-delta') abort();
  }
  return { chunks, facts: await kit.facts(result) };
};

const aborted = [
  ...each([...BOTH, ...AGENTS], {
    id: 'socket-abort-in-body',
    why: 'the application gives up in the middle of the body and does not say for whom; the request ends, too',
    cause: 'caller_abort',
    expected: bounded('caller_abort'),
    run: abortedMidway(),
  }),
  ...each(BOTH, {
    id: 'socket-abort-by-user',
    why: 'the user gives up in the middle of the body: the application says so by its reason',
    cause: 'user_abort',
    expected: bounded('user_abort'),
    run: abortedMidway((kit) =>
      kit.stopcause({ abortCause: (reason) => (reason.name === 'AbortError' ? 'user_abort' : 'caller_abort') }),
    ),
  }),
  ...each(BOTH, {
    id: 'socket-abort-by-platform',
    why: 'the application says that its aborts come from the platform',
    cause: 'platform_abort',
    expected: bounded('platform_abort'),
    run: abortedMidway((kit) => kit.stopcause({ abortCause: 'platform_abort' })),
  }),
];

export const paths = [...broken, ...timed, ...aborted];
