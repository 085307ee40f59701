// ToolLoopAgent, watched: a class of the same name whose every call is a run.
//
// A call is made through an agent of its own with the same settings, because some callbacks (onError and onAbort of a
// stream) can only be given to the constructor and do not say which call they are about.
import { errorCallback, settleCall } from './calls.js';
import { listOf } from './conditions.js';
import { heard, quietly } from './guard.js';

const AGENT_STEPS = 20; // the SDK's private default, which says so in a warning when it fires

/**
 * @param {any} Base the SDK's class @param {any} hook
 * @param {{watchPromise: Function, watchStream: Function, open: Function}} watching
 */
export function watchedAgent(Base, hook, { open, watchPromise, watchStream }) {
  const Watched = class extends Base {
    #settings;

    constructor(settings) {
      super(forSdk(settings));
      this.#settings = settings;
    }

    generate(options) {
      const run = open([this.#settings, options], false);
      if (run === undefined) return super.generate(forSdk(options));
      const agent = agentOf(Base, this.#settings, run, hook);
      return watchPromise(run, () => (agent ?? this.#bare()).generate(callOptions(options, run)));
    }

    stream(options) {
      const run = open([this.#settings, options], true);
      if (run === undefined) return super.stream(forSdk(options));
      const agent = agentOf(Base, this.#settings, run, hook);
      return watchStream(run, () => (agent ?? this.#bare()).stream(callOptions(options, run)));
    }

    #bare() {
      return new Base(forSdk(this.#settings));
    }
  };
  return Object.defineProperty(Watched, 'name', { value: Base.name });
}

/** The agent that makes one call; nothing where its settings defeat us. */
function agentOf(Base, settings, run, hook) {
  let agent;
  quietly(() => {
    agent = new Base(watchSettings(settings, run, hook));
  });
  return agent;
}

function callOptions(options, run) {
  const given = forSdk(options);
  if (run.call.signal !== given.abortSignal) given.abortSignal = run.call.signal;
  return given;
}

/** Options without what only we understand. */
export function forSdk(options) {
  if (typeof options !== 'object' || options === null) return options;
  const { stopcause: _, ...rest } = options;
  if (rest.stopWhen !== undefined) rest.stopWhen = plainConditions(rest.stopWhen);
  return rest;
}

const plainConditions = (stopWhen) => (typeof stopWhen === 'object' && stopWhen !== null ? listOf(stopWhen) : stopWhen);

function watchSettings(settings, run, hook) {
  const plain = forSdk(settings);
  const own = (name, alias) => plain[name] ?? plain[alias];
  const ears = {
    onStepStart: heard(own('onStepStart', 'experimental_onStepStart'), () => run.stepBegan()),
    onStepEnd: heard(own('onStepEnd', 'onStepFinish'), (step) => run.stepEnded(step)),
    onToolExecutionStart: heard(plain.onToolExecutionStart, () => run.toolStarted()),
    onToolExecutionEnd: heard(plain.onToolExecutionEnd, (event) =>
      run.toolEnded(event.toolCall, event.toolOutput?.type === 'tool-error'),
    ),
    prepareCall: preparedCall(settings, plain, run, hook),
  };
  return { ...plain, ...ears, ...(run.call.isStream ? streamEars(plain, run) : {}) };
}

function streamEars(plain, run) {
  const ears = { onAbort: heard(plain.onAbort, ({ reason }) => run.stop({ how: 'aborted', reason }, 'callback')) };
  if ((plain.output ?? undefined) === undefined || (plain.onEnd ?? plain.onFinish ?? undefined) !== undefined) {
    ears.onEnd = heard(plain.onEnd ?? plain.onFinish, () => run.stop({ how: 'returned' }, 'callback'));
  }
  const onError = errorCallback(plain, run);
  return onError === undefined ? ears : { ...ears, onError };
}

/** The last word on a call's options is prepareCall's. It sees what it would see without us. */
function preparedCall(settings, plain, run, hook) {
  return async (args) => {
    const made = (await plain.prepareCall?.(args)) ?? args;
    let given = made;
    quietly(() => {
      const fallback = { limit: made.stopWhen === undefined ? 1 : AGENT_STEPS, when: defaultOf(made, args, plain) };
      const stopWhen = settleCall(asCalled(made, run), run, hook, fallback, namesOf(settings.stopWhen));
      given = { ...made, stopWhen, onStepError: heard(made.onStepError, ({ error }) => run.stepFailed(error)) };
    });
    return given;
  };
}

/** A call's own timer stands before the one of the settings. */
const asCalled = (made, run) => ({ ...made, timeout: run.call.timeout ?? made.timeout });

/** The function that the SDK itself put in, if it is still there; or its default for a call without conditions. */
function defaultOf(made, args, plain) {
  if (made.stopWhen === undefined) return ({ steps }) => steps.length === 1;
  return plain.stopWhen === undefined && made.stopWhen === args.stopWhen ? args.stopWhen : undefined;
}

/** Names that the settings gave; prepareCall may keep the conditions and drop the map. */
function namesOf(stopWhen) {
  const isMap = typeof stopWhen === 'object' && stopWhen !== null && !Array.isArray(stopWhen);
  return new Map(isMap ? Object.entries(stopWhen).map(([name, when]) => [when, name]) : []);
}
