// Receipts that once said something else than what happened, each with the call that showed it.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import * as ai from 'ai';
import { condition, costBudget } from '../src/node.js';
import { inFolder, recordsIn } from './support/folder.js';
import { scriptedModel } from './support/models.js';
import { call, callsOnce, classified, endOf, loops, receiptOf, says, toolsOf, watched } from './support/regress.js';
import './support/watchful.js';

const user = { role: 'user', content: 'x' };
const route = { owner: 'team:pay', dueMs: 60_000, resumeToken: 'r' };
const response = (approvalId) => ({ type: 'tool-approval-response', approvalId, approved: true });
const result = (toolCallId, toolName) => ({
  type: 'tool-result',
  toolCallId,
  toolName,
  output: { type: 'text', value: 'x' },
});
const tool = (...content) => ({ role: 'tool', content });

/** A run that waits for a person, and how it is answered. */
async function waiting(api, runId = 'waits') {
  const given = { tools: toolsOf(), messages: [user], stopcause: { runId } };
  const made = await api.generateText({ ...given, model: callsOnce('refund') });
  const { approvalId, toolCall } = made.content.find((part) => part.type === 'tool-approval-request');
  return { approvalId, toolCallId: toolCall.toolCallId, messages: [user, ...made.responseMessages] };
}

/** Another call, which may fail, with these messages. */
const answers = (api, messages, stopcause) =>
  api.generateText({ model: says('x'), tools: toolsOf(), messages, stopcause }).catch((error) => error.name);

describe('a decision is one that the SDK took', () => {
  test('a foreign approval leaves nothing on the run that waits', async () => {
    const api = watched({ route });
    const { approvalId } = await waiting(api);
    assert.match(await answers(api, [user, tool(response(approvalId))]), /^AI_/);
    assert.deepEqual(await api.records('approval.updated'), []);
  });
  test('a made-up approval leaves nothing on the run that is resumed', async () => {
    const api = watched({ route });
    await waiting(api);
    assert.match(await answers(api, [user, tool(response('made-up'))], { resumes: 'waits' }), /^AI_/);
    assert.deepEqual(await api.records('approval.updated'), []);
  });
  test('20,000 made-up ones are not 20,000 records, nor one long one', async () => {
    const api = watched();
    const parts = Array.from({ length: 20_000 }, (_, index) => response(`made-up-${index}`));
    await answers(api, [user, tool(...parts)], { resumes: 'waits' });
    const records = await api.records();
    assert.ok(records.length <= 4, `${records.length} records`);
    assert.ok(records.every((record) => (record.answers?.length ?? 0) <= 100));
    assert.equal(api.stats().faults, 0);
  });
  test('one whose result stands beside it was taken before', async () => {
    const api = watched({ route });
    const { approvalId, toolCallId, messages } = await waiting(api);
    await answers(api, [...messages, tool(response(approvalId), result(toolCallId, 'refund'))]);
    assert.deepEqual(await api.records('approval.updated'), []);
    assert.equal((await api.stopped()).answers, undefined);
  });
  test('one that the SDK took stands on the run that waited, outside of the order of the other', async () => {
    const api = watched({ route });
    const { approvalId, messages } = await waiting(api);
    await answers(api, [...messages, tool(response(approvalId))], { runId: 'resumed' });
    const updates = await api.records('approval.updated');
    assert.deepEqual(
      updates.map((one) => [one.run_id, one.seq, one.approval.executed]),
      [
        ['waits', undefined, undefined],
        ['waits', undefined, true],
      ],
    );
    const own = (await api.records()).filter((one) => one.run_id === 'resumed').map((one) => one.seq);
    assert.deepEqual(own, [1, 2]);
  });
});

test('a tool call that two runs wait for by one id links to neither', async () => {
  const api = watched({ route });
  const asks = () => scriptedModel([{ calls: [call('ask_user', { id: 'ask_user:0' })] }]);
  const ask = (runId) => api.generateText({ model: asks(), tools: toolsOf(), messages: [user], stopcause: { runId } });
  const { responseMessages } = await ask('one');
  await ask('two');
  await answers(api, [user, ...responseMessages, tool(result('ask_user:0', 'ask_user'))], { runId: 'resumed' });
  const { resumes_run_id, findings } = await api.stopped();
  assert.deepEqual([resumes_run_id, findings], [undefined, [{ code: 'resumed_run_unknown' }]]);
});

describe('what the application says cannot cost a receipt', () => {
  test('a route whose getter throws', async () => {
    const odd = () => ({
      get owner() {
        throw new Error('x');
      },
    });
    const receipt = await receiptOf({ model: callsOnce('refund') }, { route: odd });
    assert.equal(receipt.stop_cause, 'approval_pending');
    assert.equal(receipt.approvals[0].state, 'requested');
  });
  inFolder('a condition with prose for its kind and cause', async (folder) => {
    const api = watched();
    const rule = condition(() => true, { kind: 'prose of somebody', cause: 'prose; of somebody' });
    await api.generateText({ model: loops(), tools: toolsOf(), prompt: 'x', stopWhen: { rule } });
    const [{ kind, fired }] = (await api.stopped()).conditions;
    assert.deepEqual([kind, fired, (await api.stopped()).stop_cause], ['custom', true, 'unknown']);
    const path = join(folder, 'receipts.ndjson');
    await writeFile(path, (await api.records()).map((record) => `${JSON.stringify(record)}\n`).join(''));
    const { code, complained, verdicts } = await classified(path);
    assert.deepEqual([code, verdicts.length], [0, 1], complained);
  });
  for (const leaseS of [5, 0]) {
    test(`a lease of ${leaseS} s is left out`, async () => {
      const api = watched({ leaseS });
      await api.generateText({ model: says('x'), prompt: 'x' });
      const [{ lease_s, findings }] = await api.records('run.started');
      assert.deepEqual([lease_s, findings], [300, [{ code: 'option_dropped', where: 'leaseS' }]]);
    });
  }
  const twoRuns = {
    watch: async () => {
      const api = watched({ runId: 'fixed' });
      for (const prompt of ['x', 'y']) await api.generateText({ model: says('x'), prompt });
      return api;
    },
    'an agent': async () => {
      const api = watched();
      const agent = new api.ToolLoopAgent({ model: says('x'), stopcause: { runId: 'fixed' } });
      for (const prompt of ['x', 'y']) await agent.generate({ prompt });
      return api;
    },
  };
  for (const [whose, run] of Object.entries(twoRuns)) {
    test(`a run id for all runs of ${whose} is left out`, async () => {
      const receipts = await (await run()).records('run.stopped');
      assert.equal(new Set([...receipts.map((one) => one.run_id), 'fixed']).size, 3);
      for (const one of receipts) assert.deepEqual(one.findings?.[0], { code: 'option_dropped', where: 'runId' });
    });
  }
});

const throws = (error) => async () => Promise.reject(error);
const judge = throws(new ai.APICallError({ message: 'x', url: 'u', requestBodyValues: {}, statusCode: 503 }));
const timedOut = new DOMException('x', 'TimeoutError');
const oneStep = { step_limit: ai.isStepCount(1) };
const needsApproval = throws(new TypeError('fetch failed'));
const slowTools = toolsOf({ lookup: throws(timedOut) });
const refundTools = { ...toolsOf(), refund: { ...toolsOf().refund, needsApproval } };

/** name -> [call, stop cause, options of watch] */
const CAUSES = {
  'a condition rejects with an error of a provider': [{ model: loops(), stopWhen: { judge } }, 'host_error'],
  'the application’s guard and the step limit fire': [
    { model: loops(), stopWhen: { cap: ai.isStepCount(1), guard: condition(() => true, { cause: 'loop_guard' }) } },
    'loop_guard',
  ],
  'the done call was denied': [
    { model: callsOnce('done'), toolApproval: { done: 'denied' }, stopWhen: { done: ai.hasToolCall('done') } },
    'approval_denied',
  ],
  'a condition looks for a tool that does not mean done': [
    { model: loops(), stopWhen: { saw: ai.hasToolCall('lookup') } },
    'unknown',
    { doneTools: ['submit'] },
  ],
};

describe('why it stopped', () => {
  for (const [what, [given, cause, options]] of Object.entries(CAUSES)) {
    test(`${what}: ${cause}`, async () => assert.equal((await receiptOf(given, options)).stop_cause, cause));
  }
  test('a failed call beside a good one does not name the run, and is counted', async () => {
    const receipt = await receiptOf({ model: callsOnce('lookup', 'broken'), stopWhen: oneStep });
    const { stop_cause, tool_errors, error } = receipt;
    assert.deepEqual([stop_cause, tool_errors, error], ['step_limit', { terminal: 1, recovered: 0 }, undefined]);
  });
  test('a time-out of a tool’s own is not one of the SDK’s, which had time', async () => {
    for (const timeout of [{ stepMs: 60_000 }, { toolMs: 60_000 }, 60_000]) {
      const receipt = await receiptOf({ model: loops(), tools: slowTools, stopWhen: oneStep, timeout });
      assert.equal(receipt.stop_cause, 'tool_failure', JSON.stringify(timeout));
    }
  });
  test('an error of needsApproval is the application’s; the same of the provider is the model’s', async () => {
    const own = await receiptOf({ model: callsOnce('refund'), tools: refundTools });
    const provider = await receiptOf({ model: scriptedModel([{ fail: new TypeError('fetch failed') }]) });
    assert.deepEqual([own.stop_cause, provider.stop_cause], ['host_error', 'model_failure']);
  });
});

test('a budget counts the cost of the last step too, though it is not asked about it', async () => {
  const model = scriptedModel([{ calls: [call('lookup')] }, { text: 'x' }]);
  const receipt = await receiptOf({ model, stopWhen: { cost: costBudget(10, () => 1) } });
  assert.equal(receipt.stop_cause, 'natural');
  assert.equal(receipt.usage.cost_usd, 2);
  assert.equal(receipt.conditions[0].observed, 2);
});

describe('words of the model and of the provider stay out', () => {
  for (const name of ['mail_alice@example.com', 'Alice_Smith']) {
    test(`a tool that there is not: ${name}`, async () => {
      const receipt = await receiptOf({ model: callsOnce(name), stopWhen: oneStep });
      assert.equal(receipt.stop_cause, 'malformed_call');
      assert.equal(receipt.error.tool, undefined);
      assert.ok(!JSON.stringify(receipt).includes(name));
    });
  }
  test('a code that looks like an address', async () => {
    const fail = Object.assign(new Error('x'), { code: 'alice@example.com' });
    const { error } = await receiptOf({ model: scriptedModel([{ fail }]) });
    assert.deepEqual(error, { type: 'Error', chain: ['Error'] });
  });
  test('a finish reason that looks like one', async () => {
    const { finish_reason } = await receiptOf({ model: scriptedModel([{ text: 'x', raw: 'alice@example.com' }]) });
    assert.deepEqual(finish_reason, { normalized: 'stop', source: 'provider' });
  });
});

describe('a process that ends in the middle of a run', () => {
  const ends = {
    'process.exit(3)': ['process.exit(3)', 3],
    'an error that nobody caught': ["setTimeout(() => { throw new Error('x'); }, 1)", 1],
  };
  for (const [how, [end, exitCode]] of Object.entries(ends)) {
    inFolder(how, async (folder) => {
      const path = join(folder, 'receipts.ndjson');
      const script = `
        const api = watch(ai, { agent: 'ticket-agent', sink: fileSink(target) });
        await api.generateText({ model: says('x'), prompt: 'x', stopcause: { runId: 'ended' } });
        tools.lookup.execute = () => { ${end}; return new Promise(() => {}); };
        await api.generateText({ model: loops(), tools, prompt: 'x', stopcause: { runId: 'cut' } });`;
      assert.equal((await endOf(script, path)).code, exitCode);
      const deaths = (await recordsIn(path)).filter((record) => record.kind === 'run.died');
      assert.deepEqual(
        deaths.map((one) => [one.run_id, one.exit_code]),
        [['cut', exitCode]],
      );
      const { code, complained, verdicts } = await classified(path);
      assert.equal(code, 0, complained);
      const cut = verdicts.find((one) => one.run_id === 'cut');
      assert.deepEqual([cut.verdict, cut.reason], ['FAILED', 'process_lost'], JSON.stringify(cut));
      assert.notEqual(verdicts.find((one) => one.run_id === 'ended').verdict, 'FAILED');
    });
  }
});
