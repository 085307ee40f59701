/** One record in the queue: as it came, then as it is delivered. */
import { withoutPersonal } from './personal.js';
import { uuid7 } from './records.js';

/**
 * @typedef {import('./outbox.js').Plain} Plain
 * @typedef {{record: Plain | undefined, dropped: number, body: any}} Entry  `record` until it is encoded as `body`;
 *   `dropped` counts the records that were lost just before it.
 * @typedef {(record: Plain) => any} Encode
 */

const LONGEST_LINE = 1 << 20; // what a reader takes

/** @type {Encode} */
export const asJson = (record) => JSON.stringify(record);

/**
 * @param {Plain} record  Gets its id here, so that two sinks that take the same record give it the same id.
 * @param {number} dropped
 * @returns {Entry}
 * @throws {Error} It is no object, or the runtime has no random numbers.
 */
export function entryOf(record, dropped) {
  if (typeof record !== 'object') throw new TypeError('no record');
  if (record.record_id) return { record, dropped, body: undefined };
  if (!Object.isExtensible(record)) return entryOf({ ...record, record_id: uuid7() }, dropped);
  record.record_id = uuid7();
  return { record, dropped, body: undefined };
}

/**
 * What is delivered for an entry, without what names a person; made once.
 * @param {Entry} entry
 * @param {Encode} encode
 * @returns {any} The body, or a promise of it (which never rejects); undefined where there is no way to write it.
 */
export function bodyOf(entry, encode) {
  if (!entry.record) return entry.body;
  try {
    const clean = withoutPersonal(entry.record);
    if (!(clean instanceof Promise)) return keep(entry, encode, clean);
    return clean.then((made) => keep(entry, encode, made)).catch(() => undefined);
  } catch {
    return undefined; // a value that JSON cannot say; the outbox drops and counts the entry
  }
}

/** @param {Entry} entry @param {Encode} encode @param {Plain} clean */
function keep(entry, encode, clean) {
  const body = encode(entry.dropped ? { ...clean, dropped: entry.dropped } : clean);
  if (body?.length > LONGEST_LINE) return undefined;
  entry.body = body;
  entry.record = undefined;
  return body;
}
