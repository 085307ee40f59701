"""Generated runs for the benches: a day of a busy platform, the same on every machine, in the order of time.

    agents      40, skewed: the busiest has a fifth of the runs, the quietest a thousandth; each has a mix of its own
    versions    each agent moves on twice in a day, so that two of its versions are often up at once
    runs        2.2 records on average: start, receipt, half of them an outcome, some an approval and a decision
    waits       every twentieth run; answered after minutes, hours or never, some with nobody named
    outcomes    late: seconds to hours after the stop; a tenth refuted
    attempts    every fiftieth run died and was started again
    hooks       one adapter version in five does not know finish reasons

Here: the mix, and the lines. `bench.store` makes ten million of them inside the engine.
"""

from __future__ import annotations

import heapq
import json
import random
import uuid
from bisect import bisect
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any, NamedTuple

START = datetime(2026, 11, 28, 8, 0, tzinfo=UTC)
DAY = timedelta(days=1)
NOW = START + 2 * DAY  # later than every outcome
POLICY = {
    "policy": {"id": "bench", "version": "1"},
    "agents": [
        {"match": {"agent": "agent-1*"}, "contract": "outcome", "stage": "enforce", "owner": "team:one"},
        {"match": {"agent": "agent-*"}, "contract": "outcome", "stage": "enforce", "owner": "team:others"},
    ],
    "routes": [{"match": {"tool": "transfer_*"}, "owner": "team:treasury", "due": "4h"}],
    "contracts": {"outcome": {"issuers": ["destination:system"]}},
}

AGENTS = 40
_WEIGHTS = list(accumulate(1 / (rank + 1) ** 1.2 for rank in range(AGENTS)))
_CAUSES = ("natural", "explicit_done", "step_limit", "time_limit", "tool_failure", "user_abort", "loop_guard")
_MIXES = tuple(
    list(accumulate(weights))
    for weights in (
        (80, 5, 5, 3, 5, 1, 1),  # most agents
        (50, 30, 10, 2, 5, 2, 1),  # those with a tool that means done
        (40, 0, 30, 10, 10, 5, 5),  # those that search and crawl
    )
)
_FINISHED = ("natural", "explicit_done")
_TOOLS = ("transfer_funds", "refund_issue", "ledger_post")


class _Plan(NamedTuple):
    """What a run will be. Times are offsets from its start, in seconds; None is never."""

    run_id: str
    opened: datetime
    agent: int
    version: str
    environment: str
    duration: float
    cause: str
    chance: random.Random


def lines(runs: int) -> Iterator[bytes]:
    """The NDJSON lines of so many runs, without newlines, in the order of time."""
    return (json.dumps(record, separators=(",", ":")).encode() for record in records(runs))


def records(runs: int) -> Iterator[dict[str, Any]]:
    """The same as mappings. The runs begin in one day, evenly; what is late comes late."""
    chance = random.Random(1)  # noqa: S311 - the same runs every time is the point
    waiting: list[tuple[str, int, dict[str, Any]]] = []
    count = 0
    for number in range(runs):
        plan = _plan(number, runs, chance)
        for record in _run(number, plan):
            heapq.heappush(waiting, (record["at"], count, record))
            count += 1
        while waiting and waiting[0][0] < _text(plan.opened):
            yield heapq.heappop(waiting)[2]
    while waiting:
        yield heapq.heappop(waiting)[2]


def _plan(number: int, runs: int, chance: random.Random) -> _Plan:
    opened = START + DAY * number / runs
    agent = bisect(_WEIGHTS, chance.random() * _WEIGHTS[-1])
    mix = _MIXES[agent % len(_MIXES)]
    hour = (opened - START) / timedelta(hours=1)
    deploys = int((hour + agent % 5 + chance.random()) // 9)  # a deployment takes an hour to reach every process
    return _Plan(
        run_id=_uuid7(opened, chance),
        opened=opened,
        agent=agent,
        version=f"2.{deploys}.{agent % 3}",
        environment="prod" if number % 5 else "staging",
        duration=min(chance.lognormvariate(3, 1), 3600),
        cause=_CAUSES[bisect(mix, chance.random() * mix[-1])],
        chance=chance,
    )


def _uuid7(at: datetime, chance: random.Random) -> str:
    stamp = int(at.timestamp() * 1000)
    return str(uuid.UUID(int=stamp << 80 | 7 << 76 | chance.getrandbits(12) << 64 | 2 << 62 | chance.getrandbits(62)))


def _run(number: int, plan: _Plan) -> Iterator[dict[str, Any]]:
    ended = plan.opened + timedelta(seconds=plan.duration)
    attempt = 1
    if number % 50 == 7:  # killed half-way, started again by its supervisor
        yield _head(plan, 1, 1, "run.started", plan.opened) | _identity(plan) | {"lease_s": 600, "limits": _limits()}
        half = plan.opened + timedelta(seconds=plan.duration / 2)
        yield _head(plan, 1, 2, "run.died", half) | {"reason": "oom_killed", "signal": 9}
        attempt = 2
    began = plan.opened if attempt == 1 else plan.opened + timedelta(seconds=plan.duration / 2 + 1)
    yield _head(plan, attempt, 1, "run.started", began) | _identity(plan) | {"lease_s": 600, "limits": _limits()}
    stop = _head(plan, attempt, 2, "run.stopped", ended) | _identity(plan) | _receipt(plan)
    if number % 20 == 3:
        yield stop | {"stop_cause": "approval_pending", "approvals": [_approval(number, plan, ended)]}
        yield from _decision(number, plan, attempt, ended)
        return
    yield stop
    if plan.cause in _FINISHED and plan.chance.random() < 0.6:
        late = timedelta(seconds=min(plan.chance.lognormvariate(2, 2), 20_000))
        yield _head(plan, attempt, 3, "outcome.recorded", ended + late) | {"outcome": _outcome(plan)}


def _decision(number: int, plan: _Plan, attempt: int, ended: datetime) -> Iterator[dict[str, Any]]:
    """Half of the waits are answered: a denial ends them, and after a yes the call was executed."""
    if number % 40 != 3:
        return
    after = timedelta(seconds=min(plan.chance.lognormvariate(6, 2), 80_000))
    answer = {"decision": "approved", "executed": True} if number % 3 else {"decision": "denied"}
    word = {"approval_id": f"approval-{number}", "state": "decided", "actor": "user:u-118"} | answer
    yield _head(plan, attempt, 3, "approval.updated", ended + after) | {"approval": word}


def _head(plan: _Plan, attempt: int, seq: int, kind: str, at: datetime) -> dict[str, Any]:
    return {
        "schema": "stopcause/1",
        "kind": kind,
        "record_id": _uuid7(at, plan.chance),
        "run_id": plan.run_id,
        "attempt": attempt,
        "at": _text(at),
        "seq": seq,
        "boundary": "call",
        "adapter": "langgraph",
        "adapter_version": f"0.{plan.agent % 5}.0",
        "framework": "langgraph",
        "framework_version": "1.4.2",
        "trace_id": f"{plan.chance.getrandbits(128):032x}",
        "span_id": f"{plan.chance.getrandbits(64):016x}",
    }


def _text(at: datetime) -> str:
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _identity(plan: _Plan) -> dict[str, Any]:
    return {
        "agent": f"agent-{plan.agent}",
        "agent_version": plan.version,
        "service": f"service-{plan.agent % 7}",
        "environment": plan.environment,
        "model": "m-large-2" if plan.agent % 2 else "m-small-1",
        "provider": "acme",
        "thread_id": f"thread-{plan.run_id[-7:]}",
    }


def _limits() -> list[dict[str, Any]]:
    return [{"name": "max_steps", "kind": "steps", "limit": 20, "unit": "step", "scope": "run"}]


def _receipt(plan: _Plan) -> dict[str, Any]:
    chance, hit = plan.chance, plan.cause == "step_limit"
    steps = 20 if hit else chance.randint(1, 19)
    finish = "other" if plan.agent % 5 == 4 and chance.random() < 0.3 else "stop"
    return {
        "stop_cause": plan.cause,
        "started_at": _text(plan.opened),
        "duration_s": round(plan.duration, 3),
        "steps": steps,
        "step_unit": "step",
        "limits": _limits(),
        "tool_calls": chance.randint(0, 9),
        "pending_tool_calls": 0,
        "model_calls": steps,
        "conditions": [{"name": "max_steps", "kind": "steps", "fired": hit, "limit": 20, "observed": steps}],
        "finish_reason": {"raw": finish, "normalized": finish, "source": "provider"},
        "usage": {
            "input_tokens": chance.randint(100, 9000),
            "output_tokens": chance.randint(10, 900),
            "cost_usd": round(chance.expovariate(20), 4),
        },
        "output_shape": "text",
    }


def _approval(number: int, plan: _Plan, at: datetime) -> dict[str, Any]:
    """Two of three name who answers; the policy's route fills in one tool of the three."""
    named = {"owner": "team:pay", "deadline": _text(at + timedelta(hours=4))} if number % 3 else {}
    return {
        "approval_id": f"approval-{number}",
        "kind": "tool_call",
        "tool": _TOOLS[plan.agent % len(_TOOLS)],
        "state": "requested",
        "resume_token": f"thread:{plan.run_id[-7:]}",
    } | named


def _outcome(plan: _Plan) -> dict[str, Any]:
    return {
        "outcome_id": f"outcome-{plan.run_id[-12:]}",
        "contract": "outcome",
        "check": "exists",
        "strength": "read_back",
        "polarity": "refuted" if plan.chance.random() < 0.1 else "confirmed",
        "issuer": {"type": "destination", "id": "system"},
        "pre_state": "absent",
        "subject": f"sha256:{plan.chance.getrandbits(256):064x}",
    }
