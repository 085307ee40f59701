// How a call to the SDK is changed so that it can be watched: its options with our ears in them.
//
// Here: callbacks, stop conditions, the deadline. Each of the application's functions is called as before, with the same
// argument, and its answer or error goes back as it is. Not here: results (watch.js) and streams (streams.js).
import { answersOf } from './approvals.js';
import { watchConditions } from './conditions.js';
import { heard } from './guard.js';
import { number } from './records.js';

/**
 * The callbacks of generateText and streamText that say how a run goes.
 * @param {any} options as the application gave them @param {import('./run.js').Run} run
 */
export function watchCallbacks(options, run) {
  const own = (name, alias) => options[name] ?? options[alias];
  const ears = {
    onStepStart: heard(own('onStepStart', 'experimental_onStepStart'), () => run.stepBegan()),
    onStepEnd: heard(own('onStepEnd', 'onStepFinish'), (step) => run.stepEnded(step)),
    onStepError: heard(options.onStepError, ({ error }) => run.stepFailed(error)),
    ...modelCallbacks(options, run),
    onToolExecutionStart: heard(own('onToolExecutionStart', 'experimental_onToolCallStart'), () => run.toolStarted()),
    onToolExecutionEnd: heard(own('onToolExecutionEnd', 'experimental_onToolCallFinish'), (event) =>
      run.toolEnded(event.toolCall, event.toolOutput?.type === 'tool-error'),
    ),
  };
  return run.call.isStream ? { ...ears, ...streamCallbacks(options, run) } : ears;
}

/** Whether an error came while the model was asked tells whose it is. */
export function modelCallbacks(options, run) {
  const own = (name) => options[`on${name}`] ?? options[`experimental_on${name}`];
  return {
    onLanguageModelCallStart: heard(own('LanguageModelCallStart'), () => run.modelIsAsked(true)),
    onLanguageModelCallEnd: heard(own('LanguageModelCallEnd'), () => run.modelIsAsked(false)),
  };
}

function streamCallbacks(options, run) {
  const ears = { onAbort: heard(options.onAbort, ({ reason }) => run.stop({ how: 'aborted', reason }, 'callback')) };
  const onEnd = options.onEnd === undefined ? options.onFinish : options.onEnd;
  // With an output to parse, the SDK parses it for onEnd alone. Where nobody asked for that, the stream's end tells us.
  if ((onEnd ?? undefined) !== undefined || (options.output ?? undefined) === undefined) {
    ears.onEnd = heard(onEnd, () => run.stop({ how: 'returned' }, 'callback'));
  }
  const onError = errorCallback(options, run);
  return onError === undefined ? ears : { ...ears, onError };
}

/** Without a callback the SDK prints the error; with one, it may retry. Neither may change because of us. */
function errorCallback(options, run) {
  const note = ({ error }) => run.streamFailed(error);
  if ((options.onError ?? undefined) !== undefined) return heard(options.onError, note);
  return options.streamRetries === undefined ? heard(({ error }) => console.error(error), note) : undefined;
}

/**
 * The settled options of a call: conditions watched, and what they say noted in the run, which then starts.
 * @param {any} options @param {import('./run.js').Run} run @param {any} hook
 * @param {{limit: number, when: any}} fallback what the SDK does where no condition is given
 * @param {Map<Function, string>} [known] names that conditions have already
 */
export function settleCall(options, run, hook, fallback, known) {
  const given = options.stopWhen === undefined ? fallback.when : options.stopWhen;
  const { watched, stopWhen } = watchConditions(given, hook.own, fallback, known);
  run.settle({
    watched,
    model: options.model,
    tools: options.tools,
    timeout: timeoutOf(options.timeout),
    outputCap: options.maxOutputTokens,
    isStructured: (options.output ?? undefined) !== undefined,
    answers: answersOf(options, hook.waits),
  });
  run.start();
  return stopWhen;
}

/** The SDK's timers, as far as they bound a run. */
function timeoutOf(timeout) {
  if (typeof timeout === 'number') return { totalMs: number(timeout) };
  return { totalMs: number(timeout?.totalMs), stepMs: number(timeout?.stepMs) };
}

/**
 * The application's abort signal and the hook's own deadline as one. Without a deadline the signal stays what it is.
 * @param {AbortSignal | undefined} signal @param {number | undefined} deadlineMs
 */
export function signalOf(signal, deadlineMs) {
  if (deadlineMs === undefined) return signal;
  const deadline = AbortSignal.timeout(deadlineMs);
  if (signal === undefined || signal === null) return deadline;
  return AbortSignal.any([signal instanceof AbortSignal ? signal : followed(signal), deadline]);
}

/** A signal of another realm or of a library, as one that can be joined with ours. */
function followed(signal) {
  const own = new AbortController();
  const follow = () => own.abort(signal.reason);
  if (signal.aborted) follow();
  else signal.addEventListener('abort', follow, { once: true });
  return own.signal;
}

/**
 * An application's object with other values for some keys: a copy with the same prototype, so that inherited options
 * and getters are still found.
 * @param {any} options @param {object} changes
 */
export function changed(options, changes) {
  const proto = Object.getPrototypeOf(options);
  if (proto === Object.prototype) return { ...options, ...changes }; // the usual case, and several times as fast
  return Object.assign(Object.create(proto), options, changes);
}

/** What the SDK does where `stopWhen` is absent; the text of its documentation, and the same function. */
export const ONE_STEP = { limit: 1, when: ({ steps }) => steps.length === 1 };
