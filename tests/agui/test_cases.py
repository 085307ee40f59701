"""Every AG-UI case of `fixtures/agui`, one test each, by the loader and the judge that `stopcause replay` uses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from stopcause.errors import InputError
from stopcause.pipeline import agui_cases, replay
from stopcause.pipeline.agui_cases import ThreadCase
from stopcause.resources import data_folder

ALL = tuple(agui_cases.load_thread_cases([data_folder("fixtures")]))
SENT = tuple(case for case in ALL if case.exchanges)
RECEIVED = tuple(case for case in ALL if case.receive)


@pytest.mark.parametrize("case", SENT, ids=lambda case: case.id)
def test_a_history_gets_what_it_must(case: ThreadCase) -> None:
    result = agui_cases.check_thread_case(case)

    assert result.fault is None, f"{result.fault}: {case.why}"
    assert result.verdict == result.expected_verdict


@pytest.mark.parametrize("case", RECEIVED, ids=lambda case: case.id)
def test_an_agent_is_told_what_it_must(case: ThreadCase) -> None:
    result = agui_cases.check_received(case)

    assert result.fault is None, f"{result.fault}: {case.why}"


def test_ids_are_file_names_and_come_once() -> None:
    assert [case.id for case in ALL] == [case.path.stem for case in ALL]
    assert len({case.id for case in ALL}) == len(ALL)


def test_replay_counts_them_among_the_others() -> None:
    result = replay.replay_files([data_folder("fixtures") / "agui"])

    assert result.ok
    assert (len(result.cases), len(result.assertions)) == (len(SENT), len(RECEIVED))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"runs": [{"run_id": "r2", "verdict": "FALSE_COMPLETE"}]}, "run r2: verdict"),
        ({"runs": [{"run_id": "r9"}]}, "run r9 was not seen"),
        ({"threads": [{"thread_id": "t1", "thread_verdict": "STUCK"}]}, "thread t1: WAITING_UNROUTED, not STUCK"),
        ({"threads": [{"thread_id": "t1", "open": ["i-9"]}]}, "thread t1: open is"),
        ({"threads": [{"thread_id": "t9"}]}, "thread t9 was not seen"),
        ({"findings": ["DUPLICATE_EFFECT"]}, "DUPLICATE_EFFECT was not found"),
        ({"absent": ["RESUME_FAILED_STILL_OPEN"]}, "RESUME_FAILED_STILL_OPEN was found"),
    ],
)
def test_what_falls_short_is_named(change: dict[str, object], fault: str) -> None:
    case = next(each for each in ALL if each.id == "st-partial")
    threads = [{"thread_id": "t1"}]

    result = agui_cases.check_thread_case(case._replace(expected={"threads": threads, **change}))

    assert result.fault is not None
    assert result.fault.startswith(fault)


SENT_SHAPE = {"exchanges": [], "expected": {"threads": [{"thread_id": "t1"}]}}
RECEIVED_SHAPE = {"receive": {"asked": [{"id": "i-1"}], "input": {}, "expected": {}}}


@pytest.mark.parametrize("value", [None, 5, "x", [None], [{}], {"a": 1}, [["x"]]])
@pytest.mark.parametrize(
    ("shape", "place"),
    [
        (SENT_SHAPE, "expected.runs"),
        (SENT_SHAPE, "expected.threads"),
        (SENT_SHAPE, "expected.threads.0.thread_id"),
        (SENT_SHAPE, "expected.threads.0.open"),
        (SENT_SHAPE, "expected.findings"),
        (SENT_SHAPE, "expected.absent"),
        (SENT_SHAPE, "check.findings"),
        (SENT_SHAPE, "check.refused"),
        (SENT_SHAPE, "check.sent"),
        (SENT_SHAPE, "check.state"),
        (SENT_SHAPE, "check.now"),
        (RECEIVED_SHAPE, "receive.asked"),
        (RECEIVED_SHAPE, "receive.asked.0.id"),
        (RECEIVED_SHAPE, "receive.mode"),
        (RECEIVED_SHAPE, "receive.on_uncovered"),
        (RECEIVED_SHAPE, "receive.expected"),
        (RECEIVED_SHAPE, "receive.expected.may_act"),
        (RECEIVED_SHAPE, "receive.expected.findings"),
    ],
)
def test_a_slip_in_a_case_is_named_with_its_file_and_field(
    tmp_path: Path, shape: dict[str, object], place: str, value: object
) -> None:
    case: Any = json.loads(json.dumps({"id": "x", "now": "2026-11-30T12:00:00Z", **shape}))
    *way, last = place.split(".")
    holder = case
    for step in way:
        holder = holder[int(step)] if step.isdigit() else holder.setdefault(step, {})
    holder[last] = value
    file = tmp_path / "x.json"
    file.write_text(json.dumps(case), "utf-8")

    try:
        replay.replay_files([file])
    except InputError as error:
        assert re.match(rf"{re.escape(str(file))}: {way[0]}", str(error))  # noqa: PT017 - or none


def test_a_case_says_which_thread_verdict_it_expects(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text('{"id": "x", "now": "2026-11-30T12:00:00Z", "exchanges": []}', "utf-8")

    with pytest.raises(InputError, match="expected: is missing; give `threads`"):
        list(agui_cases.load_thread_cases([file]))
