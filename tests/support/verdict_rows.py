"""Verdict rows by the thousand, as a store of some weeks has them: the same ones for the same seed, chunk by chunk.

What makes reports wrong is in them: revisions that were taken back, attempts that a later one replaced or that are no
longer judged, runs without agent, version or environment, clocks that run ahead, waits that are months old.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from stopcause.store.rows import StoredWait, VerdictRow

NOW = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
_CHUNK = 20_000
_AGENTS = (*(f"agent-{n}" for n in range(6)), "=cmd", None)
_ENVIRONMENTS = ("prod", "prod", "staging", None)
_VERSIONS = ("1.0.0", "1.1.0", "2.0.0", None)
_ENDS: tuple[tuple[str | None, str, str | None, str | None], ...] = (
    ("VERIFIED_COMPLETE", "receipt", "natural", None),
    ("VERIFIED_COMPLETE", "receipt", "explicit_done", None),
    ("FALSE_COMPLETE", "no_contract", "natural", None),
    ("FALSE_COMPLETE", "receipt_missing", "natural", "outcome"),
    ("FALSE_COMPLETE", "receipt_refuted", "natural", "outcome"),
    ("FALSE_COMPLETE", "receipt_pending", "natural", "outcome"),
    ("FAILED", "tool_failure", "tool_failure", "ledger_post"),
    ("FAILED", "model_failure", "model_failure", None),
    ("STUCK", "loop_guard", "loop_guard", None),
    ("STUCK", "time_limit", "time_limit", None),
    ("BOUNDED_STOP", "step_limit", "step_limit", "max_steps"),
    ("BOUNDED_STOP", "token_budget", "token_budget", None),
    ("BOUNDED_STOP", "user_abort", "user_abort", None),
    ("WAITING", "tool_call", "approval_pending", None),
    ("WAITING", "answered", "approval_pending", None),
    ("WAITING_UNROUTED", "owner", "approval_pending", None),
    ("WAITING_UNROUTED", "overdue", "input_pending", None),
    ("UNCERTAIN", "finish_unknown", "natural", "langgraph/0.4.0"),
    ("UNCERTAIN", "run_open", None, "ai-sdk/7.1"),
    (None, "running", None, None),
)
_WEIGHTS = (30, 6, 14, 8, 2, 3, 5, 3, 2, 1, 4, 2, 1, 3, 2, 2, 1, 5, 3, 3)
_FRAMEWORKS = (("ag-ui-langgraph", "0.0.47"), ("ag_ui_strands", "1.0.2"), ("ag-ui", None), (None, None))
_BROKEN = (
    "uncovered=i-1",
    "uncovered=i-2",
    "action_without_answer=i-1",
    "bad_answer_swallowed=i-3",
    "late_error",
    "no_version",
    "odd",
)
_CLOSED = ("executed", "passed", "answered", "denied", "withdrawn", "expired", "over", "aborted")
_NOTHING: dict[str, Any] = dict.fromkeys(VerdictRow._fields)
_SAID: dict[str, Any] = {
    "attempt": 1,
    "revision": 1,
    "sign": 1,
    "rule": "any",
    "evidence": (),
    "retry": "check_first",
    "settled": True,
    "policy_version": "1",
    "policy_digest": "d",
    "classifier_version": "1",
    "as_of": NOW,
}
_BASE = VerdictRow(**(_NOTHING | _SAID))


def chunks(runs: int, *, changed: float = 1.0, seed: int = 7) -> Iterator[list[VerdictRow]]:
    """The rows of so many runs, in the order in which a keeper would append them.

    Args:
        runs: How many runs.
        changed: How many of them may have more than one attempt or revision: 1 is all.
        seed: Another one gives other rows.
    """
    draw = random.Random(seed)  # noqa: S311 - the same rows each time
    made: list[VerdictRow] = []
    for number in range(runs):
        made += _run(draw, number, changes=draw.random() < changed)
        if len(made) >= _CHUNK:
            yield made
            made = []
    yield made


def latest(rows: Iterable[VerdictRow]) -> Iterator[VerdictRow]:
    """The current row of each run's latest attempt, of the rows of whole runs: one after the other, no sums."""
    current: dict[tuple[str, int], VerdictRow] = {}
    for row in rows:
        if row.sign > 0:
            current[row.run_id, row.attempt] = row
        else:
            del current[row.run_id, row.attempt]
    return (row for row in current.values() if row.is_latest)


def _run(draw: random.Random, number: int, *, changes: bool) -> list[VerdictRow]:
    """All rows of a run: what was said first, taken back, and said then, attempt by attempt."""
    opened = _opened(draw)
    agent = draw.choice(_AGENTS)
    known = {
        "run_id": f"{number:07x}-{draw.getrandbits(32):08x}",
        "opened_at": opened,
        "agent": agent,
        "agent_version": draw.choice(_VERSIONS) if agent != "agent-5" else "1.0.0",
        "environment": draw.choice(_ENVIRONMENTS),
        "last_at": opened + timedelta(seconds=draw.randrange(900)),  # of all attempts: the newest record is one
        "service": None if agent in (None, "agent-3") else f"service-{agent[-1]}",
        "adapter": draw.choice(("langgraph", "ai-sdk", "stopcause.agui", "stopcause.agui", None)),
        "adapter_version": draw.choice(("0.3.2", "0.4.0")),
        **dict(zip(("framework", "framework_version"), draw.choice(_FRAMEWORKS), strict=True)),
        "owner": None if agent in (None, "agent-4") else f"team:{agent[-1]}",
        "stage": "enforce" if agent in ("agent-0", "agent-1", "=cmd") else "observe",
        "has_on_bound": agent == "agent-0",
    }
    if not changes:
        return [_ended(draw, known, opened)._replace(is_latest=True)]
    count = draw.choices((1, 2, 3), (85, 11, 4))[0]
    rows: list[VerdictRow] = []
    for attempt in range(1, count + 1):
        end = _ended(draw, known, opened)._replace(attempt=attempt, is_latest=attempt == count)
        revisions = _revisions(draw, end, known)
        rows += revisions
        if attempt < count and draw.random() < 0.1:
            rows.append(revisions[-1]._replace(sign=-1))  # no longer judged
    return rows


def _revisions(draw: random.Random, end: VerdictRow, known: dict[str, Any]) -> list[VerdictRow]:
    said = [end]
    if not end.is_latest:
        said.insert(0, end._replace(is_latest=True))
    if draw.random() < 0.3:
        first = _ended(draw, known, end.opened_at)
        if draw.random() < 0.2:
            first = first._replace(agent="named-later", agent_version=None, service="named-later", cost_usd=9.5)
        said.insert(0, first._replace(attempt=end.attempt, is_latest=True))
    rows: list[VerdictRow] = []
    for number, row in enumerate(said, 1):
        if rows:
            rows.append(rows[-1]._replace(sign=-1))
        rows.append(row._replace(revision=number))
    return rows


def _opened(draw: random.Random) -> datetime:
    """Most of them lately, some months ago, and some by a clock that runs ahead."""
    if draw.random() < 0.005:
        return NOW + timedelta(seconds=draw.randrange(7200))
    ago = 40 * 86400 * draw.random() ** 3 if draw.random() < 0.97 else draw.randrange(40, 200) * 86400.5
    return NOW - timedelta(microseconds=int(ago * 1e6))


def _ended(draw: random.Random, known: dict[str, Any], opened: datetime) -> VerdictRow:
    verdict, reason, cause, detail = draw.choices(_ENDS, _WEIGHTS)[0]
    stopped = opened + timedelta(microseconds=draw.randrange(600_000_000)) if verdict else None
    waits = _waits(draw, verdict, reason, stopped or known["last_at"])
    return _BASE._replace(
        **known,
        verdict=verdict,
        reason=reason,
        stop_cause=cause,
        detail=detail,
        contract="outcome" if detail == "outcome" else None,
        fingerprint=_fingerprint(verdict, reason, cause, detail, known["agent"], known["environment"]),
        missing=tuple(dict.fromkeys(word for wait in waits for word in wait.missing)),
        findings=_findings(draw, known["adapter"]),
        stopped_at=stopped,
        waits=waits,
        **_uses(draw),
    )


def _findings(draw: random.Random, adapter: str | None) -> tuple[str, ...]:
    """Of a rule of AG-UI several in one run, and such as weigh nothing."""
    if adapter == "stopcause.agui" and draw.random() < 0.5:
        return tuple(draw.choices(_BROKEN, k=draw.randrange(1, 4)))
    return ("unbounded",) if draw.random() < 0.2 else ("recovered_tool_errors=4",) * draw.randrange(2)


def _uses(draw: random.Random) -> dict[str, Any]:
    """Limits and what was used of them; a limit of 0, and a use that nobody measured, are among them."""
    return {
        "duration_s": draw.choice((None, draw.random() * 100)),
        "steps": draw.choice((None, draw.randrange(25))),
        "step_limit": draw.choice((None, 0.0, 20.0)),
        "token_limit": draw.choice((None, 1000.0)),
        "cost_limit": draw.choice((None, None, 0.5)),
        "time_limit": draw.choice((None, 60.0)),
        "input_tokens": draw.choice((None, draw.randrange(900))),
        "output_tokens": draw.choice((None, draw.randrange(200))),
        "cost_usd": draw.choice((None, draw.random())),
    }


def _waits(draw: random.Random, verdict: str | None, reason: str, at: datetime) -> tuple[StoredWait, ...]:
    lacked = ("overdue",) if draw.random() < 0.1 else ()
    waits = [_wait(draw, at, draw.choice(_CLOSED), lacked) for _ in range(draw.choice((0, 0, 0, 0, 1, 2)))]
    if verdict in ("WAITING", "WAITING_UNROUTED") and reason != "answered":
        lacking: tuple[str, ...] = () if verdict == "WAITING" else (reason,)
        waits += [_wait(draw, at, None, lacking), *[_wait(draw, at, None) for _ in range(draw.randrange(2))]]
    elif (verdict == "FAILED" or reason == "answered") and draw.random() < 0.1:
        waits.append(_wait(draw, at, None, ("overdue",)))  # it failed before anybody answered: nothing waits
    return tuple(waits)


def _wait(draw: random.Random, at: datetime, resolution: str | None, missing: Sequence[str] = ()) -> StoredWait:
    since = draw.choice((None, at - timedelta(seconds=draw.randrange(100))))
    soon = timedelta(seconds=draw.randrange(1, 9000))
    known = resolution is not None and draw.random() < 0.8
    return StoredWait(
        approval_id=draw.choice((None, f"a-{draw.randrange(10**6)}")),
        kind=draw.choice(("tool_call", "input_required")),
        tool=draw.choice((None, "refund_issue")),
        owner=None if "owner" in missing else "team:pay",
        since=since,
        due=at + soon if "overdue" in missing or draw.random() < 0.5 else None,
        expires_at=draw.choice((None, at + 2 * soon)),
        ended_at=at + timedelta(seconds=draw.randrange(-50, 9000)) if known else None,
        resolution=resolution,
        missing=tuple(missing),
    )


@cache
def _fingerprint(*said: str | None) -> str:
    return f"{zlib.crc32(repr(said).encode()):08x}{zlib.crc32(repr(said[::-1]).encode()) & 0xFFFF:04x}"
