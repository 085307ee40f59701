// Here: what the examples of docs/ai-sdk.md take as given: a scripted model, tools, a sink, a receiver. A test puts each
// example behind this text, runs it, and compares the stop causes that come out with those that the example names.
import { createServer } from 'node:http';
import * as ai from 'ai';
import { condition, costBudget, functionSink, httpSink, runOf, tokenBudget, watch } from '@stopcause/ai-sdk/node';
import { scriptedModel } from './test/support/models.js';

const causes = [];
const note = (record) => record.kind === 'run.stopped' && causes.push(record.stop_cause);
const sink = functionSink(note);
const { generateText, streamText, ToolLoopAgent, outcome, flush } = watch(ai, { agent: 'ticket-agent', sink });

const execute = async () => 'found';
const inputSchema = ai.jsonSchema({ type: 'object' });
const calls = (tool) => ({ calls: [{ tool, input: {} }] });
const model = scriptedModel(Array(40).fill(calls('search')));
const tools = { search: ai.tool({ inputSchema, execute }) };
const prompt = 'Close the ticket.';
const messages = [{ role: 'user', content: 'Refund the order.' }];
const refundModel = scriptedModel([calls('refund'), { text: 'Refunded.' }]);
const refundTools = { refund: ai.tool({ inputSchema, execute, needsApproval: true }) };
const slowModel = scriptedModel([{ hang: 'asked' }]);
const isGoingRound = () => false;

const deliveries = [];
const context = { waitUntil: (delivery) => deliveries.push(delivery) };
const receiver = createServer(async (request, response) => {
  for (const line of (await request.toArray()).join('').trim().split('\n')) note(JSON.parse(line));
  response.end();
});
await new Promise((listening) => receiver.listen(0, '127.0.0.1', listening));
process.env.RECORDS_URL = `http://127.0.0.1:${receiver.address().port}/v1/records`;
