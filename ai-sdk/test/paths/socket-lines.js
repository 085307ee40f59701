// Paths over a socket (see socket.js): the line breaks, time runs out, the application aborts.
import { AGENTS, BOTH, HISTORY, look, over, text } from './socket.js';
import { bounded, each, failed, stuck } from './each.js';
import { andThen, breaksOff, hangsUp, holds, says, stalls } from '../support/provider.js';

const MS = 80; // long enough for a first reply over the loopback, short enough for a test

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
    run: over(() => [holds()], (_api, kit) => kit.deadline(MS)),
  }),
  ...each(BOTH, {
    id: 'socket-deadline-in-body',
    why: 'the provider stops in the middle of its body until the deadline; words are no progress',
    cause: 'time_limit',
    expected: stuck('time_limit'),
    run: over((kit) => [stalls(text(kit))], (_api, kit) => kit.deadline(MS)),
  }),
  ...each(BOTH, {
    id: 'socket-deadline-after-tool',
    why: 'a tool answered, then the provider is silent until the deadline: time ran out with progress',
    cause: 'time_limit',
    expected: bounded('time_limit'),
    history: HISTORY,
    run: over((kit) => [says(look(kit)), holds()], (_api, kit) => kit.deadline(2 * MS)),
  }),
  ...each([...BOTH, ...AGENTS], {
    id: 'socket-timeout',
    why: 'the provider is silent until the timer of the SDK, which the caller cannot look into',
    cause: 'time_limit',
    expected: stuck('time_limit'),
    run: over(() => [holds()], () => ({ timeout: MS })),
  }),
  ...each(['streamText'], {
    id: 'socket-chunk-timeout',
    why: 'the stream goes silent for longer than the SDK waits between two chunks',
    cause: 'time_limit',
    expected: stuck('time_limit'),
    run: over((kit) => [stalls(text(kit))], () => ({ timeout: { chunkMs: MS } })),
  }),
  ...each(['streamText'], {
    id: 'socket-first-chunk-timeout',
    why: 'headers came and no word behind them for longer than the SDK waits for the first',
    cause: 'time_limit',
    expected: stuck('time_limit'),
    run: over(() => [stalls({})], () => ({ timeout: { firstChunkMs: MS } })),
  }),
];

/** The application's own signal, aborted once the first bytes of the answer are there. */
function abortedMidway(more = () => ({})) {
  return (api, kit, entry) => {
    const controller = new AbortController();
    const abort = () => controller.abort(kit.own('reason', new DOMException(kit.canary, 'AbortError')));
    const run = over(
      (kit) => [andThen(stalls(text(kit)), abort)],
      (_api, kit) => ({ abortSignal: controller.signal, ...more(kit) }),
    );
    return run(api, kit, entry);
  };
}

const aborted = [
  ...each([...BOTH, ...AGENTS], {
    id: 'socket-abort-in-body',
    why: 'the user gives up in the middle of the body; the request ends, too',
    cause: 'user_abort',
    expected: bounded('user_abort'),
    run: abortedMidway(),
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
