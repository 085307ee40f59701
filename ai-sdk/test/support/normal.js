// Records as they stand in a case file: what differs between two recordings of one path is replaced by what does not.
//
// Replaced: times (each by where in its run it stands), durations, record ids, and ids that the hook or the SDK made up.
// Kept: everything that decides a verdict, and every time that the path itself gave.

import { createHash } from 'node:crypto';

const BEGIN = Date.parse('2026-11-28T07:00:00Z');
const BETWEEN_RUNS = 60_000;
const SECONDS = {
  'run.started': 0,
  'run.progress': 3,
  'run.stopped': 5,
  'approval.updated': 30,
  'outcome.recorded': 20,
};
const LAST_PROGRESS = 4;
const LATE_PROGRESS = 6; // of a run that had stopped
const DURATION = 5;
const MADE_UP = /^([0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}|aitxt-[A-Za-z0-9]{24})$/;
const MINUTE = 60_000;

/**
 * @param {object[]} records As the sink got them, in order.
 * @param {string} id The path's id, which names what was made up.
 * @returns {object[]} New records.
 */
export function normalized(records, id) {
  const names = new Map();
  const runs = [...new Set(records.map((record) => record.run_id))];
  const stopped = new Set();
  return records.map((record, index) => {
    const start = BEGIN + runs.indexOf(record.run_id) * BETWEEN_RUNS;
    const at = second(start, secondOf(record, stopped));
    if (record.kind === 'run.stopped') stopped.add(record.run_id);
    return { ...placed(walk(record, { names, id, at }), start, at), record_id: recordId(id, index) };
  });
}

function secondOf(record, stopped) {
  const isLate = record.kind === 'run.progress' && stopped.has(record.run_id);
  return isLate ? LATE_PROGRESS : SECONDS[record.kind];
}

const second = (start, seconds) => brief(start + seconds * 1000);
const brief = (ms) => new Date(ms).toISOString().replace('.000Z', 'Z');

/** Different in each file: records with one id are one record to whoever takes in the whole folder. */
function recordId(id, index) {
  const name = createHash('sha256').update(id).digest('hex').slice(0, 8);
  return `00000000-0000-7000-8000-${name}${String(index + 1).padStart(4, '0')}`;
}

/** The times that say where in the run a record stands. */
function placed(record, start, at) {
  const times = { ...record, at };
  if (record.started_at) times.started_at = second(start, 0);
  if (record.duration_s !== undefined) times.duration_s = DURATION;
  if (record.progress?.last_at) times.progress = { ...record.progress, last_at: second(start, LAST_PROGRESS) };
  return times;
}

function walk(value, context, key = '') {
  if (Array.isArray(value)) return value.map((each) => walk(each, context));
  if (value && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, walk(each, context, name)]));
  }
  if (typeof value !== 'string') return value;
  if (MADE_UP.test(value)) return madeUp(value, context);
  return isTime(key) ? timeOf(value, context.at) : value;
}

function madeUp(value, { names, id }) {
  if (!names.has(value)) names.set(value, `${id}-made-${names.size + 1}`);
  return names.get(value);
}

const isTime = (key) => key.endsWith('_at') || key === 'deadline';

/** A time that the path gave is a whole minute, and stays. One off the clock keeps its minutes from the record. */
function timeOf(value, at) {
  const ms = Date.parse(value);
  if (ms % MINUTE === 0) return brief(ms);
  return brief(Date.parse(at) + Math.round((ms - Date.now()) / MINUTE) * MINUTE);
}
