// What must compile, with what it infers; what must not stands below `@ts-expect-error`.
import * as ai from 'ai';
import { z } from 'zod';
import { condition, costBudget, fileSink, runOf, tokenBudget, watch } from '../../src/node.js';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <T extends true>(): T => true as T;

declare const model: ai.LanguageModel;
const lookup = ai.tool({
  inputSchema: z.object({ id: z.string() }),
  execute: async ({ id }) => ({ rows: id.length }),
});
const tools = { lookup };

const { generateText, streamText, ToolLoopAgent, outcome, flush } = watch(ai, {
  agent: 'ticket-agent',
  sink: fileSink('receipts.ndjson'),
  route: ({ tool }) => ({ owner: `team:${tool}`, dueMs: 60_000, resumeToken: 't1' }),
});

// generateText: the SDK's own inference survives
const bare = await ai.generateText({ model, prompt: 'hi', tools });
const watched = await generateText({
  model,
  prompt: 'hi',
  tools,
  stopWhen: {
    step_limit: ai.isStepCount(8),
    tokens: tokenBudget(50_000),
    money: costBudget(1, (step) => step.usage.totalTokens ?? 0),
    mine: condition(({ steps }) => steps.length > 3, {
      kind: 'custom',
      limit: 3,
      observed: ({ steps }) => steps.length,
    }),
    done: ai.hasToolCall('lookup'),
  },
  onStepEnd: ({ toolCalls }) => {
    for (const call of toolCalls) call.toolName satisfies string;
  },
  stopcause: { runId: 'r1', threadId: 't1' },
});
holds<Same<typeof watched, typeof bare>>();
const call = watched.toolCalls[0];
if (call !== undefined && !call.dynamic) call.input.id satisfies string;
runOf(watched) satisfies string | undefined;

// with no tools, and with a list of conditions
const plain = await generateText({ model, messages: [], stopWhen: [ai.isStepCount(2), tokenBudget(9)] });
holds<Same<typeof plain, Awaited<ReturnType<typeof noTools>>>>();
const noTools = () => ai.generateText({ model, messages: [] });

// structured output and a runtime context
const shaped = await generateText({
  model,
  prompt: 'hi',
  output: ai.Output.object({ schema: z.object({ total: z.number() }) }),
  runtimeContext: { tenant: 'a' },
  prepareStep: ({ runtimeContext }) => ({ toolChoice: runtimeContext.tenant === 'a' ? 'auto' : 'none' }),
});
shaped.output.total satisfies number;

// a tool that wants a context: the call owes it
const scoped = ai.tool({
  inputSchema: z.object({ id: z.string() }),
  contextSchema: z.object({ tenant: z.string() }),
  execute: async ({ id }, { context }) => `${context.tenant}/${id}`,
});
generateText({ model, prompt: 'hi', tools: { scoped }, toolsContext: { scoped: { tenant: 'a' } } });
// @ts-expect-error the context of `scoped` is missing
generateText({ model, prompt: 'hi', tools: { scoped } });

// streamText
const bareStream = ai.streamText({ model, prompt: 'hi', tools });
const stream = streamText({ model, prompt: 'hi', tools, stopWhen: { step_limit: ai.isStepCount(3) } });
holds<Same<typeof stream, typeof bareStream>>();
for await (const part of stream.fullStream) {
  if (part.type === 'tool-result' && !part.dynamic) part.output.rows satisfies number;
}

// agents
const agent = new ToolLoopAgent({
  model,
  tools,
  stopWhen: { step_limit: ai.isStepCount(3) },
  stopcause: { agent: 'a' },
});
const bareAgent = new ai.ToolLoopAgent({ model, tools });
const answer = await agent.generate({ prompt: 'hi', stopcause: { runId: 'r2' } });
holds<Same<typeof answer, Awaited<ReturnType<typeof bareAgent.generate>>>>();
(await agent.stream({ prompt: 'hi', stopcause: { resumes: 'r2' } })) satisfies Awaited<
  ReturnType<typeof bareAgent.stream>
>;
agent satisfies ai.Agent<never, typeof tools>;
holds<Same<ai.InferAgentUIMessage<typeof agent>, ai.InferAgentUIMessage<typeof bareAgent>>>();
class Mine extends ToolLoopAgent<never, typeof tools> {}
new Mine({ model, tools }) satisfies ai.ToolLoopAgent<never, typeof tools>;

outcome('r1', {
  contract: 'ticket-closed',
  check: 'row',
  polarity: 'confirmed',
  issuer: { type: 'destination', id: 'db' },
});
flush() satisfies Promise<void>;

// only what was given comes back
const some = watch({ generateText: ai.generateText });
some.generateText({ model, prompt: 'hi' });
// @ts-expect-error nothing was given to stream with
some.streamText;

// @ts-expect-error a map holds conditions, not numbers
generateText({ model, prompt: 'hi', stopWhen: { step_limit: 8 } });
// @ts-expect-error a run id is a text
generateText({ model, prompt: 'hi', stopcause: { runId: 7 } });
// @ts-expect-error no such option
generateText({ model, prompt: 'hi', stopcause: { runid: 'r1' } });
// @ts-expect-error the SDK wants a model
generateText({ prompt: 'hi' });
// @ts-expect-error the SDK takes a prompt or messages, not both
generateText({ model, prompt: 'hi', messages: [] });
// @ts-expect-error no option of the SDK
generateText({ model, prompt: 'hi', temprature: 1 });
// @ts-expect-error a tool that is not there
generateText({ model, prompt: 'hi', tools, activeTools: ['lookup', 'nothing'] });
// @ts-expect-error a sink takes records
watch(ai, { sink: { write() {} } });
// @ts-expect-error a run id belongs to a call
watch(ai, { runId: 'r1' });
// @ts-expect-error no word of the closed list
condition(() => true, { cause: 'tired' });
