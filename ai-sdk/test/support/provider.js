/**
 * A model provider on this machine: a real HTTP server that speaks the chat-completions protocol, and the SDK's own
 * provider package in front of it. Only what the model says is scripted; sockets, headers, retries, parsing and
 * cancellation are the real ones.
 *
 * Here: the server, the replies that a script is made of, and what the server saw of each request.
 * Not here: paths (`test/paths/socket*.js`), and anything of the hook.
 */

import { once } from 'node:events';
import { createServer } from 'node:http';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';

const ARRIVAL = 50; // milliseconds in which bytes over the loopback have surely arrived

/**
 * A reply answers one request. `seen.stream` says whether the SDK asked for a stream of events.
 *
 * @typedef {(response: import('node:http').ServerResponse, seen: Seen) => void | Promise<void>} Reply
 *
 * What the server saw of one request. `done` resolves once the exchange is over, in whatever way; `ending` then says how:
 * the client had the whole reply, the client left before that, or the server cut the line.
 *
 * @typedef {{ stream: boolean, messages: number, ending?: 'complete' | 'left' | 'cut', words?: number,
 *   done: Promise<void> }} Seen
 *
 * @typedef {{ text?: string, calls?: { name: string, input: unknown, id?: string }[], finish?: string | null,
 *   usage?: [number, number], model?: string }} Turn
 */

/**
 * Starts a server that gives the replies in order; a request beyond them gets the last one again.
 * The SDK is told a host name that does not exist, and its `fetch` goes to the server's port: what the SDK says of its
 * requests is then the same each time.
 *
 * @param {Reply[]} replies
 * @returns {Promise<{ model: (id?: string) => object, requests: Seen[], over: (ms: number) => Promise<object[]>,
 *   close: () => Promise<void> }>} `over` waits until every exchange is over, at most so long, and says how each ended
 */
export async function startProvider(replies) {
  const requests = [];
  const server = createServer((request, response) => serve(request, response, replies, requests));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const here = `http://127.0.0.1:${server.address().port}`;
  const fetchHere = (url, init) => fetch(String(url).replace('http://provider.test', here), init);
  const provider = createOpenAICompatible({
    name: 'local',
    baseURL: 'http://provider.test/v1',
    apiKey: 'none',
    includeUsage: true,
    fetch: fetchHere,
  });
  return {
    model: (id = 'scripted-1') => provider.chatModel(id),
    requests,
    over: (ms) => endings(requests, ms),
    close: () => closeServer(server, requests),
  };
}

/** Runs `use` with a provider that is closed afterwards, however `use` ends. */
export async function withProvider(replies, use) {
  const provider = await startProvider(replies);
  try {
    return await use(provider);
  } finally {
    await provider.close();
  }
}

async function endings(requests, ms) {
  await Promise.race([Promise.all(requests.map((seen) => seen.done)), pause(ms)]);
  return requests.map(({ stream, messages, ending = 'open' }) => ({ stream, messages, ending }));
}

async function serve(request, response, replies, requests) {
  const body = JSON.parse(await bodyOf(request));
  const reply = replies[Math.min(requests.length, replies.length - 1)];
  const seen = { stream: body.stream === true, messages: body.messages.length };
  response.sendDate = false;
  seen.done = once(response, 'close').then(() => {
    seen.ending ??= response.writableFinished ? 'complete' : 'left';
  });
  requests.push(seen);
  response.on('error', () => {}); // the client may go away at any byte: `ending` says so
  await reply(response, seen);
}

async function bodyOf(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
}

async function closeServer(server, requests) {
  const wasOpen = requests.some((seen) => seen.ending === undefined);
  server.close();
  server.closeAllConnections();
  await once(server, 'close');
  if (wasOpen) await pause(ARRIVAL); // what the SDK calls back for a line that breaks now belongs to the path, too
}

// Replies ------------------------------------------------------------------------------------------------------------

/** The model says this, complete: one JSON body, or all its events. */
export const says = (turn) => (response, seen) => {
  if (!seen.stream) return sendJson(response, 200, JSON.stringify(completion(turn)));
  startEvents(response);
  for (const event of events(turn)) response.write(event);
  response.end('data: [DONE]\n\n');
};

/** An HTTP status with an error body as providers send it. Retries wait `retryAfterMs`, not the SDK's two seconds. */
export const status =
  (code, { headers = { 'retry-after-ms': '1' }, message = 'no' } = {}) =>
  (response) => {
    sendJson(response, code, JSON.stringify({ error: { message, type: 'test', code: String(code) } }), headers);
  };

/** Any text with status 200: garbage, half a body, a page of a proxy. */
export const sends =
  (text, type = 'application/json') =>
  (response) => {
    response.writeHead(200, { 'content-type': type }).end(text);
  };

/** Reads the request and hangs up without a byte of reply. */
export const hangsUp = () => (response, seen) => cut(response, seen);

/** The first half of a reply, then the line is cut. A JSON body announces its full length first. */
export const breaksOff = (turn) => async (response, seen) => {
  const whole = seen.stream ? events({ ...turn, finish: null }).join('') : JSON.stringify(completion(turn));
  const type = seen.stream ? 'text/event-stream' : 'application/json';
  response.writeHead(200, { 'content-type': type, ...(seen.stream ? {} : { 'content-length': whole.length }) });
  await new Promise((sent) => response.write(seen.stream ? whole : whole.slice(0, whole.length / 2), sent));
  await pause(ARRIVAL); // an error makes a reader forget what it has not read yet
  cut(response, seen);
};

/** An error inside a stream that began well, as gateways send it. */
export const failsInside =
  (turn, error = { message: 'overloaded', type: 'server_error', code: '529' }) =>
  (response) => {
    startEvents(response);
    for (const event of events({ ...turn, finish: null })) response.write(event);
    response.end(`data: ${JSON.stringify({ error })}\n\ndata: [DONE]\n\n`);
  };

/** Says the turn's text and calls, then nothing more, and keeps the line open until the client leaves. */
export const stalls = (turn) => (response, seen) => {
  if (!seen.stream) return response.writeHead(200, { 'content-type': 'application/json' }).write('{"id":"c1",');
  startEvents(response);
  for (const event of events({ ...turn, finish: null })) response.write(event);
};

/** Not a byte, not even headers, until the client leaves. */
export const holds = () => () => {};

/**
 * Words, one every `everyMs`, until `words` are said or the client leaves; then a proper finish. It writes only as fast
 * as the client takes them; `seen.words` counts.
 */
export const drips =
  ({ words = 1000, everyMs = 5, size = 1, finish = 'stop' } = {}) =>
  async (response, seen) => {
    startEvents(response);
    for (seen.words = 0; seen.words < words && !response.destroyed; seen.words += 1) {
      const isTaken = response.write(textEvent(`${'w'.repeat(size)} `));
      if (!isTaken) await Promise.race([once(response, 'drain'), seen.done]);
      if (everyMs > 0) await pause(everyMs);
    }
    for (const event of events({ finish })) response.write(event);
    response.end('data: [DONE]\n\n');
  };

/** A reply, and then something else, once its bytes have had time to arrive. */
export const andThen = (reply, act) => async (response, seen) => {
  await reply(response, seen);
  await pause(ARRIVAL);
  act();
};

// The protocol -------------------------------------------------------------------------------------------------------

const base = (turn, object) => ({ id: 'c1', object, created: 1764400000, model: turn.model ?? 'scripted-1' });

const usageOf = ([input, output] = [10, 5]) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
});

const callOf = (call, index) => ({
  id: call.id ?? `call-${index + 1}`,
  type: 'function',
  function: { name: call.name, arguments: typeof call.input === 'string' ? call.input : JSON.stringify(call.input) },
});

/** `finish` null leaves the word out, as servers do that were cut off themselves. */
function completion(turn) {
  const { text = '', calls = [], finish = calls.length ? 'tool_calls' : 'stop', usage } = turn;
  const message = { role: 'assistant', content: text };
  if (calls.length) message.tool_calls = calls.map(callOf);
  const choice = { index: 0, message };
  if (finish !== null) choice.finish_reason = finish;
  return { ...base(turn, 'chat.completion'), choices: [choice], usage: usageOf(usage) };
}

/** @returns {string[]} server-sent events, ready to write; the closing `[DONE]` is not among them */
function events(turn) {
  const { text = '', calls = [], finish = calls.length ? 'tool_calls' : 'stop', usage } = turn;
  const chunk = (delta, more = {}) =>
    event({ ...base(turn, 'chat.completion.chunk'), choices: [{ index: 0, delta, ...more }] });
  const all = text
    .split(/(?<= )/)
    .filter(Boolean)
    .map((word) => chunk({ content: word }));
  for (const [index, call] of calls.entries()) all.push(chunk({ tool_calls: [{ index, ...callOf(call, index) }] }));
  if (finish === null) return all;
  all.push(chunk({}, { finish_reason: finish }));
  all.push(event({ ...base(turn, 'chat.completion.chunk'), choices: [], usage: usageOf(usage) }));
  return all;
}

const event = (value) => `data: ${JSON.stringify(value)}\n\n`;

const textEvent = (text) =>
  event({ ...base({}, 'chat.completion.chunk'), choices: [{ index: 0, delta: { content: text } }] });

function startEvents(response) {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' }).flushHeaders();
}

function sendJson(response, code, text, headers = {}) {
  response.writeHead(code, { 'content-type': 'application/json', ...headers }).end(text);
}

function cut(response, seen) {
  seen.ending = 'cut';
  response.destroy();
}

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
