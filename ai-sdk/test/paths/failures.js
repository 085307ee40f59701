// Something broke: the provider, its stream, the application's own functions, or what the call was given.
import { APICallError } from 'ai';
import { ALL, CALLS, each, failed, GENERATE, STREAM, UNPROVEN, uncertain } from './each.js';

const roomy = (api, kit) => ({ stopWhen: kit.stopWhen({ step_limit: api.isStepCount(8) }) });
const look = (kit) => ({ calls: [kit.call('lookup')] });
const run =
  (script, more = () => ({})) =>
  (api, kit, entry) =>
    kit.start(api, entry, { model: kit.model(script(kit)), ...roomy(api, kit), ...more(api, kit) });

/** What a provider answers when it refuses: the SDK's own error class, with everything in it that must not leak. */
function apiError(kit, statusCode, isRetryable) {
  const error = new APICallError({
    message: `it broke ${kit.canary}`,
    url: 'https://provider.example/v1/chat',
    requestBodyValues: { prompt: kit.canary },
    statusCode,
    isRetryable,
    responseBody: kit.canary,
    responseHeaders: { 'retry-after-ms': '1', 'x-note': kit.canary },
  });
  return kit.own(`status-${statusCode}`, error);
}
const networkError = (kit) =>
  kit.own('network', Object.assign(new TypeError(`fetch failed ${kit.canary}`), { cause: { code: 'ECONNRESET' } }));

const ANSWERS = [
  { id: '503', why: 'the provider is not available', fail: (kit) => apiError(kit, 503, true), cause: 'model_failure' },
  { id: '429', why: 'the provider says too many requests', fail: (kit) => apiError(kit, 429, true), cause: 'quota' },
  {
    id: '400',
    why: 'the provider refuses the request',
    fail: (kit) => apiError(kit, 400, false),
    cause: 'model_failure',
  },
  { id: 'network', why: 'the connection broke', fail: networkError, cause: 'model_failure' },
];

const provider = ANSWERS.flatMap(({ id, why, fail, cause }) => [
  ...each(id === '503' ? ALL : CALLS, {
    id: `provider-${id}`,
    why: `${why} at the first step`,
    cause,
    expected: failed(cause),
    run: run((kit) => [{ fail: fail(kit) }]),
  }),
  ...each(CALLS, {
    id: `provider-${id}-later`,
    why: `${why} at the second step; the first one has done work`,
    cause,
    expected: failed(cause),
    run: run((kit) => [look(kit), { fail: fail(kit) }]),
  }),
]);

const retried = [
  ...each(CALLS, {
    id: 'provider-503-retried',
    why: 'the provider is not available twice, then answers: the SDK retries, the run does not notice',
    cause: 'natural',
    expected: UNPROVEN,
    run: run(
      (kit) => [{ fail: apiError(kit, 503, true) }, { fail: apiError(kit, 503, true) }, { text: kit.say.text }],
      () => ({ maxRetries: 2 }),
    ),
  }),
  ...each(CALLS, {
    id: 'provider-503-retries-over',
    why: 'the provider is not available for as long as the SDK retries',
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: run(
      (kit) => Array(3).fill({ fail: apiError(kit, 503, true) }),
      () => ({ maxRetries: 2 }),
    ),
  }),
  ...each(CALLS, {
    id: 'provider-429-retries-over',
    why: 'too many requests for as long as the SDK retries',
    cause: 'quota',
    expected: failed('quota'),
    run: run(
      (kit) => Array(3).fill({ fail: apiError(kit, 429, true) }),
      () => ({ maxRetries: 2 }),
    ),
  }),
];

const streams = [
  ...each(['streamText'], {
    id: 's-err-step2',
    why: 'an error of the provider at the second step: onEnd fires all the same, with the finish of the first',
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: run((kit) => [look(kit), { fail: kit.say.error() }]),
  }),
  ...each(STREAM, {
    id: 'error-chunk',
    why: 'an error chunk in the middle of the stream',
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: run((kit) => [{ text: kit.say.text, errorPart: { value: kit.say.error() }, finish: 'error' }]),
  }),
  ...each(['streamText'], {
    id: 'error-chunk-later',
    why: 'an error chunk in the stream of the second step, without a finish behind it',
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: run((kit) => [look(kit), { text: kit.say.text, errorPart: { value: kit.say.error() }, cut: true }]),
  }),
  ...each(['streamText'], {
    id: 'error-chunk-is-text',
    why: 'an error chunk whose error is a string',
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: run((kit) => [{ text: kit.say.text, errorPart: { value: kit.say.text }, finish: 'error' }]),
  }),
  ...each(STREAM, {
    id: 'broken-body',
    why: 'the connection breaks in the body of the stream: the reader gets the error',
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: run((kit) => [{ text: kit.say.text, breakWith: { value: networkError(kit) } }]),
  }),
  ...each(['streamText'], {
    id: 'broken-body-later',
    why: 'the connection breaks in the body of the second step',
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: run((kit) => [look(kit), { text: kit.say.text, breakWith: { value: networkError(kit) } }]),
  }),
  ...each(STREAM, {
    id: 'no-finish',
    why: 'the stream ends after its text without saying that it was over',
    cause: 'stream_truncated',
    expected: uncertain('stream_truncated'),
    run: run((kit) => [{ text: kit.say.text, cut: true }]),
  }),
  ...each(STREAM, {
    id: 'no-finish-no-text',
    why: 'the stream ends without a word',
    cause: 'stream_truncated',
    expected: uncertain('stream_truncated'),
    run: run(() => [{ cut: true }]),
  }),
  ...each(['streamText'], {
    id: 'no-finish-no-text-later',
    why: 'the stream of the second step ends without a word',
    cause: 'stream_truncated',
    expected: uncertain('stream_truncated'),
    run: run((kit) => [look(kit), { cut: true }]),
  }),
];

const own = [
  ...each(ALL, {
    id: 'condition-throws',
    why: 'a stop condition of the application throws',
    cause: 'host_error',
    expected: failed('host_error'),
    run: run(
      (kit) => [look(kit), { text: kit.say.text }],
      (_api, kit) => ({ stopWhen: kit.stopWhen({ rule: throws(kit, 'RuleTrouble') }) }),
    ),
  }),
  ...each(['generateText'], {
    id: 'condition-rejects',
    why: 'a stop condition of the application rejects',
    cause: 'host_error',
    expected: failed('host_error'),
    run: run(
      (kit) => [look(kit), { text: kit.say.text }],
      (_api, kit) => ({ stopWhen: kit.stopWhen({ rule: async () => throws(kit, 'RuleTrouble')() }) }),
    ),
  }),
  ...each(ALL, {
    id: 'prepare-step-throws',
    why: 'prepareStep of the application throws before the second step',
    cause: 'host_error',
    expected: failed('host_error'),
    run: run(
      (kit) => [look(kit), { text: kit.say.text }],
      (_api, kit) => ({ prepareStep: ({ stepNumber }) => (stepNumber > 0 ? throws(kit, 'StepTrouble')() : {}) }),
    ),
  }),
  ...each(['agent.generate', 'agent.stream'], {
    id: 'prepare-call-throws',
    why: 'prepareCall of the application throws before anything began',
    cause: 'host_error',
    expected: failed('host_error'),
    run: run(
      (kit) => [{ text: kit.say.text }],
      (_api, kit) => ({ prepareCall: throws(kit, 'CallTrouble') }),
    ),
  }),
  ...each(CALLS, {
    id: 'callbacks-throw',
    why: 'every callback of the application throws: the SDK goes on, and so does the receipt',
    cause: 'natural',
    expected: UNPROVEN,
    run: run(
      (kit) => [look(kit), { text: kit.say.text }],
      (_api, kit) => ({
        ...Object.fromEntries(
          ['onStart', 'onStepEnd', 'onEnd', 'onToolExecutionEnd'].map((on) => [on, throws(kit, on)]),
        ),
      }),
    ),
  }),
  ...each(CALLS, {
    id: 'callbacks-reject',
    why: 'every callback of the application rejects: the SDK goes on, and so does the receipt',
    cause: 'natural',
    expected: UNPROVEN,
    run: run(
      (kit) => [look(kit), { text: kit.say.text }],
      (_api, kit) => ({
        ...Object.fromEntries(['onStepEnd', 'onEnd'].map((on) => [on, async () => throws(kit, on)()])),
      }),
    ),
  }),
  ...each(ALL, {
    id: 'invalid-prompt',
    why: 'neither a prompt nor a message that the SDK can read',
    cause: 'input_rejected',
    expected: failed('input_rejected'),
    run: run(
      (kit) => [{ text: kit.say.text }],
      (_api, kit) => ({ messages: [{ role: 'nobody', content: kit.canary }] }),
    ),
  }),
  ...each(CALLS, {
    id: 'tool-choice-violated',
    why: 'the application demands a tool call and the model makes none',
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: run(
      (kit) => [{ text: kit.say.text }],
      () => ({ toolChoice: 'required' }),
    ),
  }),
  ...each(GENERATE, {
    id: 'thrown-string',
    why: 'the provider throws a string',
    cause: 'model_failure',
    expected: failed('model_failure'),
    run: run((kit) => [{ fail: { value: kit.say.text } }]),
  }),
];

function throws(kit, name) {
  return () => {
    throw kit.say.error(name);
  };
}

export const paths = [...provider, ...retried, ...streams, ...own];
