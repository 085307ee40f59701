// Tools: the one that says done, the one that the client runs, the one that fails, the one that does not exist.
import { ALL, bounded, CALLS, each, failed, seen, UNPROVEN, unrouted, VERIFIED, waiting } from './each.js';

const model = (kit, ...turns) => kit.model([...turns, { text: kit.say.text }, { text: kit.say.text }]);
const stopAt = (api, kit, limit, more = {}) => ({
  stopWhen: kit.stopWhen({ step_limit: api.isStepCount(limit), ...more }),
});
const doneAt = (api, kit, name) => stopAt(api, kit, 8, { done: api.hasToolCall(name) });
const DONE = [
  { name: 'step_limit', kind: 'steps', limit: 8 },
  { name: 'done', kind: 'tool_call', tools: ['done'] },
];

const done = [
  ...each(ALL, {
    id: 'done-without-outcome',
    why: 'the done tool ran and its condition fired; nobody says that the ticket is updated',
    cause: 'explicit_done',
    expected: UNPROVEN,
    history: DONE,
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: model(kit, { calls: [kit.call('lookup')] }, { calls: [kit.call('done')] }),
        ...doneAt(api, kit, 'done'),
      }),
  }),
  ...each(CALLS, {
    id: 'done-with-outcome',
    why: 'the done tool ran and its condition fired; the destination says that the ticket is updated',
    cause: 'explicit_done',
    expected: VERIFIED,
    outcome: seen,
    history: DONE,
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: model(kit, { calls: [kit.call('lookup')] }, { calls: [kit.call('done')] }),
        ...doneAt(api, kit, 'done'),
      }),
  }),
  ...each(ALL, {
    id: 'done-unexecuted',
    why: 'a done tool without execute ends the loop before its condition is asked',
    cause: 'explicit_done',
    expected: UNPROVEN,
    run: (api, kit, entry) =>
      kit.start(api, entry, { model: model(kit, { calls: [kit.call('submit')] }), ...doneAt(api, kit, 'submit') }),
  }),
  ...each(CALLS, {
    id: 'done-declared',
    why: 'no condition names it, but the application says that submit means done',
    cause: 'explicit_done',
    expected: UNPROVEN,
    watch: () => ({ doneTools: ['submit'] }),
    run: (api, kit, entry) =>
      kit.start(api, entry, { model: model(kit, { calls: [kit.call('submit')] }), ...stopAt(api, kit, 8) }),
  }),
  ...each(CALLS, {
    id: 'done-with-executed-sibling',
    why: 'a step with an executed tool and a done tool without execute',
    cause: 'explicit_done',
    expected: UNPROVEN,
    watch: () => ({ doneTools: ['submit'] }),
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: model(kit, { calls: [kit.call('lookup'), kit.call('submit')] }),
        ...stopAt(api, kit, 8),
      }),
  }),
  ...each(CALLS, {
    id: 'done-invalid',
    why: 'the done call has arguments that do not fit: its condition fires all the same, and nothing is done',
    cause: 'malformed_call',
    expected: failed('malformed_call'),
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: model(kit, { calls: [kit.call('done', { wrong: kit.canary })] }),
        ...doneAt(api, kit, 'done'),
      }),
  }),
  ...each(CALLS, {
    id: 'done-failing',
    why: 'the done tool throws: its condition fires all the same, and nothing is done',
    cause: 'tool_failure',
    expected: failed('tool_failure'),
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: model(kit, { calls: [kit.call('broken')] }),
        ...doneAt(api, kit, 'broken'),
      }),
  }),
  ...each(CALLS, {
    id: 'done-beside-failure',
    why: 'the done tool succeeds while its sibling fails in the same step: it said done, and that is why it stopped',
    cause: 'explicit_done',
    expected: UNPROVEN,
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: model(kit, { calls: [kit.call('broken'), kit.call('done')] }),
        ...doneAt(api, kit, 'done'),
      }),
  }),
];

const ROUTE = { owner: 'team:desk', deadline: '2026-11-28T12:00:00Z', resumeToken: 'thread:77' };

const client = [
  ...each(ALL, {
    id: 'client-tool',
    why: 'a tool that the client runs: the loop waits for its result, and nobody is named',
    cause: 'external_pending',
    expected: unrouted('owner'),
    run: (api, kit, entry) =>
      kit.start(api, entry, { model: model(kit, { calls: [kit.call('ask_user')] }), ...stopAt(api, kit, 8) }),
  }),
  ...each(CALLS, {
    id: 'client-tool-routed',
    why: 'a tool that the client runs, with owner, deadline and a name for the paused state',
    cause: 'external_pending',
    expected: waiting('external'),
    watch: () => ({ route: ROUTE }),
    run: (api, kit, entry) =>
      kit.start(api, entry, { model: model(kit, { calls: [kit.call('ask_user')] }), ...stopAt(api, kit, 8) }),
  }),
  ...each(['generateText'], {
    id: 'client-tool-mixed',
    why: 'an executed tool and one for the client in one step: the loop waits',
    cause: 'external_pending',
    expected: unrouted('owner'),
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: model(kit, { calls: [kit.call('lookup'), kit.call('ask_user')] }),
        ...stopAt(api, kit, 8),
      }),
  }),
];

const errors = [
  ...each(ALL, {
    id: 'tool-error-recovered',
    why: 'a tool throws, the model reads the error and goes on: no failure of the run',
    cause: 'natural',
    expected: UNPROVEN,
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: model(kit, { calls: [kit.call('broken')] }, { calls: [kit.call('lookup')] }),
        ...stopAt(api, kit, 8),
      }),
  }),
  ...each(ALL, {
    id: 'tool-error',
    why: 'a tool throws in the last allowed step: nobody reads the error any more',
    cause: 'tool_failure',
    expected: failed('tool_failure'),
    run: (api, kit, entry) =>
      kit.start(api, entry, { model: model(kit, { calls: [kit.call('broken')] }), ...stopAt(api, kit, 1) }),
  }),
  ...each(CALLS, {
    id: 'unknown-tool-recovered',
    why: 'the model calls a tool that does not exist, is told so, and goes on',
    cause: 'natural',
    expected: UNPROVEN,
    run: (api, kit, entry) =>
      kit.start(api, entry, { model: model(kit, { calls: [kit.call('no_such_tool')] }), ...stopAt(api, kit, 8) }),
  }),
  ...each(CALLS, {
    id: 'unknown-tool-at-the-limit',
    why: 'the model calls a tool that does not exist in the last allowed step',
    cause: 'malformed_call',
    expected: failed('malformed_call'),
    run: (api, kit, entry) =>
      kit.start(api, entry, { model: model(kit, { calls: [kit.call('no_such_tool')] }), ...stopAt(api, kit, 1) }),
  }),
  ...each(CALLS, {
    id: 'invalid-arguments-recovered',
    why: 'arguments that are no JSON: the model is told so, and goes on',
    cause: 'natural',
    expected: UNPROVEN,
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: model(kit, { calls: [kit.call('lookup', `{ broken ${kit.canary}`)] }),
        ...stopAt(api, kit, 8),
      }),
  }),
  ...each(['generateText'], {
    id: 'provider-tool',
    why: 'a call that the provider ran itself is no call of the client',
    cause: 'natural',
    expected: UNPROVEN,
    run: (api, kit, entry) => kit.start(api, entry, { model: kit.model([providerCall(kit)]), ...stopAt(api, kit, 8) }),
  }),
  ...each(CALLS, {
    id: 'huge-tool-name',
    why: 'a tool name of a megabyte, which does not exist: it costs nothing and appears nowhere',
    cause: 'natural',
    expected: UNPROVEN,
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: model(kit, { calls: [kit.call('x'.repeat(1_000_000))] }),
        ...stopAt(api, kit, 8),
      }),
  }),
  ...each(CALLS, {
    id: 'tool-timeout-recovered',
    why: 'toolMs ends one tool; the loop goes on and ends by itself',
    cause: 'natural',
    expected: UNPROVEN,
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: model(kit, { calls: [kit.call('slow')] }),
        timeout: { toolMs: 20 },
        ...stopAt(api, kit, 8),
      }),
  }),
  ...each(CALLS, {
    id: 'tool-timeout-at-the-limit',
    why: 'toolMs ends one tool in the last allowed step: the tool failed, the run had time',
    cause: 'tool_failure',
    expected: failed('tool_failure'),
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: model(kit, { calls: [kit.call('slow')] }),
        timeout: { toolMs: 20 },
        ...stopAt(api, kit, 1),
      }),
  }),
  ...each(['generateText'], {
    id: 'deaf-tool',
    why: 'a tool that ignores its time-out and answers late: its answer counts',
    cause: 'step_limit',
    expected: bounded('step_limit'),
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: model(kit, { calls: [kit.call('deaf')] }),
        timeout: { toolMs: 5 },
        ...stopAt(api, kit, 1),
      }),
  }),
];

function providerCall(kit) {
  const id = 'call-p';
  const call = kit.call('web_search', { query: kit.canary }, { id, extra: { providerExecuted: true, dynamic: true } });
  const result = {
    type: 'tool-result',
    toolCallId: id,
    toolName: 'web_search',
    result: { found: kit.canary },
    dynamic: true,
  };
  return { calls: [call], parts: [result], text: kit.say.text, finish: 'stop' };
}

export const paths = [...done, ...client, ...errors];
