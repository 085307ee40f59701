// What a run waits for, and what a later call answers.
//
// Here: approvals of a receipt, the application's route, and the link from a resumed call to the run that waited.
// Not here: the decision itself; the SDK only tells that there is one.
import { atOnce } from './guard.js';
import { isPersonal } from './personal.js';
import { displayName, identifier, time } from './records.js';

const MOST_WAITS = 20_000; // ids remembered in this process, two for each wait, so that a resumed call finds its run
const MOST_ANSWERS = 64; // in one message; what a client sends is not ours to bound otherwise

/**
 * What the application may say about a wait.
 * @typedef {object} Route
 * @property {string} [owner] who answers @property {string | Date | number} [deadline] soft, ours
 * @property {number} [dueMs] the deadline, counted from now @property {string | Date | number} [expiresAt] hard
 * @property {string} [resumeToken] names the paused state; never a bearer secret @property {boolean} [resumable]
 *
 * @typedef {{approvalId: string, kind: 'tool_call' | 'external', tool: string, toolCallId: string}} Wait
 */

/**
 * What the last step waits for: a person's yes, and calls that somebody else executes.
 * @param {import('./steps.js').Step | undefined} last
 * @param {boolean} isExternal whether the open calls are a wait
 * @returns {Wait[]}
 */
export function waitsOf(last, isExternal) {
  if (last === undefined) return [];
  const asked = last.requests.map(({ approvalId, call }) => wait(approvalId, 'tool_call', call));
  return isExternal ? [...asked, ...last.open.map((call) => wait(call.id, 'external', call))] : asked;
}

const wait = (approvalId, kind, call) => ({ approvalId, kind, tool: call.name, toolCallId: call.id });

/**
 * One entry of `approvals`. Without an identifier of its own it is numbered, so that the wait is not lost.
 * @param {Wait} wait @param {Route | ((wait: Wait & {runId: string}) => Route)} route
 * @param {string} runId @param {string} at @param {number} index
 */
export function approvalFact(wait, route, runId, at, index) {
  const fact = {
    approval_id: identifier(wait.approvalId) ?? `${runId.slice(0, 180)}/approval-${index + 1}`,
    kind: wait.kind,
    requested_at: at,
  };
  assign(fact, 'tool', displayName(wait.tool));
  assign(fact, 'tool_call_id', identifier(wait.toolCallId));
  try {
    assignRoute(fact, atOnce(typeof route === 'function' ? route({ ...wait, runId }) : route) ?? {});
  } catch {
    // a route that fails is a wait without an owner, and shows as one
  }
  fact.state = fact.owner === undefined ? 'requested' : 'routed';
  return fact;
}

/**
 * Entries of `approvals` for what a call answered, once it went on.
 * @param {Answer[]} answers
 */
export function decidedFacts(answers) {
  return answers
    .filter((answer) => isId(answer.approvalId))
    .map((answer) => {
      const fact = { approval_id: answer.approvalId, state: 'decided', decision: answer.decision };
      assign(fact, 'tool_call_id', identifier(answer.toolCallId));
      if (answer.isExecuted) fact.executed = true;
      return fact;
    });
}

function assignRoute(fact, route) {
  const due = Number.isFinite(route.dueMs) ? Date.now() + route.dueMs : undefined;
  assign(fact, 'owner', identifier(route.owner));
  assign(fact, 'deadline', time(route.deadline ?? due));
  assign(fact, 'expires_at', time(route.expiresAt));
  assign(fact, 'resume_token', identifier(route.resumeToken));
  if (typeof route.resumable === 'boolean') fact.resumable = route.resumable;
}

function assign(fact, key, value) {
  if (value !== undefined) fact[key] = value;
}

/** Which run waits for what, in this process. The oldest is forgotten first. */
class Waits {
  #runs = new Map();

  /**
   * Some providers number their calls anew in each answer: an id that two runs wait by names neither.
   * @param {string} key approval or tool-call id @param {object} run what `Run` knows of a wait
   */
  remember(key, run) {
    if (typeof key !== 'string' || key.length > 200) return;
    const known = this.#runs.get(key);
    this.#runs.delete(key);
    this.#runs.set(key, known === undefined || known.runId === run.runId ? run : { kind: run.kind, isShared: true });
    if (this.#runs.size > MOST_WAITS) this.#runs.delete(this.#runs.keys().next().value);
  }

  /** @param {string} key */
  find(key) {
    return this.#runs.get(key);
  }
}

/** @type {WeakMap<object, Waits>} */
const bySink = new WeakMap();

/** One for each sink: a hook that is made anew for each request still finds the run that waited. @param {object} sink */
export function waitsBehind(sink) {
  if (!bySink.has(sink)) bySink.set(sink, new Waits());
  return bySink.get(sink);
}

/**
 * @typedef {{approvalId: string, toolCallId?: string, decision: 'approved' | 'denied' | 'answered', run?: any,
 *   isExecuted?: boolean}} Answer
 */

/** @param {unknown} id of an approval, as a client may have sent it */
export const isId = (id) => identifier(id) !== undefined && !isPersonal(id);

/**
 * What a call answers: the decisions and results in its last message, which is where the SDK looks for them too.
 * Only types and ids are looked at.
 * @param {any} options of the call @param {Waits} waits
 * @returns {Answer[]}
 */
export function answersOf(options, waits) {
  const messages = options.messages ?? options.prompt;
  const last = Array.isArray(messages) ? messages[messages.length - 1] : undefined;
  if (last?.role !== 'tool' || !Array.isArray(last.content)) return [];
  const parts = last.content.slice(0, MOST_ANSWERS);
  const done = new Set(parts.filter((part) => part?.type === 'tool-result').map((part) => part.toolCallId));
  return parts.map((part) => answerOf(part, done, waits)).filter((answer) => answer !== undefined);
}

function answerOf(part, done, waits) {
  if (part?.type === 'tool-approval-response') return decisionOf(part, done, waits);
  // A result of a call that nobody waited for belongs to another loop than ours.
  const run = part?.type === 'tool-result' ? waits.find(part.toolCallId) : undefined;
  if (run?.kind !== 'external') return undefined;
  const { toolCallId } = part;
  if (run.isShared) return { approvalId: toolCallId, toolCallId, decision: 'answered' };
  return { approvalId: run.approvalId, toolCallId, decision: 'answered', run };
}

/** A decision whose call has its result beside it was acted on before. */
function decisionOf(part, done, waits) {
  const known = waits.find(part.approvalId);
  const run = known?.isShared ? undefined : known;
  if (run !== undefined && done.has(run.toolCallId)) return undefined;
  const decision = part.approved ? 'approved' : 'denied';
  return { approvalId: part.approvalId, toolCallId: run?.toolCallId, decision, run };
}
