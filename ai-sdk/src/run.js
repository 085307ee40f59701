// One run: what is noted while it goes on, and the records that it leaves.
//
// Here: the state of a run, its start record, its progress and its one stop receipt. Every method is safe to call late,
// twice or with anything: the first ending stands. Not here: how the SDK is wrapped (watch.js, agents.js, streams.js).
import { approvalFact, waitsOf } from './approvals.js';
import { causeOf, causeOfCondition } from './causes.js';
import { conditionFacts, limitFacts } from './conditions.js';
import { count, displayName, identifier, number } from './records.js';
import { Tally } from './tally.js';

const CLOCK_JUMP_MS = 5000; // the plan's clock skew: below it, clocks only disagree
const PROGRESS_MS = 10_000; // at most one record in this time, by the wire format

export class Run {
  #hook;
  #mine;
  #seq = 0;
  #lastAt = 0;
  #recordedAt = 0;
  #isClosed = false;
  #isStarted = false;
  #answers = [];

  /**
   * @param {any} hook what all runs of one watch() share: sink, waits, the facts that the application fixed
   * @param {any} mine the options of this run
   * @param {{isStream: boolean, signal?: AbortSignal, parent?: Run}} call
   */
  constructor(hook, mine, call) {
    this.#hook = hook;
    this.#mine = mine;
    this.call = call;
    this.id = mine.runId;
    this.attempt = mine.attempt;
    this.threadId = mine.threadId ?? call.parent?.threadId;
    this.watched = [];
    this.tally = new Tally();
    this.children = { open: 0, failed: 0, waiting: 0 };
    this.timeout = { isAny: false, isTool: false };
    this.startedMs = Date.now();
    this.startedMono = performance.now();
    this.startedAt = this.#at(this.startedMs);
  }

  get isClosed() {
    return this.#isClosed;
  }

  /** What is known of the call once its options are settled. */
  settle({ watched, model, timeout, outputCap, isStructured, answers }) {
    this.watched = watched;
    this.isStructured = isStructured;
    this.model = displayName(typeof model === 'string' ? model : model?.modelId);
    this.provider = displayName(typeof model === 'string' ? undefined : model?.provider);
    this.timeout = timeout;
    this.outputCap = count(outputCap);
    this.#answers = answers;
  }

  /** Writes the start record, and the decisions that this call brings. Once. */
  start() {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.call.parent?.childStarted();
    const record = this.#head('run.started', 'call', this.startedAt);
    this.#facts(record);
    record.lease_s = this.#mine.leaseS;
    this.#accept(record);
    for (const answer of this.#answers) this.#decided(answer, {});
  }

  // What happens while it goes on.

  stepEnded(step) {
    if (this.#isClosed) return;
    this.tally.add(step, this.call.signal?.aborted === true && !isTimeOut(this.call.signal));
    // The SDK also tells of an error that it then retries: a step that ends well after it has recovered.
    if (this.streamError !== undefined && step.finishReason !== 'error') {
      this.tally.recoveredModelErrors++;
      this.streamError = undefined;
    }
    if (this.tally.last.results.length > 0) this.progress('tool_result', PROGRESS_MS);
  }

  stepFailed(error) {
    this.stepError ??= error;
  }

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
    const answer = this.#answers.find((one) => one.toolCallId === toolCall.toolCallId && one.decision === 'approved');
    if (answer !== undefined) this.#decided(answer, { executed: true });
    if (!isError && this.#mine.isProgress(toolCall.toolName)) this.tally.progressMs = Date.now();
    // A tool that did not heed the abort has acted after the run was over. That is worth a record.
    if (this.#isClosed && !isError) this.progress('tool_result', 0, [{ code: 'late_tool_result' }]);
  }

  /** Whether something moves this run on. A call does by itself; a stream only while it is asked for more. */
  isDriven() {
    return !this.call.isStream || this.tally.inFlight > 0;
  }

  get leaseS() {
    return this.#mine.leaseS;
  }

  /**
   * A record that renews the lease, at most one in `every` milliseconds.
   * @param {'tool_result' | 'heartbeat'} sign
   */
  progress(sign, every, findings) {
    if (Date.now() - this.#recordedAt < every) return;
    const record = this.#head('run.progress', 'callback');
    record.sign = sign;
    record.steps = this.tally.steps;
    if (findings !== undefined) record.findings = findings;
    this.#accept(record);
  }

  childStarted() {
    this.children.open++;
  }

  /** @param {string} cause of the child */
  childStopped(cause) {
    this.children.open--;
    if (FAILED.has(cause)) this.children.failed++;
    if (WAITING.has(cause)) this.children.waiting++;
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
    const signal = { aborted: this.call.signal?.aborted === true, reason: this.call.signal?.reason };
    const fired = this.watched.filter((one) => one.fired);
    const answer = causeOf(this.#causeFacts(ending, signal, fired));
    this.#accept(this.#receipt(answer, fired, boundary, ending));
    this.call.parent?.childStopped(answer.cause);
  }

  #causeFacts(ending, signal, fired) {
    const { doneTools, abortCause } = this.#mine;
    return {
      ending,
      signal,
      fired,
      abortCause,
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

  #receipt(answer, fired, boundary, ending) {
    const record = this.#head('run.stopped', boundary);
    this.#facts(record);
    record.started_at = this.startedAt;
    record.duration_s = round((performance.now() - this.startedMono) / 1000);
    record.stop_cause = answer.cause;
    if (answer.reason !== undefined) record.reason_code = answer.reason;
    const later = [...new Set(fired.map(causeOfCondition))].filter((one) => one !== answer.cause && one !== 'unknown');
    if (later.length > 0) record.subsequent_causes = later;
    if (this.watched.length > 0) record.conditions = conditionFacts(this.watched, this.tally.totals());
    this.tally.write(record, {
      isNatural: answer.cause === 'natural',
      isStructured: this.isStructured,
      at: (ms) => this.#past(ms),
    });
    this.#writeModelErrors(record, ending);
    this.#writeUsage(record);
    this.#writeAbort(record, answer);
    this.#writeApprovals(record, answer);
    if (this.children.open + this.children.failed + this.children.waiting > 0) record.children = { ...this.children };
    if (answer.fault !== undefined) record.error = faultFact(answer.fault);
    if (ending.how === 'dropped') record.closed_by = 'garbage_collection';
    const findings = [...(record.findings ?? []), ...(answer.findings ?? []), ...this.#findings(fired)];
    if (findings.length > 0) record.findings = findings;
    return record;
  }

  #writeModelErrors(record, ending) {
    const isFailure = ending.how === 'threw' || this.streamError !== undefined;
    const terminal = this.stepError !== undefined && isFailure ? 1 : 0;
    const recovered = this.tally.recoveredModelErrors;
    record.model_calls += terminal + recovered;
    if (terminal + recovered > 0) record.model_errors = { terminal, recovered };
  }

  #writeUsage(record) {
    const usage = { ...this.tally.usage() };
    if (this.outputCap !== undefined) usage.output_cap = this.outputCap;
    const cost = this.watched.find((one) => one.kind === 'cost')?.seen;
    if (cost !== undefined) usage.cost_usd = cost;
    if (Object.keys(usage).length > 0) record.usage = usage;
  }

  /** An abort that was seen to work, or one that came before the last step ended and changed nothing. */
  #writeAbort(record, answer) {
    const actor = identifier(this.#mine.abortActor);
    if (answer.aborted) record.abort = { observed_at: record.at };
    else if (this.tally.endedAborted && answer.cause !== 'time_limit') record.abort = { requested_at: record.at };
    if (record.abort !== undefined && actor !== undefined) record.abort.actor = actor;
  }

  #writeApprovals(record, answer) {
    const waits = waitsOf(this.tally.last, answer.cause === 'external_pending' || answer.cause === 'approval_pending');
    if (waits.length === 0) return;
    record.approvals = waits.map((wait, n) => approvalFact(wait, this.#mine.route, this.id, record.at, n));
    for (const [n, wait] of waits.entries()) this.#remember(wait, record.approvals[n].approval_id);
  }

  #remember(wait, approvalId) {
    const known = { runId: this.id, attempt: this.attempt, approvalId, toolCallId: wait.toolCallId };
    this.#hook.waits.remember(wait.approvalId, known);
    this.#hook.waits.remember(wait.toolCallId, known);
  }

  #findings(fired) {
    const findings = this.tally.findings();
    if (fired.some((one) => one.isDefault)) findings.push({ code: 'default_stop_condition' });
    const drift = Date.now() - this.startedMs - (performance.now() - this.startedMono);
    if (Math.abs(drift) > CLOCK_JUMP_MS) findings.push({ code: 'clock_jump' });
    return findings;
  }

  /** A decision belongs to the run that waited. Where that is not known, nothing is written. */
  #decided(answer, more) {
    const runId = this.#mine.resumes ?? answer.run?.runId;
    const approvalId = identifier(answer.approvalId);
    if (runId === undefined || approvalId === undefined) return;
    const record = this.#head('approval.updated', 'call');
    record.run_id = runId;
    record.attempt = answer.run?.attempt ?? 1;
    delete record.seq; // this process may not know how far the other run's writer has counted
    record.approval = { approval_id: approvalId, state: 'decided', decision: answer.decision, ...more };
    if (more.executed === undefined) record.approval.decided_at = record.at;
    const actor = identifier(this.#mine.actor);
    if (actor !== undefined) record.approval.actor = actor;
    this.#accept(record);
  }

  #head(kind, boundary, at = this.#at()) {
    const record = {
      schema: 'stopcause/1',
      kind,
      run_id: this.id,
      attempt: this.attempt,
      at,
      seq: ++this.#seq,
      boundary,
    };
    return Object.assign(record, this.#hook.writer, this.#mine.trace);
  }

  #facts(record) {
    Object.assign(record, this.#mine.facts);
    if (this.#mine.findings.length > 0) record.findings = [...this.#mine.findings];
    if (this.model !== undefined) record.model = this.model;
    if (this.provider !== undefined) record.provider = this.provider;
    if (this.threadId !== undefined) record.thread_id = this.threadId;
    const parent = this.#mine.parentRunId ?? this.call.parent?.id;
    if (parent !== undefined) record.parent_run_id = parent;
    const limits = [...limitFacts(this.watched), ...this.#timeLimits()];
    if (limits.length > 0) record.limits = limits;
    this.#writeResumption(record);
  }

  #timeLimits() {
    const bounds = {
      deadline: this.#mine.deadlineMs,
      timeout: this.timeout.totalMs,
      step_timeout: this.timeout.stepMs,
    };
    return Object.entries(bounds)
      .filter(([, ms]) => number(ms) !== undefined)
      .map(([name, ms]) => ({ name, kind: 'time', limit: ms / 1000, unit: 's', scope: 'attempt' }));
  }

  #writeResumption(record) {
    const resumes = this.#mine.resumes ?? this.#answers.find((one) => one.run !== undefined)?.run.runId;
    if (resumes !== undefined) record.resumes_run_id = resumes;
    const answers = this.#answers.map((one) => identifier(one.approvalId)).filter((id) => id !== undefined);
    if (answers.length > 0) record.answers = answers;
    if (answers.length === 0 || resumes !== undefined) return;
    record.findings = [...(record.findings ?? []), { code: 'resumed_run_unknown' }];
  }

  /** Wall clock, but within a run it never goes back: a receipt that ends before it began would void itself. */
  #at(ms = Date.now()) {
    this.#lastAt = Math.max(this.#lastAt, ms);
    return new Date(this.#lastAt).toISOString();
  }

  /** A moment that was noted as a number, as a time not after the present one of this run. */
  #past(ms) {
    return new Date(Math.min(ms, this.#lastAt)).toISOString();
  }

  #accept(record) {
    this.#recordedAt = Date.now();
    this.#hook.sink.accept(record);
  }
}

const round = (seconds) => Math.round(seconds * 1e6) / 1e6;
const isTimeOut = (signal) => signal.reason?.name === 'TimeoutError';

function faultFact(fault) {
  const tool = displayName(fault.tool);
  const { tool: _, ...rest } = fault;
  return tool === undefined ? rest : { ...rest, tool };
}

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
