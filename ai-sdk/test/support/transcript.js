// Runs a path, with the hook or without, and writes down everything that the application, its console and its process
// could notice; with the hook also the records. Not here: what is compared with what (transparent, paths, canary tests).
import { condition, costBudget, functionSink, tokenBudget, watch } from '../../src/node.js';
import { digest } from './digest.js';
import { makeKit } from './kit.js';

const PATIENCE = 10_000; // milliseconds; a path that takes longer hangs
const CONSOLE = ['log', 'info', 'warn', 'error', 'debug'];

/**
 * @typedef {object} Transcript
 * @property {unknown} outcome `{ returned }` or `{ thrown }`, as digests.
 * @property {unknown[]} events Callbacks and what the path wrote down, in order, as digests.
 * @property {unknown[]} console What was printed, with the method's name.
 * @property {string[]} unhandled Rejections that nobody handled, and warnings of the process.
 *
 * @typedef {object} Ran
 * @property {Transcript} transcript
 * @property {object[]} records What the hook wrote, in order; none without it.
 * @property {object[]} [asked] The steps that the stop conditions were last asked about.
 * @property {unknown} made What `run` returned or threw, itself.
 */

/**
 * @param {object} path
 * @param {object} options
 * @param {object} options.ai The SDK's module.
 * @param {boolean} options.hooked
 * @param {boolean} [options.quiet] The application listens to no callback.
 * @returns {Promise<Ran>}
 */
export async function runPath(path, { ai, hooked, quiet = false }) {
  const kit = makeKit({ id: path.id, hooked, quiet, conditions: { condition, costBudget, tokenBudget } });
  const records = [];
  const probe = probed(ai);
  const watched = hooked ? hookedWith(probe.ai, path, kit, records) : undefined;
  const api = { ...ai, ...watched, ...(hooked ? probe.agentOf(watched) : {}) };
  const witness = witnessed(kit);
  let made;
  try {
    made = await inTime(attempt(path, api, kit), path.id);
    for (let turn = 0; turn < 3; turn += 1) await kit.tick(); // who left a stream shows a moment later
    await path.settle?.(kit);
    if (watched && path.outcome) watched.outcome(...path.outcome(kit));
    await watched?.flush();
    await kit.tick();
  } finally {
    witness.end();
  }
  return { transcript: transcriptOf(made, kit, witness), records, asked: probe.asked(), made };
}

function hookedWith(ai, path, kit, records) {
  const sink = functionSink((record) => void records.push(record));
  return watch(ai, { agent: 'ticket-agent', sink, ...path.watch?.(kit) });
}

async function attempt(path, api, kit) {
  try {
    return { returned: await path.run(api, kit) };
  } catch (error) {
    return { thrown: error };
  }
}

async function inTime(promise, id) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`path ${id} hangs`)), PATIENCE);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

function transcriptOf(made, kit, { printed, unhandled }) {
  return {
    outcome: digest(made, kit.owned),
    events: kit.events.map(({ name, event }) => [name, digest(event, kit.owned)]),
    console: printed.map(([method, ...values]) => [method, ...values.map((value) => digest(value, kit.owned))]),
    unhandled,
  };
}

/** Listens to the console and the process until `end`. The SDK's own warnings become events. */
function witnessed(kit) {
  const printed = [];
  const unhandled = [];
  const before = Object.fromEntries(CONSOLE.map((method) => [method, console[method]]));
  for (const method of CONSOLE) console[method] = (...values) => void printed.push([method, ...values]);
  const onRejection = (reason) => unhandled.push(`rejection ${reason?.name ?? typeof reason}`);
  const onWarning = ({ name, message }) => unhandled.push(`warning ${name} ${message}`);
  process.on('unhandledRejection', onRejection);
  process.on('warning', onWarning);
  globalThis.AI_SDK_LOG_WARNINGS = (warnings) => kit.log('warnings', warnings);
  const end = () => {
    Object.assign(console, before);
    process.off('unhandledRejection', onRejection);
    process.off('warning', onWarning);
    delete globalThis.AI_SDK_LOG_WARNINGS;
  };
  return { printed, unhandled, end };
}

/**
 * The SDK with one more stop condition below the hook, which never fires and keeps the steps that it was shown. It sees
 * what the SDK sees, so it knows when the conditions were asked. Only the first loop of a path is looked at.
 */
function probed(ai) {
  let first;
  const listen = (stopWhen) => {
    const seen = { steps: undefined };
    first ??= seen;
    const listener = ({ steps }) => {
      seen.steps = [...steps];
      return false;
    };
    return [...(Array.isArray(stopWhen) ? stopWhen : [stopWhen]), listener];
  };
  const withProbe = (options) => (options?.stopWhen ? { ...options, stopWhen: listen(options.stopWhen) } : options);
  return {
    ai: {
      ...ai,
      generateText: (options) => ai.generateText(withProbe(options)),
      streamText: (options) => ai.streamText(withProbe(options)),
    },
    /** The hook watches an agent's call at this step; what comes after it is what the SDK sees. */
    agentOf: ({ ToolLoopAgent: Watched }) => ({
      ToolLoopAgent: class ToolLoopAgent extends Watched {
        async prepareCall(options) {
          return withProbe(await super.prepareCall(options));
        }
      },
    }),
    asked: () => first?.steps,
  };
}
