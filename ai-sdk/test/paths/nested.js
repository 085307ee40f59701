// A tool that runs an agent of its own: another run, whose parent is this one.
import { each, failed, UNPROVEN, unrouted } from './each.js';

const roomy = (api, kit, limit = 8) => ({ stopWhen: kit.stopWhen({ step_limit: api.isStepCount(limit) }) });
const ENTRIES = ['generateText', 'streamText', 'agent.generate'];

/** A run whose first step calls `helper`, which runs a child with this script; then it ends by itself. */
const nests =
  (childScript, { limit = 8, parentLimit = 8, streamed = false } = {}) =>
  (api, kit, entry) => {
    const child = new api.ToolLoopAgent({
      model: kit.model(childScript(kit), 'scripted-child'),
      tools: kit.tools,
      maxRetries: 0,
      ...roomy(api, kit, limit),
    });
    const prompt = `look it up ${kit.canary}`;
    const generate = async ({ abortSignal }) => (await child.generate({ prompt, abortSignal })).text || kit.canary;
    const stream = async ({ abortSignal }) => (await child.stream({ prompt, abortSignal })).text;
    const execute = (_input, options) => (streamed ? stream(options) : generate(options));
    return kit.start(api, entry, {
      model: kit.model([{ calls: [kit.call('helper')] }, { text: kit.say.text }]),
      tools: { ...kit.tools, helper: { ...kit.tools.lookup, execute } },
      ...roomy(api, kit, parentLimit),
    });
  };
const looks = (kit) => [{ calls: [kit.call('lookup')] }, { calls: [kit.call('lookup')] }, { text: kit.say.text }];

const nested = () => ({ nested: true }); // Node 22 keeps async context only when asked

export const paths = [
  ...each(ENTRIES, {
    id: 'nested',
    why: 'a tool runs an agent; both end by themselves',
    cause: 'natural',
    expected: UNPROVEN,
    watch: nested,
    run: nests(looks),
  }),
  ...each(['generateText'], {
    id: 'nested-stream',
    why: 'a tool runs an agent and waits for its stream; both end by themselves',
    cause: 'natural',
    expected: UNPROVEN,
    watch: nested,
    run: nests(looks, { streamed: true }),
  }),
  ...each(['generateText', 'streamText'], {
    id: 'nested-step-limit',
    why: 'a tool runs an agent that its step limit stops; the parent ends by itself',
    cause: 'natural',
    expected: UNPROVEN,
    watch: nested,
    run: nests(looks, { limit: 1 }),
  }),
  ...each(['generateText', 'streamText'], {
    id: 'nested-waiting',
    why: 'a tool runs an agent that needs approval; the parent ends by itself while its child waits',
    cause: 'natural',
    expected: unrouted('owner'),
    watch: nested,
    run: nests((kit) => [{ calls: [kit.call('refund')] }]),
  }),
  ...each(['generateText', 'streamText'], {
    id: 'nested-failed',
    why: 'a tool runs an agent that fails; the parent reads the error and ends by itself',
    cause: 'natural',
    expected: UNPROVEN,
    watch: nested,
    run: nests((kit) => [{ fail: kit.say.error('ChildTrouble') }]),
  }),
  ...each(['generateText'], {
    id: 'nested-failed-at-the-limit',
    why: 'a tool runs an agent that fails in the parent’s last allowed step',
    cause: 'tool_failure',
    expected: failed('tool_failure'),
    watch: nested,
    run: nests((kit) => [{ fail: kit.say.error('ChildTrouble') }], { parentLimit: 1 }),
  }),
  ...each(['generateText'], {
    id: 'nested-left-open',
    why: 'a tool starts an agent and does not wait for it: the parent ends before its child',
    cause: 'natural',
    expected: { verdict: 'FALSE_COMPLETE', reason: 'open_children' },
    watch: nested,
    run: (api, kit, entry) => {
      const child = new api.ToolLoopAgent({ model: kit.model([{ hang: 'asked' }], 'scripted-child'), maxRetries: 0 });
      const abort = new AbortController();
      let left;
      const execute = async () => {
        left = child.generate({ prompt: kit.say.prompt, abortSignal: abort.signal }).catch((error) => error.name);
        await kit.tick();
        return kit.canary;
      };
      const tools = { helper: { ...kit.tools.lookup, execute } };
      const model = kit.model([{ calls: [kit.call('helper')] }, { text: kit.say.text }]);
      return kit.start(api, entry, { model, tools, ...roomy(api, kit) }).finally(() => {
        abort.abort();
        return left;
      });
    },
  }),
];
