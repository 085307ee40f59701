// Paths over a socket: a chat-completions server on this machine behind the SDK's own OpenAI-compatible provider package.
// Here: what the model's last words are, and answers that are no success. In socket-lines.js: lines that break, time and
// aborts. In socket-effects.js: effects and retries. In socket-ui.js: readers, and responses that a browser reads.
//
// What the SDK does on each, found by running it bare (ai 7.0.173, @ai-sdk/openai-compatible 3.0.92):
//
//   the server                        generateText                      streamText
//   finish stop, length               returns it                        the same
//   content_filter                    returns content-filter            the same
//   tool_calls, no call               returns tool-calls                the same
//   tool_calls, a call; stop, a call  runs it, goes on                  the same
//   length, filter, other, a call     returns, the call is not run      the same
//   a word that nobody knows          returns other, raw is the word    the same (raw may be a sentence)
//   no finish word                    returns other, raw undefined      error chunk, finish error, onError, onEnd
//   503, then an answer               one retry, nothing is seen of it  the same
//   503, 429 for ever                 throws AI_RetryError              error chunk, onStepError, onError, no onEnd
//   401, 400                          throws AI_APICallError at once    the same as 503 for ever
//   503 at the second step            throws AI_RetryError              onError, then onEnd with the finish of step one
//   hangs up before its headers       throws AI_APICallError            as 503 for ever
//                                     <- SocketError UND_ERR_SOCKET; retried after two seconds
//   cuts the body                     throws AI_APICallError (200!)     the iterator throws it, onStepError alone
//   garbage, half a body, no choices  throws AI_APICallError (200)      error chunk, finish error, onError, onEnd
//   an error event in the body        -                                 error chunk (AI_StreamProviderError), onEnd
//   silent, a deadline passes         throws TimeoutError; the request  abort chunk, onAbort; the request ends
//                                     ends
//   sends no headers, firstChunkMs    -                                 waits for ever: the timer starts with them
//   the application aborts            throws AbortError; request ends   abort chunk, onAbort; the request ends
//   the reader cancels                -                                 no callback; the request does NOT end: the
//                                                                       result keeps a second branch for later readers

import { failsInside, says, sends, status, withProvider } from '../support/provider.js';
import { bounded, each, failed, seen, UNPROVEN, uncertain, VERIFIED } from './each.js';

/**
 * A path's `run` against a server with this script. What the server saw of each request is written down, so that it is
 * compared with and without the hook.
 * @param {(kit: object) => import('../support/provider.js').Reply[]} replies
 * @param {(api: object, kit: object) => object} [options] more of what the entry point takes
 * @param {(api: object, kit: object, entry: string, options: object) => Promise<unknown>} [use] in place of `kit.start`
 */
export function over(replies, options = () => ({}), use = (api, kit, ...rest) => kit.start(api, ...rest)) {
  return (api, kit, entry) =>
    withProvider(replies(kit), async (provider) => {
      try {
        return await use(api, kit, entry, { model: provider.model(), ...roomy(api, kit), ...options(api, kit) });
      } finally {
        kit.log('server', await provider.over(100));
      }
    });
}

const roomy = (api, kit) => ({ stopWhen: kit.stopWhen({ step_limit: api.isStepCount(4) }) });

export const BOTH = ['generateText', 'streamText'];
export const AGENTS = ['agent.generate', 'agent.stream'];
export const HISTORY = [{ name: 'step_limit', kind: 'steps', limit: 4 }];
export const look = (kit) => ({ calls: [{ name: 'lookup', input: { query: kit.canary } }] });
export const text = (kit) => ({ text: kit.say.text });

const words = [
  ...each([...BOTH, ...AGENTS], {
    id: 'socket-stop',
    why: 'the provider says stop, and nobody says that the work is there',
    cause: 'natural',
    expected: UNPROVEN,
    run: over((kit) => [says({ ...text(kit), finish: 'stop' })]),
  }),
  ...each(BOTH, {
    id: 'socket-stop-seen',
    why: 'a tool call, then stop; the destination says that the work is there',
    cause: 'natural',
    expected: VERIFIED,
    history: HISTORY,
    outcome: seen,
    run: over((kit) => [says(look(kit)), says(text(kit))]),
  }),
  ...each(BOTH, {
    id: 'socket-length',
    why: 'the provider stopped at its output cap, in the middle of a sentence',
    cause: 'output_cap',
    expected: bounded('output_cap'),
    run: over((kit) => [says({ ...text(kit), finish: 'length' })]),
  }),
  ...each(BOTH, {
    id: 'socket-content-filter',
    why: 'the filter of the provider ended the answer',
    cause: 'content_filter',
    expected: failed('content_filter'),
    run: over((kit) => [says({ ...text(kit), finish: 'content_filter' })]),
  }),
  ...each(BOTH, {
    id: 'socket-tool-calls-without-call',
    why: 'the provider says that tools are called, and calls none: the finish contradicts itself',
    cause: 'natural',
    expected: uncertain('finish_mismatch'),
    run: over((kit) => [says({ ...text(kit), finish: 'tool_calls' })]),
  }),
  ...each(BOTH, {
    id: 'socket-stop-with-call',
    why: 'the provider says stop and calls a tool all the same: the SDK runs it and goes on',
    cause: 'natural',
    expected: UNPROVEN,
    history: HISTORY,
    run: over((kit) => [says({ ...look(kit), finish: 'stop' }), says(text(kit))]),
  }),
  ...each(BOTH, {
    id: 'socket-length-with-call',
    why: 'the output cap cut the answer behind a call: the SDK does not run it, and nobody else will',
    cause: 'output_cap',
    expected: bounded('output_cap'),
    run: over((kit) => [says({ ...look(kit), finish: 'length' })]),
  }),
  ...each(BOTH, {
    id: 'socket-unknown-word',
    why: 'the provider ends with a word that no version of the SDK knows',
    cause: 'natural',
    expected: uncertain('finish_unknown'),
    run: over((kit) => [says({ ...text(kit), finish: 'eos_token' })]),
  }),
  ...each(BOTH, {
    id: 'socket-sentence-for-a-word',
    why: 'the provider ends with a sentence where a word belongs: it is not kept',
    cause: 'natural',
    expected: uncertain('finish_unknown'),
    run: over((kit) => [says({ ...text(kit), finish: kit.canary })]),
  }),
  ...each(['generateText'], {
    id: 'socket-no-word',
    why: 'a whole answer without a word for why it ended: the SDK calls that other',
    cause: 'natural',
    expected: uncertain('finish_unknown'),
    run: over((kit) => [says({ ...text(kit), finish: null })]),
  }),
  ...each(['streamText'], {
    id: 'socket-no-word',
    why: 'the stream ends without a word for why: the provider package makes an error of it',
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: over((kit) => [says({ ...text(kit), finish: null })]),
  }),
];

const refused = (kit, code, headers) => status(code, { message: kit.canary, headers });
const twice = () => ({ maxRetries: 1 });

const answers = [
  ...each(BOTH, {
    id: 'socket-503-then-answer',
    why: 'not available once: the SDK tries again, the run does not notice',
    cause: 'natural',
    expected: UNPROVEN,
    run: over((kit) => [refused(kit, 503), says(text(kit))], twice),
  }),
  ...each([...BOTH, ...AGENTS], {
    id: 'socket-503-for-ever',
    why: 'not available for as long as the SDK tries',
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: over((kit) => [refused(kit, 503)], twice),
  }),
  ...each(BOTH, {
    id: 'socket-503-second-step',
    why: 'not available once a tool has acted; the stream calls onEnd with the finish of the step before',
    cause: 'model_failure',
    expected: failed('model_failure'),
    history: HISTORY,
    run: over((kit) => [says(look(kit)), refused(kit, 503)], twice),
  }),
  ...each(BOTH, {
    id: 'socket-429-retry-after',
    why: 'too many requests, with a time to wait: the SDK waits so long and has its answer',
    cause: 'natural',
    expected: UNPROVEN,
    run: over((kit) => [refused(kit, 429, { 'retry-after': '0.05' }), says(text(kit))], twice),
  }),
  ...each(BOTH, {
    id: 'socket-429-for-ever',
    why: 'too many requests for as long as the SDK tries',
    cause: 'quota',
    expected: failed('quota'),
    run: over((kit) => [refused(kit, 429)], twice),
  }),
  ...each(BOTH, {
    id: 'socket-401',
    why: 'the key is not accepted: no retry helps',
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: over((kit) => [refused(kit, 401)], twice),
  }),
  ...each(BOTH, {
    id: 'socket-400',
    why: 'the provider refuses the request as it is',
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: over((kit) => [refused(kit, 400)], twice),
  }),
  ...each(BOTH, {
    id: 'socket-page-of-a-proxy',
    why: 'status 200 with the page of a proxy in place of an answer',
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: over((kit) => [sends(`<html>${kit.canary}</html>`, 'text/html')]),
  }),
  ...each(['generateText'], {
    id: 'socket-half-json',
    why: 'half a JSON body, and the line closed as if that were all',
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: over((kit) => [sends(`{"id":"c1","choices":[{"message":{"content":"${kit.canary}`)]),
  }),
  ...each(['streamText'], {
    id: 'socket-half-event',
    why: 'an event of the stream is no JSON',
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: over((kit) => [sends(`data: {"id": "${kit.canary}\n\n`, 'text/event-stream')]),
  }),
  ...each(['streamText'], {
    id: 'socket-error-event',
    why: 'a gateway puts an error into a stream that began well, after a tool has acted',
    cause: 'model_failure',
    expected: failed('model_failure'),
    history: HISTORY,
    run: over((kit) => [says(look(kit)), failsInside(text(kit), { message: kit.canary, code: '529' })]),
  }),
];

export const paths = [...words, ...answers];
