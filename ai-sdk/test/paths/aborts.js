// Somebody or some clock stops it: in a model call, in a tool, in the last allowed step, before it began.
import { ALL, bounded, CALLS, each, GENERATE, STREAM, stuck } from './each.js';

const SHORT = 120; // milliseconds; what comes before the wait takes less, on a busy machine too
const roomy = (api, kit) => ({ stopWhen: kit.stopWhen({ step_limit: api.isStepCount(8) }) });
const look = (kit) => ({ calls: [kit.call('lookup')] });
const byUser = { watch: () => ({ abortCause: 'user_abort' }) };

/** Runs a script whose hanging place calls `stop`, which aborts with `reason`. Gives what was returned or thrown. */
async function abortedRun(api, kit, entry, { script, reason, tool, limit = 8, ...more }) {
  const controller = new AbortController();
  const stop = () => controller.abort(...(reason ? [reason(kit)] : []));
  const tools = tool ? { ...kit.tools, slow: waitingTool(kit, stop) } : kit.tools;
  return kit.start(api, entry, {
    model: kit.model(script(kit, stop)),
    tools,
    abortSignal: controller.signal,
    stopWhen: kit.stopWhen({ step_limit: api.isStepCount(limit) }),
    ...more,
  });
}

function waitingTool(kit, stop) {
  return {
    ...kit.tools.slow,
    execute: (input, options) => {
      const waits = kit.tools.slow.execute(input, options);
      stop();
      return waits;
    },
  };
}

const hangs = (stop, entry) =>
  STREAM.includes(entry) ? { text: 'a few words', hang: 'midway', midway: stop } : undefined;
const aborts = (details) => (api, kit, entry) =>
  abortedRun(api, kit, entry, {
    ...details,
    script: (its, stop) => details.script(its, stop, entry),
  });
const inModel = (stop, entry) => hangs(stop, entry) ?? { before: () => setImmediate(stop), hang: 'asked' };
const whileAnswering = (_kit, stop, entry) => [inModel(stop, entry)];

const users = [
  ...each(ALL, {
    id: 'user-abort',
    ids: { streamText: 'stream-s-abort' },
    why: 'the user stops it while the model answers',
    cause: 'user_abort',
    expected: bounded('user_abort'),
    ...byUser,
    run: aborts({ script: whileAnswering }),
  }),
  ...each(CALLS, {
    id: 'user-abort-later',
    why: 'the user stops it while the model answers a second time',
    cause: 'user_abort',
    expected: bounded('user_abort'),
    ...byUser,
    run: aborts({ script: (its, stop, entry) => [look(its), inModel(stop, entry)] }),
  }),
  ...each(ALL, {
    id: 'user-abort-in-tool',
    why: 'the user stops it while a tool runs',
    cause: 'user_abort',
    expected: bounded('user_abort'),
    ...byUser,
    run: aborts({ tool: true, script: (its) => [{ calls: [its.call('slow')] }, { text: its.say.text }] }),
  }),
  ...each(GENERATE, {
    id: 'user-abort-swallowed',
    why: 'the user stops it in a tool of the last allowed step: the SDK returns as if the limit had stopped it',
    cause: 'user_abort',
    expected: bounded('user_abort'),
    ...byUser,
    run: aborts({ tool: true, limit: 1, script: (its) => [{ calls: [its.call('slow')] }, { text: its.say.text }] }),
  }),
  ...each(CALLS, {
    id: 'abort-before',
    why: 'the signal was aborted before the call',
    cause: 'user_abort',
    expected: bounded('user_abort'),
    ...byUser,
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: kit.model([{ hang: 'asked' }]),
        abortSignal: AbortSignal.abort(),
        ...roomy(api, kit),
      }),
  }),
  ...each(CALLS, {
    id: 'abort-by-platform',
    why: 'the application says by the reason that its platform stopped it',
    cause: 'platform_abort',
    expected: bounded('platform_abort'),
    watch: () => ({ abortCause: (reason) => (reason?.code === 'SIGTERM' ? 'platform_abort' : 'user_abort') }),
    run: aborts({
      reason: (kit) => kit.own('reason', Object.assign(new Error(kit.canary), { code: 'SIGTERM' })),
      script: whileAnswering,
    }),
  }),
  ...each(CALLS, {
    id: 'abort-cause-throws',
    why: 'the application’s own word for the cause breaks: the run is not harmed, and it stays an abort of the caller',
    cause: 'caller_abort',
    expected: bounded('caller_abort'),
    watch: (kit) => ({
      abortCause: () => {
        throw kit.say.error('CauseTrouble');
      },
    }),
    run: aborts({ script: whileAnswering }),
  }),
];

const REASONS = [
  { id: 'string', why: 'a string', reason: (kit) => `stop now ${kit.canary}` },
  { id: 'object', why: 'an object of the application', reason: (kit) => kit.own('reason', { note: kit.canary }) },
  { id: 'null', why: 'null', reason: () => null },
];
const reasons = REASONS.flatMap(({ id, why, reason }) =>
  each(CALLS, {
    id: `abort-reason-${id}`,
    why: `the caller aborts with ${why} for a reason, and does not say who asked for it`,
    cause: 'caller_abort',
    expected: bounded('caller_abort'),
    run: aborts({ reason, script: whileAnswering }),
  }),
);

// Time ------------------------------------------------------------------------------------------------------------------

/** A run that hangs in its last turn until some clock ends it. */
const timed = (script, more) => (api, kit, entry) =>
  kit.start(api, entry, { model: kit.model(script(kit, entry)), ...roomy(api, kit), ...more(api, kit) });
const hang = (_kit, entry) => (STREAM.includes(entry) ? { text: 'a few words', hang: 'midway' } : { hang: 'asked' });
const broken = (kit) => ({ calls: [kit.call('broken')] });
const deadline = (_api, kit) => kit.deadline(SHORT);

const deadlines = [
  ...each(ALL, {
    id: 'timeout',
    ids: { streamText: 'stream-s-timeout' },
    why: 'the deadline ends it in a model call; no step before it got anywhere',
    cause: 'time_limit',
    expected: stuck('time_limit'),
    run: timed((kit, entry) => [broken(kit), broken(kit), hang(kit, entry)], deadline),
  }),
  ...each(ALL, {
    id: 'timeout-after-work',
    why: 'the deadline ends it in a model call; a tool had answered before',
    cause: 'time_limit',
    expected: bounded('time_limit'),
    run: timed((kit, entry) => [look(kit), hang(kit, entry)], deadline),
  }),
  ...each(GENERATE, {
    id: 'timeout-in-tool',
    why: 'the deadline ends it in a tool, and the loop does not go on',
    cause: 'time_limit',
    expected: stuck('time_limit'),
    run: timed((kit) => [{ calls: [kit.call('slow')] }, { text: kit.say.text }], deadline),
  }),
  ...each(GENERATE, {
    id: 'timeout-in-tool-of-limit-step',
    why: 'the deadline ends a tool of the last allowed step: the SDK returns as if the limit had stopped it',
    cause: 'time_limit',
    expected: stuck('time_limit'),
    run: timed(
      (kit) => [{ calls: [kit.call('slow')] }, { text: kit.say.text }],
      (api, kit) => ({
        ...kit.deadline(SHORT),
        stopWhen: kit.stopWhen({ step_limit: api.isStepCount(1) }),
      }),
    ),
  }),
  ...each(['generateText'], {
    id: 'timeout-in-tool-with-approval',
    why: 'the deadline ends a tool of a step whose other call needs approval: it stays a wait',
    cause: 'approval_pending',
    expected: { verdict: 'WAITING_UNROUTED', reason: 'owner' },
    run: timed((kit) => [{ calls: [kit.call('slow'), kit.call('refund')] }], deadline),
  }),
  ...each(CALLS, {
    id: 'timeout-of-the-application',
    why: 'AbortSignal.timeout of the application: a clock, not a person',
    cause: 'time_limit',
    expected: bounded('time_limit'),
    run: timed(
      (kit, entry) => [look(kit), hang(kit, entry)],
      () => ({ abortSignal: AbortSignal.timeout(SHORT) }),
    ),
  }),
];

const CLOCKS = [
  { id: 'total', why: 'the whole call', timeout: { totalMs: SHORT }, entries: ALL },
  { id: 'step', why: 'a step', timeout: { stepMs: SHORT }, entries: CALLS },
  { id: 'chunk', why: 'the next chunk', timeout: { chunkMs: SHORT }, entries: ['streamText'] },
  { id: 'number', why: 'the whole call, as a bare number', timeout: SHORT, entries: ['generateText'] },
];
const sdkClocks = CLOCKS.flatMap(({ id, why, timeout, entries }) =>
  each(entries, {
    id: `sdk-timeout-${id}`,
    why: `the SDK’s own time-out for ${why}; a tool had answered before`,
    cause: 'time_limit',
    expected: bounded('time_limit'),
    run: timed(
      (kit, entry) => [look(kit), hang(kit, entry)],
      () => ({ timeout }),
    ),
  }),
);

const late = [
  ...each(CALLS, {
    id: 'late-tool',
    why: 'a tool that ignores the abort finishes after the stop: it does not change the receipt',
    cause: 'user_abort',
    expected: bounded('user_abort'),
    ...byUser,
    run: async (api, kit, entry) => {
      const controller = new AbortController();
      const deaf = kit.tools.deaf.execute;
      const execute = () => {
        setImmediate(() => controller.abort());
        return deaf();
      };
      const seen = await caught(() =>
        kit.start(api, entry, {
          model: kit.model([{ calls: [kit.call('deaf')] }, { text: kit.say.text }]),
          tools: { ...kit.tools, deaf: { ...kit.tools.deaf, execute } },
          abortSignal: controller.signal,
          ...roomy(api, kit),
        }),
      );
      await kit.sleep(60);
      return seen;
    },
  }),
];

/** What was given back, or what was thrown. */
async function caught(deed) {
  try {
    return await deed();
  } catch (error) {
    return { thrown: error };
  }
}

export const paths = [...users, ...reasons, ...deadlines, ...sdkClocks, ...late];
