// What the application says about its runs, made fit for records.
//
// Here: `watch` options and the `stopcause` key of a call, merged and cleaned. What does not fit is left out and named in
// a finding; it never stops the call. Not here: the SDK's own options (calls.js).
import { atOnce } from './guard.js';
import { complain, platform } from './platform.js';
import { count, displayName, identifier, labels, number, uuid7 } from './records.js';

const LEASE_S = 300; // with heartbeats behind it
const SHORTEST_LEASE_S = 30; // three heartbeats, at most one in 10 s
const LEASE_WITHOUT_TIMER_S = 900; // only steps renew it
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Option -> field of the record, and what a value must be. */
const FACTS = {
  agent: ['agent', displayName],
  agentVersion: ['agent_version', identifier],
  service: ['service', displayName],
  environment: ['environment', displayName],
  loopPolicy: ['loop_policy', identifier],
  contract: ['contract', identifier],
  subject: ['subject', identifier],
};

const timer = (value) => (number(value) !== undefined && value > 0 && value <= LONGEST_TIMER_MS ? value : undefined);
const lease = (value) => (number(value) >= SHORTEST_LEASE_S ? value : undefined);
const positive = (value) => (count(value) > 0 ? value : undefined);
const names = (value) => (Array.isArray(value) ? value : undefined);

/** Options that steer the hook. */
const STEERING = {
  leaseS: lease,
  deadlineMs: timer,
  doneTools: names,
  progressTools: names,
  runId: identifier,
  attempt: positive,
  threadId: identifier,
  parentRunId: identifier,
  resumes: identifier,
  actor: identifier,
};

/** Options that are the application's own functions or values; they are used where they work. */
const AS_GIVEN = ['abortCause', 'route', 'traceContext'];

/**
 * Cleans options. Reading them can run code of the application; what throws counts as not given.
 * @param {any} given
 */
export function cleaned(given) {
  const made = { facts: {}, findings: [] };
  for (const [option, [field, clean]] of Object.entries(FACTS)) put(made.facts, field, option, clean, given, made);
  for (const [option, clean] of Object.entries(STEERING)) put(made, option, option, clean, given, made);
  for (const option of AS_GIVEN) put(made, option, option, (value) => value, given, made);
  putLabels(made, peek(given, 'labels'));
  complainOfUnknown(given);
  return made;
}

const KNOWN = new Set([...Object.keys(FACTS), ...Object.keys(STEERING), ...AS_GIVEN, 'labels']);
const OF_WATCH = ['sink', 'nested', 'frameworkVersion'];

/** A misspelt option would be silence where somebody counts on a word. */
function complainOfUnknown(given) {
  const odd =
    typeof given === 'object' ? Object.keys(given).find((key) => !KNOWN.has(key) && !OF_WATCH.includes(key)) : '';
  if (odd !== undefined) complain(`there is no option ${identifier(odd) ?? 'of that kind'}; it does nothing.`);
}

function put(target, key, option, clean, given, made) {
  const value = peek(given, option);
  if (value === undefined || value === null) return;
  const fit = clean(value);
  if (fit === undefined) made.findings.push({ code: 'option_dropped', where: option });
  else target[key] = fit;
}

function putLabels(made, given) {
  if (given === undefined || given === null) return;
  const { labels: kept, dropped } = labels(given);
  if (kept !== undefined) made.facts.labels = kept;
  if (dropped > 0) made.findings.push({ code: 'option_dropped', where: 'labels' });
}

function peek(given, option) {
  try {
    return given?.[option];
  } catch {
    return undefined;
  }
}

/** What only one call can say. Said for all of them, every run would be the same run. */
const OF_ONE_CALL = ['runId', 'attempt', 'parentRunId', 'resumes'];

/**
 * Cleans options that hold for many calls.
 * @param {any} given
 */
export function cleanedForAll(given) {
  const made = cleaned(given);
  for (const option of OF_ONE_CALL) {
    if (made[option] === undefined) continue;
    delete made[option];
    made.findings.push({ code: 'option_dropped', where: option });
  }
  return made;
}

/**
 * The options of one run: of `watch`, of an agent, of a call; the later stands.
 * @param {any} base cleaned already @param {any} ofAgent @param {any} ofCall as given, or absent
 */
export function optionsOfRun(base, ofAgent, ofCall) {
  let mine = ofAgent ? merged(base, cleanedForAll(ofAgent)) : base;
  if (ofCall) mine = merged(mine, cleaned(ofCall));
  return {
    ...mine,
    runId: mine.runId ?? uuid7(),
    attempt: mine.attempt ?? 1,
    leaseS: mine.leaseS ?? (platform.every === undefined ? LEASE_WITHOUT_TIMER_S : LEASE_S),
    trace: traceOf(mine.traceContext),
    isProgress: (tool) => mine.progressTools?.includes(tool) ?? true,
  };
}

const merged = (base, more) => ({
  ...base,
  ...more,
  facts: { ...base.facts, ...more.facts },
  findings: [...base.findings, ...more.findings],
});

const TRACE_ID = /^[0-9a-f]{32}$/;
const SPAN_ID = /^[0-9a-f]{16}$/;
const SAMPLED = 1; // the flag's bit in W3C trace context

function traceOf(traceContext) {
  try {
    const span = atOnce(traceContext?.());
    if (span === undefined || span === null || !TRACE_ID.test(span.traceId)) return undefined;
    const trace = { trace_id: span.traceId, sampled: (Number(span.traceFlags) & SAMPLED) === SAMPLED };
    return SPAN_ID.test(span.spanId) ? { ...trace, span_id: span.spanId } : trace;
  } catch {
    return undefined; // no trace is no reason to lose the receipt
  }
}
