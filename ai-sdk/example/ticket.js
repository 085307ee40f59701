// An agent that closes tickets, four times: it loses a tool to its deadline, waits for a person, runs into its step limit,
// and finishes. To the SDK the first three look the same.
import { setTimeout as pause } from 'node:timers/promises';
import { fileSink, watch } from '@stopcause/ai-sdk/node';
import * as ai from 'ai';
import { z } from 'zod';
import { scripted } from './model.js';

const { generateText, flush } = watch(ai, {
  agent: 'ticket-agent',
  environment: 'example',
  progressTools: ['export', 'refund'], // looking a ticket up is no progress
  sink: fileSink('receipts.ndjson'),
  route: ({ approvalId }) => ({ owner: 'team:billing', dueMs: 30 * 60_000, resumeToken: `ticket/${approvalId}` }),
});

const ticket = z.object({ ticket: z.string() });
const tools = {
  lookup: ai.tool({ inputSchema: ticket, execute: async () => ({ state: 'open' }) }),
  refund: ai.tool({ inputSchema: ticket, needsApproval: true, execute: async () => ({ refunded: true }) }),
  export: ai.tool({ inputSchema: ticket, execute: hang }),
};
const lookup = { tool: 'lookup', input: { ticket: 'T-1' } };
const refund = { tool: 'refund', input: { ticket: 'T-1' } };
const exporting = { tool: 'export', input: { ticket: 'T-1' } };

await run('deadline', scripted(lookup, lookup, lookup, exporting), { deadlineMs: 300 });
await run('approval', scripted(lookup, refund));
await run('step-limit', scripted(lookup));
await run('finished', scripted(lookup, 'The ticket is closed.'));
await flush();
console.log(`
Why each stopped:
  stopcause classify receipts.ndjson
  stopcause explain receipts.ndjson`);

async function run(runId, model, more) {
  const result = await generateText({
    model,
    tools,
    prompt: 'Close the ticket.',
    stopWhen: { step_limit: ai.isStepCount(4) },
    stopcause: { runId, ...more },
  });
  console.log(`${runId.padEnd(12)} ${result.steps.length} steps, the SDK says: ${result.finishReason}`);
}

/** It heeds the signal, so the SDK counts it as a failed tool and returns as if nothing had happened. */
async function hang(_, { abortSignal }) {
  await pause(60_000, undefined, { signal: abortSignal });
}
