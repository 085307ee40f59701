// Paths over a socket (see socket.js): a tool that changes something at a destination, and what a retry makes of it.
// The destination is a ledger that the path keeps; what stands in it is what the application reads back afterwards.

import { hangsUp, says, status } from '../support/provider.js';
import { each, failed, uncertain, VERIFIED } from './each.js';
import { BOTH, HISTORY, over, text } from './socket.js';

const SUBJECT = 'invoice:4711';
const charge = (kit) => ({ calls: [{ name: 'charge', input: { query: kit.canary } }] });

/** A destination. With `isIdempotent` a second charge for the same subject finds the first one. */
function ledgerOf(isIdempotent) {
  const entries = [];
  const add = () => {
    if (!isIdempotent || entries.length === 0) entries.push(`charge-${entries.length + 1}`);
    return { entries: entries.length };
  };
  return { entries, add };
}

/** The application's call, its repetition where the answer was lost, and the look at the destination at the end. */
const supervised = (isIdempotent) => async (api, kit, entry, options) => {
  const ledger = ledgerOf(isIdempotent);
  const tools = { charge: { ...kit.tools.lookup, execute: async () => ledger.add() } };
  const call = (attempt) =>
    kit.start(api, entry, { ...options, tools, ...kit.stopcause({ attempt, subject: SUBJECT }) });
  const first = await call(1).catch((error) => ({ error }));
  const made = isLost(first) ? [first, await call(2)] : [first];
  readBack(api, kit, ledger, made.length);
  return { made, entries: ledger.entries };
};

const isLost = ({ error, chunks }) => error !== undefined || chunks?.some((chunk) => chunk.type === 'error');

/** One outcome for each entry. The bare SDK has nowhere to say it. */
function readBack(api, kit, ledger, attempt) {
  for (const effectKey of ledger.entries) {
    api.outcome?.(kit.runId(), {
      outcomeId: `read-${effectKey}`,
      attempt,
      contract: 'ticket-updated',
      check: 'record',
      strength: 'read_back',
      polarity: 'confirmed',
      issuer: { type: 'destination', id: 'tickets' },
      subject: SUBJECT,
      effectKey,
      preState: 'different',
    });
  }
}

// The tool acts, the answer to its result is lost, and the whole call is made again.
const lost = (kit) => [says(charge(kit)), hangsUp(), says(charge(kit)), says(text(kit))];
const once = () => ({ maxRetries: 1 });

export const paths = [
  ...each(BOTH, {
    id: 'socket-effect-repeated',
    why: 'the answer after a charge was lost, the call is repeated and charges again: one subject, two effects',
    cause: 'natural',
    expected: uncertain('duplicate_effect'),
    run: over(lost, undefined, supervised(false)),
  }),
  ...each(BOTH, {
    id: 'socket-effect-first-attempt',
    why: 'the same run, its first attempt: the line broke once the tool had acted',
    attempt: 1,
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: over(lost, undefined, supervised(false)),
  }),
  ...each(BOTH, {
    id: 'socket-effect-once',
    why: 'the call is repeated, but the destination knows the charge: one effect, the work is there',
    cause: 'natural',
    expected: VERIFIED,
    run: over(lost, undefined, supervised(true)),
  }),
  ...each(BOTH, {
    id: 'socket-effect-step-retried',
    why: 'the SDK repeats the request after the charge by itself: the tool does not run again',
    cause: 'natural',
    expected: VERIFIED,
    history: HISTORY,
    run: over(
      (kit) => [says(charge(kit)), status(503, { message: kit.canary }), says(text(kit))],
      once,
      supervised(false),
    ),
  }),
];
