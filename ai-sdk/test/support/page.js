// A web application on this machine and the browser that reads its answer, both real: node:http on one side, fetch or a
// slow socket on the other.
//
// Here: the server of one page, ways to write a stream into its response, and readers that stay, leave or are slow. Not
// here: models (provider.js) and paths.
import { once } from 'node:events';
import { createServer, get } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { pause } from './provider.js';

/**
 * Serves one request with `respond`, lets `visit` read it, and gives back what each of them says.
 *
 * @param {(response: import('node:http').ServerResponse) => Promise<unknown>} respond the application's handler
 * @param {(url: string) => Promise<unknown>} visit the browser
 * @returns {Promise<{ handler: unknown, visitor: unknown }>} `handler` is the name of the error that it ended with, or
 *   'done'
 */
export async function page(respond, visit) {
  let handler;
  const server = createServer((_request, response) => {
    response.sendDate = false;
    handler = nameOfEnd(() => respond(response));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const visitor = await visit(`http://127.0.0.1:${server.address().port}/`);
    return { handler: await handler, visitor };
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

async function nameOfEnd(handle) {
  try {
    await handle();
    return 'done';
  } catch (error) {
    return error.name;
  }
}

// How the application answers ----------------------------------------------------------------------------------------

const fixedId = { generateMessageId: () => 'message-1' };

/** As a handler for Node does: the SDK writes into the response itself. */
export const pipesUi = (result, options) => (response) =>
  result.pipeUIMessageStreamToResponse(response, { ...fixedId, ...options });

/** As a framework with web responses does: it is given a Response and copies its body to the socket. */
export const copiesUi = (result, options) => (response) =>
  copied(result.toUIMessageStreamResponse({ ...fixedId, ...options }), response);

export const copiesText = (result) => (response) => copied(result.toTextStreamResponse(), response);

async function copied(answer, response) {
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  await pipeline(Readable.fromWeb(answer.body), response);
}

// How a browser reads ------------------------------------------------------------------------------------------------

/** To the end. @returns {Promise<string>} the whole body */
export const stays = async (url) => (await fetch(url)).text();

/** Until the text `mark` came, then it is gone. @returns {Promise<string>} what it had by then */
export const leavesAt = (mark) => async (url) => {
  const controller = new AbortController();
  const answer = await fetch(url, { signal: controller.signal });
  const decoder = new TextDecoder();
  let body = '';
  for await (const piece of answer.body) {
    body += decoder.decode(piece, { stream: true });
    if (body.includes(mark)) break; // leaving the loop cancels the body, which closes the socket
  }
  controller.abort();
  return body;
};

/**
 * Takes nothing off the socket for `ms` after the headers, then the rest.
 * @returns {Promise<string>} the whole body
 */
export const isSlow =
  (ms, meanwhile = () => {}) =>
  async (url) => {
    const [answer] = await once(get(url), 'response');
    answer.pause();
    await pause(ms);
    await meanwhile();
    const pieces = [];
    for await (const piece of answer) pieces.push(piece);
    return Buffer.concat(pieces).toString('utf8');
  };
