// One watcher in a process of its own: does a turn when it is told to, and says what it cost.
import { AsyncLocalStorage } from 'node:async_hooks';
import { doors, watchers } from './loads.js';

const [watcher, file] = process.argv.slice(2);
const apis = watchers(file);
const [name, host = name] = watcher.split('+');
const api = apis[name] ?? apis.bare;
const isRejected = () => {
  console.error(`ai-sdk: an unhandled rejection under ${watcher}`);
  process.exit(1);
};

globalThis.AI_SDK_LOG_WARNINGS = false;
process.on('unhandledRejection', isRejected);
if (host === 'context') new AsyncLocalStorage().run({}, () => {}); // as tracing and web frameworks do

process.on('message', async ({ door, runs }) => {
  const before = process.cpuUsage();
  for (let done = 0; done < runs; done++) await doors[door](api);
  await api.flush(); // what is left to be done behind belongs to the runs
  const { user, system } = process.cpuUsage(before);
  process.send((user + system) / runs);
});
