// A plain HTTP receiver that really reads what is posted to it, and answers as a test says.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';

/**
 * @param {(posted: {lines: any[], request: import('node:http').IncomingMessage,
 *   response: import('node:http').ServerResponse, number: number}) => unknown} answer  Ends the response; default: 202.
 * @returns {Promise<{url: string, posts: any[][], received: any[], headers: any[], close: () => Promise<void>}>}
 *   `received` holds the records of posts that were answered with 2xx.
 */
export async function receiver(answer = ({ response }) => response.writeHead(202).end()) {
  const kept = { posts: [], received: [], headers: [], errors: [] };
  const server = createServer((request, response) => {
    handle(request, response, answer, kept).catch((error) => kept.errors.push(error));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    ...kept,
    url: `http://127.0.0.1:${server.address().port}/v1/records`,
    close: () => closed(server, kept.errors),
  };
}

async function handle(request, response, answer, { posts, received, headers }) {
  const lines = (await text(request)).trimEnd().split('\n').map(JSON.parse);
  posts.push(lines);
  headers.push({ method: request.method, url: request.url, port: request.socket.remotePort, ...request.headers });
  await answer({ lines, request, response, number: posts.length });
  const isTaken = response.headersSent && response.statusCode >= 200 && response.statusCode < 300;
  if (isTaken) received.push(...lines);
}

async function closed(server, errors) {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
  if (errors.length) throw errors[0];
}
