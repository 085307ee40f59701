// Why control flow ended: the cause map of this hook, as rules in the order in which they are asked.
//
// Here: facts of a run in, one stop cause out. The first rule that knows an answer wins. Not here: how the facts are
// gathered (run.js) and what an operator should believe of them (the classifier).
import { faultOf, interruptionOf } from './faults.js';
import { atOnce } from './guard.js';
import { isUnsafe } from './steps.js';
import { ABORTED, table } from './words.js';

/**
 * @typedef {object} Facts
 * @property {Ending} ending how the run let go
 * @property {import('./steps.js').Step | undefined} last the last completed step
 * @property {number} steps how many were completed
 * @property {import('./conditions.js').Watched[]} fired conditions that ended the loop
 * @property {{aborted: boolean, reason: unknown}} signal the application's own, as it was at the end
 * @property {{totalMs?: number, stepMs?: number}} timeout the SDK's own timers
 * @property {number} elapsedMs of the run @property {number} stepMs of the step that goes on or was the last
 * @property {boolean} isModelAsked whether the model was being asked when it ended
 * @property {boolean} namesDone whether the application named the tools that mean done
 * @property {unknown} [stepError] what the SDK said of a step that failed
 * @property {unknown} [streamError] what the SDK said of a stream that failed
 * @property {boolean} hostThrew whether a condition of the application threw
 * @property {(tool: string) => boolean} isDone whether a tool means that the work is done
 * @property {string | ((reason: unknown) => string) | undefined} abortCause the application's word for its aborts
 * @property {boolean} isStream
 *
 * @typedef {{how: 'returned'|'threw'|'aborted'|'cancelled'|'dropped', error?: unknown, reason?: unknown,
 *   wasRead?: boolean}} Ending
 * @typedef {{cause: string, reason?: string, fault?: import('./faults.js').Fault, aborted?: boolean,
 *   findings?: {code: string, where?: string}[]}} Answer
 */

/** Thrown before the first step because of what the application passed in. */
const REFUSED_INPUTS = new Set([
  'AI_InvalidPromptError',
  'AI_InvalidArgumentError',
  'AI_InvalidMessageRoleError',
  'AI_MessageConversionError',
  'AI_MissingToolResultsError',
  'AI_InvalidToolApprovalError',
  'AI_InvalidToolApprovalSignatureError',
  'AI_ToolCallNotFoundForApprovalError',
  'AI_UnsupportedFunctionalityError',
  'AI_TypeValidationError',
]);

const TIMER_SLACK_MS = 5; // a timer may fire a moment before the clock says so

const QUOTA_STATUSES = new Set([402, 429]);

/** Words of providers that say more than the status does. */
const BY_CODE = table({ context_length_exceeded: 'context_limit', insufficient_quota: 'quota' });

/** What a condition's kind means when it fired; the order says which one names the run when several did. */
const BY_KIND = table({
  tool_call: 'explicit_done',
  tokens: 'token_budget',
  cost: 'cost_budget',
  time: 'time_limit',
  steps: 'step_limit',
  custom: 'unknown',
});
const KINDS = Object.keys(BY_KIND);

const BY_FINISH = table({
  interrupted: 'stream_truncated',
  length: 'output_cap',
  'content-filter': 'content_filter',
  error: 'model_failure',
});

const RULES = [interrupted, letGo, failed, waitsForPerson, done, waitsForOthers, toolFailed, bounded, finished];

/**
 * The stop cause of a run.
 * @param {Facts} facts
 * @returns {Answer}
 */
export function causeOf(facts) {
  for (const rule of RULES) {
    const answer = rule(facts);
    if (answer !== undefined) return answer;
  }
  return { cause: 'unknown' };
}

/** An abort or a time-out, where something shows that it really interrupted the loop. */
function interrupted(facts) {
  const { ending, signal } = facts;
  if (ending.how === 'aborted') return abortAnswer(facts, ending.reason);
  if (ending.how === 'threw') return thrownInterruption(facts, ending.error);
  // A tool that was cut off while a condition was true: the SDK returns as if nothing had happened.
  const cut = facts.last?.failed.find((call) => call.errorType === 'TimeoutError' || call.errorType === 'AbortError');
  if (ending.how !== 'returned' || cut === undefined || facts.fired.length === 0 || isWaiting(facts.last))
    return undefined;
  if (signal.aborted) return swallowed(abortAnswer(facts, signal.reason));
  return cut.errorType === 'TimeoutError' && isSdkTimeout(facts) ? swallowed(timeLimit(signal.reason)) : undefined;
}

function thrownInterruption(facts, error) {
  const { signal } = facts;
  if (signal.aborted && (error === signal.reason || interruptionOf(error))) return abortAnswer(facts, signal.reason);
  return interruptionOf(error) === 'TimeoutError' && isSdkTimeout(facts) ? timeLimit(error) : undefined;
}

/** A run that asks somebody stops for that, whatever the clock says. */
const isWaiting = (last) => last.requests.length > 0 || last.open.length > 0;

const swallowed = (answer) => ({ ...answer, findings: [{ code: 'interruption_swallowed' }] });

/** The SDK's timers of a call and a step, by the clock: a tool's own timer, or a library's, is a failure of that tool. */
function isSdkTimeout({ timeout, elapsedMs, stepMs }) {
  return elapsedMs >= timeout.totalMs - TIMER_SLACK_MS || stepMs >= timeout.stepMs - TIMER_SLACK_MS;
}

function abortAnswer(facts, reason) {
  if (interruptionOf(reason) === 'TimeoutError') return timeLimit(reason);
  return { cause: abortCause(facts.abortCause, reason), aborted: true };
}

const timeLimit = (error) => ({ cause: 'time_limit', fault: error === undefined ? undefined : faultOf(error) });

/** A signal is fired by the calling program. Whether a person was behind it, only the application can say. */
function abortCause(chosen, reason) {
  try {
    const cause = typeof chosen === 'function' ? atOnce(chosen(reason)) : chosen;
    return ABORTED.has(cause) ? cause : 'caller_abort';
  } catch {
    return 'caller_abort'; // the application's own function failed; the abort is as true without its word
  }
}

/** Whoever read the stream went away, and nobody else can move it on. */
function letGo({ ending }) {
  if (ending.how === 'cancelled') return { cause: 'caller_abort', reason: 'reader_cancelled', aborted: true };
  if (ending.how !== 'dropped') return undefined;
  return { cause: 'caller_abort', reason: ending.wasRead ? 'stream_dropped' : 'stream_unread', aborted: true };
}

function failed(facts) {
  const { ending, last } = facts;
  if (ending.how === 'threw') return failure(facts, ending.error);
  if (facts.streamError !== undefined) return failure(facts, facts.streamError);
  if (facts.stepError !== undefined && facts.isStream) return failure(facts, facts.stepError);
  return last?.finish === 'error' ? { cause: 'model_failure', reason: 'finish_error' } : undefined;
}

function failure(facts, error) {
  const fault = faultOf(error);
  if (facts.hostThrew) return { cause: 'host_error', fault };
  if (facts.steps === 0 && fault.chain.some((type) => REFUSED_INPUTS.has(type)))
    return { cause: 'input_rejected', fault };
  if (facts.isStream && fault.chain.includes('AI_NoOutputGeneratedError')) return { cause: 'stream_truncated', fault };
  if (BY_CODE[fault.code] !== undefined) return { cause: BY_CODE[fault.code], fault };
  if (QUOTA_STATUSES.has(fault.status)) return { cause: 'quota', fault };
  return { cause: isOfModel(facts, fault) ? 'model_failure' : 'host_error', fault };
}

/**
 * The SDK names its own errors, and says when it asks the model. What is neither came from the application: its
 * approvals, its hooks of tools, its prepareStep.
 */
function isOfModel(facts, fault) {
  if (facts.isModelAsked || facts.last?.finish === 'error' || fault.chain.some(isOfSdk)) return true;
  return facts.isStream && facts.stepError !== undefined;
}

const isOfSdk = (type) => type.startsWith('AI_');

function waitsForPerson({ last }) {
  return last?.requests.length > 0 ? { cause: 'approval_pending' } : undefined;
}

/** A tool that means done: called without anybody to execute it, or executed in the step that a condition ended. */
function done({ last, fired, isDone, namesDone }) {
  if (last === undefined) return undefined;
  const isOpen = !isUnsafe(last) && last.open.some((call) => isDone(call.name));
  const isAsked = namesDone ? fired.length > 0 : fired.some(meansDone);
  const isMade = isAsked && last.results.some((call) => isDone(call.name));
  return isOpen || isMade ? { cause: 'explicit_done' } : undefined;
}

const meansDone = (one) => one.kind === 'tool_call' && (one.cause ?? 'explicit_done') === 'explicit_done';

/** Calls that somebody else must execute. After an unsafe finish they must not be, so that is no wait. */
function waitsForOthers({ last }) {
  const isWait = last !== undefined && !isUnsafe(last) && last.open.length > 0;
  return isWait ? { cause: 'external_pending' } : undefined;
}

/** A condition ended the loop before the model could see that its calls had failed. One that worked is work done. */
function toolFailed({ last, fired }) {
  if (fired.length === 0 || !last?.failed.length || last.results.length > 0) return undefined;
  const call = last.failed[0];
  const cause = last.failed.every((one) => one.invalid) ? 'malformed_call' : 'tool_failure';
  return { cause, fault: { type: call.errorType, chain: [call.errorType], tool: call.name } };
}

/** What the application declared goes before what a kind means; among kinds their order decides. */
function bounded({ fired, last, isDone }) {
  if (fired.length === 0) return undefined;
  const causes = [...fired].sort((a, b) => rank(a) - rank(b)).map(causeOfCondition);
  const cause = causes.find((one) => one !== 'unknown' && one !== 'explicit_done');
  if (cause !== undefined) return { cause };
  const isDenied = last?.calls.some((call) => call.state === 'denied' && isDone(call.name));
  return isDenied ? { cause: 'approval_denied' } : { cause: 'unknown', reason: 'custom_condition' };
}

const rank = (one) => (one.cause === undefined ? KINDS.indexOf(one.kind) : -1);

/**
 * The cause that a fired condition stands for.
 * @param {import('./conditions.js').Watched} one
 */
export const causeOfCondition = (one) => one.cause ?? BY_KIND[one.kind] ?? 'unknown';

function finished({ last, isStream }) {
  if (last === undefined) return undefined;
  if (last.finish === 'content-filter' && last.raw === 'refusal') return { cause: 'refusal' };
  if (BY_FINISH[last.finish] !== undefined) return { cause: BY_FINISH[last.finish] };
  if (isStream && last.finish === 'other' && last.raw === undefined && !last.hasUsage)
    return { cause: 'stream_truncated' };
  // The loop took it for an end. That calls are open is in the receipt too, and voids it.
  return { cause: 'natural' };
}
