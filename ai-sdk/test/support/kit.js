// What a path is, and what it is given to run with.
//
// A **path** is one way for a run to stop, as data and one function. test/paths/*.js export lists of them (`paths`);
// transcript.js runs them with and without the hook; scripts/record.js writes fixtures/ai_sdk/ID.json from them.
//
//   {
//     id:        'generate-step-limit',        // the file's name; the case is called ai-sdk-ID
//     entry:     'generateText',               // | 'streamText' | 'agent.generate' | 'agent.stream'
//     why:       'one line: what happens, and why it gets this verdict',
//     expected:  { verdict: 'BOUNDED_STOP', reason: 'step_limit' },
//     cause:     'step_limit',                 // stop_cause of the run that is judged; null: there is no receipt
//     async run(api, kit) { ... },             // returns or throws what the application would see
//
//     // optional
//     judged:    'generate-step-limit-2',      // the run_id that is judged; without it: the path's id (kit.runId)
//     attempt:   2,                            // the attempt that is judged; without it: the latest
//     watch:     (kit) => ({ doneTools: ['submit'] }),   // more options for watch(ai, options)
//     now:       '2026-11-28T09:00:00Z',       // when it is judged; without it an hour after it began
//     policy:    {...},                        // the operator's; null: none; without it POLICY
//     history:   [{ name, kind, limit, tools }],         // the stop conditions that were asked; steps are recorded
//     outcome:   (kit) => [runId, {...}],      // what the destination says afterwards, written with `outcome()`
//     settle:    async (kit) => {...},         // waits for what comes late, after `run` and before the records are read
//   }
//
// `api` has generateText, streamText, ToolLoopAgent, isStepCount, hasToolCall, isLoopFinished: the bare SDK's, or the
// three first as watch() gave them. A path must not ask which. `kit` is made anew for every run.
// What `run` returns is compared by digest: results with all their getters, errors with class, message and own keys,
// arrays of chunks. Everything that the application says is marked with kit.canary: no record may hold it.
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import { z } from 'zod';
import { scriptedModel, untilAborted } from './models.js';

/** Stands in every prompt, argument, result, message and metadata of every path; never in a record. */
export const CANARY = 'CANARY-7f3a words that nobody may see';

/** The operator's policy that a path is judged by where it brings none: a contract for every agent. */
export const POLICY = {
  policy: { id: 'recordings', version: '2026-11-30' },
  agents: [{ match: { agent: '*' }, contract: 'ticket-updated' }],
  contracts: { 'ticket-updated': { min_strength: 'read_back', issuers: ['destination:tickets'], settle: '1m' } },
};

const SHARED_EVENTS = [
  'onStart',
  'onStepStart',
  'onStepEnd',
  'onStepError',
  'onEnd',
  'onToolExecutionStart',
  'onToolExecutionEnd',
  'onLanguageModelCallStart',
  'onLanguageModelCallEnd',
];
const EVENTS = {
  generateText: SHARED_EVENTS,
  streamText: [...SHARED_EVENTS, 'onChunk', 'onError', 'onAbort'],
  'agent.generate': SHARED_EVENTS,
  'agent.stream': SHARED_EVENTS,
  settings: [
    'onStart',
    'onStepStart',
    'onStepEnd',
    'onEnd',
    'onToolExecutionStart',
    'onToolExecutionEnd',
    'onError',
    'onAbort',
  ],
};

/**
 * @param {object} options
 * @param {string} options.id The path's id, which is also the run's.
 * @param {boolean} options.hooked Whether `stopcause` and named stop conditions are understood.
 * @param {boolean} [options.quiet] The application listens to no callback.
 * @param {object} options.conditions tokenBudget, costBudget and condition of the package.
 */
export function makeKit({ id, hooked, quiet = false, conditions }) {
  const events = [];
  const owned = new Map();
  const counter = { id: 0, call: 0 };
  const kit = {
    id,
    hooked,
    quiet,
    events,
    owned,
    canary: CANARY,
    ...conditions,
    model: (script, modelId) => scriptedModel(script, modelId, (request) => kit.log('model', request)),
    call: (tool, input = { query: CANARY }, more = {}) => ({ tool, input, ...more }),

    /** The run's id; with a suffix that of another run of this path. */
    runId: (suffix) => (suffix === undefined ? id : `${id}-${suffix}`),
    /** Spread into a call: what only the hook reads. Nothing for the bare SDK. */
    stopcause: (extra = {}) => (hooked ? { stopcause: { runId: id, ...extra } } : {}),
    /** The deadline: the hook's own, or for the bare SDK the signal that an application would pass. */
    deadline: (ms, extra) =>
      hooked ? kit.stopcause({ deadlineMs: ms, ...extra }) : { abortSignal: AbortSignal.timeout(ms) },
    /** Named stop conditions; for the bare SDK the list of them. */
    stopWhen: (map) => (hooked ? map : Object.values(map)),

    /** Marks an object of the application's, so that its identity is compared. Returns it. */
    own: (name, value) => {
      owned.set(value, name);
      return value;
    },
    /** Writes down that something happened, in order. */
    log: (name, event) => void events.push({ name, event }),
    /** Callbacks of the application that write down when and with what they were called. None where it is quiet. */
    callbacks: (of) => (quiet ? {} : listeners(EVENTS[of], of, kit)),
    /** Ids that are the same each time, through the SDK's own knob for tests. */
    internals: () => ({
      _internal: {
        generateId: () => `id-${++counter.id}`,
        generateCallId: () => `sdk-${++counter.call}`,
        now: () => 0,
      },
    }),
    tick: () => turn(),
    sleep: (ms) => sleep(ms),
    untilAborted,
    read,
    readAll,
    facts,
  };
  kit.tools = toolsOf(kit);
  kit.say = says(kit);
  kit.start = (api, entry, options) => start(kit, api, entry, options);
  kit.open = (api, entry, options) => open(kit, api, entry, options);
  return kit;
}

function listeners(names, of, kit) {
  const mark = of === 'settings' ? 'settings.' : '';
  return Object.fromEntries(names.map((name) => [name, (event) => kit.log(mark + name, event)]));
}

/** What the scripted user and operator say; all of it marked. */
function says(kit) {
  return {
    prompt: `update the ticket ${CANARY}`,
    system: `you are careful ${CANARY}`,
    text: `it is done ${CANARY}`,
    error: (name = 'Error') => kit.own(name, Object.assign(new Error(`it broke ${CANARY}`), { name })),
  };
}

/**
 * The tools of every path, made anew: `lookup` answers; `done` finishes; `submit` and `ask_user` have no execute;
 * `refund` needs approval; `broken` throws; `slow` waits for its abort signal; `deaf` answers late whatever happens.
 */
function toolsOf(kit) {
  const inputSchema = z.object({ query: z.string() });
  const make = (name, more = {}) => ({ description: `${name} ${CANARY}`, inputSchema, ...more });
  const answer = async () => ({ answer: CANARY });
  return {
    lookup: make('lookup', { execute: answer }),
    done: make('done', { execute: answer }),
    submit: make('submit'),
    ask_user: make('ask_user'),
    refund: make('refund', { execute: answer, needsApproval: true }),
    broken: make('broken', { execute: async () => Promise.reject(kit.say.error('ToolTrouble')) }),
    slow: make('slow', { execute: (_input, { abortSignal }) => untilAborted(abortSignal) }),
    deaf: make('deaf', { execute: async () => sleep(40, { answer: CANARY }) }),
  };
}

/**
 * Calls the entry point with the application's options and gives back what it gives back; a stream is not read.
 * Prompt, system, tools, metadata, callbacks, fixed ids and the run's id are filled in where `options` has none.
 * @param {object} options What the entry point takes; `call` holds what only an agent's call takes.
 */
async function open(kit, api, entry, { call, ...options }) {
  const given = { tools: kit.tools, maxRetries: 0, ...kit.internals(), ...kit.stopcause(), ...options };
  const prompt = given.messages ? {} : { prompt: kit.say.prompt };
  const metadata = { providerOptions: { scripted: { note: CANARY } }, ...given };
  if (entry === 'generateText' || entry === 'streamText') {
    return api[entry]({ system: kit.say.system, ...prompt, ...kit.callbacks(entry), ...metadata, ...call });
  }
  const { messages, prompt: asked = prompt.prompt, abortSignal, timeout, stopcause, ...settings } = metadata;
  const agent = new api.ToolLoopAgent({ instructions: kit.say.system, ...kit.callbacks('settings'), ...settings });
  const perCall = dropUndefined({ messages, prompt: messages ? undefined : asked, abortSignal, timeout, stopcause });
  return agent[entry.slice('agent.'.length)]({ ...perCall, ...kit.callbacks(entry), ...call });
}

/** As `open`; a stream is read to its end. */
async function start(kit, api, entry, options) {
  const result = await open(kit, api, entry, options);
  return entry === 'streamText' || entry === 'agent.stream' ? readAll(result) : result;
}

function dropUndefined(object) {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

/** Reads up to `most` chunks of a stream's parts and cancels the rest where it did not end by itself. */
async function read(result, most = Infinity, reason) {
  const chunks = [];
  const reader = result.fullStream.getReader();
  while (chunks.length < most) {
    const { done, value } = await reader.read();
    if (done) return chunks;
    chunks.push(value);
  }
  await reader.cancel(reason);
  return chunks;
}

/** A stream's parts up to its end or the error that broke it, and then what its promises say. */
async function readAll(result) {
  const chunks = [];
  let broken;
  try {
    for await (const chunk of result.fullStream) chunks.push(chunk);
  } catch (error) {
    broken = { error };
  }
  return { chunks, broken, facts: await facts(result) };
}

const PROMISES = [
  'finishReason',
  'rawFinishReason',
  'text',
  'content',
  'toolCalls',
  'toolResults',
  'usage',
  'totalUsage',
  'warnings',
  'steps',
  'response',
  'output',
];

/** What each promise of a stream's result says: `{ value }` or `{ error }`. */
async function facts(result) {
  const settled = await Promise.allSettled(PROMISES.map(async (name) => await result[name]));
  return Object.fromEntries(
    settled.map((one, index) => [PROMISES[index], 'value' in one ? { value: one.value } : { error: one.reason }]),
  );
}
