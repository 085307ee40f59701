// A person must answer first: asked, routed or not, and what the call does that comes back with the answer.
import { ALL, CALLS, each, failed, GENERATE, UNPROVEN, unrouted, waiting } from './each.js';

const ROUTE = { owner: 'team:pay', deadline: '2026-11-28T12:00:00Z', resumeToken: 'thread:77' };
const routed = { watch: () => ({ route: ROUTE }) };
const roomy = (api, kit) => ({ stopWhen: kit.stopWhen({ step_limit: api.isStepCount(8) }) });
const refund = (kit) => kit.call('refund');

const asks =
  (...turns) =>
  (api, kit, entry) =>
    kit.start(api, entry, {
      model: kit.model([...turns.map((turn) => turn(kit)), { text: kit.say.text }]),
      ...roomy(api, kit),
    });
const onlyRefund = (kit) => ({ calls: [refund(kit)] });

const asked = [
  ...each(ALL, {
    id: 'approval-routed',
    why: 'a tool needs approval; the application says who answers, until when, and where it goes on',
    cause: 'approval_pending',
    expected: waiting('tool_call'),
    ...routed,
    run: asks(onlyRefund),
  }),
  ...each(ALL, {
    id: 'approval-unrouted',
    why: 'a tool needs approval and nobody is named to give it',
    cause: 'approval_pending',
    expected: unrouted('owner'),
    run: asks(onlyRefund),
  }),
  ...each(CALLS, {
    id: 'approval-without-deadline',
    why: 'a tool needs approval; an owner is named, a time is not',
    cause: 'approval_pending',
    expected: unrouted('deadline'),
    watch: () => ({ route: { owner: 'team:pay', resumeToken: 'thread:77' } }),
    run: asks(onlyRefund),
  }),
  ...each(CALLS, {
    id: 'approval-without-resume-token',
    why: 'a tool needs approval; nothing names the paused state',
    cause: 'approval_pending',
    expected: unrouted('resume_token'),
    watch: () => ({ route: { owner: 'team:pay', deadline: ROUTE.deadline } }),
    run: asks(onlyRefund),
  }),
  ...each(CALLS, {
    id: 'approval-due-in',
    why: 'the application gives the time to answer as a span from the asking',
    cause: 'approval_pending',
    expected: waiting('tool_call'),
    watch: () => ({ route: () => ({ owner: 'team:pay', dueMs: 7_200_000, resumeToken: 'thread:77' }) }),
    run: asks(onlyRefund),
  }),
  ...each(CALLS, {
    id: 'two-approvals',
    why: 'two calls need approval and both are routed',
    cause: 'approval_pending',
    expected: waiting('tool_call'),
    ...routed,
    run: asks((kit) => ({ calls: [refund(kit), refund(kit)] })),
  }),
  ...each(CALLS, {
    id: 'two-approvals-one-unrouted',
    why: 'two calls need approval and only one of them has somebody to give it',
    cause: 'approval_pending',
    expected: unrouted('owner'),
    watch: () => ({ route: ({ toolCallId }) => (toolCallId === 'call-1' ? ROUTE : undefined) }),
    run: asks((kit) => ({ calls: [refund(kit), refund(kit)] })),
  }),
  ...each(CALLS, {
    id: 'approval-beside-work',
    why: 'one call of the step ran, the other needs approval: the loop waits',
    cause: 'approval_pending',
    expected: waiting('tool_call'),
    ...routed,
    run: asks((kit) => ({ calls: [kit.call('lookup'), refund(kit)] })),
  }),
  ...each(CALLS, {
    id: 'approval-beside-failure',
    why: 'one call of the step failed, the other needs approval: it is the approval that stops the loop',
    cause: 'approval_pending',
    expected: waiting('tool_call'),
    ...routed,
    run: asks((kit) => ({ calls: [kit.call('broken'), refund(kit)] })),
  }),
  ...each(['generateText'], {
    id: 'route-that-throws',
    why: 'the application’s own routing breaks: the run is not harmed, and the wait has no owner',
    cause: 'approval_pending',
    expected: unrouted('owner'),
    watch: (kit) => ({
      route: () => {
        throw kit.say.error('RoutingTrouble');
      },
    }),
    run: asks(onlyRefund),
  }),
  ...each(CALLS, {
    id: 'auto-approved',
    why: 'the application approves by rule: nobody is asked, the tool runs',
    cause: 'natural',
    expected: UNPROVEN,
    run: automatic('approved'),
  }),
  ...each(CALLS, {
    id: 'auto-denied',
    why: 'the application denies by rule: nobody is asked, the loop goes on without the tool',
    cause: 'natural',
    expected: UNPROVEN,
    run: automatic('denied'),
  }),
];

function automatic(status) {
  return (api, kit, entry) =>
    kit.start(api, entry, {
      model: kit.model([onlyRefund(kit), { text: kit.say.text }]),
      toolApproval: { refund: status },
      ...roomy(api, kit),
    });
}

/** Pauses once, answers as a person would, and calls again as the application would. */
async function resume(api, kit, entry, { turns = [onlyRefund], answers, messages, more = {} }) {
  const first = await asks(...turns)(api, kit, entry);
  const conversation = await conversationOf(first, kit);
  const second = await kit.start(api, entry, {
    model: kit.model([{ text: kit.say.text }]),
    messages: [...conversation, ...(messages ?? [{ role: 'tool', content: answers(pendingOf(conversation)) }])],
    ...roomy(api, kit),
    ...kit.stopcause({ runId: kit.runId('2') }),
    ...more,
  });
  return [first, second];
}

async function conversationOf(result, kit) {
  const response = result.facts ? result.facts.response.value : result.response;
  return [{ role: 'user', content: kit.say.prompt }, ...response.messages];
}

const pendingOf = (messages) =>
  messages
    .flatMap((message) => (Array.isArray(message.content) ? message.content : []))
    .filter((part) => part.type === 'tool-approval-request');
const answer = (approved) => (kit) => (requests) =>
  requests.map(({ approvalId }) => ({ type: 'tool-approval-response', approvalId, approved, reason: kit.canary }));
const yes = answer(true);
const no = answer(false);

const answered = [
  ...each(ALL, {
    id: 'resumed-approved',
    why: 'the answer was yes, the call that brings it runs the tool and ends by itself',
    cause: 'natural',
    expected: UNPROVEN,
    judged: (id) => `${id}-2`,
    ...routed,
    run: (api, kit, entry) => resume(api, kit, entry, { answers: yes(kit) }),
  }),
  ...each(CALLS, {
    id: 'paused-then-approved',
    why: 'the run that waited: it was answered and another run went on with it',
    cause: 'approval_pending',
    expected: waiting('answered'),
    ...routed,
    run: (api, kit, entry) => resume(api, kit, entry, { answers: yes(kit) }),
  }),
  ...each(ALL, {
    id: 'resumed-denied',
    why: 'the answer was no, the call that brings it goes on without the tool and ends by itself',
    cause: 'natural',
    expected: { verdict: 'FALSE_COMPLETE', reason: 'denied' },
    judged: (id) => `${id}-2`,
    ...routed,
    run: (api, kit, entry) => resume(api, kit, entry, { answers: no(kit) }),
  }),
  ...each(['generateText'], {
    id: 'paused-then-denied',
    why: 'the run that waited: it was answered with no, and another run went on without the tool',
    cause: 'approval_pending',
    expected: waiting('answered'),
    ...routed,
    run: (api, kit, entry) => resume(api, kit, entry, { answers: no(kit) }),
  }),
  ...each(['generateText'], {
    id: 'resumed-two-decisions',
    why: 'two calls waited: one was approved, one denied, and the run went on',
    cause: 'natural',
    expected: { verdict: 'FALSE_COMPLETE', reason: 'denied' },
    judged: (id) => `${id}-2`,
    ...routed,
    run: (api, kit, entry) =>
      resume(api, kit, entry, {
        turns: [(its) => ({ calls: [refund(its), refund(its)] })],
        answers: ([first, second]) => [...yes(kit)([first]), ...no(kit)([second])],
      }),
  }),
  ...each(CALLS, {
    id: 'resumed-one-of-two',
    why: 'two calls waited and only one is answered: the SDK refuses to go on',
    cause: 'input_rejected',
    expected: failed('input_rejected'),
    judged: (id) => `${id}-2`,
    ...routed,
    run: (api, kit, entry) => resumeCaught(api, kit, entry, ([first]) => yes(kit)([first])),
  }),
  ...each(CALLS, {
    id: 'resumed-unknown-approval',
    why: 'an answer to something that was never asked: the SDK refuses it before the first step',
    cause: 'input_rejected',
    expected: failed('input_rejected'),
    judged: (id) => `${id}-2`,
    ...routed,
    run: (api, kit, entry) => resumeCaught(api, kit, entry, () => yes(kit)([{ approvalId: 'never-asked' }])),
  }),
  ...each(CALLS, {
    id: 'paused-then-unknown-approval',
    why: 'the run that waited: the answer named another approval, so it waits on',
    cause: 'approval_pending',
    expected: waiting('tool_call'),
    ...routed,
    run: (api, kit, entry) => resumeCaught(api, kit, entry, () => yes(kit)([{ approvalId: 'never-asked' }])),
  }),
  ...each(['generateText'], {
    id: 'resumed-and-failed',
    why: 'the answer was yes, the tool that had waited throws, and the model reads the error and ends by itself',
    cause: 'natural',
    expected: UNPROVEN,
    judged: (id) => `${id}-2`,
    ...routed,
    run: (api, kit, entry) =>
      resume(api, kit, entry, {
        answers: yes(kit),
        more: { tools: { ...kit.tools, refund: { ...kit.tools.refund, execute: kit.tools.broken.execute } } },
      }),
  }),
  ...each(GENERATE, {
    id: 'resumed-client-tool',
    why: 'the client ran its tool; the call that brings the result ends by itself',
    cause: 'natural',
    expected: UNPROVEN,
    judged: (id) => `${id}-2`,
    run: resumeClient,
  }),
  ...each(CALLS, {
    id: 'paused-client-tool',
    why: 'the run that waited for the client: its result came and another run went on with it',
    cause: 'external_pending',
    expected: waiting('answered'),
    run: resumeClient,
  }),
];

async function resumeCaught(api, kit, entry, answers) {
  const turns = [(its) => ({ calls: [refund(its), refund(its)] })];
  try {
    return await resume(api, kit, entry, { turns, answers });
  } catch (error) {
    return { thrown: error };
  }
}

function resumeClient(api, kit, entry) {
  const output = { type: 'json', value: { answer: kit.canary } };
  const result = { type: 'tool-result', toolCallId: 'call-1', toolName: 'ask_user', output };
  return resume(api, kit, entry, {
    turns: [(its) => ({ calls: [its.call('ask_user')] })],
    messages: [{ role: 'tool', content: [result] }],
  });
}

export const paths = [...asked, ...answered].map((path) =>
  typeof path.judged === 'function' ? { ...path, judged: path.judged(path.id) } : path,
);
