// What a completed step leaves: names, counts and shapes.
//
// Here: one walk over a step's parts. Not here: texts, arguments and results; the walk looks at types, ids, names and
// whether a text is empty, and at nothing else of a part.

import { shortWord, typeOf } from './faults.js';
import { count } from './records.js';
import { table } from './words.js';

/**
 * @typedef {object} Step
 * @property {string} [finish] the SDK's finish reason @property {string} [raw] the provider's own word
 * @property {number} input @property {number} output @property {number} total tokens
 * @property {Call[]} calls client tool calls, in their order
 * @property {number} providerCalls calls that the provider ran itself @property {number} providerResults
 * @property {Call[]} results calls that were answered @property {Call[]} failed calls that ended in an error
 * @property {Call[]} open calls that nobody executed @property {Request[]} requests approvals that a person must give
 * @property {boolean} text whether there is any text @property {boolean} file whether there is a file
 * @property {boolean} hasUsage @property {boolean} hasOddUsage a token count that is none
 *
 * @typedef {{id: string, name: string, invalid: boolean, errorType?: string, state?: string}} Call
 * @typedef {{approvalId: string, call: Call}} Request
 */

/**
 * Reads one step result of the SDK.
 * @param {any} step
 * @returns {Step}
 */
export function readStep(step) {
  const read = {
    ...headOf(step),
    calls: [],
    providerCalls: 0,
    providerResults: 0,
    results: [],
    requests: [],
    text: false,
    file: false,
  };
  const byId = new Map();
  for (const part of step.content) READERS[part.type]?.(part, read, byId);
  const waiting = new Set(read.requests.map((request) => request.call));
  read.failed = read.calls.filter((call) => call.state === 'failed');
  read.open = read.calls.filter((call) => call.state === undefined && !waiting.has(call));
  return read;
}

function headOf(step) {
  const usage = step.usage ?? {};
  return {
    finish: step.finishReason,
    raw: step.rawFinishReason,
    input: count(usage.inputTokens) ?? 0,
    output: count(usage.outputTokens) ?? 0,
    total: count(usage.totalTokens) ?? 0,
    hasUsage: count(usage.inputTokens) !== undefined || count(usage.outputTokens) !== undefined,
    hasOddUsage: [usage.inputTokens, usage.outputTokens].some((one) => one !== undefined && count(one) === undefined),
  };
}

/** One reader for each type of part that says something about how the loop goes on. */
const READERS = table({
  text: (part, read) => {
    read.text ||= part.text?.length > 0;
  },
  file: (_part, read) => {
    read.file = true;
  },
  'tool-call': (part, read, byId) => {
    if (part.providerExecuted) {
      read.providerCalls++;
      return;
    }
    const call = { id: part.toolCallId, name: part.toolName, invalid: part.invalid === true };
    if (call.invalid) call.errorType = typeOf(part.error);
    byId.set(part.toolCallId, call);
    read.calls.push(call);
  },
  'tool-result': (part, read, byId) => {
    const call = byId.get(part.toolCallId);
    if (part.providerExecuted) read.providerResults++;
    if (call === undefined || part.preliminary) return;
    call.state = 'done';
    read.results.push(call);
  },
  'tool-error': (part, _read, byId) => {
    const call = byId.get(part.toolCallId);
    if (call === undefined) return;
    call.state = 'failed';
    call.errorType ??= typeOf(part.error);
  },
  // An automatic answer is the SDK's own; only what a person must answer is a wait.
  'tool-approval-request': (part, read, byId) => {
    const call = byId.get(part.toolCall?.toolCallId ?? part.toolCallId) ?? callOf(part.toolCall);
    if (call !== undefined && !part.isAutomatic) read.requests.push({ approvalId: part.approvalId, call });
  },
  'tool-approval-response': (part, _read, byId) => {
    const call = byId.get(part.toolCall?.toolCallId);
    if (call !== undefined && part.approved === false) call.state = 'denied';
  },
});

const callOf = (part) => part && { id: part.toolCallId, name: part.toolName, invalid: false };

/** Finish reasons of the SDK and of older providers, in the plan's words. */
const FINISH = table({
  stop: 'stop',
  length: 'length',
  'content-filter': 'content_filter',
  'tool-calls': 'tool_calls',
  error: 'error',
  interrupted: 'interrupted',
  other: 'other',
});

/**
 * The `finish_reason` of a receipt.
 * @param {Step} step
 */
export function finishFact(step) {
  const refused = step.finish === 'content-filter' && step.raw === 'refusal';
  const normalized = refused ? 'refusal' : (FINISH[step.finish] ?? 'unknown');
  const fact = { normalized, source: step.raw === undefined ? 'client' : 'provider' };
  const raw = shortWord(step.raw);
  if (raw !== undefined) fact.raw = raw;
  return fact;
}

/** Whether a step's calls must not run: the model was cut off while it wrote them. */
export const isUnsafe = (step) => step.finish !== 'stop' && step.finish !== 'tool-calls';
