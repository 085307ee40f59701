// Stop conditions: names, limits and what each said at the boundary.
//
// Here: how `stopWhen` (one function, a list, or a map of names) becomes a list of watched functions that answer exactly
// as the application's own do, and the conditions that the SDK does not have. Not here: which cause follows (causes.js).
import { identifier, number } from './records.js';

/**
 * What is known of a condition beside its answer.
 * @typedef {object} About
 * @property {'steps'|'tokens'|'cost'|'time'|'tool_call'|'custom'} kind what it counts
 * @property {number} [limit] its bound, in the unit of its kind
 * @property {(options: {steps: any[]}) => number} [observed] what it looked at, as a number
 * @property {string} [cause] the stop cause that its firing means; without one the kind decides
 * @property {string[]} [tools] the tools that a `tool_call` condition looks for
 */

/**
 * One condition of one run.
 * @typedef {About & {name: string, when: Function, fired: boolean, isDone?: (tool: string) => boolean}} Watched
 */

/** @type {WeakMap<Function, About>} */
const described = new WeakMap();

const MOST_STEPS = 512; // a limit above this is not looked for: it shows when it fires

/**
 * A stop condition that says what it counts.
 * @param {(options: {steps: any[]}) => boolean | PromiseLike<boolean>} when answers as any condition of the SDK does
 * @param {About} about what the receipt says of it
 */
export function condition(when, about) {
  const named = (options) => when(options);
  described.set(named, { kind: 'custom', ...about });
  return named;
}

/**
 * Stops once the steps together used `limit` tokens or more. The SDK has no such condition.
 * @param {number} limit tokens, input and output
 */
export function tokenBudget(limit) {
  return condition(({ steps }) => totalTokens(steps) >= limit, { kind: 'tokens', limit });
}

/**
 * Stops once the steps together cost `limit` US dollars or more.
 * @param {number} limit US dollars
 * @param {(step: any) => number} priceOf US dollars of one step
 */
export function costBudget(limit, priceOf) {
  const cost = ({ steps }) => exactSum(steps.map((step) => priceOf(step)));
  return condition((options) => cost(options) >= limit, { kind: 'cost', limit, observed: cost });
}

/** Neumaier's sum: ten steps of 0.1 reach a budget of 1, as they do in the Python conditions. */
function exactSum(numbers) {
  let sum = 0;
  let lost = 0;
  for (const each of numbers) {
    const next = sum + each;
    lost += Math.abs(sum) >= Math.abs(each) ? sum - next + each : each - next + sum;
    sum = next;
  }
  return sum + lost;
}

const totalTokens = (steps) => steps.reduce((sum, step) => sum + (Number(step.usage?.totalTokens) || 0), 0);

/**
 * What the SDK's own conditions look like, so that one made by `isStepCount(8)` is known for what it is without the
 * application saying so. A closure's source text is the same however it was called.
 * @param {any} ai the module, or what the application has of it
 */
export function ownConditions(ai) {
  const sources = new Map();
  const learn = (kind, make) => typeof make === 'function' && sources.set(sourceOf(make), kind);
  learn('steps', ai.isStepCount?.(1));
  learn('tool_call', ai.hasToolCall?.('a'));
  learn('custom', ai.isLoopFinished?.());
  return sources;
}

const sourceOf = (fn) => Function.prototype.toString.call(fn);

const NAMES = { steps: 'step_count', tool_call: 'tool_call', tokens: 'tokens', cost: 'cost', time: 'time' };

/**
 * The conditions of one run, each wrapped so that it notes what it answered.
 * @param {any} stopWhen what the application gave: a function, a list, or a map of names
 * @param {Map<string, string>} own from `ownConditions`
 * @param {{limit: number, when?: Function}} [fallback] what the SDK does where the application gave nothing
 * @param {Map<Function, string>} [known] names that conditions were given before
 * @returns {{watched: Watched[], stopWhen: any}} `stopWhen` as the SDK takes it
 */
export function watchConditions(stopWhen, own, fallback, known) {
  const names = namesOf(stopWhen);
  const functions = listOf(stopWhen);
  const watched = functions.map((when, index) => watch(when, names[index] ?? known?.get(when), own, fallback));
  settleNames(watched);
  const asked = watched.map(ask);
  return { watched, stopWhen: Array.isArray(stopWhen) || asked.length !== 1 ? asked : asked[0] };
}

/**
 * The functions of a `stopWhen`, in their order; what is no function is passed on for the SDK to refuse.
 * @param {any} stopWhen
 */
export function listOf(stopWhen) {
  if (Array.isArray(stopWhen)) return stopWhen;
  return isMap(stopWhen) ? Object.values(stopWhen) : [stopWhen];
}

const namesOf = (stopWhen) => (isMap(stopWhen) ? Object.keys(stopWhen) : []);
const isMap = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

function watch(when, name, own, fallback) {
  const about = aboutOf(when, own, fallback);
  return { ...about, name: identifier(name), when, fired: false };
}

function aboutOf(when, own, fallback) {
  if (fallback !== undefined && when === fallback.when) {
    return { kind: 'steps', limit: fallback.limit, isDefault: true };
  }
  if (typeof when !== 'function') return { kind: 'custom' };
  const known = described.get(when);
  if (known !== undefined) return { ...known, isDone: known.tools && ((tool) => known.tools.includes(tool)) };
  const kind = own.get(sourceOf(when));
  if (kind === 'steps') return { kind, limit: stepLimit(when) };
  if (kind === 'tool_call') return { kind, isDone: (tool) => when({ steps: [{ toolCalls: [{ toolName: tool }] }] }) };
  return { kind: 'custom', isOwn: kind === 'custom' };
}

/** The SDK's step counter compares with equality and is pure: asking it is the way to learn its number. */
function stepLimit(when) {
  const steps = { length: 0 };
  while (++steps.length <= MOST_STEPS) {
    if (when({ steps }) === true) return steps.length;
  }
  return undefined;
}

/** Every condition of a run has a name of its own: a reader tells by it which one fired. */
function settleNames(watched) {
  const taken = new Set();
  for (const one of watched) {
    const wanted = one.name ?? (one.isDefault ? 'sdk_default' : one.isOwn ? 'loop_finished' : NAMES[one.kind]);
    one.name = free(wanted ?? 'condition', taken);
    taken.add(one.name);
  }
}

function free(wanted, taken) {
  let name = wanted;
  for (let n = 2; taken.has(name); n++) name = `${wanted}_${n}`;
  return name;
}

/** The function that the SDK gets. It gives the application's own answer, and throws what that throws. */
function ask(watched) {
  if (typeof watched.when !== 'function') return watched.when;
  return (options) => {
    const answer = answerOf(watched, options);
    if (typeof answer?.then !== 'function') return note(watched, answer, options);
    return answer.then((later) => note(watched, later, options)); // asked once: some thenables start work when asked
  };
}

function answerOf(watched, options) {
  try {
    return watched.when(options);
  } catch (error) {
    watched.threw = true;
    throw error;
  }
}

function note(watched, answer, options) {
  watched.fired = Boolean(answer);
  watched.seen = observedBy(watched, options);
  return answer;
}

function observedBy(watched, options) {
  try {
    return watched.observed && number(watched.observed(options));
  } catch {
    return undefined; // the number is a courtesy; the run does not pay for it
  }
}

/**
 * The `conditions` of a receipt.
 * @param {Watched[]} watched
 * @param {{steps: number, tokens: number, lastCalls: string[]}} totals the run's completed steps
 */
export function conditionFacts(watched, totals) {
  return watched
    .filter((one) => typeof one.when === 'function')
    .map((one) => {
      const fact = { name: one.name, kind: one.kind, fired: one.fired };
      const limit = number(one.limit) ?? (one.fired && one.kind === 'steps' ? totals.steps : undefined);
      if (limit !== undefined) fact.limit = limit;
      const observed = one.seen ?? counted(one, totals);
      if (observed !== undefined) fact.observed = observed;
      return fact;
    });
}

function counted(one, totals) {
  if (one.kind === 'steps') return totals.steps;
  if (one.kind === 'tokens') return totals.tokens;
  if (one.kind === 'tool_call' && one.isDone) return totals.lastCalls.filter(one.isDone).length;
  return undefined;
}

/**
 * The `limits` of a start record: what is bounded, before it is.
 * @param {Watched[]} watched
 */
export function limitFacts(watched) {
  return watched
    .filter((one) => number(one.limit) !== undefined && one.kind !== 'custom' && one.kind !== 'tool_call')
    .map((one) => ({ name: one.name, kind: one.kind, limit: one.limit, ...UNITS[one.kind], scope: 'attempt' }));
}

const UNITS = { steps: { unit: 'step' }, tokens: { unit: 'token' }, cost: { unit: 'usd' }, time: { unit: 's' } };
