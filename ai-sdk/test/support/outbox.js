// An outbox whose deliveries a test answers.
import { Outbox } from '../../src/outbox.js';

let boxes = 0; // a name each: what is said twice of one is said once
export const FAST = { firstMs: 1, mostMs: 4, forMs: 10_000 };

/** An outbox and what its deliveries got; `answer` says what becomes of the number-th batch. */
export function outbox(answer = () => undefined, options = {}) {
  boxes += 1;
  const batches = [];
  const deliver = (lines, signal) => {
    batches.push(lines.map((line) => JSON.parse(line)));
    return answer(batches.length, lines, signal);
  };
  return { batches, box: new Outbox({ name: `box${boxes}`, deliver, retry: FAST, ...options }) };
}

export const fails = () => ({ rest: 'retry' });
