// The hook beside `@ai-sdk/otel`: spans stay what they are, and what they cannot say is in the receipt.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OpenTelemetry } from '@ai-sdk/otel';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import * as ai from 'ai';
import { z } from 'zod';
import { scripted } from '../example/model.js';
import { functionSink, tokenBudget, watch } from '../src/node.js';

const inputSchema = z.object({ ticket: z.string() });
const tools = {
  lookup: ai.tool({ inputSchema, execute: async () => 'open' }),
  refund: ai.tool({ inputSchema, needsApproval: true, execute: async () => 'paid' }),
  close: ai.tool({ inputSchema }),
};
const call = (tool) => ({ tool, input: { ticket: 'T-1' } });

/** Two steps that stop for four reasons: what the model asks for last, what bounds the loop, and the cause. */
const ENDINGS = [
  { last: 'lookup', stopWhen: ai.isStepCount(2), cause: 'step_limit' },
  { last: 'lookup', stopWhen: tokenBudget(300), cause: 'token_budget' },
  { last: 'close', stopWhen: [ai.isStepCount(9), ai.hasToolCall('close')], cause: 'explicit_done' },
  { last: 'refund', stopWhen: ai.isStepCount(9), cause: 'approval_pending' },
];

/** The spans of one run, without what differs from run to run. */
async function spansOf(generateText, { last, stopWhen }) {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const integrations = [new OpenTelemetry({ tracer: provider.getTracer('test') })];
  const telemetry = { isEnabled: true, integrations, recordInputs: false, recordOutputs: false };
  const model = scripted(call('lookup'), call(last));
  await generateText({ model, tools, prompt: 'close it', stopWhen, telemetry });
  const spans = exporter.getFinishedSpans();
  const names = new Map(spans.map((span) => [span.spanContext().spanId, span.name]));
  return spans.map((span) => plain(span, names.get(span.parentSpanContext?.spanId)));
}

const plain = ({ name, kind, status, events, attributes }, parent) => ({
  name,
  parent,
  kind,
  status,
  events: events.map((event) => event.name),
  attributes: Object.fromEntries(Object.entries(attributes).filter(([key]) => !VARYING.test(key))),
});
const VARYING = /duration|time_to|response\.id$/; // times, and ids that the SDK draws

function watched(records) {
  return watch(ai, { sink: functionSink((record) => records.push(record)) });
}

for (const ending of ENDINGS) {
  test(`the spans of ${ending.cause} are the same with the hook and without`, async () => {
    const bare = await spansOf(ai.generateText, ending);
    assert.ok(bare.length >= 5, 'a root, two steps and two model calls at least');
    assert.deepEqual(await spansOf(watched([]).generateText, ending), bare);
  });
}

test('the root span of four causes is one and the same; the receipt tells them apart', async () => {
  const records = [];
  const { generateText, flush } = watched(records);
  const roots = [];
  for (const ending of ENDINGS)
    roots.push((await spansOf(generateText, ending)).find((span) => span.parent === undefined));
  await flush();
  for (const root of roots) assert.deepEqual(root, roots[0]);
  assert.deepEqual(roots[0].attributes['gen_ai.response.finish_reasons'], ['tool-calls']);
  assert.deepEqual(
    records.filter((record) => record.kind === 'run.stopped').map((record) => record.stop_cause),
    ENDINGS.map((ending) => ending.cause),
  );
});

test('no span says what bounded the run', async () => {
  const said = JSON.stringify(await spansOf(ai.generateText, ENDINGS[0]));
  assert.ok(said.includes('lookup'), 'the search would find a tool that was called');
  for (const word of ['stopWhen', 'stop_when', 'step_limit', 'isStepCount']) assert.ok(!said.includes(word), word);
});
