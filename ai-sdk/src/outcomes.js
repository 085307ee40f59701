// What the destination says of a run's work, as a record.
import { count, identifier, number, time, uuid7 } from './records.js';

const MOST_IN_LIST = 16;

const WORDS = {
  strength: new Set(['accepted', 'delivered', 'read_back', 'human']),
  polarity: new Set(['confirmed', 'refuted', 'unknown']),
  preState: new Set(['absent', 'different', 'same', 'unknown']),
  issuer: new Set(['destination', 'validator', 'human', 'run']),
};
const word = (list) => (value) => (WORDS[list].has(value) ? value : undefined);

/** Option -> field, and what a value must be. */
const FIELDS = {
  contract: ['contract', identifier],
  check: ['check', identifier],
  strength: ['strength', word('strength')],
  polarity: ['polarity', word('polarity')],
  subject: ['subject', identifier],
  observedAt: ['observed_at', time],
  preState: ['pre_state', word('preState')],
  effectKey: ['effect_key', identifier],
  issuer: ['issuer', issuerFact],
  evidence: ['evidence', evidenceFact],
};

/**
 * An `outcome.recorded`. What does not fit is left out and named in a finding.
 * @param {string} runId @param {any} facts see `OutcomeFacts` in the types @param {object} writer
 * @returns {object | undefined} nothing without a run id
 */
export function outcomeRecord(runId, facts, writer) {
  const outcome = { outcome_id: identifier(facts?.outcomeId) ?? uuid7() };
  const findings = [];
  for (const [option, [field, clean]] of Object.entries(FIELDS)) {
    const given = facts?.[option];
    if (given === undefined || given === null) continue;
    const fit = clean(given);
    if (fit === undefined) findings.push({ code: 'option_dropped', where: option });
    else outcome[field] = fit;
  }
  return finish(runId, facts, outcome, findings, writer);
}

function finish(runId, facts, outcome, findings, writer) {
  const at = new Date().toISOString();
  const head = { schema: 'stopcause/1', kind: 'outcome.recorded', run_id: identifier(runId), at, boundary: 'call' };
  if (head.run_id === undefined) return undefined;
  const attempt = count(facts?.attempt);
  const record = { ...head, ...(attempt > 0 ? { attempt } : {}), ...writer, outcome };
  return findings.length > 0 ? { ...record, findings } : record;
}

function issuerFact(given) {
  const type = word('issuer')(given?.type);
  if (type === undefined) return undefined;
  const id = identifier(given.id);
  return id === undefined ? { type } : { type, id };
}

function evidenceFact(given) {
  const kept = Object.entries(given)
    .map(([name, value]) => [identifier(name), Array.isArray(value) ? value.map(scalar) : scalar(value)])
    .filter(([name, value]) => name !== undefined && value !== undefined && isShort(value));
  return kept.length > 0 ? Object.fromEntries(kept) : undefined;
}

const scalar = (value) => (typeof value === 'boolean' ? value : (identifier(value) ?? number(value)));
const isShort = (value) => !Array.isArray(value) || (value.length <= MOST_IN_LIST && !value.includes(undefined));
