"""What the exceptions, limits and finish reasons of Pydantic AI mean. Tables first; the few rules below them.

Classes are known by name: one that an older version does not have is a line here that never matches. Seen in
`pydantic_ai.exceptions` and `pydantic_ai.usage` of 2.0.0 and 2.68.0. Nothing here reads a text.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from stopcause.receipts.faults import chain_of, status_of
from stopcause.receipts.vocabulary import Finish, LimitKind, StopCause

if TYPE_CHECKING:
    from stopcause.receipts.hooks.pydantic_ai.messages import Seen

BY_CLASS = {
    "RunTimedOut": StopCause.TIME_LIMIT,  # `timeout=`, or the deadline of the run around it
    "RunCancelled": StopCause.CALLER_ABORT,  # `ctx.cancel()`, `AgentRun.cancel()`, a token: the application's own code
    "UsageLimitExceeded": StopCause.STEP_LIMIT,  # one class for every limit: `bound_of` finds which
    "ConcurrencyLimitExceeded": StopCause.QUOTA,
    "ContentFilterError": StopCause.CONTENT_FILTER,
    "OutputTokenLimitExceeded": StopCause.OUTPUT_CAP,
    "IncompleteToolCall": StopCause.OUTPUT_CAP,
    "ModelContextWindowExceededError": StopCause.CONTEXT_LIMIT,
    "ModelQuotaExceededError": StopCause.QUOTA,
    "ModelRateLimitError": StopCause.QUOTA,
    "ModelAPIError": StopCause.MODEL_FAILURE,
    "SuspendedResponseExpired": StopCause.MODEL_FAILURE,
    "FallbackExceptionGroup": StopCause.MODEL_FAILURE,  # every model of a fallback failed
    "UnexpectedModelBehavior": StopCause.MODEL_FAILURE,
    "UserError": StopCause.HOST_ERROR,
}
_BEFORE_TOOLS = ("RunTimedOut", "RunCancelled")  # the run's own also where a run inside a tool raised it first

BY_FINISH = {
    "stop": Finish.STOP,
    "length": Finish.LENGTH,
    "content_filter": Finish.CONTENT_FILTER,
    "tool_call": Finish.TOOL_CALLS,
    "error": Finish.ERROR,
}
_QUOTA_STATUSES = (402, 429)
_NO_ANSWER = {Finish.LENGTH: StopCause.OUTPUT_CAP, Finish.CONTENT_FILTER: StopCause.CONTENT_FILTER}


class Counter(NamedTuple):
    """A limit of `UsageLimits`, the number of `RunUsage` that it bounds, and what it means that it fired."""

    limit: str
    counts: str
    cause: StopCause
    kind: LimitKind
    unit: str


TOKENS = tuple(
    Counter(f"{counts}_limit", counts, StopCause.TOKEN_BUDGET, LimitKind.TOKENS, "token")
    for counts in ("input_tokens", "output_tokens", "total_tokens")
)
COST = Counter("cost_limit", "cost", StopCause.COST_BUDGET, LimitKind.COST, "usd")
TOOL_CALLS = Counter("tool_calls_limit", "tool_calls", StopCause.STEP_LIMIT, LimitKind.STEPS, "tool_call")
REQUESTS = Counter("request_limit", "requests", StopCause.STEP_LIMIT, LimitKind.STEPS, "request")
ONE_REQUEST = Counter(
    "per_request_input_tokens_limit", "input_tokens", StopCause.TOKEN_BUDGET, LimitKind.TOKENS, "token"
)
COUNTERS = (*TOKENS, COST, TOOL_CALLS, REQUESTS)


class Bound(NamedTuple):
    """A limit that fired, with the numbers as this run had them; `observed` is None where no number tells."""

    counter: Counter
    limit: float
    observed: float | None
    is_sure: bool = True  # else it is the one that is left, if the limit was this run's at all


class Word(NamedTuple):
    """What an exception means."""

    cause: StopCause | None = None  # None: nothing of this framework's; the common map is asked
    reason: str | None = None
    tool: str | None = None
    bound: Bound | None = None


def word_of(error: BaseException, seen: Seen, tool: str | None, bound: Bound | None) -> Word:
    """What an exception that left the run means.

    Args:
        error: The exception.
        seen: What the run's messages tell.
        tool: The tool that it came out of, if it did.
        bound: The limit that the run's own numbers are over, where it is `UsageLimitExceeded`.
    """
    name = known_class(error)
    if name == "UsageLimitExceeded" and bound is not None and (bound.is_sure or tool is None):
        return Word(bound.counter.cause, bound.counter.limit, bound=bound)
    if tool is not None and name not in _BEFORE_TOOLS:
        return Word(StopCause.TOOL_FAILURE, "retries_exhausted" if name == "UnexpectedModelBehavior" else None, tool)
    if name == "UnexpectedModelBehavior":
        return Word(_misbehaved(error, seen))
    if name == "UsageLimitExceeded":
        return Word(StopCause.STEP_LIMIT, "limit_unknown")
    return Word(class_cause(error))


def class_cause(error: BaseException) -> StopCause | None:
    """What the class alone says, and the HTTP status that it may carry."""
    name = known_class(error)
    if name == "ModelAPIError" and status_of(error) in _QUOTA_STATUSES:
        return StopCause.QUOTA
    return BY_CLASS.get(name or "")


def known_class(error: BaseException) -> str | None:
    """The nearest class of the framework's that the table has."""
    for kind in type(error).__mro__:
        if kind.__name__ in BY_CLASS and kind.__module__.partition(".")[0] == "pydantic_ai":
            return kind.__name__
    return None


def _misbehaved(error: BaseException, seen: Seen) -> StopCause:
    """`UnexpectedModelBehavior`: no answer because it was cut off, calls that nobody could read, or just no answer."""
    if seen.finish in _NO_ANSWER:
        return _NO_ANSWER[seen.finish]
    names = {type(link).__name__ for link in chain_of(error)}
    return StopCause.MALFORMED_CALL if "ValidationError" in names and seen.calls else StopCause.MODEL_FAILURE


# Limits ---------------------------------------------------------------------------------------------------------------


def limits_of(limits: Any, base: dict[str, float]) -> list[tuple[Counter, float]]:  # noqa: ANN401 - `UsageLimits`
    """The limits that are set, less what a shared `usage` had used before this run: what this run could use."""
    given = ((counter, getattr(limits, counter.limit, None)) for counter in COUNTERS)
    return [
        (counter, max(0, number(limit) - base.get(counter.counts, 0))) for counter, limit in given if is_number(limit)
    ]


def is_number(value: object) -> bool:
    """`UsageLimits` takes whatever it is given, and fails where it compares it."""
    return isinstance(value, int | float | Decimal)


def odd_limits(limits: object) -> list[str]:
    """The names of limits that are set and are no numbers."""
    names = [counter.limit for counter in (*COUNTERS, ONE_REQUEST)]
    return [name for name in names if (value := getattr(limits, name, None)) is not None and not is_number(value)]


def number(value: Any) -> float:  # noqa: ANN401 - an int, or a decimal where it is money
    """A count stays a whole number."""
    return value if isinstance(value, int) else float(value)


def bound_of(limits: Any, base: dict[str, float], usage: dict[str, float], seen: Seen) -> Bound | None:  # noqa: ANN401
    """Which limit fired, worked out from the run's numbers in the order in which the framework checks them.

    Tokens and cost are over once they are above the limit, after an answer (`UsageLimits.check_tokens`, `check_cost`);
    tool calls where those that the last answer asks for do not fit (`check_before_tool_call`); requests once there are
    as many as the limit (`check_before_request`).
    """
    left = dict(limits_of(limits, base))
    for counter in (*TOKENS, COST):
        if counter in left and usage.get(counter.counts, 0) > left[counter]:
            return Bound(counter, left[counter], usage[counter.counts])
    one = getattr(limits, ONE_REQUEST.limit, None)
    if not is_number(one):
        one = None
    if one is not None and seen.last_input > one:
        return Bound(ONE_REQUEST, one, seen.last_input)
    asked = usage.get("tool_calls", 0) + len(seen.unanswered)
    if TOOL_CALLS in left and seen.unanswered and asked > left[TOOL_CALLS]:
        return Bound(TOOL_CALLS, left[TOOL_CALLS], asked)
    if REQUESTS in left and usage.get("requests", 0) >= left[REQUESTS]:
        return Bound(REQUESTS, left[REQUESTS], usage["requests"])
    return _by_elimination(limits, left, one, usage.get("input_tokens", 0) - seen.inputs)


def _by_elimination(
    limits: Any,  # noqa: ANN401 - `UsageLimits`
    left: dict[Counter, float],
    one: float | None,
    unseen: float,
) -> Bound | None:
    """One limit fired, and no counter is over its own: what is left are limits on what no counter tells.

    One request's tokens, where the answer that was too long is not in the history (2.30; `unseen` are the input tokens
    that no answer of the history used); or tokens that were counted before a request was sent.
    """
    if one is not None:
        return Bound(ONE_REQUEST, one, unseen if unseen > one else None, is_sure=False)
    ahead = getattr(limits, "count_tokens_before_request", False)
    counter = next((each for each in (TOKENS[0], TOKENS[2]) if ahead and each in left), None)
    return None if counter is None else Bound(counter, left[counter], None, is_sure=False)
