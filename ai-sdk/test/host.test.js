// Harm to the host that the hook once did, each with the call that showed it. What holds is what the bare SDK does.
import assert from 'node:assert/strict';
import process from 'node:process';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import * as ai from 'ai';
import { costBudget, tokenBudget, watch } from '../src/node.js';
import { scriptedModel } from './support/models.js';
import {
  asBare,
  call,
  comesTo,
  endOf,
  heapKiB,
  loops,
  says,
  stepsOf,
  textOf,
  toolsOf,
  untilCollected,
  watched,
} from './support/regress.js';
import { complaints } from './support/watchful.js';

const bounded = (stopWhen) => ({ model: loops(), tools: toolsOf(), maxRetries: 0, stopWhen });
const ask = (agent) => textOf(agent.generate({ prompt: 'x' }));
const TWO = { gives: 'two' };
const REFUSED = { rejects: 'TypeError' };

describe('what is no stop condition is refused, and the loop never loses its bound', () => {
  const BAD = {
    'a Map': () => new Map([['cap', ai.isStepCount(2)]]),
    'a Set': () => new Set([ai.isStepCount(2)]),
    'an empty object': () => ({}),
    'only Symbol keys': () => ({ [Symbol('cap')]: ai.isStepCount(2) }),
  };
  const entries = {
    generateText: (api, stopWhen) => stepsOf(api.generateText({ ...bounded(stopWhen), prompt: 'x' })),
    streamText: (api, stopWhen) =>
      Array.fromAsync(api.streamText({ ...bounded(stopWhen), prompt: 'x', onError() {} }).fullStream),
    'agent.generate': (api, stopWhen) => stepsOf(new api.ToolLoopAgent(bounded(stopWhen)).generate({ prompt: 'x' })),
  };
  for (const [entry, run] of Object.entries(entries)) {
    for (const [what, make] of Object.entries(BAD)) {
      asBare(`${entry} with ${what}`, REFUSED, (api) => run(api, make()));
      test(`${entry} with ${what}, where nothing is watched`, async (t) => {
        process.env.STOPCAUSE_DISABLED = '1';
        t.after(() => delete process.env.STOPCAUSE_DISABLED);
        assert.deepEqual(await comesTo(() => run(watched(), make())), REFUSED);
      });
    }
  }
  for (const entry of ['generateText', 'streamText'])
    asBare(`${entry} with a name without a condition`, REFUSED, (api) => entries[entry](api, { cap: undefined }));
});

test('a condition whose `then` gives nothing still ends the loop, and is asked once', async () => {
  let asked = 0;
  const answer = {
    // biome-ignore lint/suspicious/noThenProperty: a thenable of a library's is what is tested
    then(resolve) {
      asked += 1;
      queueMicrotask(() => resolve(true));
    },
  };
  const api = watched();
  const ends = comesTo(() => stepsOf(api.generateText({ ...bounded({ rule: () => answer }), prompt: 'x' })));
  assert.deepEqual(await Promise.race([ends, sleep(1000, 'it hangs')]), { gives: 1 });
  assert.equal(asked, 1);
  assert.equal((await api.stopped()).conditions[0].fired, true);
});

describe('a stream that nobody reads is collected, and has its receipt', () => {
  const MANY = 200;
  const given = () => ({ model: says('a b c'), prompt: 'y'.repeat(50_000) + Math.random() });
  const ways = {
    'with an abort signal': (api) => {
      api.streamText({ ...given(), abortSignal: new AbortController().signal });
    },
    'with callbacks that hold the result': (api) => {
      let tokens = 0;
      const onStepEnd = async () => {
        tokens += (await result.usage).totalTokens;
      };
      const stopWhen = () => tokens > 100;
      const result = api.streamText({ ...given(), stopWhen, onStepEnd });
    },
  };
  for (const [how, abandon] of Object.entries(ways)) {
    test(how, async () => {
      const api = watched();
      abandon(api);
      const before = await heapKiB();
      for (let each = 1; each < MANY; each += 1) abandon(api);
      await untilCollected(async () => (await api.records('run.stopped')).length >= MANY - 2);
      const said = new Set((await api.records('run.stopped')).map((one) => `${one.stop_cause} ${one.reason_code}`));
      assert.deepEqual([...said], ['caller_abort stream_unread']);
      const grown = (await heapKiB()) - before;
      assert.ok(grown < 4000, `${grown} KiB more, of ${MANY * 50} that were asked`);
    });
  }
});

describe('what of the application fails behind leaves no rejection, and the call unharmed', () => {
  const fails = "async () => { throw new Error('down'); }";
  const waits = "await api.generateText({ model: callsOnce('refund'), tools, prompt: 'x' });";
  const plain = "await api.generateText({ model: says('ok'), prompt: 'x' });";
  const aborted = `
    const made = api.generateText({ model: scriptedModel([{ hang: 'asked' }]), prompt: 'x',
      abortSignal: AbortSignal.abort() });
    await made.then(() => process.exit(9), () => {});`;
  const scripts = {
    'a route that rejects': `const api = watch(ai, { sink, route: ${fails} }); ${waits}`,
    'a sink whose accept rejects': `const api = watch(ai, { sink: { accept: ${fails}, flush() {} } }); ${plain}`,
    'an abortCause that rejects': `const api = watch(ai, { sink, abortCause: ${fails} }); ${aborted}`,
    'a traceContext that rejects': `const api = watch(ai, { sink, traceContext: ${fails} }); ${plain}`,
    'an observed that rejects': `const api = watch(ai, { sink });
      const stopWhen = condition(() => true, { observed: ${fails} });
      await api.generateText({ model: loops(), tools, prompt: 'x', stopWhen });`,
  };
  for (const [what, script] of Object.entries(scripts)) {
    test(what, async () => {
      const { code, said, complained } = await endOf(`${script} await turns(); console.log('alive');`);
      assert.deepEqual({ code, said }, { code: 0, said: 'alive' }, complained);
    });
  }
});

describe('an agent is what the application made of it', () => {
  asBare('settings that are changed afterwards', { gives: 'one' }, (api) => {
    const settings = { model: says('one') };
    const agent = new api.ToolLoopAgent(settings);
    settings.model = says('two');
    return ask(agent);
  });
  asBare('a subclass that sets this.settings', TWO, (api) => {
    class Own extends api.ToolLoopAgent {
      use(model) {
        this.settings.model = model;
        return this;
      }
    }
    return ask(new Own({ model: says('one') }).use(says('two')));
  });
  asBare('a subclass that overrides prepareCall', TWO, (api) => {
    class Own extends api.ToolLoopAgent {
      async prepareCall(options) {
        return { ...(await super.prepareCall(options)), model: says('two') };
      }
    }
    return ask(new Own({ model: says('one') }));
  });
  asBare('a proxy', TWO, (api) => ask(new Proxy(new api.ToolLoopAgent({ model: says('two') }), {})));
  asBare('an object made from it', TWO, (api) => ask(Object.create(new api.ToolLoopAgent({ model: says('two') }))));
  for (const method of ['generate', 'stream']) {
    asBare(`${method} without its agent rejects`, { rejects: 'TypeError' }, (api) => {
      const { [method]: detached } = new api.ToolLoopAgent({ model: says('one') });
      return detached({ prompt: 'x' });
    });
  }
  test('a base class of the application is constructed once', async () => {
    let made = 0;
    class Own extends ai.ToolLoopAgent {
      constructor(settings) {
        super(settings);
        made += 1;
      }
    }
    const api = watched({}, { ...ai, ToolLoopAgent: Own });
    const agent = new api.ToolLoopAgent({ model: says('one') });
    for (const word of ['one', 'one']) assert.equal(await ask(agent), word);
    assert.equal(made, 1);
    assert.equal((await api.records('run.stopped')).length, 2);
  });
});

describe('options are found where the application keeps them', () => {
  class Options {
    prompt = 'x';
    get model() {
      return says('two');
    }
  }
  const inherited = () => Object.assign(Object.create({ model: says('two'), maxRetries: 0 }), { prompt: 'x' });
  const broken = () => ({
    model: says('two'),
    get prompt() {
      throw new RangeError('x');
    },
  });
  asBare('inherited', TWO, (api) => textOf(api.generateText(inherited())));
  asBare('inherited by a stream', TWO, (api) => textOf(api.streamText(inherited())));
  asBare('getters of a class', TWO, (api) => textOf(api.generateText(new Options())));
  asBare('a getter that throws', { rejects: 'RangeError' }, (api) => api.generateText(broken()));
  asBare('a getter of an agent’s call that throws', { rejects: 'RangeError' }, (api) =>
    new api.ToolLoopAgent({}).generate(broken()),
  );
});

test('a foreign abort signal still aborts beside the hook’s own deadline', async () => {
  class Signal extends EventTarget {
    aborted = false;
    throwIfAborted() {}
  }
  const abortSignal = new Signal();
  const api = watched();
  const model = scriptedModel([{ hang: 'asked' }]);
  const made = comesTo(() => api.generateText({ model, prompt: 'x', abortSignal, stopcause: { deadlineMs: 2000 } }));
  await sleep(10);
  const reason = new DOMException('x', 'AbortError');
  Object.assign(abortSignal, { aborted: true, reason }).dispatchEvent(new Event('abort'));
  assert.deepEqual(await Promise.race([made, sleep(1000, 'it hangs')]), { rejects: 'AbortError' });
  assert.equal((await api.stopped()).stop_cause, 'caller_abort');
});

describe('a stand-in for the SDK, as tests have it', () => {
  test('what it lacks may throw', async () => {
    const get = (target, name) => target[name] ?? assert.fail(`no ${String(name)} in this stand-in`);
    const api = watched({}, new Proxy({ generateText: async () => 'made' }, { get }));
    assert.deepEqual(await comesTo(() => api.generateText({ prompt: 'x' })), { gives: 'made' });
  });
  test('generateText gives a plain value', async () => {
    const api = watched({}, { generateText: () => 'made' });
    assert.deepEqual(await comesTo(() => api.generateText({ prompt: 'x' })), { gives: 'made' });
  });
  test('generateText throws at once, and its run is over', async () => {
    const api = watched({}, { generateText: () => assert.fail('x') });
    assert.deepEqual(await comesTo(() => api.generateText({ prompt: 'x' })), { rejects: 'AssertionError' });
    assert.equal((await api.records('run.stopped')).length, 1);
  });
});

describe('runs that start runs', () => {
  /** KiB in use at the end of a chain, inside its last run. */
  const chain = (api, many) =>
    new Promise((resolve, reject) => {
      const next = (left) => {
        const tools = toolsOf({ lookup: async () => void setTimeout(next, 0, left - 1) });
        const model = scriptedModel([{ calls: [call('lookup')] }, { text: 'x' }]);
        if (left === 0) resolve(heapKiB());
        else api.generateText({ model, tools, stopWhen: ai.isStepCount(3), prompt: 'x' }).catch(reject);
      };
      next(many);
    });
  test('a long chain of them does not grow', async () => {
    const api = watch(ai, { agent: 'ticket-agent', sink: { accept() {}, flush() {} }, nested: true });
    const before = await chain(api, 200);
    const grown = (await chain(api, 1000)) - before;
    assert.ok(grown < 900, `${grown} KiB more after 1000 runs`);
  });
  test('one that starts after its parent stopped is not its child', async () => {
    const api = watched({ nested: true });
    const child = (runId) => api.generateText({ model: says('x'), prompt: 'x', stopcause: { runId } });
    const { promise, resolve } = Promise.withResolvers();
    const lookup = async () => {
      setTimeout(() => resolve(child('late')), 50);
      await child('early');
    };
    const model = scriptedModel([{ calls: [call('lookup')] }, { text: 'x' }]);
    const more = { prompt: 'x', stopcause: { runId: 'parent' } };
    await api.generateText({ model, tools: toolsOf({ lookup }), stopWhen: ai.isStepCount(3), ...more });
    await promise;
    const parents = (await api.records('run.stopped')).map((one) => [one.run_id, one.parent_run_id]);
    assert.deepEqual(Object.fromEntries(parents), { early: 'parent', parent: undefined, late: undefined });
  });
});

test('conditions that another hook has wrapped are still known', async () => {
  const inner = watched();
  const outer = watched({}, inner);
  await outer.generateText({ ...bounded({ cap: ai.isStepCount(2) }), prompt: 'x' });
  await new outer.ToolLoopAgent(bounded([ai.isStepCount(2)])).generate({ prompt: 'x' });
  const receipts = [...(await inner.records('run.stopped')), ...(await outer.records('run.stopped'))];
  assert.equal(receipts.filter((one) => one.stop_cause === 'step_limit').length, 4);
});

describe('what can have no effect is said, once', () => {
  const saidOf = (pattern) => complaints().filter((one) => pattern.test(one)).length;
  test('a path in place of a sink', async () => {
    for (let round = 0; round < 2; round += 1) {
      const api = watch(ai, { sink: 'x.ndjson' });
      assert.equal(await textOf(api.generateText({ model: says('two'), prompt: 'x' })), 'two');
      await api.flush();
    }
    assert.equal(saidOf(/fileSink\(path\)/), 1);
  });
  test('options that there are not', async () => {
    for (let round = 0; round < 2; round += 1) {
      const api = watched({ agnet: 'x' });
      await api.generateText({ model: says('x'), prompt: 'x', stopcause: { threadID: 'x' } });
      await ask(new api.ToolLoopAgent({ model: says('x'), stopcause: { lables: {} } }));
    }
    for (const name of [/\bagnet\b/, /\bthreadID\b/, /\blables\b/]) assert.equal(saidOf(name), 1, String(name));
  });
  test('budgets that are no numbers', () => {
    for (let round = 0; round < 2; round += 1) [tokenBudget(Number.NaN), costBudget(undefined, () => 1)];
    assert.deepEqual([saidOf(/tokenBudget/), saidOf(/costBudget/)], [1, 1]);
  });
});
