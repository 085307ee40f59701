// What a run's completed steps add up to.
//
// Here: counts, tokens, progress and the last step. Not here: conditions and causes.
import { finishFact, isUnsafe, readStep } from './steps.js';

export class Tally {
  steps = 0;
  begun = 0; // steps
  started = 0; // tools
  inFlight = 0;
  toolCalls = 0;
  failures = 0;
  unsafeSteps = 0;
  input = 0;
  output = 0;
  tokens = 0;
  hasUsage = false;
  hasOddUsage = false;
  /** @type {number | undefined} when the last step ended under an abort that had been asked for */
  abortedMs = undefined;
  stepsWithUsage = 0;
  recoveredModelErrors = 0;
  /** @type {number | undefined} when a useful tool last answered */
  progressMs = undefined;
  /** @type {import('./steps.js').Step | undefined} */
  last = undefined;

  /** @param {any} result a step result of the SDK @param {boolean} aborted whether an abort had been asked for */
  add(result, aborted) {
    const step = readStep(result);
    this.last = step;
    this.steps++;
    this.abortedMs = aborted ? Date.now() : undefined;
    if (step.hasUsage) this.stepsWithUsage++;
    if (step.providerResults > 0) this.progressMs = Date.now();
    this.toolCalls += step.calls.length + step.providerCalls;
    this.failures += step.failed.length;
    this.input += step.input;
    this.output += step.output;
    this.tokens += step.total;
    this.hasUsage ||= step.hasUsage;
    this.hasOddUsage ||= step.hasOddUsage;
    if (isUnsafe(step) && step.results.length + step.failed.filter((call) => !call.invalid).length > 0)
      this.unsafeSteps++;
  }

  /** For conditions: what they could have looked at. */
  totals() {
    return { steps: this.steps, tokens: this.tokens, lastCalls: this.last?.calls.map((call) => call.name) ?? [] };
  }

  usage() {
    return this.hasUsage ? { input_tokens: this.input, output_tokens: this.output } : {};
  }

  findings() {
    if (this.hasOddUsage) return [{ code: 'usage_not_a_number' }];
    return this.hasUsage && this.stepsWithUsage < this.steps ? [{ code: 'usage_partial' }] : [];
  }

  /**
   * Writes the counts of a receipt. A tool that was started in a step that never ended counts as called.
   * @param {any} record @param {{isNatural: boolean, isStructured: boolean, at: (ms: number) => string}} of
   */
  write(record, { isNatural, isStructured, at }) {
    record.steps = this.steps;
    record.step_unit = 'step';
    record.model_calls = Math.max(this.steps, this.begun) + this.recoveredModelErrors;
    record.tool_calls = Math.max(this.toolCalls, this.started);
    if (this.last !== undefined) record.finish_reason = finishFact(this.last);
    const pending = this.last?.open.length ?? 0;
    if (pending > 0) record.pending_tool_calls = pending;
    const terminal = this.last?.failed.length ?? 0;
    if (this.failures > 0) record.tool_errors = { terminal, recovered: this.failures - terminal };
    if (this.unsafeSteps > 0) record.unsafe_steps = this.unsafeSteps;
    record.progress = this.#progress(at);
    if (isNatural) record.output_shape = this.#shape(isStructured);
  }

  #shape(isStructured) {
    if (this.last.file) return 'structured';
    if (!this.last.text) return 'none';
    return isStructured ? 'structured' : 'text';
  }

  #progress(at) {
    const progress = { made: this.progressMs !== undefined, in_flight_tools: this.inFlight };
    if (progress.made) progress.last_at = at(this.progressMs);
    return progress;
  }
}
