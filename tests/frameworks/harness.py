"""Runs a path of a framework and writes down what its hook recorded, as a case that comes out the same every time.

A path is one way in which a real run of the framework ends; only its model is scripted. Ids and times are made the same
in every run; everything else in `fixtures/frameworks/` is as it was recorded. Writing them anew: RECORD=1.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from stopcause.classifier import engine, fold
from stopcause.classifier.policy import DEFAULT_POLICY, policy_from_mapping
from stopcause.receipts import codec
from stopcause.receipts.testing import recorded

_IS_OLDEST = os.environ.get("STOPCAUSE_VERSIONS") == "oldest"  # read here: tests run without settings of this machine
FIXTURES = Path(__file__).parents[2] / "fixtures" / "frameworks"
_BASE = datetime(2026, 11, 28, 7, 0, 0, tzinfo=UTC)
_TIMES = ("at", "started_at", "last_at", "requested_at", "observed_at", "decided_at", "delivered_at")
_BOUNDS = ("deadline", "expires_at")  # moments to come: they keep their distance from the request
_RANDOM = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}|[0-9a-f]{32}")
_DROPPED = ("process", "trace_id", "span_id", "sampled")


class Scripted(Exception):  # noqa: N818 - what a path raises on purpose says so by its name
    """An error of a path's own; its text is a canary and must not be found anywhere."""


class Path_(NamedTuple):  # noqa: N801 - `Path` is taken
    """One way in which a run ends.

    Attributes:
        id: Without the framework's name.
        why: One line: what happens, and why the verdict follows.
        expected: Verdict and reason.
        run: Makes the run. A function or a coroutine function; what the agent raises is expected and goes no further.
        options: For `configure`.
        policy: For the case.
        judged: Which run of the case, counted from 0 in the order in which they began.
        after_s: How long after the last record it is judged.
    """

    id: str
    why: str
    expected: tuple[str | None, str | None]
    run: Callable[[], Any]
    options: Mapping[str, Any] = {}
    policy: Mapping[str, Any] | None = None
    judged: int = 0
    after_s: float = 30.0


def case_of(framework: str, source: str, path: Path_) -> dict[str, Any]:
    """Runs a path and gives its case."""
    with recorded(**path.options) as receipts:
        _drive(path.run)
        records = [json.loads(line) for line in receipts.lines]
    assert records, "nothing was recorded"
    records, now = _normal(records, f"{framework}-{path.id}", path.after_s)
    run_ids = list(dict.fromkeys(each["run_id"] for each in records))
    case: dict[str, Any] = {"id": f"{framework}-{path.id}", "source": source, "why": path.why, "now": now}
    if path.policy is not None:
        case["policy"] = dict(path.policy)
    if len(run_ids) > 1:
        case["run_id"] = run_ids[path.judged]
    case["records"] = records
    case["expected"] = dict(zip(("verdict", "reason"), path.expected, strict=True))
    return case


class Told(NamedTuple):
    """What a path gave: its verdict, and its case beside the stored one, both without what may differ."""

    verdict: tuple[str | None, str | None]
    case: dict[str, Any]
    stored: dict[str, Any]


def told(framework: str, source: str, path: Path_, differs: Mapping[str, Any]) -> Told:
    """Runs a path, and reads its file; with RECORD=1 writes it first.

    Args:
        framework: The folder of its file.
        source: Framework and version, as the file names them.
        path: The path.
        differs: What is known to differ on this version, as `differing` gives it.
    """
    case = case_of(framework, source, path)
    file = FIXTURES / framework / f"{path.id}.json"
    if os.environ.get("RECORD"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(case, indent=1, ensure_ascii=False) + "\n", "utf-8")
    stored = json.loads(file.read_text("utf-8"))
    return Told(_judged(case), _comparable(case, differs), _comparable(stored, differs))


def differences(framework: str) -> dict[str, Any]:
    """By path, what the oldest version does not have (`absent`) or has otherwise (`fields`), and `why`."""
    found: dict[str, Any] = json.loads((Path(__file__).parent / framework / "differences.json").read_text("utf-8"))
    return found


def differing(framework: str, path_id: str) -> Mapping[str, Any]:
    """The same for one path, where this is the oldest version; else nothing differs."""
    found: Mapping[str, Any] = differences(framework).get(path_id, {}) if _IS_OLDEST else {}
    return found


def _drive(run: Callable[[], Any]) -> None:
    """A path brings its own `try` where it wants to see an error; here it may let go of one of its own."""
    made = run()
    if inspect.isawaitable(made):
        asyncio.run(_awaited(made))


async def _awaited(made: Any) -> Any:
    return await made


def _judged(case: Mapping[str, Any]) -> tuple[str | None, str | None]:
    read = [codec.read_value(each) for each in case["records"]]
    faults = [each for each in read if isinstance(each, codec.LineError)]
    assert not faults, faults
    policy = policy_from_mapping(case["policy"]) if "policy" in case else DEFAULT_POLICY
    runs = fold.group(read)  # type: ignore[arg-type]
    run_id = case.get("run_id") or case["records"][0]["run_id"]
    run = runs[run_id]
    resumers = engine.resumers_of(run, runs.values())
    facts = fold.facts_of(run, run.latest, policy, datetime.fromisoformat(case["now"]), resumers)
    verdict = engine.judge(facts)
    return verdict.verdict, verdict.reason


# The same every time --------------------------------------------------------------------------------------------------


def _normal(records: list[dict[str, Any]], name: str, after_s: float) -> tuple[list[dict[str, Any]], str]:
    names = _Names(name)
    moments = sorted({text for record in records for text in _moments(record)})
    clock = {text: (_BASE + timedelta(seconds=i)).isoformat().replace("+00:00", "Z") for i, text in enumerate(moments)}
    for number, record in enumerate(records, 1):
        names.run(record["run_id"])
        # Of the case's own: two cases in one store must not take each other's records for repeats.
        record["record_id"] = f"00000000-0000-7000-8000-{zlib.crc32(name.encode()):08x}{number:04d}"
        for key in _DROPPED:
            record.pop(key, None)
        if "duration_s" in record:
            record["duration_s"] = len([text for text in moments if record["started_at"] < text <= record["at"]])
        _settle_bounds(record, clock)
    last = _BASE + timedelta(seconds=len(moments) - 1 + after_s)
    return [names.applied(_timed(record, clock)) for record in records], last.isoformat().replace("+00:00", "Z")


def _moments(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key in _TIMES:
                yield item
            else:
                yield from _moments(item)
    elif isinstance(value, list):
        for item in value:
            yield from _moments(item)


def _timed(value: Any, clock: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: clock[item] if key in _TIMES else _timed(item, clock) for key, item in value.items()}
    return [_timed(item, clock) for item in value] if isinstance(value, list) else value


def _settle_bounds(record: dict[str, Any], clock: Mapping[str, str]) -> None:
    for approval in [record.get("approval"), *record.get("approvals", ())]:
        for key in _BOUNDS:
            if approval and key in approval:
                distance = datetime.fromisoformat(approval[key]) - datetime.fromisoformat(approval["requested_at"])
                moved = datetime.fromisoformat(clock[approval["requested_at"]]) + timedelta(
                    seconds=round(distance.total_seconds())
                )
                approval[key] = moved.isoformat().replace("+00:00", "Z")


class _Names:
    """Random ids by the order in which they appear."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._known: dict[str, str] = {}
        self._runs = 0

    def run(self, run_id: str) -> None:
        if run_id not in self._known:
            self._runs += 1
            self._known[run_id] = self._name if self._runs == 1 else f"{self._name}-{self._runs}"

    def applied(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: item if key == "record_id" else self.applied(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.applied(item) for item in value]
        if isinstance(value, str):
            return self._known.get(value) or _RANDOM.sub(self._random, value)
        return value

    def _random(self, found: re.Match[str]) -> str:
        return self._known.get(found[0]) or self._known.setdefault(found[0], f"id-{len(self._known) + 1}")


def _comparable(case: dict[str, Any], differs: Mapping[str, Any]) -> dict[str, Any]:
    """Without versions; of a path that differs on this version, without the fields that differ."""
    text: dict[str, Any] = json.loads(json.dumps(case))
    text.pop("source")
    for record in text["records"]:
        record.pop("framework_version", None)
        record.pop("adapter_version", None)
        for key in differs.get("fields", ()):
            record.pop(key, None)
    return text
