// The edge-safe door: nothing below it imports from Node. In Node use `@stopcause/ai-sdk/node`, which adds the file sink.
export { condition, costBudget, tokenBudget } from './conditions.js';
export { runOf } from './context.js';
export { functionSink, httpSink } from './sinks.js';
export { watch } from './watch.js';
