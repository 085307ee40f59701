"""What a store has seen that a policy can be about: agents, approvals, contracts; and what of a policy fits none."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from stopcause.classifier.policy import Policy, Subject, matches
from stopcause.errors import Problem
from stopcause.pipeline.policy_touch import entry_of
from stopcause.store.duckdb_store import DuckStore
from stopcause.store.queries import text

LOOKED_BACK = timedelta(days=30)
_MOST = 20_000  # subjects; where there are more, what fits none of them may still fit another


class Seen(NamedTuple):
    """Who ran, what was asked for, and which contracts runs named. `whole`: there is no more than this."""

    subjects: tuple[Subject, ...]
    approvals: tuple[Subject, ...]
    contracts: frozenset[str]
    whole: bool


def seen_of(store: DuckStore, now: datetime) -> Seen:
    """What a store has seen in the last 30 days."""
    since = (now - LOOKED_BACK).replace(tzinfo=None)
    asked = {"since": since, "hour": int((now - LOOKED_BACK).timestamp() // 3600), "most": _MOST}
    runs = store.ask(text("policy_subjects"), asked).rows
    waits = store.ask(text("policy_approvals"), asked).rows
    contracts = frozenset(contract for *_, contract, _runs in runs if contract)
    whole = len(runs) < _MOST and len(waits) < _MOST
    subjects = tuple(Subject(*who) for *who, _contract, _runs in runs)
    return Seen(subjects, tuple(Subject(*who) for *who, _count in waits), contracts, whole)


def fits_nothing(policy: Policy, seen: Seen) -> tuple[Problem, ...]:
    """Warnings for entries, routes and contracts that nothing of what was seen comes to."""
    if not seen.whole or not seen.subjects:
        return ()
    reached = {entry_of(policy, subject) for subject in set(seen.subjects)}
    asks_child = [number for number, route in enumerate(policy.routes) if route.match.raised_by not in (None, "*")]
    routed = {*asks_child, *(_route_of(policy, asked) for asked in set(seen.approvals))}  # who asked is not kept
    named = {entry.contract for entry in policy.agents} | seen.contracts
    return (
        *_warnings("agents", _others(len(policy.agents), reached), "matches no run of the last 30 days"),
        *_warnings("routes", _others(len(policy.routes), routed), "matches no approval of the last 30 days"),
        *(_warning(f"contracts.{name}", _UNNAMED) for name in policy.contracts if name not in named),
    )


_UNNAMED = "is named by no agent entry, and by no run of the last 30 days"


def _route_of(policy: Policy, asked: Subject) -> int | None:
    found = (number for number, route in enumerate(policy.routes) if matches(route.match, asked))
    return next(found, None)


def _others(size: int, reached: Iterable[int | None]) -> list[int]:
    return [number for number in range(size) if number not in set(reached)]


def _warnings(section: str, numbers: Iterable[int], message: str) -> list[Problem]:
    return [_warning(f"{section}[{number}]", message) for number in numbers]


def _warning(place: str, message: str) -> Problem:
    return Problem(place, message, warning=True)
