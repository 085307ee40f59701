// Here: a scripted model. It says what a path tells it to, in generate and in stream form from one script.
// Not here: what a path is (kit.js). Nothing here waits for a clock but `slow`, so that paths are quick and repeatable.
import { MockLanguageModelV4 } from 'ai/test';

/**
 * One answer of the scripted model.
 * @typedef {object} Turn
 * @property {string} [text] What it says.
 * @property {Call[]} [calls] The tools that it calls, in order.
 * @property {string} [finish] The SDK's word for why it finished; without it `tool-calls` with calls, else `stop`.
 * @property {string} [raw] The provider's own word; without it the same as `finish`.
 * @property {[number, number]} [usage] Input and output tokens; [10, 5] without it.
 * @property {unknown} [fail] Thrown when the model is asked. `{ value }` wraps what is no Error.
 * @property {{ value: unknown }} [errorPart] Stream only: an error chunk in place of the finish.
 * @property {{ value: unknown }} [breakWith] Stream only: the stream itself breaks, after the text, with this.
 * @property {boolean} [cut] Stream only: it ends without a finish.
 * @property {'asked' | 'midway'} [hang] Answers only to the abort signal: at once, or after the text of a stream.
 * @property {number} [slow] Milliseconds before each chunk of a stream after the first.
 * @property {() => void} [before] Called when the model is asked.
 * @property {() => void} [midway] Called where a stream hangs midway.
 * @property {object[]} [parts] Extra content parts (generate) or chunks (stream), as the provider interface has them.
 *
 * @typedef {object} Call
 * @property {string} tool
 * @property {unknown} input A string is sent as it stands, so that it can be no JSON.
 * @property {string} [id] Without it `call-N`, counted over the model's life.
 */

const USAGE = [10, 5];

/**
 * A model that answers each request with the next turn of its script; one request too many is an error.
 * @param {(Turn | ((options: object) => Turn))[]} script
 * @param {string} [modelId]
 * @param {(request: object) => void} [listen] Called with what the model is asked, before it answers.
 */
export function scriptedModel(script, modelId = 'scripted-1', listen = () => {}) {
  const state = { asked: 0, calls: 0 };
  const next = ({ abortSignal, ...request }) => {
    listen(request);
    return turnOf(script, state, { ...request, abortSignal });
  };
  return new MockLanguageModelV4({
    provider: 'scripted',
    modelId,
    doGenerate: async (options) => generated(await next(options), options),
    doStream: async (options) => streamed(await next(options), options),
  });
}

async function turnOf(script, state, options) {
  const entry = script[state.asked];
  state.asked += 1;
  if (entry === undefined) throw new Error(`the script has no turn ${state.asked}`);
  const turn = typeof entry === 'function' ? entry(options) : entry;
  turn.before?.();
  if (turn.fail !== undefined) throw 'value' in Object(turn.fail) ? turn.fail.value : turn.fail;
  if (turn.hang === 'asked') await untilAborted(options.abortSignal);
  const calls = (turn.calls ?? []).map((call) => ({ id: `call-${++state.calls}`, ...call }));
  return { ...turn, calls, number: state.asked };
}

/** Rejects with the signal's reason once it is aborted; without a signal it never settles. */
export function untilAborted(signal) {
  return new Promise((_, reject) => {
    if (signal?.aborted) reject(signal.reason);
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}

function generated(turn) {
  const text = turn.text === undefined ? [] : [{ type: 'text', text: turn.text }];
  return {
    content: [...text, ...turn.calls.map(callPart), ...(turn.parts ?? [])],
    finishReason: finishOf(turn),
    usage: usageOf(turn),
    warnings: turn.warnings ?? [],
    response: { id: `response-${turn.number}`, timestamp: new Date(0), modelId: 'scripted-1' },
  };
}

function callPart(call) {
  const input = typeof call.input === 'string' ? call.input : JSON.stringify(call.input);
  return { type: 'tool-call', toolCallId: call.id, toolName: call.tool, input, ...call.extra };
}

function finishOf(turn) {
  const unified = turn.finish ?? (turn.calls.length > 0 ? 'tool-calls' : 'stop');
  return { unified, raw: 'raw' in turn ? turn.raw : unified };
}

function usageOf(turn) {
  const [input, output] = turn.usage ?? USAGE;
  return {
    inputTokens: { total: input, noCache: input, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: output, text: output, reasoning: undefined },
  };
}

function streamed(turn, options) {
  const iterator = chunksOf(turn, options.abortSignal);
  const stream = new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await iterator.next();
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          controller.error(error);
        }
      },
      cancel: () => void iterator.return(),
    },
    { highWaterMark: 0 },
  );
  return { stream };
}

async function* chunksOf(turn, signal) {
  yield { type: 'stream-start', warnings: turn.warnings ?? [] };
  yield { type: 'response-metadata', id: `response-${turn.number}`, timestamp: new Date(0), modelId: 'scripted-1' };
  for (const chunk of bodyOf(turn)) {
    if (turn.slow) await pause(turn.slow, signal);
    yield chunk;
  }
  if (turn.hang === 'midway') {
    turn.midway?.();
    await untilAborted(signal);
  }
  if (turn.breakWith) throw turn.breakWith.value;
  if (turn.errorPart) yield { type: 'error', error: turn.errorPart.value };
  if (turn.cut) return;
  yield { type: 'finish', finishReason: finishOf(turn), usage: usageOf(turn) };
}

function bodyOf(turn) {
  const words = turn.text === undefined ? [] : turn.text.split(/(?<= )/);
  const text = words.map((delta) => ({ type: 'text-delta', id: 't', delta }));
  const said = text.length > 0 ? [{ type: 'text-start', id: 't' }, ...text, { type: 'text-end', id: 't' }] : [];
  return [...said, ...turn.calls.map(callPart), ...(turn.parts ?? [])];
}

function pause(ms, signal) {
  return Promise.race([new Promise((resolve) => setTimeout(resolve, ms)), untilAborted(signal)]);
}
