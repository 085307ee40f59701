"""That a store which only has the records says and counts the same as an audit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from stopcause.agui.ledger import Ledger
from stopcause.agui.told import Source, begun_records, ended_records
from stopcause.agui.values import Begun, RunSeen
from stopcause.agui.verdicts import Told, judge_thread
from stopcause.agui.words import Channel
from stopcause.classifier import engine, fold
from stopcause.classifier.approvals import KEEPS_WAITING, Status
from stopcause.classifier.policy import DEFAULT_POLICY, Policy, policy_from_mapping
from stopcause.classifier.verdict import VerdictName
from stopcause.pipeline.agui import waiting_tools
from stopcause.receipts import codec
from stopcause.receipts.model import Record, parse_time
from stopcause.resources import data_folder
from tests.agui.histories import HISTORIES
from tests.agui.seen import NOON, run, seen_in, told_of
from tests.support.laws import tried_on

HOUR = timedelta(hours=1)
CASES = sorted(
    path for part in ("ledger", "recordings") for path in (data_folder("fixtures") / "agui" / part).glob("*")
)
# A late RUN_ERROR with a code of an abort: an observed abort closes its run's approvals, in the store as everywhere.
ABORTED = "ledger-late-abort-of-the-paused-run"


def history(case: dict[str, Any]) -> tuple[Ledger, dict[str, list[Told]]]:
    ledger, told = Ledger(), dict[str, list[Told]]()
    drafts: dict[str, list[dict[str, Any]]] = {}
    tick = parse_time(case["now"]) - timedelta(minutes=1)
    waits = waiting_tools(policy_from_mapping(case.get("policy")))
    for exchange in case["exchanges"]:
        for seen in seen_in(exchange, waits):
            tick += timedelta(milliseconds=1)
            if isinstance(seen, Begun):
                drafts[seen.run_id] = begun_records(seen, ledger.begun(seen), Source(now=tick))
            else:
                link = ledger.ended(seen)
                records = drafts.pop(seen.run_id, []) + ended_records(seen, link, Source(now=tick))
                told.setdefault(seen.thread_id, []).append(Told(seen, link, records))
    return ledger, told


def open_in_store(records: Iterable[Any], policy: Policy, now: datetime) -> Iterable[tuple[str, str | None]]:
    kept: list[Record] = list(records)
    runs = fold.group(kept)
    resumers = engine.resumers_by_run(runs.values())
    for name, found in runs.items():
        for wait in fold.facts_of(found, found.latest, policy, now, resumers.get(name, ())).waits:
            if wait.status in KEEPS_WAITING or wait.status is Status.OVER:
                yield name, wait.approval_id


@pytest.mark.parametrize("path", [path for path in CASES if path.stem != ABORTED], ids=lambda path: path.stem)
def test_a_store_that_has_the_records_counts_what_a_thread_waits_for(path: Path) -> None:
    case = json.loads(path.read_text("utf-8"))
    policy, now = policy_from_mapping(case.get("policy")), parse_time(case["now"])
    ledger, told = history(case)

    for thread_id, runs in told.items():
        _, thread = judge_thread(ledger.threads[thread_id], runs, policy, now)
        records = [codec.read_value(draft) for each in runs for draft in each.drafts]

        assert sorted(open_in_store(records, policy, now)) == sorted((w.run_id, w.interrupt_id) for w in thread.open)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_store_says_of_each_run_what_an_audit_says(path: Path) -> None:
    """But for a wait that a later run takes over by asking again. A run that is tried again is a tap's to number."""
    case = json.loads(path.read_text("utf-8"))
    policy, now = policy_from_mapping(case.get("policy")), parse_time(case["now"])
    ledger, told = history(case)
    records = [codec.read_value(draft) for runs in told.values() for each in runs for draft in each.drafts]
    in_store = {each.run_id: each for each in engine.judge_all(records, policy, now)}  # type: ignore[arg-type]
    inputs = Counter(each["input"]["runId"] for each in case["exchanges"] if each.get("input"))

    for thread_id, runs in told.items():
        for run_seen, _, verdict in judge_thread(ledger.threads[thread_id], runs, policy, now)[0]:
            if verdict is None or inputs[run_seen.run_id] > 1:
                continue
            same = in_store[verdict.run_id]
            if same.reason != "answered" or verdict.verdict not in (VerdictName.WAITING, VerdictName.WAITING_UNROUTED):
                assert (same.verdict, same.reason) == (verdict.verdict, verdict.reason)


@given(HISTORIES)
@tried_on(200)
def test_a_store_misses_nothing_that_any_thread_waits_for(runs: list[RunSeen]) -> None:
    """It may count one twice: a run names one run that it takes up, and may ask in the place of two."""
    legal = [_legal(number, each) for number, each in enumerate(runs, 1)]
    ledger, told = told_of(legal)
    now = NOON + HOUR
    records = [codec.read_value(draft) for each in told for draft in each.drafts]

    for thread in ledger.threads.values():
        waits = judge_thread(thread, told, DEFAULT_POLICY, now)[1].open

        assert {(wait.run_id, wait.interrupt_id) for wait in waits} <= {*open_in_store(records, DEFAULT_POLICY, now)}


def _legal(number: int, any_run: RunSeen) -> RunSeen:
    """That run with an id and a time of its own, and a cause that goes with its ending."""
    plain = run(f"r{number}", any_run.ending, asks=any_run.interrupts, results=any_run.results)
    channels = tuple(each._replace(channel=Channel.OUTCOME) for each in plain.interrupts)
    given_input = any_run.input and any_run.input._replace(run_id=plain.run_id)
    return plain._replace(input=given_input or plain.input, interrupts=channels)
