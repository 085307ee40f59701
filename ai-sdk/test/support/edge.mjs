// Runs the edge-safe door after what only Node has is taken away, and says which records came.
import * as ai from 'ai';
import { scripted } from '../../example/model.js';

const say = console.log;
await fetch('data:,'); // Node loads its own fetch late, and that needs what goes now
for (const name of ['process', 'Buffer', 'setImmediate', 'clearImmediate']) delete globalThis[name];
const { functionSink, watch } = await import('../../src/index.js');
const kinds = [];
const take = (record) => kinds.push([record.kind, record.stop_cause].filter(Boolean).join(' '));
const { generateText, flush } = watch(ai, { sink: functionSink(take) });
await generateText({ model: scripted('done'), prompt: 'go' });
await flush();
say(JSON.stringify(kinds));
