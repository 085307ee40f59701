// One run: what is noted while it goes on, and when it is over.
//
// Here: the state of a run. Every method is safe to call late, twice or with anything: the first ending stands. Not
// here: what its records look like (receipts.js), and how the SDK is wrapped (watch.js, agents.js, streams.js).
import { isId } from './approvals.js';
import { causeOf } from './causes.js';
import { priceStep } from './conditions.js';
import { atOnce, quietly } from './guard.js';
import { brokenRecord, deathRecord, decisionRecord, progressRecord, startRecord, stopRecord } from './receipts.js';
import { count, displayName } from './records.js';
import { Tally } from './tally.js';
import { FAILED, WAITING } from './words.js';

const PROGRESS_MS = 10_000; // at most one progress record in this time, by the wire format

export class Run {
  /** @type {import('./conditions.js').Watched[]} */
  watched = [];
  /** @type {import('./approvals.js').Answer[]} what this call brings to a run that waited */
  answers = [];
  timeout = {};
  children = { open: 0, failed: 0, waiting: 0 };
  tally = new Tally();
  /** @type {{pending: number} | undefined} who reads its stream */
  readers = undefined;
  #hook;
  #seq = 0;
  #lastAt = 0;
  #recordedMs = 0;
  #isStarted = false;
  #isTaken = false;
  #isClosed = false;
  #isModelAsked = false;
  #stepMono = performance.now();
  #signal;
  #given;
  #tools;

  /**
   * @param {any} hook what all runs of one watch() share: sink, waits, who writes
   * @param {any} mine the options of this run, cleaned
   * @param {{isStream: boolean, hearsParts: boolean, signal?: AbortSignal, timeout?: any, parent?: Run, isNested: boolean}} call
   */
  constructor(hook, mine, call) {
    this.#hook = hook;
    this.mine = mine;
    const { signal, ...rest } = call;
    this.call = rest;
    // Weak: the SDK's listener on it leads to the result, and a result that nobody holds must be seen to go.
    this.#signal = signal && new WeakRef(signal);
    this.#given = signal;
    this.id = mine.runId;
    this.parentId = mine.parentRunId ?? call.parent?.id;
    this.threadId = mine.threadId ?? call.parent?.threadId;
    this.startedMs = Date.now();
    this.startedMono = performance.now();
    this.startedAt = this.now();
  }

  /** What is known of the call once its options are settled. */
  settle({ watched, model, tools, timeout, outputCap, isStructured, answers }) {
    this.watched = watched;
    this.#tools = new Set(Object.keys(tools ?? {})); // names only: tools can hold on to anything
    this.isStructured = isStructured;
    this.model = displayName(typeof model === 'string' ? model : model?.modelId);
    this.provider = displayName(typeof model === 'string' ? undefined : model?.provider);
    this.timeout = timeout;
    this.outputCap = count(outputCap);
    this.answers = answers;
  }

  /** The signal that the call is to be given, to be asked for once: a run does not hold on to it. */
  takeSignal() {
    const given = this.#given;
    this.#given = undefined;
    return given;
  }

  /** Writes the start record. Once. */
  start() {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.call.parent?.childStarted();
    this.#accept(startRecord(this));
  }

  get isClosed() {
    return this.#isClosed;
  }

  /** @param {string} name whether the application has a tool of that name */
  hasTool(name) {
    return this.#tools?.has(name) === true;
  }

  // What happens while it goes on.

  stepBegan() {
    this.tally.begun++;
    this.#stepMono = performance.now();
    this.#wasTaken();
  }

  /** @param {boolean} isAsked whether the model is being asked, or has answered */
  modelIsAsked(isAsked) {
    this.#isModelAsked = isAsked;
  }

  /** The SDK has taken the answers that this call brings: until then anybody could have made them up. */
  #wasTaken() {
    if (this.#isTaken) return;
    this.#isTaken = true;
    for (const answer of this.answers) this.#decided(answer, false);
  }

  /** @param {any} step the SDK's step result */
  stepEnded(step) {
    if (this.#isClosed) return;
    this.tally.add(step, this.#isAbortAsked());
    quietly(() => priceStep(this.watched, step));
    // The SDK also tells of an error that it then retries: a step that ends well after it has recovered.
    if (this.streamError !== undefined && step.finishReason !== 'error') {
      this.tally.recoveredModelErrors++;
      this.streamError = undefined;
    }
    if (this.tally.last.results.length > 0) this.progress('tool_result', PROGRESS_MS);
  }

  isAborted() {
    return this.#signal?.deref()?.aborted === true && this.streamError === undefined;
  }

  /** Why a stream was aborted: by the signal of the call, or by a timer of the SDK's own. */
  abortReason() {
    const signal = this.#signal?.deref();
    return signal?.aborted ? signal.reason : { name: 'TimeoutError' };
  }

  #isAbortAsked() {
    const signal = this.#signal?.deref();
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
    this.#wasTaken();
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

  /** The process ends. A receipt may still come where that is not true: it outranks this. */
  died() {
    const code = Number(globalThis.process?.exitCode ?? 0);
    this.#accept(deathRecord(this, Number.isInteger(code) ? code : 1));
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
    let record;
    quietly(() => {
      const facts = this.#facts(ending);
      record = stopRecord(this, facts, causeOf(facts), boundary);
    });
    record ??= brokenRecord(this, boundary);
    this.#accept(record);
    this.#remember(record.approvals ?? []);
    this.call.parent?.childStopped(record.stop_cause);
    this.call.parent = undefined; // a chain of runs that start runs would hold all of them
  }

  /** @returns {import('./causes.js').Facts} */
  #facts(ending) {
    const { doneTools, abortCause } = this.mine;
    const signal = this.#signal?.deref();
    const nowMono = performance.now();
    return {
      ending,
      abortCause,
      signal: { aborted: signal?.aborted === true, reason: signal?.reason },
      fired: this.watched.filter((one) => one.fired),
      last: this.tally.last,
      steps: this.tally.steps,
      timeout: this.timeout,
      elapsedMs: nowMono - this.startedMono,
      stepMs: nowMono - this.#stepMono,
      isModelAsked: this.#isModelAsked,
      namesDone: doneTools !== undefined,
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
    if (runId !== undefined && isId(answer.approvalId)) {
      this.#accept(decisionRecord(this, { ...answer, runId }, isExecuted));
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
    quietly(() => atOnce(this.#hook.sink.accept(record))); // also a sink of the application's own
  }
}
