// npm install @stopcause/ai-sdk
import * as ai from 'ai';
import { fileSink, watch } from '@stopcause/ai-sdk/node';
import { model, tools } from './agent.js'; // yours, as they are

const sink = fileSink('receipts.ndjson');
const { generateText } = watch(ai, { agent: 'ticket-agent', sink });
const stopWhen = { step_limit: ai.isStepCount(8) };
await generateText({ model, tools, stopWhen, prompt: 'Close the ticket.' });
