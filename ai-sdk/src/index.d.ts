// The edge-safe door. What each function does is written at its source; here is what fits together.
import type {
  GenerateTextResult,
  generateText,
  StopCondition,
  StreamTextResult,
  streamText,
  ToolLoopAgent,
  ToolLoopAgentSettings,
  ToolSet,
} from 'ai';

// The words of a record -----------------------------------------------------------------------------------------------

/** Why control flow ended. */
export type StopCause =
  | 'natural'
  | 'explicit_done'
  | 'step_limit'
  | 'token_budget'
  | 'cost_budget'
  | 'time_limit'
  | 'output_cap'
  | 'context_limit'
  | 'server_tool_limit'
  | 'guardrail'
  | 'approval_denied'
  | 'approval_expired'
  | AbortCause
  | 'loop_guard'
  | 'retry_storm'
  | 'approval_pending'
  | 'input_pending'
  | 'external_pending'
  | 'tool_failure'
  | 'model_failure'
  | 'content_filter'
  | 'refusal'
  | 'malformed_call'
  | 'quota'
  | 'host_error'
  | 'self_reported_failure'
  | 'process_lost'
  | 'input_rejected'
  | 'stream_truncated'
  | 'stream_rejected'
  | 'unknown';

/** Who ended it from outside: the person, the application's own code, or the platform below it. */
export type AbortCause = 'user_abort' | 'caller_abort' | 'platform_abort';

/** One fact about a run, as it goes over the wire: snake_case keys, no content. */
export interface StopRecord {
  schema: 'stopcause/1';
  kind: 'run.started' | 'run.progress' | 'run.stopped' | 'approval.updated' | 'outcome.recorded' | 'run.died';
  run_id: string;
  at: string;
  record_id?: string;
  attempt?: number;
  seq?: number;
  stop_cause?: StopCause;
  [key: string]: unknown;
}

// Sinks ---------------------------------------------------------------------------------------------------------------

/** Where records go. `accept` never throws and never waits. */
export interface Sink {
  accept(record: StopRecord): void;
  /** Resolves when what was accepted before it is delivered or given up; never rejects. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** Counted since the start; `accepted` is the sum of the other three. */
export interface SinkStats {
  accepted: number;
  delivered: number;
  dropped: number;
  waiting: number;
}

/** A sink of this package: a bounded queue, and what becomes of its records. */
export interface CountingSink extends Sink {
  stats(): SinkStats;
}

export interface SinkLimits {
  /** Records that may wait, 10,000 without it; what comes then is lost and counted. */
  maxQueue?: number | undefined;
  /** Milliseconds that one delivery may take; 10,000 without it. */
  timeoutMs?: number | undefined;
  /** Milliseconds that a flush may take; 5,000 without it. */
  flushMs?: number | undefined;
  /** Milliseconds of the first pause and the longest, and for how long one batch is tried. */
  retry?: { firstMs?: number; mostMs?: number; forMs?: number } | undefined;
  /** For platforms that stop when the response is out: gets the promise of each delivery. */
  waitUntil?: ((delivery: Promise<void>) => void) | undefined;
}

export interface HttpSinkOptions extends SinkLimits {
  /** Takes NDJSON by POST, as `/v1/records` of the service does. */
  url: string | URL | undefined;
  headers?: Record<string, string> | undefined;
  fetch?: typeof globalThis.fetch | undefined;
  /** Records in one request at most. */
  batch?: number | undefined;
}

export function httpSink(options: HttpSinkOptions): CountingSink;
export function functionSink(take: (record: StopRecord) => unknown, limits?: SinkLimits): CountingSink;

// Stop conditions -----------------------------------------------------------------------------------------------------

export type ConditionKind = 'steps' | 'tokens' | 'cost' | 'time' | 'output' | 'context' | 'tool_call' | 'custom';

/** What a receipt says of a condition beside whether it fired. */
export interface ConditionFacts {
  kind?: ConditionKind | undefined;
  limit?: number | undefined;
  /** The number that is held against the limit, from the completed steps. */
  observed?: ((options: Parameters<AnyCondition>[0]) => number) | undefined;
  /** The stop cause when it fires; without it, it follows from the kind. */
  cause?: StopCause | undefined;
  /** The tools that a condition of kind `tool_call` looks for. */
  tools?: string[] | undefined;
}

// biome-ignore lint/suspicious/noExplicitAny: as the SDK's own conditions, it stands in a loop over any tools
export type AnyCondition = StopCondition<any, any>;

export function tokenBudget(tokens: number): AnyCondition;
export function costBudget(
  usd: number,
  priceOfStep: (step: Parameters<AnyCondition>[0]['steps'][number]) => number,
): AnyCondition;
export function condition(when: AnyCondition, facts?: ConditionFacts): AnyCondition;

// Options -------------------------------------------------------------------------------------------------------------

/** An approval that nothing in the run can give. */
export interface ApprovalRequest {
  approvalId: string;
  kind: 'tool_call' | 'external';
  tool: string;
  toolCallId: string;
  runId: string;
}

/** Who answers, until when, and how the run goes on. Times are Dates, RFC 3339 texts or epoch milliseconds. */
export interface Route {
  owner?: string | undefined;
  deadline?: Date | string | number | undefined;
  /** The deadline as milliseconds from now. */
  dueMs?: number | undefined;
  expiresAt?: Date | string | number | undefined;
  /** Names the paused state; never a bearer secret. */
  resumeToken?: string | undefined;
  /** False where the run cannot go on from here. */
  resumable?: boolean | undefined;
}

export interface TraceContext {
  traceId: string;
  spanId: string;
  traceFlags?: number | undefined;
}

/** What may stand in `watch` and in each call. */
export interface SharedOptions {
  agent?: string | undefined;
  agentVersion?: string | undefined;
  service?: string | undefined;
  environment?: string | undefined;
  /** Up to 8, identifiers only. */
  labels?: Record<string, string | number | boolean> | undefined;
  /** The name of the application's policy for its loop. */
  loopPolicy?: string | undefined;
  /** The outcome contract, where the operator's policy does not name it. */
  contract?: string | undefined;
  /** A digest of what the run is about. */
  subject?: string | undefined;
  /** Seconds of silence after which an open run counts as stuck. */
  leaseS?: number | undefined;
  /** The hook's own deadline, milliseconds from the call. */
  deadlineMs?: number | undefined;
  /** Tools whose call is the application's way to say that it is done. */
  doneTools?: readonly string[] | undefined;
  /** Tools whose results are progress; without it every tool's are. */
  progressTools?: readonly string[] | undefined;
  abortCause?: AbortCause | ((reason: unknown) => AbortCause) | undefined;
  route?: Route | ((approval: ApprovalRequest) => Route | undefined) | undefined;
  traceContext?: (() => TraceContext | undefined) | undefined;
  threadId?: string | undefined;
}

export interface WatchOptions extends SharedOptions {
  /** Without it the Node door writes into the spool; the edge-safe one records nothing and says so. */
  sink?: Sink | undefined;
  /**
   * A run inside a tool of another is its child. Without it: from Node 24 on, where async context costs next to nothing.
   */
  nested?: boolean | undefined;
  /** The version of `ai`, where it cannot be found out. */
  frameworkVersion?: string | undefined;
}

/** The extra key `stopcause` of one call; the SDK never sees it. */
export interface CallOptions extends SharedOptions {
  runId?: string | undefined;
  attempt?: number | undefined;
  parentRunId?: string | undefined;
  /** The run that this call resumes; without it, the approvals that it answers say. */
  resumes?: string | undefined;
  /** Who decided the approvals that this call answers. */
  actor?: string | undefined;
}

/** What the destination says about a run's work. */
export interface OutcomeFacts {
  outcomeId?: string | undefined;
  attempt?: number | undefined;
  contract?: string | undefined;
  check?: string | undefined;
  strength?: 'accepted' | 'delivered' | 'read_back' | 'human' | undefined;
  polarity?: 'confirmed' | 'refuted' | 'unknown' | undefined;
  issuer?: { type: 'destination' | 'validator' | 'human' | 'run'; id?: string | undefined } | undefined;
  subject?: string | undefined;
  observedAt?: Date | string | number | undefined;
  preState?: 'absent' | 'different' | 'same' | 'unknown' | undefined;
  effectKey?: string | undefined;
  evidence?: Record<string, string | number | boolean | (string | number | boolean)[]> | undefined;
}

// The wrapped functions -----------------------------------------------------------------------------------------------

type Context = Record<string, unknown>;
// biome-ignore lint/complexity/noBannedTypes: the SDK's own default for an agent without tools
type NoTools = {};
type AnyOutput = NonNullable<Parameters<typeof generateText>[0]['output']>;
type OutputOf<RESULT> = RESULT extends GenerateTextResult<infer _TOOLS, infer _CONTEXT, infer OUTPUT> ? OUTPUT : never;
type StreamOutputOf<RESULT> =
  RESULT extends StreamTextResult<infer _TOOLS, infer _CONTEXT, infer OUTPUT> ? OUTPUT : never;
/** What the SDK assumes where no `output` is given: text. */
type TextOutput = OutputOf<Awaited<ReturnType<typeof generateText<ToolSet>>>>;
type TextStreamOutput = StreamOutputOf<ReturnType<typeof streamText<ToolSet>>>;

/** What `stopWhen` takes: what the SDK takes, or conditions by name. */
export type StopWhen<TOOLS extends ToolSet, RUNTIME_CONTEXT extends Context = Context> =
  | StopCondition<TOOLS, RUNTIME_CONTEXT>
  | Array<StopCondition<TOOLS, RUNTIME_CONTEXT>>
  | { [name: string]: StopCondition<TOOLS, RUNTIME_CONTEXT> };

type Without<T, KEY extends PropertyKey> = T extends unknown
  ? { [K in keyof T as K extends KEY ? never : K]: T[K] }
  : never;

/** The SDK's options, where `stopWhen` may be a map and `stopcause` says more of this run. */
type Watching<OPTIONS, TOOLS extends ToolSet, RUNTIME_CONTEXT extends Context> = Without<OPTIONS, 'stopWhen'> & {
  tools?: TOOLS;
  runtimeContext?: RUNTIME_CONTEXT;
  stopWhen?: StopWhen<NoInfer<TOOLS>, NoInfer<RUNTIME_CONTEXT>>;
  stopcause?: CallOptions;
};

export type WatchedGenerateText = <
  TOOLS extends ToolSet,
  RUNTIME_CONTEXT extends Context = Context,
  OUTPUT extends AnyOutput = TextOutput,
>(
  options: Watching<Parameters<typeof generateText<TOOLS, RUNTIME_CONTEXT, OUTPUT>>[0], TOOLS, RUNTIME_CONTEXT> & {
    output?: OUTPUT;
  },
) => Promise<GenerateTextResult<TOOLS, RUNTIME_CONTEXT, OUTPUT>>;

export type WatchedStreamText = <
  TOOLS extends ToolSet,
  RUNTIME_CONTEXT extends Context = Context,
  OUTPUT extends AnyOutput = TextStreamOutput,
>(
  options: Watching<Parameters<typeof streamText<TOOLS, RUNTIME_CONTEXT, OUTPUT>>[0], TOOLS, RUNTIME_CONTEXT> & {
    output?: OUTPUT;
  },
) => StreamTextResult<TOOLS, RUNTIME_CONTEXT, OUTPUT>;

type ForThisCall = { stopcause?: CallOptions };

export interface WatchedAgent<
  CALL_OPTIONS = never,
  TOOLS extends ToolSet = NoTools,
  RUNTIME_CONTEXT extends Context = Context,
  OUTPUT extends AnyOutput = never,
> extends ToolLoopAgent<CALL_OPTIONS, TOOLS, RUNTIME_CONTEXT, OUTPUT> {
  generate(
    options: Parameters<ToolLoopAgent<CALL_OPTIONS, TOOLS, RUNTIME_CONTEXT, OUTPUT>['generate']>[0] & ForThisCall,
  ): Promise<GenerateTextResult<TOOLS, RUNTIME_CONTEXT, OUTPUT>>;
  stream(
    options: Parameters<ToolLoopAgent<CALL_OPTIONS, TOOLS, RUNTIME_CONTEXT, OUTPUT>['stream']>[0] & ForThisCall,
  ): Promise<StreamTextResult<TOOLS, RUNTIME_CONTEXT, OUTPUT>>;
}

export type WatchedToolLoopAgent = new <
  CALL_OPTIONS = never,
  TOOLS extends ToolSet = NoTools,
  RUNTIME_CONTEXT extends Context = Context,
  OUTPUT extends AnyOutput = never,
>(
  settings: Watching<ToolLoopAgentSettings<CALL_OPTIONS, TOOLS, RUNTIME_CONTEXT, OUTPUT>, TOOLS, RUNTIME_CONTEXT> & {
    output?: OUTPUT;
  },
) => WatchedAgent<CALL_OPTIONS, TOOLS, RUNTIME_CONTEXT, OUTPUT>;

interface Wrapped {
  generateText: WatchedGenerateText;
  streamText: WatchedStreamText;
  ToolLoopAgent: WatchedToolLoopAgent;
}

/** The functions of `ai` that are watched, as many as were given. */
export type Watched<M> = Pick<Wrapped, Extract<keyof M, keyof Wrapped>> & {
  /** Writes what the destination says of a run's work. */
  outcome(runId: string | undefined, facts: OutcomeFacts): void;
  /** Resolves when what was recorded before it is delivered or given up; never rejects. */
  flush(): Promise<void>;
  /** How often the hook itself failed in this process, and on what type of error. */
  stats(): { faults: number; last: string | undefined };
};

/** What `watch` looks for in the module, or in any object that has some of it. */
export interface Watchable {
  generateText?: unknown;
  streamText?: unknown;
  ToolLoopAgent?: unknown;
  isStepCount?: unknown;
  hasToolCall?: unknown;
  isLoopFinished?: unknown;
}

export function watch<M extends Watchable>(ai: M, options?: WatchOptions): Watched<M>;

/** The id of the run that gave this result or threw this error. */
export function runOf(resultOrError: unknown): string | undefined;
