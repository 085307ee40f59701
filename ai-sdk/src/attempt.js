/** One delivery that ends in a bounded time and never throws. */
import { codeOf, later } from './platform.js';

/**
 * @typedef {import('./outbox.js').Answer} Answer
 */

/**
 * Hand a batch to the sink. One that takes too long is told to stop, and not waited for.
 * @param {any[]} bodies
 * @param {{deliver: import('./outbox.js').Delivery['deliver'], late: 'retry' | 'give_up', timeoutMs: number}} how
 * @returns {Promise<Answer | void>}
 */
export async function attempt(bodies, { deliver, late, timeoutMs }) {
  const stop = new AbortController();
  let inTime = () => {};
  const tooLate = new Promise((resolve) => {
    inTime = later(timeoutMs, () => {
      resolve({ rest: late, why: 'timeout' });
      stop.abort();
    });
  });
  const work = (async () => deliver(bodies, stop.signal))().catch(failed);
  const answer = await Promise.race([work, tooLate]);
  inTime();
  return answer;
}

/** @param {any} error @returns {Answer} fetch hides the system's code behind a cause. */
function failed(error) {
  return { rest: 'retry', why: codeOf(error?.cause?.code ? error.cause : error) };
}
