// The border to the host: whatever fails on our side ends here, counted.

import { typeOf } from './faults.js';

const seen = { faults: 0, last: undefined };

/**
 * Does something of ours inside a call of the host. What it throws is counted and goes no further.
 * @param {() => void} work
 */
export function quietly(work) {
  try {
    work();
  } catch (error) {
    fault(error);
  }
}

function fault(error) {
  seen.faults++;
  seen.last = typeOf(error);
}

/**
 * A callback that notes something for us first and then is the application's own: same argument, same answer or error.
 * @param {any} own the application's callback, or nothing @param {(event: any) => void} note
 */
export function heard(own, note) {
  return (event) => {
    quietly(() => note(event));
    return own?.(event);
  };
}

/**
 * What a function of the application's gave, where an answer is wanted at once. A promise is no answer; if it fails, that
 * must not end the process.
 * @param {any} value
 */
export function atOnce(value) {
  if (typeof value?.then !== 'function') return value;
  Promise.resolve(value).catch(fault);
  return undefined;
}

/**
 * How often the hook itself failed in this process, and on what type of error. It should be zero: please report it.
 * @returns {{faults: number, last: string | undefined}}
 */
export const faultCount = () => ({ ...seen });
