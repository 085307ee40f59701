// What is measured: one run of five steps, four of which call a tool, with the SDK's own mock model.
//
// Here: the same run through each door (generateText, streamText read, streamText dropped), and the watchers that it is
// run under. Not here: clocks and figures (cpu.js, memory.js).
import * as ai from '../../ai-sdk/node_modules/ai/dist/index.js';
import { MockLanguageModelV4 } from '../../ai-sdk/node_modules/ai/dist/test/index.js';
import { z } from '../../ai-sdk/node_modules/zod/index.js';
import { fileSink, functionSink, watch } from '../../ai-sdk/src/node.js';

export const STEPS = 5;
const USAGE = {
  inputTokens: { total: 100, noCache: 100, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 20, text: 20, reasoning: 0 },
};
const TOOLS = {
  lookup: ai.tool({ inputSchema: z.object({ id: z.string() }), execute: async ({ id }) => ({ id, rows: 3 }) }),
};
const finish = (unified) => ({ unified, raw: unified });
const callPart = (step) => ({
  type: 'tool-call',
  toolCallId: `call-${step}`,
  toolName: 'lookup',
  input: `{"id":"t${step}"}`,
});

function said(step) {
  if (step < STEPS)
    return { content: [callPart(step)], finishReason: finish('tool-calls'), usage: USAGE, warnings: [] };
  return { content: [{ type: 'text', text: 'done' }], finishReason: finish('stop'), usage: USAGE, warnings: [] };
}

function chunks(step) {
  const end = { type: 'finish', finishReason: finish(step < STEPS ? 'tool-calls' : 'stop'), usage: USAGE };
  const text = [
    { type: 'text-start', id: '1' },
    { type: 'text-delta', id: '1', delta: 'done' },
    { type: 'text-end', id: '1' },
  ];
  return [{ type: 'stream-start', warnings: [] }, ...(step < STEPS ? [callPart(step)] : text), end];
}

/** A mock model keeps what it was asked, so each run has one of its own. */
function model() {
  let step = 0;
  return new MockLanguageModelV4({
    doGenerate: async () => said(++step),
    doStream: async () => ({
      stream: ai.simulateReadableStream({ chunks: chunks(++step), initialDelayInMs: null, chunkDelayInMs: null }),
    }),
  });
}

const options = (more) => ({
  model: model(),
  prompt: 'a ticket',
  tools: TOOLS,
  stopWhen: ai.isStepCount(STEPS + 3),
  ...more,
});

/** One run through each door. `api` has the SDK's names, bare or watched. */
export const doors = {
  generateText: (api, more) => api.generateText(options(more)),
  streamText: (api, more) => api.streamText(options(more)).consumeStream(),
  dropped: async (api, more) => {
    api.streamText(options(more)); // nobody reads it: no callback will ever come
  },
};

const nothing = () => {};

/** What any wrapper at the call pays by the SDK's own rules: callbacks that are awaited, a signal, a condition. */
function callbacksOnly() {
  const own = {
    onStepEnd: nothing,
    onStepError: nothing,
    onEnd: nothing,
    onToolExecutionStart: nothing,
    onToolExecutionEnd: nothing,
  };
  const streaming = { ...own, onError: nothing, onAbort: nothing };
  const add = (call, mine) => (given) => call({ ...given, ...mine });
  return { generateText: add(ai.generateText, own), streamText: add(ai.streamText, streaming), flush: async () => {} };
}

/**
 * The SDK bare and under each watcher, by name.
 * @param {string} file where the file sink writes
 */
export function watchers(file) {
  return {
    bare: { ...ai, flush: async () => {} },
    callbacks: callbacksOnly(),
    function: watch(ai, { agent: 'bench', sink: functionSink(nothing) }),
    nested: watch(ai, { agent: 'bench', sink: functionSink(nothing), nested: true }),
    file: watch(ai, { agent: 'bench', sink: fileSink(file) }),
  };
}
