/**
 * Where records go without a disk: an address that takes NDJSON over HTTP, or a function of the host's.
 * No Node in here. A file is in `file-sink.js`.
 */
import { Outbox } from './outbox.js';
import { complain, later } from './platform.js';

/**
 * @typedef {import('./outbox.js').Sink} Sink
 * @typedef {import('./outbox.js').Answer} Answer
 *
 * @typedef {object} HttpOptions
 * @property {string | URL} url  The service's address for records, as `https://stopcause.example/v1/records`.
 * @property {Record<string, string>} [headers]
 * @property {typeof globalThis.fetch} [fetch]
 * @property {number} [batch]  Records in one request at most. Default: 200; never more than 256 Ki of text.
 */

const LONGEST_WAIT_MS = 5 * 60_000; // however long a receiver asks
const DRAIN_MS = 1000;
const MEANT = /** @type {Record<number, string>} */ ({
  400: 'it does not understand records: check that the address is the one for records',
  401: 'set the header that it wants, as authorization',
  403: 'set the header that it wants, as authorization',
  404: 'check the address',
  405: 'check the address',
});

/**
 * A sink that posts batches of NDJSON.
 *
 * 2xx means delivered. 429, 5xx, a timeout and a broken connection are tried again, later each time; 413 halves the
 * batch. Any other answer gives that batch up, counts it, and says so once. A process that ends by itself sends what waits
 * first, as long as it is taken, and tries once more where it was not. After `process.exit()` or a signal it is lost:
 * `await flush()` before.
 * @param {HttpOptions & import('./outbox.js').Limits} options
 * @returns {Sink}
 */
export function httpSink({ url, headers, fetch = globalThis.fetch, batch, ...limits }) {
  const target = addressOf(url);
  if (!target) complain('httpSink has no address: set `url` to where records go. Until then records are lost.');
  const send = target ? poster(target, headers, fetch) : () => ({ rest: /** @type {const} */ ('give_up') });
  return sinkOf(new Outbox({ name: 'httpSink', deliver: send, maxBatch: batch, ...limits }));
}

/**
 * A sink that calls `take` with each record, one after the other, outside of the run. One that throws, rejects or takes
 * longer than `timeoutMs` costs that record, which is counted.
 * @param {(record: Record<string, any>) => unknown} take
 * @param {import('./outbox.js').Limits} [limits]
 * @returns {Sink}
 */
export function functionSink(take, limits = {}) {
  /** @param {Record<string, any>[]} bodies @returns {Promise<Answer | void>} */
  const deliver = async ([record]) => {
    try {
      await take(record);
    } catch {
      return { rest: 'give_up' }; // counted and said by the outbox
    }
  };
  const encode = (/** @type {Record<string, any>} */ record) => ({ ...record });
  return sinkOf(new Outbox({ name: 'functionSink', deliver, encode, late: 'give_up', maxBatch: 1, ...limits }));
}

/**
 * The part of an outbox that others see.
 * @param {Outbox} outbox
 * @returns {Sink}
 */
export function sinkOf(outbox) {
  return {
    accept: (record) => outbox.accept(record),
    flush: () => outbox.flush(),
    close: () => outbox.close(),
    stats: () => outbox.stats(),
  };
}

/** @param {string | URL} url */
function addressOf(url) {
  try {
    const { protocol, href } = new URL(url);
    return /^https?:$/.test(protocol) ? href : undefined;
  } catch {
    return undefined; // said by the caller
  }
}

/** @param {string} url @param {Record<string, string> | undefined} headers @param {typeof globalThis.fetch} fetch */
function poster(url, headers, fetch) {
  const sent = { ...headers, 'content-type': 'application/x-ndjson' };
  /** @param {string[]} lines @param {AbortSignal} signal */
  return async (lines, signal) => {
    const body = `${lines.join('\n')}\n`;
    const answer = await fetch(url, { method: 'POST', headers: sent, body, signal, redirect: 'manual' });
    void drained(answer);
    return meaning(answer);
  };
}

/** @param {Response} answer @returns {Answer | undefined} Nothing: delivered. */
function meaning(answer) {
  const { status, ok } = answer;
  if (ok) return undefined;
  if (status === 413) return { rest: 'halve' };
  if (status === 429 || status >= 500) {
    return { rest: 'retry', why: String(status), afterMs: askedPause(answer.headers.get('retry-after')) };
  }
  const isElsewhere = status === 0 || (status >= 300 && status < 400);
  const advice = isElsewhere ? 'it is elsewhere: set `url` to its new address' : (MEANT[status] ?? 'look at its log');
  complain(`httpSink was answered ${status}, and those records are lost; ${advice}.`);
  return { rest: 'give_up' };
}

/** @param {string | null} said  Seconds, or a date. @returns {number | undefined} Milliseconds. */
function askedPause(said) {
  if (!said) return undefined;
  const ms = /^\d+$/.test(said.trim()) ? Number(said) * 1000 : Date.parse(said) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(ms, 0), LONGEST_WAIT_MS);
}

/** Read the answer's body away, so that its connection serves again; a long one is cut off. @param {Response} answer */
async function drained(answer) {
  let inTime = () => {};
  try {
    const reader = answer.body?.getReader();
    inTime = later(DRAIN_MS, () => void reader?.cancel().catch(() => {}));
    while (reader && !(await reader.read()).done);
  } catch {
    // its status has said all that counts
  } finally {
    inTime();
  }
}
