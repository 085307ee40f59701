// Here: the real stop conditions behind a pipe, the SDK's own and this package's budgets. Each line of stdin is a history
// and conditions, each line of stdout what each said; tests/receipts/test_stop_conditions_sdk.py holds Python against it.
// Not here: any opinion on what they should say.
import { createInterface } from 'node:readline';
import { hasToolCall, isLoopFinished, isStepCount } from 'ai';
import { costBudget, tokenBudget } from '../../src/index.js';

/** By kind, as the wire format names it. Numbers come as text, because JSON has no NaN. */
const MAKE = {
  steps: ({ limit }) => isStepCount(Number(limit)),
  tool_call: ({ tools }) => hasToolCall(...tools),
  custom: () => isLoopFinished(),
  tokens: ({ limit }) => tokenBudget(Number(limit)),
  cost: ({ limit }) => costBudget(Number(limit), (step) => step.price),
};

/** What the SDK's loop would show to a condition, of which conditions read nothing but names and numbers. */
const shown = ({ tool_calls: names, total_tokens: totalTokens, cost_usd: price }) => ({
  toolCalls: names?.map((toolName) => ({ toolName })),
  usage: { totalTokens },
  price,
});

for await (const line of createInterface({ input: process.stdin })) {
  const { steps, stop_when: conditions } = JSON.parse(line);
  const seen = steps.map(shown);
  const said = await Promise.all(conditions.map((about) => MAKE[about.kind](about)({ steps: seen })));
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
