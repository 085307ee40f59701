"""What an exception says without its text: the names of its types, and numbers and codes beside them.

`str(error)` is never taken: messages quote prompts, arguments and results.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from stopcause.receipts.identifiers import is_identifier
from stopcause.receipts.vocabulary import StopCause

_MOST_LINKS = 8
_QUOTA_STATUSES = (402, 429)
_CODES = {
    "context_length_exceeded": StopCause.CONTEXT_LIMIT,
    "insufficient_quota": StopCause.QUOTA,
    "content_filter": StopCause.CONTENT_FILTER,
}
# Classes of theirs that are a bound or a filter: openai's `_exceptions.py`, litellm's `exceptions.py`.
_CLASSES = {
    "LengthFinishReasonError": StopCause.OUTPUT_CAP,
    "ContentFilterFinishReasonError": StopCause.CONTENT_FILTER,
    "ContextWindowExceededError": StopCause.CONTEXT_LIMIT,
    "ContentPolicyViolationError": StopCause.CONTENT_FILTER,
}
# Packages whose exceptions mean that a model or its provider failed. Of the clouds only their parts for models: a tool
# that cannot reach its bucket fails with classes of the same package.
_PROVIDERS = frozenset(
    {
        "anthropic", "azure.ai", "cohere", "google.genai", "google.generativeai", "groq", "litellm", "mistralai",
        "ollama", "openai",
    }
)  # fmt: skip
_BEDROCK = frozenset({"Converse", "ConverseStream", "InvokeModel", "InvokeModelWithResponseStream"})
# Cancellations and timers of other loops and of job queues, by package and class: asyncio's are no base of theirs.
_CANCELLED = frozenset(
    {("trio", "Cancelled"), ("greenlet", "GreenletExit"), ("dramatiq", "Shutdown"), ("temporalio", "CancelledError")}
)
# What comes from a cancellation of what was waited for: `is_cancelled_exception` of temporalio's `exceptions.py`.
_AROUND_CANCELLED = frozenset({("temporalio", "ActivityError"), ("temporalio", "ChildWorkflowError")})
_TIMED_OUT = frozenset(
    {
        ("trio", "TooSlowError"), ("gevent", "Timeout"), ("billiard", "SoftTimeLimitExceeded"),
        ("rq", "JobTimeoutException"), ("dramatiq", "TimeLimitExceeded"),
    }
)  # fmt: skip


class Fault(NamedTuple):
    """An error by its types: `chain` is the type and those of what it came from. `status` and `code` as it has them."""

    type: str | None
    chain: tuple[str, ...] = ()
    code: str | None = None
    status: int | None = None
    tool: str | None = None


def fault_of(error: BaseException, tool: str | None = None) -> Fault:
    """The fault that an exception is. Code and status of a group are those of what is in it."""
    chain = chain_of(error)
    names = tuple(name for each in chain if (name := type_name(type(each))))
    inner = next((each for each in chain if not isinstance(each, BaseExceptionGroup)), error)
    return Fault(names[0] if names else None, names, _code(inner), status_of(inner), tool)


def type_name(kind: type) -> str | None:
    """A class by its name, where that is one."""
    name = getattr(kind, "__name__", None)
    return name if isinstance(name, str) and is_identifier(name) else None


def chain_of(error: BaseException) -> list[BaseException]:
    """The exception and what it came from, the newest first. Compared by identity: their `==` is somebody else's."""
    links: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and len(links) < _MOST_LINKS and not any(link is each for each in links):
        links.append(link)
        link = _before(link)
    return links


def _before(error: BaseException) -> BaseException | None:
    """What it came from. A group came from the first in it: a task group cancels the others because of that one."""
    if isinstance(error, BaseExceptionGroup):
        return error.exceptions[0]
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an exception carries, if any. Some carry the response; Gemini's call it their code."""
    answer = _attribute(error, "response")
    named = [_attribute(error, name) for name in ("status_code", "status", "http_status")]
    if _is_provider_s(error):
        named.append(_attribute(error, "code"))
    for value in (*named, _attribute(answer, "status_code")):
        if type(value) is int and 100 <= value <= 599:  # noqa: PLR2004 - what a status is
            return value
    return None


def is_cancelled(error: BaseException) -> bool:
    """Whether a task was cancelled."""
    if isinstance(error, asyncio.CancelledError) or _is_one_of(_CANCELLED, error):
        return True
    cause = error.__cause__
    return cause is not None and _is_one_of(_AROUND_CANCELLED, error) and _is_one_of(_CANCELLED, cause)


def is_time_out(error: BaseException) -> bool:
    """Whether an outer timer cut the work off: `asyncio.timeout` and `wait_for` turn the cancellation into this.

    A `TimeoutError` that no cancellation is behind is some library's: a tool or a model that was too slow.
    """
    if issubclass(type(error), TimeoutError):  # `isinstance` would ask the object, and some answer by raising
        return any(is_cancelled(link) for link in chain_of(error))
    return _is_one_of(_TIMED_OUT, error)


def _is_one_of(classes: frozenset[tuple[str, str]], error: BaseException) -> bool:
    return any((_package(kind), kind.__name__) in classes for kind in type(error).__mro__)


def _package(kind: type, parts: int = 1) -> str:
    """The package that a class is from, as far as it says: `__module__` may be set to anything."""
    module: object = kind.__module__
    return ".".join(module.split(".")[:parts]) if isinstance(module, str) else ""


def provider_cause(error: BaseException) -> StopCause | None:
    """What an exception of a model's provider means; None where it is none.

    Source of the rule: the classes of the providers' own packages, the status, and the codes that they document.
    """
    for link in chain_of(error):
        if _is_provider_s(link):
            named = _CLASSES.get(type(link).__name__) or _CODES.get(_code(link) or "")
            if named is not None:
                return named
            return StopCause.QUOTA if status_of(link) in _QUOTA_STATUSES else StopCause.MODEL_FAILURE
    return None


def _is_provider_s(error: BaseException) -> bool:
    """Also where the application made a class of its own from it. botocore's errors name the operation that failed."""
    names = {name for kind in type(error).__mro__ for name in (_package(kind), _package(kind, 2))}
    if "botocore" in names:
        return _attribute(error, "operation_name") in _BEDROCK
    return not _PROVIDERS.isdisjoint(names)


def _code(error: BaseException) -> str | None:
    """The code that a provider documents. In anybody else's exception `code` may be what a user typed."""
    if not _is_provider_s(error):
        return None
    value = _attribute(error, "code")
    return value if isinstance(value, str) and is_identifier(value) else None


def _attribute(error: object, name: str) -> object:
    try:
        return getattr(error, name, None)
    except Exception:  # noqa: BLE001 - a property of somebody else's exception; what it cannot tell is not told
        return None
