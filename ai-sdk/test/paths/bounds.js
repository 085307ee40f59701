// A stop condition ends the loop: by steps, tokens, cost, a done tool or the application's own rule; alone or together.
import { ALL, bounded, CALLS, each, GENERATE, stuck, UNPROVEN, uncertain } from './each.js';

const looks = (kit, times = 9) => kit.model(Array.from({ length: times }, () => ({ calls: [kit.call('lookup')] })));
const stops = (map) => (api, kit, entry) =>
  kit.start(api, entry, { model: looks(kit), stopWhen: kit.stopWhen(map(api, kit)) });
const steps = (limit) => ({ name: 'step_limit', kind: 'steps', limit });
const tokens = (limit) => ({ name: 'tokens', kind: 'tokens', limit });

const one = [
  ...each(ALL, {
    id: 'step-limit',
    why: 'the model would go on; the limit of four steps stops it',
    cause: 'step_limit',
    expected: bounded('step_limit'),
    history: [steps(4)],
    run: stops((api) => ({ step_limit: api.isStepCount(4) })),
  }),
  ...each(ALL, {
    id: 'token-budget',
    why: 'the model would go on; the budget of 30 tokens is used after two steps of 15',
    cause: 'token_budget',
    expected: bounded('token_budget'),
    history: [tokens(30)],
    run: stops((_api, kit) => ({ tokens: kit.tokenBudget(30) })),
  }),
  ...each(CALLS, {
    id: 'cost-budget',
    why: 'the model would go on; three steps of half a dollar reach the budget of 1.25',
    cause: 'cost_budget',
    expected: bounded('cost_budget'),
    run: stops((_api, kit) => ({ cost: kit.costBudget(1.25, () => 0.5) })),
  }),
];

const together = [
  ...each(CALLS, {
    id: 'two-conditions',
    why: 'budget and step limit are reached in one step: both are recorded, the first one named is the cause',
    cause: 'token_budget',
    expected: bounded('token_budget'),
    history: [tokens(30), steps(2)],
    run: stops((api, kit) => ({ tokens: kit.tokenBudget(30), step_limit: api.isStepCount(2) })),
  }),
  ...each(CALLS, {
    id: 'done-at-the-limit',
    why: 'the done tool is called on the last allowed step: it is done, not cut off',
    cause: 'explicit_done',
    expected: UNPROVEN,
    history: [steps(2), { name: 'done', kind: 'tool_call', tools: ['done'] }],
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: kit.model([{ calls: [kit.call('lookup')] }, { calls: [kit.call('done')] }]),
        stopWhen: kit.stopWhen({ step_limit: api.isStepCount(2), done: api.hasToolCall('done') }),
      }),
  }),
  ...each(['generateText'], {
    id: 'conditions-in-a-list',
    why: 'conditions without names, as the SDK takes them: which one fired is known all the same',
    cause: 'step_limit',
    expected: bounded('step_limit'),
    run: (api, kit, entry) =>
      kit.start(api, entry, { model: looks(kit), stopWhen: [api.hasToolCall('done'), api.isStepCount(3)] }),
  }),
  ...each(['agent.generate'], {
    id: 'condition-alone',
    why: 'one condition without a list around it',
    cause: 'step_limit',
    expected: bounded('step_limit'),
    run: (api, kit, entry) => kit.start(api, entry, { model: looks(kit), stopWhen: api.isStepCount(2) }),
  }),
];

const custom = [
  ...each(CALLS, {
    id: 'custom-condition',
    why: 'a rule of the application stops it, and nothing says what the rule means',
    cause: 'unknown',
    expected: uncertain('cause_missing'),
    run: stops(() => ({ enough: ({ steps: done }) => done.length === 2 })),
  }),
  ...each(CALLS, {
    id: 'custom-condition-async',
    why: 'the same with a promise for an answer',
    cause: 'unknown',
    expected: uncertain('cause_missing'),
    run: stops(() => ({ enough: async ({ steps: done }) => done.length === 2 })),
  }),
  ...each(['generateText'], {
    id: 'custom-guardrail',
    why: 'a rule of the application that says it is a guardrail',
    cause: 'guardrail',
    expected: bounded('guardrail'),
    run: stops((_api, kit) => ({
      no_refunds: kit.condition(({ steps: done }) => done.length === 2, { kind: 'custom', cause: 'guardrail' }),
    })),
  }),
  ...each(['streamText'], {
    id: 'custom-loop-guard',
    why: 'a rule of the application that saw the model repeat itself',
    cause: 'loop_guard',
    expected: stuck('loop_guard'),
    run: stops((_api, kit) => ({
      same_call: kit.condition(({ steps: done }) => done.length === 3, { kind: 'custom', cause: 'loop_guard' }),
    })),
  }),
];

const none = [
  ...each(CALLS, {
    id: 'no-condition',
    why: 'no stop condition given: the SDK stops after its own default of one step',
    cause: 'step_limit',
    expected: bounded('step_limit'),
    run: (api, kit, entry) => kit.start(api, entry, { model: looks(kit) }),
  }),
  ...each(['agent.generate', 'agent.stream'], {
    id: 'no-condition',
    why: 'no stop condition given: an agent stops after its own default of twenty steps',
    cause: 'step_limit',
    expected: bounded('step_limit'),
    run: (api, kit, entry) => kit.start(api, entry, { model: looks(kit, 21) }),
  }),
  ...each(CALLS, {
    id: 'no-condition-natural',
    why: 'no stop condition given and none needed: one answer and it is over',
    cause: 'natural',
    expected: UNPROVEN,
    run: (api, kit, entry) => kit.start(api, entry, { model: kit.model([{ text: kit.say.text }]) }),
  }),
  ...each(CALLS, {
    id: 'step-count-zero',
    why: 'a limit of zero steps never fires: the loop is not bounded, and ends by itself',
    cause: 'natural',
    expected: UNPROVEN,
    history: [{ name: 'step_limit', kind: 'steps', limit: 0 }],
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: kit.model([{ calls: [kit.call('lookup')] }, { calls: [kit.call('lookup')] }, { text: kit.say.text }]),
        stopWhen: kit.stopWhen({ step_limit: api.isStepCount(0) }),
      }),
  }),
  ...each(GENERATE, {
    id: 'bound-taken-away',
    why: 'isLoopFinished takes the bound away; the loop ends by itself',
    cause: 'natural',
    expected: UNPROVEN,
    run: (api, kit, entry) =>
      kit.start(api, entry, {
        model: kit.model([
          ...Array.from({ length: 3 }, () => ({ calls: [kit.call('lookup')] })),
          { text: kit.say.text },
        ]),
        stopWhen: kit.stopWhen({ open_end: api.isLoopFinished() }),
      }),
  }),
];

const replaced = ['agent.generate', 'agent.stream'].flatMap((entry) =>
  each([entry], {
    id: 'prepare-call-replaces-conditions',
    why: 'prepareCall puts other stop conditions in the place of the agent’s: those are the ones that fire',
    cause: 'step_limit',
    expected: bounded('step_limit'),
    run: (api, kit) =>
      kit.start(api, entry, {
        model: looks(kit),
        stopWhen: kit.stopWhen({ step_limit: api.isStepCount(9) }),
        prepareCall: (call) => ({ ...call, stopWhen: kit.stopWhen({ shorter: api.isStepCount(2) }) }),
      }),
  }),
);

export const paths = [...one, ...together, ...custom, ...none, ...replaced];
