// One scenario through several entry points: each entry is a path of its own, because each stops in its own code.

const PREFIX = {
  generateText: 'generate',
  streamText: 'stream',
  'agent.generate': 'agent',
  'agent.stream': 'agent-stream',
};
export const GENERATE = ['generateText', 'agent.generate'];
export const STREAM = ['streamText', 'agent.stream'];
export const ALL = [...GENERATE, ...STREAM];
export const CALLS = ['generateText', 'streamText'];

/**
 * Paths from one scenario: `id` gets the entry's prefix, `run` gets the entry as its third argument.
 * @param {string[]} entries
 * @param {object} scenario A path (test/support/kit.js) without `entry`.
 */
export function each(entries, scenario) {
  return entries.map((entry) => {
    const id = scenario.ids?.[entry] ?? `${PREFIX[entry]}-${scenario.id}`;
    const { ids, ...path } = scenario;
    return { ...path, id, entry, run: (api, kit) => scenario.run(api, kit, entry) };
  });
}

// Verdicts that many paths share.
export const UNPROVEN = { verdict: 'FALSE_COMPLETE', reason: 'receipt_missing' };
export const VERIFIED = { verdict: 'VERIFIED_COMPLETE', reason: 'receipt' };
export const failed = (reason) => ({ verdict: 'FAILED', reason });
export const bounded = (reason) => ({ verdict: 'BOUNDED_STOP', reason });
export const uncertain = (reason) => ({ verdict: 'UNCERTAIN', reason });
export const waiting = (reason) => ({ verdict: 'WAITING', reason });
export const unrouted = (reason) => ({ verdict: 'WAITING_UNROUTED', reason });
export const stuck = (reason) => ({ verdict: 'STUCK', reason });

/** What the destination says where the work is there. */
export const seen = (kit) => [
  kit.runId(),
  {
    outcomeId: 'o-1',
    contract: 'ticket-updated',
    check: 'record',
    strength: 'read_back',
    polarity: 'confirmed',
    issuer: { type: 'destination', id: 'tickets' },
    preState: 'different',
  },
];
