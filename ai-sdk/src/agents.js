// ToolLoopAgent, watched: a class of the same name whose every call is a run.
//
// Some callbacks (onError and onAbort of a stream) can only be given to an agent as a whole and do not say which call they
// are about. So each call is made on a stand-in: the same agent, with its settings replaced for this call alone.
import { changed, errorCallback, modelCallbacks, settleCall } from './calls.js';
import { isMap, listOf } from './conditions.js';
import { heard, quietly } from './guard.js';

const AGENT_STEPS = 20; // the SDK's private default, which says so in a warning when it fires

/** What an application said of an agent that the SDK does not understand. @type {WeakMap<object, any>} */
const said = new WeakMap();

/**
 * @param {any} Base the SDK's class @param {any} hook
 * @param {{watchPromise: Function, watchStream: Function, open: Function}} watching
 */
export function watchedAgent(Base, hook, { open, watchPromise, watchStream }) {
  const Watched = class extends Base {
    constructor(settings) {
      super(forSdk(settings));
      quietly(() => said.set(this, { stopcause: settings.stopcause, stopWhen: settings.stopWhen }));
    }

    async generate(options) {
      const run = open([layerOf(this), options], false);
      const agent = run && standIn(this, run, hook);
      if (agent === undefined) return super.generate(forSdk(options));
      return watchPromise(run, () => Base.prototype.generate.call(agent, callOptions(options, run)));
    }

    async stream(options) {
      const run = open([layerOf(this), options], true);
      const agent = run && standIn(this, run, hook);
      if (agent === undefined) return super.stream(forSdk(options));
      return watchStream(run, () => Base.prototype.stream.call(agent, callOptions(options, run)));
    }
  };
  return Object.defineProperty(Watched, 'name', { value: Base.name });
}

/** What an agent says of all its runs. Of one that is not ours, or is behind a proxy, only what the SDK kept. */
function layerOf(agent) {
  const { id, telemetry, experimental_telemetry } = agent?.settings ?? {};
  return { id, telemetry, experimental_telemetry, stopcause: said.get(agent)?.stopcause };
}

/** The same agent for one call; nothing where its settings cannot be read. */
function standIn(agent, run, hook) {
  let made;
  quietly(() => {
    if (typeof agent.settings !== 'object') return;
    const settings = watchSettings(agent.settings, said.get(agent)?.stopWhen, run, hook);
    made = Object.create(agent, { settings: { value: settings } });
  });
  if (made === undefined) hook.runs.delete(run);
  return made;
}

function callOptions(options, run) {
  const given = forSdk(options);
  const signal = run.takeSignal();
  return signal === given.abortSignal ? given : changed(given, { abortSignal: signal });
}

/** Options without what only we understand. */
export function forSdk(options) {
  if (typeof options !== 'object' || options === null) return options;
  const given = changed(options, {});
  delete given.stopcause;
  if (isMap(given.stopWhen)) given.stopWhen = listOf(given.stopWhen);
  return given;
}

function watchSettings(settings, stopWhen, run, hook) {
  const own = (name, alias) => settings[name] ?? settings[alias];
  const ears = {
    onStepStart: heard(own('onStepStart', 'experimental_onStepStart'), () => run.stepBegan()),
    onStepEnd: heard(own('onStepEnd', 'onStepFinish'), (step) => run.stepEnded(step)),
    onToolExecutionStart: heard(settings.onToolExecutionStart, () => run.toolStarted()),
    onToolExecutionEnd: heard(settings.onToolExecutionEnd, (event) =>
      run.toolEnded(event.toolCall, event.toolOutput?.type === 'tool-error'),
    ),
    prepareCall: preparedCall(settings, stopWhen, run, hook),
  };
  return { ...settings, ...ears, ...(run.call.isStream ? streamEars(settings, run) : {}) };
}

function streamEars(settings, run) {
  const ears = { onAbort: heard(settings.onAbort, ({ reason }) => run.stop({ how: 'aborted', reason }, 'callback')) };
  const onEnd = settings.onEnd ?? settings.onFinish;
  if ((settings.output ?? undefined) === undefined || (onEnd ?? undefined) !== undefined) {
    ears.onEnd = heard(onEnd, () => run.stop({ how: 'returned' }, 'callback'));
  }
  const onError = errorCallback(settings, run);
  return onError === undefined ? ears : { ...ears, onError };
}

/** The last word on a call's options is prepareCall's. It sees what it would see without us. */
function preparedCall(settings, stopWhen, run, hook) {
  return async (args) => {
    const made = (await settings.prepareCall?.(args)) ?? args;
    let given = made;
    quietly(() => {
      const fallback = { limit: made.stopWhen === undefined ? 1 : AGENT_STEPS, when: defaultOf(made, args, settings) };
      const asked = settleCall(asCalled(made, run), run, hook, fallback, namesOf(stopWhen));
      const onStepError = heard(made.onStepError, ({ error }) => run.stepFailed(error));
      given = { ...made, ...modelCallbacks(made, run), stopWhen: asked, onStepError };
    });
    return given;
  };
}

/** A call's own timer stands before the one of the settings. */
const asCalled = (made, run) => ({ ...made, timeout: run.call.timeout ?? made.timeout });

/** The function that the SDK itself put in, if it is still there; or its default for a call without conditions. */
function defaultOf(made, args, settings) {
  if (made.stopWhen === undefined) return ({ steps }) => steps.length === 1;
  return (settings.stopWhen ?? undefined) === undefined && made.stopWhen === args.stopWhen ? args.stopWhen : undefined;
}

/** Names that the settings gave; prepareCall may keep the conditions and drop the map. */
const namesOf = (stopWhen) =>
  new Map(isMap(stopWhen) ? Object.entries(stopWhen).map(([name, when]) => [when, name]) : []);
