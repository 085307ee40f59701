// Stop conditions: names, limits and what each said at the boundary.
//
// Here: how `stopWhen` (one function, a list, or a map of names) becomes a list of watched functions that answer exactly
// as the application's own do, and the conditions that the SDK does not have. Not here: which cause follows (causes.js).
import { atOnce } from './guard.js';
import { complain } from './platform.js';
import { identifier, number } from './records.js';
import { LIMIT_KINDS, STOP_CAUSES } from './words.js';

/**
 * What is known of a condition beside its answer.
 * @typedef {object} About
 * @property {'steps'|'tokens'|'cost'|'time'|'tool_call'|'custom'} kind what it counts
 * @property {number} [limit] its bound, in the unit of its kind
 * @property {(options: {steps: any[]}) => number} [observed] what it looked at, as a number
 * @property {string} [cause] the stop cause that its firing means; without one the kind decides
 * @property {string[]} [tools] the tools that a `tool_call` condition looks for
 * @property {(step: any) => number} [priceOf] US dollars of one step
 */

/**
 * One condition of one run.
 * @typedef {{name: string, kind: string, limit?: number, cause?: string, fired: boolean, seen?: number, threw?: boolean,
 *   prices?: number[], priceOf?: (step: any) => number, isDone?: (tool: string) => boolean}} Watched
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
  described.set(named, checked({ kind: 'custom', ...about }));
  return named;
}

/** A word that no list has would cost the whole record; it is left out, and that is said. */
function checked({ kind, cause, tools, ...about }) {
  const known = { ...about, kind: LIMIT_KINDS.has(kind) ? kind : 'custom' };
  if (STOP_CAUSES.has(cause)) known.cause = cause;
  if (Array.isArray(tools)) known.isDone = (tool) => tools.includes(tool);
  if (known.kind !== kind) complain('condition() was given a kind that is none; it counts as custom.');
  if (cause !== undefined && known.cause === undefined)
    complain('condition() was given a cause that is no stop cause.');
  return known;
}

/**
 * Stops once the steps together used `limit` tokens or more. The SDK has no such condition.
 * @param {number} limit tokens, input and output
 */
export function tokenBudget(limit) {
  return condition(({ steps }) => totalTokens(steps) >= limit, { kind: 'tokens', limit: bound('tokenBudget', limit) });
}

/**
 * Stops once the steps together cost `limit` US dollars or more.
 * @param {number} limit US dollars
 * @param {(step: any) => number} priceOf US dollars of one step
 */
export function costBudget(limit, priceOf) {
  const cost = ({ steps }) => exactSum(steps.map((step) => priceOf(step)));
  return condition((options) => cost(options) >= limit, { kind: 'cost', limit: bound('costBudget', limit), priceOf });
}

function bound(name, limit) {
  if (number(limit) === undefined) complain(`${name}() was given no number: it never fires.`);
  return number(limit);
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
  const sources = new Map(PUBLISHED);
  for (const [name, kind] of Object.entries(MAKERS)) {
    try {
      sources.set(sourceOf(ai[name]('a')), kind);
    } catch {
      // the application handed over only some of the module, or a stand-in that throws for what it lacks
    }
  }
  return sources;
}

const MAKERS = { isStepCount: 'steps', hasToolCall: 'tool_call', isLoopFinished: 'custom' };

/** The same text in every 7.x as published; a bundler may change it, and then the module's own is looked at. */
const PUBLISHED = [
  ['({ steps }) => steps.length === stepCount', 'steps'],
  ['() => false', 'custom'],
];

/** @param {Function} fn */
export const sourceOf = (fn) => Function.prototype.toString.call(fn);

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
  const odd = names.find((name) => typeof stopWhen[name] !== 'function');
  if (identifier(odd)) complain(`stopWhen.${odd} is no condition; the SDK will fail when it asks it.`);
  const watched = functions.map((when, index) => watch(when, names[index] ?? known?.get(when), own, fallback));
  settleNames(watched);
  const asked = watched.map((one, index) => ask(one, functions[index]));
  return { watched, stopWhen: Array.isArray(stopWhen) || isMap(stopWhen) ? asked : asked[0] };
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

/**
 * A map from names to conditions. A `Map`, an empty object and the like are not: the SDK must refuse them, for a list
 * without a condition would be a loop without a bound.
 * @param {any} value
 */
export function isMap(value) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const proto = Object.getPrototypeOf(value);
  return (proto === Object.prototype || proto === null) && Object.keys(value).length > 0;
}

function watch(when, name, own, fallback) {
  // Not the function itself: it may hold on to the result, and the run outlives that.
  return { ...aboutOf(when, own, fallback), name: identifier(name), fired: false };
}

function aboutOf(when, own, fallback) {
  if (fallback !== undefined && when === fallback.when) {
    return { kind: 'steps', limit: fallback.limit, isDefault: true };
  }
  if (typeof when !== 'function') return { kind: 'custom', isNone: true };
  const known = described.get(when);
  if (known !== undefined) return { ...known };
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
function ask(watched, when) {
  const { observed, ...about } = watched;
  delete watched.observed;
  if (watched.isNone) return when;
  const asking = (options) => {
    const answer = threwOr(watched, () => when(options));
    if (typeof answer?.then !== 'function') return note(watched, answer, observed, options);
    // Asked once: some thenables start work when they are asked, and need not give back a promise.
    return new Promise((yes, no) => answer.then(yes, no)).then(
      (later) => note(watched, later, observed, options),
      (error) => threwOr(watched, () => fail(error)),
    );
  };
  described.set(asking, about); // for a hook within a hook
  return asking;
}

function threwOr(watched, work) {
  try {
    return work();
  } catch (error) {
    watched.threw = true;
    throw error;
  }
}

function fail(error) {
  throw error;
}

function note(watched, answer, observed, options) {
  watched.fired = Boolean(answer);
  watched.seen = observedBy(observed, options);
  return answer;
}

function observedBy(observed, options) {
  try {
    return observed && number(atOnce(observed(options)));
  } catch {
    return undefined; // the number is a courtesy; the run does not pay for it
  }
}

/**
 * What a completed step cost, for conditions that count money: they are not asked about the last one.
 * @param {Watched[]} watched @param {any} step
 */
export function priceStep(watched, step) {
  for (const one of watched) {
    if (one.priceOf === undefined) continue;
    one.prices ??= [];
    one.prices.push(number(atOnce(one.priceOf(step))) ?? 0);
  }
}

/** US dollars of a run, where a condition counts them. @param {Watched[]} watched */
export function costOf(watched) {
  const prices = watched.find((one) => one.prices !== undefined)?.prices;
  return prices && exactSum(prices);
}

/**
 * The `conditions` of a receipt.
 * @param {Watched[]} watched
 * @param {{steps: number, tokens: number, lastCalls: string[]}} totals the run's completed steps
 */
export function conditionFacts(watched, totals) {
  return watched
    .filter((one) => !one.isNone)
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
  if (one.prices !== undefined) return exactSum(one.prices);
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
