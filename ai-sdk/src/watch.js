// The door: `watch(ai, options)` gives back the SDK's functions, watched.
//
// A run is opened, the call is made with changed options, and what it gives back goes to the application as it is.
// Whatever fails on our side falls back to the bare call.
import { forSdk, watchedAgent } from './agents.js';
import { Waits } from './approvals.js';
import { ONE_STEP, settleCall, signalOf, watchCallbacks } from './calls.js';
import { ownConditions } from './conditions.js';
import { currentRun, inside, remember } from './context.js';
import { faultCount, quietly } from './guard.js';
import { cleaned, optionsOfRun } from './options.js';
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
  const sink = options.sink ?? platform.defaultSink?.();
  const isOff = platform.env('STOPCAUSE_DISABLED') === '1';
  if (sink === undefined && !isOff) {
    complain('watch() was given no sink, so nothing is recorded. Give one: httpSink({url}) or functionSink(fn).');
  }
  const hook = hookOf(ai, options, sink ?? NO_SINK);
  // Also where nothing is recorded, calls may carry what only we understand: the same functions, without a run.
  return watched(ai, hook, isOff || sink === undefined ? () => undefined : openerOf(hook));
}

const NO_SINK = { accept() {}, flush: async () => {} };
const openerOf = (hook) => (layers, isStream) => openRun(hook, layers, isStream);

function hookOf(ai, options, sink) {
  const version = identifier(options.frameworkVersion ?? platform.sdkVersion?.());
  const writer = { adapter: '@stopcause/ai-sdk', adapter_version: VERSION, framework: 'ai-sdk' };
  if (version !== undefined) writer.framework_version = version;
  // Before Node 24, async context makes every promise of the process dearer, the host's own too: only when asked for.
  const isNested = options.nested ?? platform.isContextCheap;
  const { runId: _r, attempt: _a, parentRunId: _p, resumes: _s, ...base } = cleaned(options); // of one call only
  return {
    sink,
    writer,
    isNested,
    base,
    own: ownConditions(ai),
    waits: new Waits(),
    runs: new Pulse(),
  };
}

function watched(ai, hook, open) {
  const made = {
    generateText: ai.generateText && watchedGenerate(ai.generateText, hook, open),
    streamText: ai.streamText && watchedStream(ai.streamText, hook, open),
    ToolLoopAgent: ai.ToolLoopAgent && watchedAgent(ai.ToolLoopAgent, hook, { open, watchPromise, watchStream }),
  };
  return {
    ...present(made),
    outcome: (runId, facts) => writeOutcome(hook, runId, facts),
    flush: () => hook.sink.flush(),
    stats: faultCount,
  };
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
  return function generateText(options) {
    const run = open([options], false);
    const given = run && optionsOf(options, run, hook);
    if (given === undefined) return generate(forSdk(options));
    return watchPromise(run, () => generate(given));
  };
}

function watchedStream(stream, hook, open) {
  return function streamText(options) {
    const run = open([options], true);
    const given = run && optionsOf(options, run, hook);
    if (given === undefined) return stream(forSdk(options));
    return watchStream(run, () => stream(given));
  };
}

/** A run for a call whose options can be read; nothing where something about them defeats us. */
function openRun(hook, layers, isStream) {
  let run;
  quietly(() => {
    const call = layers.at(-1);
    if (typeof call !== 'object' || call === null) return;
    const mine = optionsOfRun(named(hook.base, layers), ...layers.map((layer) => layer?.stopcause));
    const parent = hook.isNested ? currentRun() : undefined;
    const signal = signalOf(call.abortSignal, mine.deadlineMs);
    run = new Run(hook, mine, { isStream, signal, timeout: call.timeout, parent, isNested: hook.isNested });
    hook.runs.add(run);
  });
  return run;
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
    const { stopcause: _, ...rest } = options;
    const stopWhen = settleCall(rest, run, hook, ONE_STEP);
    given = { ...rest, ...watchCallbacks(rest, run), stopWhen };
    if (run.call.signal !== rest.abortSignal) given.abortSignal = run.call.signal;
  });
  if (given === undefined) hook.runs.delete(run);
  return given;
}

/** What the call gives or throws, a moment after the receipt is written. An error that nobody catches stays uncaught. */
function watchPromise(run, call) {
  return inside(run, call).then(
    (result) => {
      quietly(() => run.stop({ how: 'returned' }, 'call'));
      remember(result, run.id);
      return result;
    },
    (error) => {
      threw(run, error);
      throw error;
    },
  );
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
