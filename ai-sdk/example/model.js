// A scripted model in place of a provider: it says what it is told to, costs nothing and needs no network.
import { MockLanguageModelV4 } from 'ai/test';

const usage = {
  inputTokens: { total: 120, noCache: 120, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 30, text: 30, reasoning: 0 },
};

/**
 * A model whose answers are given in advance; the last one is repeated.
 * @param {...(string | {tool: string, input: object})} answers a text ends the loop, a tool call goes on
 */
export function scripted(...answers) {
  let asked = 0;
  return new MockLanguageModelV4({
    provider: 'scripted',
    modelId: 'scripted-1',
    doGenerate: async () => answer(answers[Math.min(asked, answers.length - 1)], ++asked),
  });
}

function answer(said, number) {
  const isText = typeof said === 'string';
  const unified = isText ? 'stop' : 'tool-calls';
  const call = { type: 'tool-call', toolCallId: `call-${number}`, toolName: said.tool };
  return {
    content: [isText ? { type: 'text', text: said } : { ...call, input: JSON.stringify(said.input) }],
    finishReason: { unified, raw: unified },
    usage,
    warnings: [],
  };
}
