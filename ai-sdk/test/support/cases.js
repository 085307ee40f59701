// A path that was run, as a case file: what fixtures/ai_sdk holds and `stopcause replay` judges.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { POLICY } from './kit.js';
import { normalized } from './normal.js';

const NOW = '2026-11-28T08:00:00Z';
const [nodeMajor] = process.versions.node.split('.');
const sdk = JSON.parse(readFileSync(createRequire(import.meta.url).resolve('ai/package.json'), 'utf8'));

/** Where the case files of the paths are. */
export const FIXTURES = new URL('../../../fixtures/ai_sdk/', import.meta.url);

/**
 * @param {object} path
 * @param {import('./transcript.js').Ran} ran With the hook.
 */
export function caseOf(path, ran) {
  const records = normalized(ran.records, path.id);
  return {
    id: `ai-sdk-${path.id}`,
    source: `ai@${sdk.version} on Node ${nodeMajor}, scripted model`,
    why: path.why,
    now: path.now ?? NOW,
    ...(path.policy === null ? {} : { policy: path.policy ?? POLICY }),
    ...judgedOf(path, records),
    ...(path.history ? { history: historyOf(path, ran.asked ?? []) } : {}),
    records,
    expected: path.expected,
  };
}

function judgedOf(path, records) {
  const several = new Set(records.map((record) => record.run_id)).size > 1;
  return {
    ...(several || path.judged ? { run_id: path.judged ?? path.id } : {}),
    ...(path.attempt === undefined ? {} : { attempt: path.attempt }),
  };
}

/** The steps that the conditions were shown, in names and numbers. */
function historyOf(path, steps) {
  const shown = steps.map((step) => ({
    tool_calls: step.toolCalls.map((call) => call.toolName),
    total_tokens: step.usage.totalTokens ?? 0,
  }));
  return { steps: shown, stop_when: path.history };
}

/** The bytes of a case file. */
export const written = (one) => `${JSON.stringify(one, null, 1)}\n`;
