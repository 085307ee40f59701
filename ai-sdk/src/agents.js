// ToolLoopAgent, watched: a class of the same name whose every call is a run.
//
// Its methods are the SDK's, on the application's own object: what a call is watched by travels in the call's options, to
// the step at which the SDK settles them. Not here: the callbacks of a stream that only a whole agent can be given
// (onError, onAbort); the parts of the stream say the same (streams.js).
import { changed, modelCallbacks, settleCall } from './calls.js';
import { isMap, listOf, sourceOf } from './conditions.js';
import { heard, quietly } from './guard.js';

const AGENT_STEPS = 20; // the SDK's private default, which says so in a warning when it fires

/** What an application said of an agent that the SDK does not understand. @type {WeakMap<object, any>} */
const said = new WeakMap();

/**
 * @param {any} Base the SDK's class @param {any} hook
 * @param {{watchPromise: Function, watchStream: Function, open: Function}} watching
 */
export function watchedAgent(Base, hook, { open, watchPromise, watchStream }) {
  const key = Symbol('run'); // one for each hook: a hook within a hook keeps its own
  const Watched = class extends Base {
    constructor(settings) {
      super(forSdk(settings));
      quietly(() => said.set(this, { stopcause: settings.stopcause, stopWhen: settings.stopWhen }));
    }

    async generate(options) {
      const run = open([layerOf(this), options], false);
      const given = run && callOptions(options, run, hook, key);
      if (given === undefined) return super.generate(forSdk(options));
      return watchPromise(run, () => super.generate(given));
    }

    async stream(options) {
      const run = open([layerOf(this), options], true);
      const given = run && callOptions(options, run, hook, key);
      if (given === undefined) return super.stream(forSdk(options));
      return watchStream(run, () => super.stream(given));
    }

    /** The SDK's own step; a subclass of the application's may have one before it. */
    async prepareCall(options) {
      const { [key]: run, ...rest } = options ?? {};
      const made = await super.prepareCall(run === undefined ? options : rest);
      return run === undefined ? made : settled(made, run, this, hook);
    }
  };
  return Object.defineProperty(Watched, 'name', { value: Base.name });
}

/** What an agent says of all its runs. Of one that is not ours, or is behind a proxy, only what the SDK kept. */
function layerOf(agent) {
  const { id, telemetry, experimental_telemetry } = agent?.settings ?? {};
  return { id, telemetry, experimental_telemetry, stopcause: said.get(agent)?.stopcause };
}

/** A call's options with our ears in them; nothing where they cannot be read. */
function callOptions(options, run, hook, key) {
  let given;
  quietly(() => {
    given = changed(forSdk(options), { ...ears(options, run), [key]: run });
    const signal = run.takeSignal();
    if (signal !== options.abortSignal) given.abortSignal = signal;
  });
  if (given === undefined) hook.runs.delete(run);
  return given;
}

function ears(options, run) {
  const own = (name, alias) => options[name] ?? options[alias];
  const listening = {
    onStepStart: heard(own('onStepStart', 'experimental_onStepStart'), () => run.stepBegan()),
    onStepEnd: heard(own('onStepEnd', 'onStepFinish'), (step) => run.stepEnded(step)),
    onToolExecutionStart: heard(options.onToolExecutionStart, () => run.toolStarted()),
    onToolExecutionEnd: heard(options.onToolExecutionEnd, (event) =>
      run.toolEnded(event.toolCall, event.toolOutput?.type === 'tool-error'),
    ),
  };
  if (!run.call.isStream) return listening;
  const onEnd = options.onEnd === undefined ? options.onFinish : options.onEnd;
  return { ...listening, onEnd: heard(onEnd, () => run.stop({ how: 'returned' }, 'callback')) };
}

/** What the SDK will call with: conditions and model callbacks watched. */
function settled(made, run, agent, hook) {
  let given = made;
  quietly(() => {
    const { settings } = agent;
    const fallback = { limit: made.stopWhen === undefined ? 1 : AGENT_STEPS, when: defaultOf(made, settings) };
    const stopWhen = settleCall(asCalled(made, run), run, hook, fallback, namesOf(said.get(agent)?.stopWhen));
    const onStepError = heard(made.onStepError, ({ error }) => run.stepFailed(error));
    given = { ...made, ...modelCallbacks(made, run), stopWhen, onStepError };
  });
  return given;
}

/** Options without what only we understand. */
export function forSdk(options) {
  if (typeof options !== 'object' || options === null) return options;
  const given = changed(options, {});
  if ('stopcause' in given) delete given.stopcause;
  if (isMap(given.stopWhen)) given.stopWhen = listOf(given.stopWhen);
  return given;
}

/** A call's own timer stands before the one of the settings. */
const asCalled = (made, run) => ({ ...made, timeout: run.call.timeout ?? made.timeout });

/** The function that the SDK itself put in; or its default for a call without conditions. */
function defaultOf(made, settings) {
  if (made.stopWhen === undefined) return ({ steps }) => steps.length === 1;
  if ((settings.stopWhen ?? undefined) !== undefined || typeof made.stopWhen !== 'function') return undefined;
  // An application's prepareCall may have put in its own; the SDK's has its own text.
  const isSdks = settings.prepareCall === undefined || sourceOf(made.stopWhen).includes('DefaultStopCondition');
  return isSdks ? made.stopWhen : undefined;
}

/** Names that the settings gave; prepareCall may keep the conditions and drop the map. */
const namesOf = (stopWhen) =>
  new Map(isMap(stopWhen) ? Object.entries(stopWhen).map(([name, when]) => [when, name]) : []);
