// The oldest SDK that the package takes (7.0.0): every path runs against it, too. The hook changes nothing there either,
// and what decides the verdict is what the newest leaves in fixtures/ai_sdk, but for the differences listed here.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import * as oldest from 'ai-oldest';
import { allPaths } from '../paths/index.js';
import { FIXTURES } from '../support/cases.js';
import { runPath } from '../support/transcript.js';

const CUT_OFF = ['length', 'content-filter', 'refusal', 'interrupted', 'error', 'other', 'unknown-word'];

/** Paths that the oldest cannot run, and why. */
const ON_AND_ON =
  'it pipes on after the browser left, until the line to the provider breaks; nobody holds the promise that then rejects';
const SKIPPED = {
  'stream-socket-page-left': ON_AND_ON,
  'agent-stream-socket-page-left': ON_AND_ON,
  'stream-socket-page-broken': 'it rejects a promise that nobody holds, at a moment of its own',
  'stream-socket-first-chunk-timeout': 'it has no firstChunkMs, and waits for the silent server for ever',
};

/** What is different in the oldest, why, on which paths, and what the receipt then says. */
const DIFFERENCES = [
  {
    why: 'before 7.0.70 the calls of a step that was cut off ran and the loop went on: the receipt counts such steps',
    ids: CUT_OFF.flatMap((word) => ['generate', 'stream'].map((entry) => `${entry}-finish-${word}-with-calls`)),
    facts: {
      stop_cause: 'natural',
      finish: 'stop',
      steps: 2,
      unsafe_steps: 1,
      pending_tool_calls: undefined,
      output_shape: 'text',
      progress: true,
    },
  },
  {
    why: 'the same, up to the step limit',
    ids: ['generate-socket-length-with-call', 'stream-socket-length-with-call'],
    facts: {
      stop_cause: 'step_limit',
      steps: 4,
      unsafe_steps: 4,
      pending_tool_calls: undefined,
      tool_calls: 4,
      fired: ['step_limit'],
      progress: true,
    },
  },
  {
    why: 'before 7.0.32 generateText went on after an abort or a deadline that a tool had turned into an error',
    ids: ['generate', 'agent'].flatMap((entry) => [`${entry}-user-abort-in-tool`, `${entry}-timeout-in-tool`]),
    facts: {
      stop_cause: 'natural',
      finish: 'stop',
      steps: 2,
      tool_errors: { terminal: 0, recovered: 1 },
      output_shape: 'text',
      error: undefined,
    },
  },
  {
    why: 'the same where the tool answered all the same',
    ids: ['generate-late-tool'],
    facts: { stop_cause: 'natural', finish: 'stop', steps: 2, output_shape: 'text' },
  },
  {
    why: 'a stream waits for a tool that does not heed the abort, so that its answer is there before the stop',
    ids: ['stream-late-tool'],
    facts: { progress: true },
  },
  {
    why: 'a message of no known role is refused under a more general name',
    ids: ['generate', 'agent', 'stream', 'agent-stream'].map((entry) => `${entry}-invalid-prompt`),
    facts: { error: 'AI_InvalidPromptError' },
  },
  {
    why: 'it does not hold the model to toolChoice',
    ids: ['generate-tool-choice-violated', 'stream-tool-choice-violated'],
    facts: { stop_cause: 'natural', finish: 'stop', steps: 1, error: undefined, output_shape: 'text' },
  },
  {
    why: 'an error event of the server has no class of its own',
    ids: ['stream-socket-error-event'],
    facts: { error: 'Object', status: undefined },
  },
];

const paths = (await allPaths()).filter(({ id }) => SKIPPED[id] === undefined);

for (const path of paths) {
  test(path.id, async () => {
    const kept = JSON.parse(await readFile(new URL(`${path.id}.json`, FIXTURES), 'utf8'));
    const hooked = await runPath(path, { ai: oldest, hooked: true });
    const bare = await runPath(path, { ai: oldest, hooked: false });
    assert.deepEqual(hooked.transcript, bare.transcript, 'as from the bare SDK');
    const different = DIFFERENCES.find(({ ids }) => ids.includes(path.id));
    assert.deepEqual(factsOf(hooked.records, path), { ...factsOf(kept.records, path), ...different?.facts });
  });
}

test('every difference and every path left out exists', () => {
  const known = new Set(paths.map(({ id }) => id));
  const named = DIFFERENCES.flatMap(({ ids }) => ids);
  assert.deepEqual(
    named.filter((id) => !known.has(id)),
    [],
  );
  assert.equal(new Set(named).size, named.length);
});

/** What decides the verdict of the run that is judged. */
function factsOf(records, { id, judged = id, attempt }) {
  const stops = records.filter((record) => record.kind === 'run.stopped' && record.run_id === judged);
  const stop = attempt === undefined ? stops.at(-1) : stops.find((record) => record.attempt === attempt);
  const { stop_cause, steps, tool_calls, unsafe_steps, pending_tool_calls, tool_errors, output_shape, children } = stop;
  return {
    stop_cause,
    steps,
    tool_calls,
    unsafe_steps,
    pending_tool_calls,
    tool_errors,
    output_shape,
    children,
    finish: stop.finish_reason?.normalized,
    fired: stop.conditions?.filter(({ fired }) => fired).map(({ name }) => name),
    approvals: stop.approvals?.map(({ kind, state, decision, owner }) => ({ kind, state, decision, owner })),
    aborted: stop.abort !== undefined,
    error: stop.error?.type,
    status: stop.error?.status,
    progress: stop.progress?.made,
  };
}
