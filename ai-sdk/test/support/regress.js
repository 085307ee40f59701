// Here: what the tests of mended faults share. A watched SDK with its records, a comparison with the bare one, a process
// of its own, and what is left after garbage collection. Not here: paths (kit.js), and what the faults were.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import process from 'node:process';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import * as ai from 'ai';
import { z } from 'zod';
import { functionSink, watch } from '../../src/node.js';
import { scriptedModel } from './models.js';

const root = fileURLToPath(new URL('../../', import.meta.url));
const at = (path) => JSON.stringify(new URL(path, import.meta.url).href);

export const call = (tool, more) => ({ tool, input: { query: 'x' }, ...more });
export const says = (word) => scriptedModel(Array.from({ length: 9 }, () => ({ text: word })));
/** A model that calls `tool` for ever; a test that loses its bound ends with an error of the script. */
export const loops = (tool = 'lookup') => scriptedModel(Array.from({ length: 30 }, () => ({ calls: [call(tool)] })));
/** A model that calls these tools in one step and has no other. */
export const callsOnce = (...tools) => scriptedModel([{ calls: tools.map((tool) => call(tool)) }]);

export const stepsOf = async (result) => (await result).steps.length;
export const textOf = async (result) => (await result).text;

const inputSchema = z.object({ query: z.string() });
const tool = (execute, more) => ({ description: 'x', inputSchema, execute, ...more });

export const toolsOf = (more) => ({
  lookup: tool(async () => ({ ok: true })),
  done: tool(async () => ({ ok: true })),
  broken: tool(async () => Promise.reject(new Error('x'))),
  refund: tool(async () => ({ ok: true }), { needsApproval: true }),
  ask_user: { description: 'x', inputSchema },
  ...Object.fromEntries(Object.entries(more ?? {}).map(([name, execute]) => [name, tool(execute)])),
});

/** The SDK, watched, and what it recorded so far. */
export function watched(options, sdk = ai) {
  const records = [];
  const sink = functionSink((record) => void records.push(record));
  const hook = watch(sdk, { agent: 'ticket-agent', sink, ...options });
  const all = async (kind) => {
    await sink.flush();
    return kind === undefined ? records : records.filter((record) => record.kind === kind);
  };
  return { ...ai, ...hook, records: all, stopped: async () => (await all('run.stopped')).at(-1) };
}

/** The receipt of one run of generateText that may fail. */
export async function receiptOf(call, options) {
  const api = watched(options);
  await api.generateText({ tools: toolsOf(), prompt: 'x', maxRetries: 0, ...call }).catch(() => {});
  return api.stopped();
}

/** What a call comes to: its value, or the type of its error and whether it was thrown at once. */
export async function comesTo(work) {
  let made;
  try {
    made = work();
  } catch (error) {
    return { thrownAtOnce: error.name };
  }
  try {
    return { gives: await made };
  } catch (error) {
    return { rejects: error.name };
  }
}

/** A test that the watched SDK does what the bare one does, and that this is `expected`. */
export const asBare = (name, expected, body) =>
  test(name, async () => {
    assert.deepEqual(await comesTo(() => body(ai)), expected, 'the bare SDK');
    assert.deepEqual(await comesTo(() => body(watched())), expected, 'watched');
  });

/** What becomes of a process that runs `script`; `target` is its argument. */
export async function endOf(script, target = '') {
  const head = `
    import * as ai from 'ai';
    import { condition, fileSink, functionSink, watch } from ${at('../../src/node.js')};
    import { call, callsOnce, loops, says, toolsOf } from ${at('regress.js')};
    import { scriptedModel } from ${at('models.js')};
    const [target] = process.argv.slice(1);
    const tools = toolsOf();
    const sink = functionSink(() => {});
    const turns = () => new Promise((resolve) => setTimeout(resolve, 20));`;
  const env = { ...process.env, STOPCAUSE_SPOOL: '/dev/null/spool', NODE_TEST_CONTEXT: '' };
  const given = ['--input-type=module', '-e', head + script, target];
  const child = spawn(process.execPath, given, { cwd: root, env });
  const [said, complained] = [text(child.stdout), text(child.stderr)];
  const [code] = await once(child, 'close');
  return { code, said: (await said).trim(), complained: await complained };
}

/** What the Python reader says of a file of records: its exit code and one verdict for each run. */
export async function classified(path) {
  const child = spawn('stopcause', ['classify', '-o', 'jsonl', path]);
  const [said, complained] = [text(child.stdout), text(child.stderr)];
  const [code] = await once(child, 'close');
  const lines = (await said).split('\n').filter(Boolean);
  return { code, complained: await complained, verdicts: lines.map((line) => JSON.parse(line)) };
}

/** KiB that are in use after everything that nobody holds is gone. */
export async function heapKiB() {
  for (let round = 0; round < 5; round += 1) {
    globalThis.gc();
    await sleep(10);
  }
  return process.memoryUsage().heapUsed / 1024;
}

/** Collects garbage until something holds; fails after five seconds. */
export async function untilCollected(holds) {
  const end = performance.now() + 5000;
  while (!(await holds())) {
    assert.ok(performance.now() < end, 'it was never collected');
    await heapKiB();
  }
}
