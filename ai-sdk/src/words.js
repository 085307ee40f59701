// Closed lists of the wire format that the hook chooses words from; a test holds them to the Python's.

/**
 * A table that is asked with words from outside: only what was put in is in it, whatever the word (`constructor`,
 * `__proto__`).
 * @template T @param {Record<string, T>} entries @returns {Record<string, T>}
 */
export const table = (entries) => Object.assign(Object.create(null), entries);

export const LIMIT_KINDS = new Set(['steps', 'tokens', 'cost', 'time', 'output', 'context', 'tool_call', 'custom']);

export const ABORTED = new Set(['user_abort', 'caller_abort', 'platform_abort']);
export const WAITING = new Set(['approval_pending', 'input_pending', 'external_pending']);
export const FAILED = new Set([
  'tool_failure',
  'model_failure',
  'content_filter',
  'refusal',
  'malformed_call',
  'quota',
  'host_error',
  'self_reported_failure',
  'process_lost',
  'input_rejected',
]);
export const STOP_CAUSES = new Set([
  'natural',
  'explicit_done',
  'step_limit',
  'token_budget',
  'cost_budget',
  'time_limit',
  'output_cap',
  'context_limit',
  'server_tool_limit',
  'guardrail',
  'approval_denied',
  'approval_expired',
  'loop_guard',
  'retry_storm',
  'stream_truncated',
  'stream_rejected',
  'unknown',
  ...ABORTED,
  ...WAITING,
  ...FAILED,
]);
