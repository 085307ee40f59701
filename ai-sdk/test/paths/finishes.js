// The model stops by itself: naturally, with nothing to show, cut off, or with a word that says nothing.
import { z } from 'zod';
import { ALL, bounded, CALLS, each, failed, GENERATE, seen, UNPROVEN, uncertain, VERIFIED } from './each.js';

const lookThenSay = (kit, last = {}) => kit.model([{ calls: [kit.call('lookup')] }, { text: kit.say.text, ...last }]);
const roomy = (api, kit) => ({ stopWhen: kit.stopWhen({ step_limit: api.isStepCount(8) }) });
const STEPS_8 = [{ name: 'step_limit', kind: 'steps', limit: 8 }];

const natural = [
  ...each(GENERATE, {
    id: 'natural-with-outcome',
    why: 'ends by itself, and the destination says that the ticket is updated',
    cause: 'natural',
    expected: VERIFIED,
    outcome: seen,
    run: (api, kit, entry) =>
      kit.start(api, entry, { model: lookThenSay(kit, { raw: 'end_turn' }), ...roomy(api, kit) }),
  }),
  ...each(ALL, {
    id: 'natural-without-outcome',
    ids: { streamText: 'stream-s-natural' },
    why: 'ends by itself, and nobody says that the ticket is updated',
    cause: 'natural',
    expected: UNPROVEN,
    history: STEPS_8,
    run: (api, kit, entry) => kit.start(api, entry, { model: lookThenSay(kit), ...roomy(api, kit) }),
  }),
  ...each(['generateText'], {
    id: 'natural-without-contract',
    why: 'ends by itself, and no contract says what done means',
    cause: 'natural',
    expected: { verdict: 'FALSE_COMPLETE', reason: 'no_contract' },
    policy: null,
    run: (api, kit, entry) => kit.start(api, entry, { model: kit.model([{ text: kit.say.text }]) }),
  }),
  ...each(CALLS, {
    id: 'natural-empty',
    why: 'ends by itself without a word: a green run with nothing in it',
    cause: 'natural',
    expected: { verdict: 'FALSE_COMPLETE', reason: 'empty_output' },
    run: (api, kit, entry) => kit.start(api, entry, { model: kit.model([{}]), ...roomy(api, kit) }),
  }),
  ...each(ALL, {
    id: 'natural-on-last-step',
    why: 'ends by itself on the last allowed step; the limit is never asked, so it is no bound',
    cause: 'natural',
    expected: UNPROVEN,
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: lookThenSay(kit),
        stopWhen: kit.stopWhen({ step_limit: api.isStepCount(2) }),
      }),
  }),
  ...each(CALLS, {
    id: 'natural-structured',
    why: 'ends by itself with an object that fits its schema',
    cause: 'natural',
    expected: UNPROVEN,
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: kit.model([{ text: JSON.stringify({ note: kit.canary }) }]),
        output: api.Output.object({ schema: z.object({ note: z.string() }) }),
      }),
  }),
  ...each(CALLS, {
    id: 'stop-with-calls-goes-on',
    why: 'the finish reason stop beside a call does not end the loop; the next step does',
    cause: 'natural',
    expected: UNPROVEN,
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: kit.model([{ calls: [kit.call('lookup')], finish: 'stop' }, { text: kit.say.text }]),
        ...roomy(api, kit),
      }),
  }),
  ...each(CALLS, {
    id: 'calls-promised',
    why: 'finish reason tool-calls without a single call: the model and the loop disagree',
    cause: 'natural',
    expected: uncertain('finish_mismatch'),
    run: (api, kit, entry) =>
      kit.start(api, entry, { model: kit.model([{ text: kit.say.text, finish: 'tool-calls' }]), ...roomy(api, kit) }),
  }),
];

/** A finish that is none, with text alone and with a call that the SDK then does not run. */
function unclean(finish, of) {
  const text = each(of.entries ?? CALLS, {
    id: of.id ?? `finish-${finish}`,
    ids: of.ids,
    why: `finish reason ${finish} with text: ${of.why}`,
    cause: of.cause,
    expected: of.expected,
    run: (api, kit, entry) =>
      kit.start(api, entry, { model: kit.model([{ text: kit.say.text, finish, ...of.turn }]), ...roomy(api, kit) }),
  });
  const calls = each(of.entries ?? CALLS, {
    id: `${of.id ?? `finish-${finish}`}-with-calls`,
    why: `finish reason ${finish} with a call that is not run: ${of.why}, and no wait`,
    cause: of.cause,
    ...of.withCalls,
    expected: of.withCalls?.expected ?? of.expected,
    run: (api, kit, entry) => {
      const turn = { text: kit.say.text, calls: [kit.call('lookup')], finish, ...of.turn };
      return kit.start(api, entry, { model: kit.model([turn, { text: kit.say.text }]), ...roomy(api, kit) });
    },
  });
  return [...text, ...calls];
}

const cutOff = [
  ...unclean('length', {
    ids: { generateText: 'generate-length-truncated' },
    why: 'the output cap cut it off',
    cause: 'output_cap',
    expected: bounded('output_cap'),
  }),
  ...unclean('content-filter', {
    why: 'a filter of the provider ended it',
    cause: 'content_filter',
    expected: failed('content_filter'),
  }),
  ...unclean('content-filter', {
    id: 'finish-refusal',
    turn: { raw: 'refusal' },
    why: 'the provider says that the model refused',
    cause: 'refusal',
    expected: failed('refusal'),
  }),
  ...unclean('interrupted', {
    why: 'the stream of the provider ended without saying that it was over',
    cause: 'stream_truncated',
    expected: uncertain('stream_truncated'),
  }),
  ...unclean('error', {
    why: 'the provider says that it failed, and generate returns as if nothing had happened',
    cause: 'model_failure',
    expected: failed('model_failure'),
  }),
  ...unclean('other', {
    why: 'the word says nothing',
    cause: 'natural',
    expected: uncertain('finish_unknown'),
    withCalls: { expected: uncertain('pending_tool_calls') },
  }),
  ...unclean('banana', {
    id: 'finish-unknown-word',
    why: 'a word that no version of the SDK knows',
    cause: 'natural',
    expected: uncertain('finish_unknown'),
    withCalls: { expected: uncertain('pending_tool_calls') },
  }),
];

const later = [
  ...each(CALLS, {
    id: 'length-after-work',
    why: 'the output cap cuts off the second step; the first one has done work',
    cause: 'output_cap',
    expected: bounded('output_cap'),
    run: (api, kit, entry) =>
      kit.start(api, entry, { model: lookThenSay(kit, { finish: 'length' }), ...roomy(api, kit) }),
  }),
  ...each(['generateText'], {
    id: 'raw-finish-is-prose',
    why: 'a provider that puts a sentence where its finish reason belongs: the sentence stays out of the receipt',
    cause: 'natural',
    expected: UNPROVEN,
    run: (api, kit, entry) =>
      kit.start(api, entry, { model: lookThenSay(kit, { raw: kit.say.text }), ...roomy(api, kit) }),
  }),
];

export const paths = [...natural, ...cutOff, ...later];
