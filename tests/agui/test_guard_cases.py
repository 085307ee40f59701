"""Every case of the guard and of the agent's side, on a guard with a file: as it is, and after a restart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from stopcause.agui import cards as rules
from stopcause.agui import findings
from stopcause.agui.guard import Check, ResumeGuard
from stopcause.agui.inputs import read_input
from stopcause.agui.lifecycle import Watch
from stopcause.agui.times import read_time
from stopcause.pipeline import agui_receive

FOLDER = Path(__file__).parents[2] / "fixtures" / "agui"


def cases(part: str) -> list[Any]:
    found = [json.loads(path.read_text()) for path in sorted((FOLDER / part).glob("*.json"))]
    return [pytest.param(case, id=case["id"]) for case in found]


def moment(text: str) -> datetime:
    at = read_time(text)
    assert at is not None
    return at


def show(guard: ResumeGuard, exchanges: list[Mapping[str, Any]]) -> None:
    for exchange in exchanges:
        at = read_time(exchange.get("sent_at"))
        watch = Watch(read_input(exchange["input"]), http_status=exchange.get("http_status"))
        for event in exchange["events"]:
            for run in watch.take(event, at):
                guard.saw(run)
        for run in watch.close(at):
            guard.saw(run)


@pytest.mark.parametrize("case", cases("guard"))
def test_the_guard_says_what_the_case_expects_and_says_it_again_after_a_restart(
    case: Mapping[str, Any], tmp_path: Path
) -> None:
    guard = ResumeGuard(tmp_path / "guard.db")
    show(guard, case["exchanges"])
    wanted = case["check"]
    now = moment(wanted.get("now", case["now"]))
    first = guard.check(wanted["input"], now)
    assert fault(first, wanted) is None
    assert ResumeGuard(tmp_path / "guard.db").check(wanted["input"], now) == first


def fault(check: Check, wanted: Mapping[str, Any]) -> str | None:
    names = findings.names(check.findings)
    missing = [name for name in wanted.get("findings", ()) if name not in names]
    unwanted = [name for name in wanted.get("absent", ()) if name in names]
    is_right = check.refused is wanted["refused"] and not missing and not unwanted
    return None if is_right else f"refused {check.refused}, missing {missing}, unwanted {unwanted}, of {sorted(names)}"


@pytest.mark.parametrize("case", cases("producer"))
def test_the_agent_is_told_what_the_case_expects(case: Mapping[str, Any]) -> None:
    assert list(agui_receive.faults(case["receive"], moment(case["now"]))) == []


def test_every_rule_that_the_guard_enforces_has_a_case_that_passes_and_one_that_is_refused() -> None:
    seen: dict[bool, set[str]] = {True: set(), False: set()}
    for param in cases("guard"):
        check = param.values[0]["check"]
        seen[check["refused"]] |= set(check.get("findings", ()))
        seen[False] |= set() if check["refused"] else set(check.get("absent", ()))
    refusing = {
        card.name
        for card in rules.CARDS
        if card.side is rules.C and card.level in (rules.MUST, rules.SHOULD) and card.rule >= "R50"
    }
    elsewhere = {"GUARD_STATE_UNREADABLE", "PAYLOAD_TOO_LARGE"}  # no history of exchanges can show them
    assert refusing - seen[True] == elsewhere
    assert refusing - seen[False] == elsewhere | {"INPUT_UNREADABLE"}  # any other case passes it
