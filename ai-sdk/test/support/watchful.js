// What every test of the sinks stands on: a rejection that nobody handles fails the file, and complaints are kept.
import assert from 'node:assert/strict';
import process from 'node:process';
import { after, afterEach, mock } from 'node:test';

const unhandled = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));

const warn = mock.method(console, 'warn', () => {});

/** @returns {string[]} What was said to the host's people since the last test. */
export const complaints = () => warn.mock.calls.map(({ arguments: [text] }) => text);

afterEach(() => warn.mock.resetCalls());

after(async () => {
  await new Promise((resolve) => setTimeout(resolve, 20)); // rejections are found a turn later
  assert.deepEqual(unhandled, []);
});

let number = 0;

/** A small receipt; each has a run id of its own. */
export function receipt(more = {}) {
  number += 1;
  const at = '2026-11-28T08:00:00.000Z';
  return { schema: 'stopcause/1', kind: 'run.stopped', run_id: `r${number}`, at, stop_cause: 'natural', ...more };
}

/** @param {number} many */
export const receipts = (many) => Array.from({ length: many }, () => receipt());

/** Hands records to a sink or an outbox. */
export function fill(sink, records) {
  for (const each of records) sink.accept(each);
}

export const idsOf = (records) => records.map(({ run_id }) => run_id);

/** Waits until something holds; fails after two seconds. */
export async function until(holds) {
  const end = performance.now() + 2000;
  while (!(await holds())) {
    assert.ok(performance.now() < end, `never became true: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
