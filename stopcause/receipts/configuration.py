"""What the host says once, for all its runs: where records go, whose the waits are, what is allowed out of metadata.

Plain data, checked at once. Hooks never read a policy: that is the operator's, and is applied where runs are judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NamedTuple, Protocol

from stopcause.errors import ConfigurationError
from stopcause.receipts.identifiers import DISPLAY_NAME_WORDS, IDENTIFIER_WORDS, display_name, is_identifier
from stopcause.receipts.vocabulary import ApprovalKind

MOST_LABELS = 8
_ROUTE_KEYS = ("agent", "kind", "tool", "owner", "due_s", "expires_s")
_APPROVAL_KEYS = ("owner", "deadline", "expires_at", "resume_token")


class Sink(Protocol):
    """Where lines go. Called on one thread behind, never on the agent's."""

    def write(self, lines: Sequence[bytes]) -> int | None:
        """Takes these lines, durably, or raises; a call that raised is made again with the same lines.

        Returns:
            How many of them it gave up for good; the next record says so.
        """

    def close(self) -> None:
        """Lets go of what is open."""


class Route(NamedTuple):
    """Who answers a wait, and until when: seconds from the request. The first whose patterns match counts."""

    agent: str = "*"
    kind: str = "*"
    tool: str = "*"
    owner: str | None = None
    due_s: float | None = None  # soft
    expires_s: float | None = None  # hard

    def matches(self, agent: object, kind: object, tool: object) -> bool:
        """Whether this route is for such a wait. What a run does not say, or not by a name, matches only `*`."""
        asked = ((self.agent, agent), (self.kind, kind), (self.tool, tool))
        return all(pattern == "*" or (isinstance(name, str) and fnmatchcase(name, pattern)) for pattern, name in asked)


class Finished(NamedTuple):
    """What an in-process validator is given: a run that ended as if done, and what it returned, where that is known."""

    run_id: str
    attempt: int
    agent: str | None
    thread_id: str | None
    subject: str | None
    stop_cause: str
    result: Any


Validator = Callable[[Finished], bool | None]


@dataclass(frozen=True, slots=True)
class Configuration:
    """All that `configure` was told; the defaults hold without it."""

    sink: Sink | None = None  # None: the spool
    service: str | None = None
    environment: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    label_keys: tuple[str, ...] = ()
    routes: tuple[Route, ...] = ()
    approval_keys: Mapping[str, str] = field(default_factory=dict)
    validators: Mapping[str, Validator] = field(default_factory=dict)
    loop_policy: str | None = None
    lease_s: float = 300.0
    queue_max: int = 50_000

    def route_of(self, agent: object, kind: object, tool: object) -> Route | None:
        """The route of a wait, if there is one."""
        return next((route for route in self.routes if route.matches(agent, kind, tool)), None)


def checked(  # noqa: PLR0913 - one parameter for each thing that a host may say
    *,
    sink: Sink | None,
    service: str | None,
    environment: str | None,
    labels: Mapping[str, str] | None,
    label_keys: Iterable[str],
    route: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None,
    approval_keys: Mapping[str, str] | None,
    validators: Mapping[str, Validator] | None,
    loop_policy: str | None,
    lease_s: float,
    queue_max: int,
) -> Configuration:
    """A configuration of these.

    Raises:
        ConfigurationError: One of them is wrong; the message names it.
    """
    routes = [route] if isinstance(route, Mapping) else list(route or ())
    return Configuration(
        sink=_sink(sink),
        service=_name("service", service),
        environment=_identifier("environment", environment),
        labels=_labels(labels or {}),
        label_keys=_keys(label_keys),
        routes=tuple(_route(f"route[{i}]" if len(routes) > 1 else "route", each) for i, each in enumerate(routes)),
        approval_keys=_approval_keys(approval_keys or {}),
        validators=_validators(validators or {}),
        loop_policy=_identifier("loop_policy", loop_policy),
        lease_s=_seconds("lease_s", lease_s),
        queue_max=_count("queue_max", queue_max),
    )


def _sink(sink: Sink | None) -> Sink | None:
    if sink is not None and not all(callable(getattr(sink, name, None)) for name in ("write", "close")):
        raise _wrong("sink", "an object with write(lines) and close(), as stopcause.receipts.sinks has them")
    return sink


def _name(place: str, value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or (name := display_name(value)) is None:
        raise _wrong(place, DISPLAY_NAME_WORDS)
    return name


def _identifier(place: str, value: object) -> str | None:
    if value is not None and not (isinstance(value, str) and is_identifier(value)):
        raise _wrong(place, IDENTIFIER_WORDS)
    return value


def _labels(labels: object) -> dict[str, str]:
    if not isinstance(labels, Mapping) or len(labels) > MOST_LABELS:
        raise _wrong("labels", f"a mapping with at most {MOST_LABELS} entries")
    for key, value in labels.items():
        _identifier("labels", key)
        if not isinstance(value, str):
            raise _wrong(f"labels.{key}", IDENTIFIER_WORDS)
        _identifier(f"labels.{key}", value)
    return dict(labels)


def _keys(keys: object) -> tuple[str, ...]:
    if isinstance(keys, str) or not isinstance(keys, Iterable):
        raise _wrong("label_keys", "a list of names")
    found = tuple(keys)
    for key in found:
        if not isinstance(key, str):
            raise _wrong("label_keys", "a list of names")
        _identifier("label_keys", key)
    return found


def _route(place: str, given: object) -> Route:
    if not isinstance(given, Mapping):
        raise _wrong(place, f"a mapping with {', '.join(_ROUTE_KEYS)}")
    for key in given:
        if key not in _ROUTE_KEYS:
            raise _wrong(f"{place}.{key}", f"absent: a route has {', '.join(_ROUTE_KEYS)}")
    route = Route(**given)
    for name in ("agent", "kind", "tool"):
        if not isinstance(getattr(route, name), str):
            raise _wrong(f"{place}.{name}", "a name, or a pattern with * and ?")
    if "*" not in route.kind and "?" not in route.kind and route.kind not in list(ApprovalKind):
        raise _wrong(f"{place}.kind", f"one of {', '.join(ApprovalKind)}, or *")
    _identifier(f"{place}.owner", route.owner)
    for name in ("due_s", "expires_s"):
        if getattr(route, name) is not None:
            _seconds(f"{place}.{name}", getattr(route, name))
    return route


def _approval_keys(keys: object) -> dict[str, str]:
    if not isinstance(keys, Mapping):
        raise _wrong("approval_keys", f"a mapping from {', '.join(_APPROVAL_KEYS)} to keys of the framework's metadata")
    for name, key in keys.items():
        if name not in _APPROVAL_KEYS:
            raise _wrong(f"approval_keys.{name}", f"absent: it can name {', '.join(_APPROVAL_KEYS)}")
        if not isinstance(key, str):
            raise _wrong(f"approval_keys.{name}", "the key that holds it in the framework's metadata")
    return dict(keys)


def _validators(validators: object) -> dict[str, Validator]:
    if not isinstance(validators, Mapping):
        raise _wrong("validators", "a mapping from a contract's name to a function")
    for name, validate in validators.items():
        if not isinstance(name, str):
            raise _wrong("validators", "a mapping from a contract's name to a function")
        _identifier("validators", name)
        if not callable(validate):
            raise _wrong(f"validators.{name}", "a function of a finished run that returns True, False or None")
    return dict(validators)


def _seconds(place: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise _wrong(place, "a number of seconds above zero")
    return float(value)


def _count(place: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _wrong(place, "a whole number above zero")
    return value


def _wrong(place: str, should_be: str) -> ConfigurationError:
    return ConfigurationError(f"configure: {place} must be {should_be}")
