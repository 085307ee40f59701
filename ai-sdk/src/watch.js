// The door: `watch(ai, options)` gives back the SDK's functions, watched.
//
// A run is opened, the call is made with changed options, and what it gives back goes to the application as it is.
// Whatever fails on our side falls back to the bare call.
import { forSdk, watchedAgent } from './agents.js';
import { waitsBehind } from './approvals.js';
import { changed, ONE_STEP, settleCall, signalOf, watchCallbacks } from './calls.js';
import { ownConditions } from './conditions.js';
import { currentRun, inside, remember } from './context.js';
import { faultCount, quietly } from './guard.js';
import { cleanedForAll, optionsOfRun } from './options.js';
import { outcomeRecord } from './outcomes.js';
import { complain, platform } from './platform.js';
import { Pulse } from './pulse.js';
import { displayName, identifier } from './records.js';
import { Run } from './run.js';
import { watchStreams } from './streams.js';
import { VERSION } from './version.js';

/**
 * @param {any} ai the module `ai`, or an object with some of its functions
 * @param {any} [options] see the types: `sink`, and what is true of every run
 */
export function watch(ai, options = {}) {
  const sink = sinkOf(options.sink ?? platform.defaultSink?.());
  const isOff = platform.env('STOPCAUSE_DISABLED') === '1';
  if (sink === undefined && options.sink === undefined && !isOff) {
    complain('watch() was given no sink, so nothing is recorded. Give one: httpSink({url}) or functionSink(fn).');
  }
  const hook = hookOf(ai, options, sink ?? NO_SINK);
  // Also where nothing is recorded, calls may carry what only we understand: the same functions, without a run.
  return watched(ai, hook, isOff || sink === undefined ? () => undefined : openerOf(hook));
}

/** Something that takes records, or nothing. */
function sinkOf(given) {
  if (given === undefined || typeof given?.accept === 'function') return given;
  complain('watch() was given a sink without accept(). A path is no sink: fileSink(path) makes one.');
  return undefined;
}

const NO_SINK = { accept() {}, flush: async () => {} };
const openerOf = (hook) => (layers, isStream) => openRun(hook, layers, isStream);

function hookOf(ai, options, sink) {
  const version = identifier(options.frameworkVersion ?? platform.sdkVersion?.());
  const writer = { adapter: '@stopcause/ai-sdk', adapter_version: VERSION, framework: 'ai-sdk' };
  if (version !== undefined) writer.framework_version = version;
  // Before Node 24, async context makes every promise of the process dearer, the host's own too: only when asked for.
  const isNested = options.nested ?? platform.isContextCheap;
  return {
    sink,
    writer,
    isNested,
    base: cleanedForAll(options),
    own: ownConditions(ai),
    waits: waitsBehind(sink),
    runs: new Pulse(),
  };
}

function watched(ai, hook, open) {
  const { generateText, streamText, ToolLoopAgent } = partsOf(ai);
  const made = {
    generateText: generateText && watchedGenerate(generateText, hook, open),
    streamText: streamText && watchedStream(streamText, hook, open),
    ToolLoopAgent: ToolLoopAgent && watchedAgent(ToolLoopAgent, hook, { open, watchPromise, watchStream }),
  };
  return {
    ...present(made),
    outcome: (runId, facts) => writeOutcome(hook, runId, facts),
    flush: async () => hook.sink.flush?.(),
    stats: faultCount,
  };
}

/** Some of the module, or a stand-in of a test that throws for what it lacks. */
function partsOf(ai) {
  const parts = {};
  for (const name of ['generateText', 'streamText', 'ToolLoopAgent']) {
    try {
      parts[name] = ai[name];
    } catch {
      // it is not there
    }
  }
  return parts;
}

function writeOutcome(hook, runId, facts) {
  quietly(() => {
    const record = outcomeRecord(runId, facts, hook.writer);
    if (record === undefined) complain('outcome() was given no run id that a record can carry; nothing is recorded.');
    else hook.sink.accept(record);
  });
}

const present = (made) => Object.fromEntries(Object.entries(made).filter(([, value]) => value !== undefined));

function watchedGenerate(generate, hook, open) {
  return async function generateText(options) {
    const run = open([undefined, options], false);
    const given = run && optionsOf(options, run, hook);
    if (given === undefined) return generate(forSdk(options));
    return watchPromise(run, () => generate(given));
  };
}

function watchedStream(stream, hook, open) {
  return function streamText(options) {
    const run = open([undefined, options], true);
    const given = run && optionsOf(options, run, hook);
    if (given === undefined) return stream(forSdk(options));
    return watchStream(run, () => stream(given));
  };
}

/** A run for a call whose options can be read; nothing where something about them defeats us. */
function openRun(hook, [ofAgent, call], isStream) {
  let run;
  quietly(() => {
    if (typeof call !== 'object' || call === null) return;
    const mine = optionsOfRun(named(hook.base, [ofAgent, call]), ofAgent?.stopcause, call.stopcause);
    const signal = signalOf(call.abortSignal, mine.deadlineMs);
    const hearsParts = isStream && ofAgent !== undefined;
    run = new Run(hook, mine, { isStream, hearsParts, signal, timeout: call.timeout, ...familyOf(hook) });
    hook.runs.add(run);
  });
  return run;
}

/** A run that was over when this one began has no children any more. */
function familyOf({ isNested }) {
  const parent = isNested ? currentRun() : undefined;
  return { isNested, parent: parent?.isClosed ? undefined : parent };
}

/** An agent's own id, or the name that a call has in telemetry, where `watch` was told none. */
function named(base, layers) {
  if (base.facts.agent !== undefined) return base;
  const said = layers.map((layer) => layer?.id ?? (layer?.telemetry ?? layer?.experimental_telemetry)?.functionId);
  const agent = displayName(said.find((name) => name !== undefined));
  return agent === undefined ? base : { ...base, facts: { ...base.facts, agent } };
}

function optionsOf(options, run, hook) {
  let given;
  quietly(() => {
    const stopWhen = settleCall(options, run, hook, ONE_STEP);
    given = changed(options, { ...watchCallbacks(options, run), stopWhen });
    if ('stopcause' in given) delete given.stopcause;
    const signal = run.takeSignal();
    if (signal !== options.abortSignal) given.abortSignal = signal;
  });
  if (given === undefined) hook.runs.delete(run);
  return given;
}

/** What the call gives or throws, a moment after the receipt is written. An error that nobody catches stays uncaught. */
async function watchPromise(run, call) {
  let result;
  try {
    result = await inside(run, call);
  } catch (error) {
    threw(run, error);
    throw error;
  }
  quietly(() => run.stop({ how: 'returned' }, 'call'));
  remember(result, run.id);
  return result;
}

function threw(run, error) {
  quietly(() => run.stop({ how: 'threw', error }, 'exception'));
  remember(error, run.id);
}

function watchStream(run, call) {
  let result;
  try {
    result = inside(run, call);
  } catch (error) {
    threw(run, error);
    throw error;
  }
  if (typeof result?.then !== 'function') return seen(result, run);
  return result.then(
    (later) => seen(later, run),
    (error) => {
      threw(run, error);
      throw error;
    },
  );
}

function seen(result, run) {
  quietly(() => watchStreams(result, run));
  remember(result, run.id);
  return result;
}
