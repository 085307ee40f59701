// One run: what is noted while it goes on, and when it is over.
//
// Here: the state of a run. Every method is safe to call late, twice or with anything: the first ending stands. Not
// here: what its records look like (receipts.js), and how the SDK is wrapped (watch.js, agents.js, streams.js).
import { causeOf } from './causes.js';
import { quietly } from './guard.js';
import { decisionRecord, progressRecord, startRecord, stopRecord } from './receipts.js';
import { count, displayName, identifier } from './records.js';
import { Tally } from './tally.js';

const PROGRESS_MS = 10_000; // at most one progress record in this time, by the wire format

const WAITING = new Set(['approval_pending', 'input_pending', 'external_pending']);
const FAILED = new Set([
  'tool_failure',
  'model_failure',
  'content_filter',
  'refusal',
  'malformed_call',
  'quota',
  'host_error',
  'input_rejected',
]);

export class Run {
  /** @type {import('./conditions.js').Watched[]} */
  watched = [];
  /** @type {import('./approvals.js').Answer[]} what this call brings to a run that waited */
  answers = [];
  timeout = { isAny: false, isTool: false };
  children = { open: 0, failed: 0, waiting: 0 };
  tally = new Tally();
  /** @type {{pending: number} | undefined} who reads its stream */
  readers = undefined;
  #hook;
  #seq = 0;
  #lastAt = 0;
  #recordedMs = 0;
  #isStarted = false;
  #isClosed = false;

  /**
   * @param {any} hook what all runs of one watch() share: sink, waits, who writes
   * @param {any} mine the options of this run, cleaned
   * @param {{isStream: boolean, signal?: AbortSignal, timeout?: any, parent?: Run, isNested: boolean}} call
   */
  constructor(hook, mine, call) {
    this.#hook = hook;
    this.mine = mine;
    this.call = call;
    this.id = mine.runId;
    this.threadId = mine.threadId ?? call.parent?.threadId;
    this.startedMs = Date.now();
    this.startedMono = performance.now();
    this.startedAt = this.now();
  }

  /** What is known of the call once its options are settled. */
  settle({ watched, model, timeout, outputCap, isStructured, answers }) {
    this.watched = watched;
    this.isStructured = isStructured;
    this.model = displayName(typeof model === 'string' ? model : model?.modelId);
    this.provider = displayName(typeof model === 'string' ? undefined : model?.provider);
    this.timeout = timeout;
    this.outputCap = count(outputCap);
    this.answers = answers;
  }

  /** Writes the start record, and the decisions that this call brings. Once. */
  start() {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.call.parent?.childStarted();
    this.#accept(startRecord(this));
    for (const answer of this.answers) this.#decided(answer, false);
  }

  // What happens while it goes on.

  stepBegan() {
    this.tally.begun++;
  }

  /** @param {any} step the SDK's step result */
  stepEnded(step) {
    if (this.#isClosed) return;
    this.tally.add(step, this.#isAbortAsked());
    // The SDK also tells of an error that it then retries: a step that ends well after it has recovered.
    if (this.streamError !== undefined && step.finishReason !== 'error') {
      this.tally.recoveredModelErrors++;
      this.streamError = undefined;
    }
    if (this.tally.last.results.length > 0) this.progress('tool_result', PROGRESS_MS);
  }

  #isAbortAsked() {
    const { signal } = this.call;
    return signal?.aborted === true && signal.reason?.name !== 'TimeoutError';
  }

  /** @param {unknown} error */
  stepFailed(error) {
    this.stepError ??= error;
  }

  /** @param {unknown} error */
  streamFailed(error) {
    this.streamError ??= error;
  }

  toolStarted() {
    this.tally.started++;
    this.tally.inFlight++;
  }

  /** @param {any} toolCall @param {boolean} isError */
  toolEnded(toolCall, isError) {
    this.tally.inFlight = Math.max(0, this.tally.inFlight - 1);
    const answer = this.answers.find((one) => one.toolCallId === toolCall.toolCallId && one.decision === 'approved');
    if (answer !== undefined) {
      answer.isExecuted = true;
      this.#decided(answer, true);
    }
    if (!isError && this.mine.isProgress(toolCall.toolName)) this.tally.progressMs = Date.now();
    // A tool that did not heed the abort has acted after the run was over. That is worth a record.
    if (this.#isClosed && !isError) this.progress('tool_result', 0, [{ code: 'late_tool_result' }]);
  }

  childStarted() {
    this.children.open++;
  }

  /** @param {string} cause the child's stop cause */
  childStopped(cause) {
    this.children.open--;
    if (FAILED.has(cause)) this.children.failed++;
    if (WAITING.has(cause)) this.children.waiting++;
  }

  /**
   * Writes a record that renews the lease, unless one was written in the last `every` milliseconds.
   * @param {'tool_result' | 'heartbeat'} sign
   */
  progress(sign, every, findings) {
    if (Date.now() - this.#recordedMs >= every) this.#accept(progressRecord(this, sign, findings));
  }

  /** Whether something moves this run on. A call does by itself; a stream only while it is asked for more. */
  isDriven() {
    return !this.call.isStream || this.tally.inFlight > 0 || this.readers?.pending > 0;
  }

  // How it ends. The first call stands.

  /**
   * @param {import('./causes.js').Ending} ending
   * @param {string} boundary where that was seen
   */
  stop(ending, boundary) {
    if (this.#isClosed) return;
    this.start();
    this.#isClosed = true;
    this.#hook.runs.delete(this);
    const facts = this.#facts(ending);
    const answer = causeOf(facts);
    const record = stopRecord(this, facts, answer, boundary);
    this.#accept(record);
    this.#remember(record.approvals ?? []);
    this.call.parent?.childStopped(answer.cause);
  }

  /** @returns {import('./causes.js').Facts} */
  #facts(ending) {
    const { doneTools, abortCause } = this.mine;
    return {
      ending,
      abortCause,
      signal: { aborted: this.call.signal?.aborted === true, reason: this.call.signal?.reason },
      fired: this.watched.filter((one) => one.fired),
      last: this.tally.last,
      steps: this.tally.steps,
      timeout: this.timeout,
      elapsedMs: performance.now() - this.startedMono,
      stepError: this.stepError,
      streamError: this.streamError,
      hostThrew: this.watched.some((one) => one.threw),
      isStream: this.call.isStream,
      isDone: (tool) => doneTools?.includes(tool) ?? this.watched.some((one) => one.isDone?.(tool)),
    };
  }

  #remember(approvals) {
    const { waits } = this.#hook;
    for (const { approval_id: approvalId, tool_call_id: toolCallId, kind } of approvals) {
      const known = { runId: this.id, attempt: this.mine.attempt, approvalId, toolCallId, kind };
      waits.remember(approvalId, known);
      waits.remember(toolCallId, known);
    }
  }

  /** A decision belongs to the run that waited. Where that is not known, nothing is written. */
  #decided(answer, isExecuted) {
    const runId = this.mine.resumes ?? answer.run?.runId;
    const approvalId = identifier(answer.approvalId);
    if (runId !== undefined && approvalId !== undefined) {
      this.#accept(decisionRecord(this, { ...answer, runId, approvalId }, isExecuted));
    }
  }

  // What its records need.

  get writer() {
    return this.#hook.writer;
  }

  /** The writer's order inside this run. */
  nextSeq() {
    return ++this.#seq;
  }

  /** Wall clock, but within a run it never goes back: a receipt that ends before it began would void itself. */
  now() {
    this.#lastAt = Math.max(this.#lastAt, Date.now());
    return new Date(this.#lastAt).toISOString();
  }

  /** A moment that was noted as a number, as a time that is not after the latest of this run. */
  past(ms) {
    return new Date(Math.min(ms, this.#lastAt)).toISOString();
  }

  #accept(record) {
    this.#recordedMs = Date.now();
    quietly(() => this.#hook.sink.accept(record)); // also a sink of the application's own
  }
}
