// The records of a run, as the wire format wants them.
//
// Here: facts of a run in, records out. Values were cleaned where they came in; what is absent is left out. Not here:
// when a record is due (run.js), and how it travels (outbox.js).
import { approvalFact, decidedFacts, isId, waitsOf } from './approvals.js';
import { causeOfCondition } from './causes.js';
import { conditionFacts, costOf, limitFacts } from './conditions.js';
import { displayName, number } from './records.js';

const WAITS = new Set(['approval_pending', 'external_pending']);
const MOST_APPROVALS = 500; // a line may have 1 MiB, and a receipt that is refused says nothing at all
const CLOCK_JUMP_MS = 5000; // the plan's clock skew: below it, clocks only disagree

/** @typedef {import('./run.js').Run} Run */

/** @param {Run} run */
export function startRecord(run) {
  const record = headOf(run, 'run.started', 'call', run.startedAt);
  writeFacts(record, run);
  record.lease_s = run.mine.leaseS;
  return record;
}

/** @param {Run} run @param {string} sign @param {object[]} [findings] */
export function progressRecord(run, sign, findings) {
  const record = headOf(run, 'run.progress', 'callback');
  record.sign = sign;
  record.steps = run.tally.steps;
  if (findings !== undefined) record.findings = findings;
  return record;
}

/**
 * What was decided, or that the gated call ran; written for the run that waited.
 * @param {Run} run the run that brings it @param {any} answer @param {boolean} isExecuted
 */
export function decisionRecord(run, { runId, approvalId, decision, run: waiting }, isExecuted) {
  const head = headOf(run, 'approval.updated', 'call', run.now(), null); // in the order of another writer, which we do not know
  const record = { ...head, run_id: runId, attempt: waiting?.attempt ?? 1 };
  record.approval = { approval_id: approvalId, state: 'decided', decision };
  if (isExecuted) record.approval.executed = true;
  else record.approval.decided_at = record.at;
  if (run.mine.actor !== undefined) record.approval.actor = run.mine.actor;
  return record;
}

/**
 * The stop receipt.
 * @param {Run} run @param {import('./causes.js').Facts} facts @param {import('./causes.js').Answer} answer
 * @param {string} boundary
 */
export function stopRecord(run, facts, answer, boundary) {
  const record = headOf(run, 'run.stopped', boundary);
  writeFacts(record, run);
  record.started_at = run.startedAt;
  record.duration_s = round(facts.elapsedMs / 1000);
  writeCause(record, run, facts, answer);
  if (run.watched.length > 0) record.conditions = conditionFacts(run.watched, run.tally.totals());
  writeCounts(record, run, facts, answer);
  writeUsage(record, run);
  writeAbort(record, run, answer);
  writeApprovals(record, run, answer);
  const { open, failed, waiting } = run.children;
  if (open + failed + waiting > 0) record.children = { open, failed, waiting };
  if (facts.ending.how === 'dropped') record.closed_by = 'garbage_collection';
  writeFindings(record, [...(answer.findings ?? []), ...findingsOf(run, facts)]);
  return record;
}

/** The process ends while the run goes on. @param {Run} run @param {number} exitCode */
export function deathRecord(run, exitCode) {
  const reason = exitCode === 0 ? 'lost' : 'crashed';
  return { ...headOf(run, 'run.died', 'call'), reason, exit_code: exitCode };
}

/** What is left where the receipt could not be made: that the run is over, and that we do not know why. */
export function brokenRecord(run, boundary) {
  const record = headOf(run, 'run.stopped', boundary);
  return { ...record, stop_cause: 'unknown', steps: run.tally.steps, findings: [{ code: 'receipt_incomplete' }] };
}

function headOf(run, kind, boundary, at = run.now(), seq = run.nextSeq()) {
  const { attempt, trace } = run.mine;
  const record = { schema: 'stopcause/1', kind, run_id: run.id, attempt, at, seq, boundary };
  if (seq === null) delete record.seq;
  return Object.assign(record, run.writer, trace);
}

/** What stands in the start record and again in the receipt, which stands alone. */
function writeFacts(record, run) {
  Object.assign(record, run.mine.facts);
  if (run.model !== undefined) record.model = run.model;
  if (run.provider !== undefined) record.provider = run.provider;
  if (run.threadId !== undefined) record.thread_id = run.threadId;
  if (run.parentId !== undefined) record.parent_run_id = run.parentId;
  const limits = [...limitFacts(run.watched), ...timeLimits(run)];
  if (limits.length > 0) record.limits = limits;
  writeFindings(record, run.mine.findings);
  writeResumption(record, run);
}

function timeLimits(run) {
  const bounds = { deadline: run.mine.deadlineMs, timeout: run.timeout.totalMs, step_timeout: run.timeout.stepMs };
  return Object.entries(bounds)
    .filter(([, ms]) => number(ms) !== undefined)
    .map(([name, ms]) => ({ name, kind: 'time', limit: ms / 1000, unit: 's', scope: 'attempt' }));
}

function writeResumption(record, run) {
  const resumes = run.mine.resumes ?? run.answers.find((one) => one.run !== undefined)?.run.runId;
  if (resumes !== undefined) record.resumes_run_id = resumes;
  const answers = run.answers.map((one) => one.approvalId).filter(isId);
  if (answers.length === 0) return;
  record.answers = answers;
  if (resumes === undefined) writeFindings(record, [{ code: 'resumed_run_unknown' }]);
}

function writeCause(record, run, { fired }, answer) {
  record.stop_cause = answer.cause;
  if (answer.reason !== undefined) record.reason_code = answer.reason;
  const others = [...new Set(fired.map(causeOfCondition))].filter((one) => one !== answer.cause && one !== 'unknown');
  if (others.length > 0) record.subsequent_causes = others;
  if (answer.fault !== undefined) record.error = faultFact(answer.fault, run);
}

/** A tool that the application does not have is a word of the model's, and stays out. */
function faultFact({ tool, ...fault }, run) {
  const name = run.hasTool(tool) ? displayName(tool) : undefined;
  return name === undefined ? fault : { ...fault, tool: name };
}

function writeCounts(record, run, { ending }, answer) {
  const isNatural = answer.cause === 'natural';
  run.tally.write(record, {
    isNatural,
    isStructured: run.isStructured && !run.call.isStream,
    at: (ms) => run.past(ms),
  });
  const terminal = isModelError(run, ending) ? 1 : 0;
  const recovered = run.tally.recoveredModelErrors;
  if (terminal + recovered > 0) record.model_errors = { terminal, recovered };
}

function isModelError(run, ending) {
  if (run.streamError !== undefined || run.tally.last?.finish === 'error') return true;
  return run.stepError !== undefined && (ending.how === 'threw' || run.call.isStream);
}

function writeUsage(record, run) {
  const usage = run.tally.usage();
  if (run.outputCap !== undefined) usage.output_cap = run.outputCap;
  const cost = costOf(run.watched);
  if (cost !== undefined) usage.cost_usd = cost;
  if (Object.keys(usage).length > 0) record.usage = usage;
}

/** An abort that was seen to work, or one that came before the last step ended and changed nothing. */
function writeAbort(record, run, answer) {
  if (answer.aborted) record.abort = { observed_at: record.at };
  else if (run.tally.abortedMs !== undefined && answer.cause !== 'time_limit') {
    record.abort = { requested_at: run.past(run.tally.abortedMs) };
  }
}

function writeApprovals(record, run, answer) {
  const isWaiting = WAITS.has(answer.cause);
  const waits = waitsOf(run.tally.last, isWaiting);
  const asked = waits.map((wait, index) => approvalFact(wait, run.mine.route, run.id, record.at, index));
  // What this call answered tells of a run that went on. In one that stops to wait again it would be a wait of its own.
  const all = isWaiting ? asked : [...asked, ...decidedFacts(run.answers)];
  const approvals = all.slice(0, MOST_APPROVALS);
  if (all.length > approvals.length) writeFindings(record, [{ code: 'approvals_cut' }]);
  if (approvals.length > 0) record.approvals = approvals;
}

function findingsOf(run, { fired }) {
  const findings = run.tally.findings();
  if (fired.some((one) => one.isDefault)) findings.push({ code: 'default_stop_condition' });
  const drift = Date.now() - run.startedMs - (performance.now() - run.startedMono);
  if (Math.abs(drift) > CLOCK_JUMP_MS) findings.push({ code: 'clock_jump' });
  return findings;
}

function writeFindings(record, findings) {
  if (findings.length > 0) record.findings = [...(record.findings ?? []), ...findings];
}

const round = (seconds) => Math.round(seconds * 1e6) / 1e6;
