"""Replay finds what falls short: verdicts, reasons, stop conditions, assertions; and says how well it did."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.classifier.verdict import VerdictName
from stopcause.errors import InputError
from stopcause.pipeline import cases
from stopcause.pipeline.replay import check_assertion, check_case, replay_files, scores
from stopcause.render.views import CaseResult
from stopcause.resources import data_folder

ARTICLE = data_folder("fixtures") / "article"


def published(name: str, **changes: Any) -> cases.Case:  # noqa: ANN401 - any field of a case
    (case,) = cases.load_cases([next(ARTICLE.glob(f"{name}-*.json"))])
    return case._replace(**changes)


def test_the_published_cases_are_as_published() -> None:
    result = replay_files([ARTICLE])

    assert result.ok
    assert (len(result.cases), len(result.assertions)) == (11, 4)
    assert {(score.precision, score.recall) for score in result.scores} == {(1.0, 1.0)}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"expected_verdict": VerdictName.FAILED}, "verdict"),
        ({"expected_reason": "token_budget"}, "reason"),
        ({"expected_reason": None}, None),
    ],
)
def test_a_verdict_or_reason_that_differs_is_a_miss(changes: dict[str, Any], fault: str | None) -> None:
    assert check_case(published("A05", **changes)).fault == fault


def test_a_history_that_fires_something_else_is_a_miss() -> None:
    history = {"steps": [], "stop_when": [{"name": "step_count", "kind": "steps", "limit": 20}]}

    assert check_case(published("A05", history=history)).fault == (
        "history: it does not fire the conditions that the receipt says fired"
    )


def test_a_history_that_cannot_be_read_is_a_miss_that_names_the_field() -> None:
    result = check_case(published("A05", history={"stop_when": [{"kind": "steps", "limit": -1}]}))

    assert not result.ok
    assert "stop_when.limit" in (result.fault or "")


def test_an_assertion_misses_where_a_check_fires_otherwise_or_cannot_be_read() -> None:
    (first, *_) = cases.load_assertions([ARTICLE])
    other = first._replace(checks=(first.checks[0]._replace(fired=("nothing",)),))
    broken = first._replace(checks=(cases.Check({"step": []}, ()),))

    assert check_assertion(first).ok
    assert check_assertion(other).fault == "checks[0] fires otherwise"
    assert "history.step" in (check_assertion(broken).fault or "")


def result(expected: VerdictName, got: VerdictName) -> CaseResult:
    return CaseResult("i", "n", Path("p"), "w", "r", expected, None, got, "x", "x", None, None)


def test_precision_and_recall_are_per_verdict() -> None:
    stuck, failed, waiting = VerdictName.STUCK, VerdictName.FAILED, VerdictName.WAITING
    found = scores([result(stuck, stuck), result(stuck, failed), result(waiting, failed)])

    assert [(each.verdict, each.expected, each.given, each.precision, each.recall) for each in found] == [
        (failed, 0, 2, 0.0, None),
        (waiting, 1, 0, None, 0.0),
        (stuck, 2, 1, 1.0, 0.5),
    ]


def test_a_policy_can_be_put_in_the_place_of_all(tmp_path: Path) -> None:
    (case,) = cases.load_cases([ARTICLE / "A02-natural-no-receipt.json"])
    path = tmp_path / "one.json"
    path.write_text(json.dumps(json.loads(case.path.read_text("utf-8"))), "utf-8")

    assert replay_files([path]).ok
    assert replay_files([path], DEFAULT_POLICY).cases[0].fault == "reason"


def test_a_file_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    shutil.copy(ARTICLE / "A01-natural-receipt.json", tmp_path)
    (tmp_path / "broken.json").write_text('{"id": ', "utf-8")
    (tmp_path / "field.json").write_text('{"id": 3, "records": [{}], "expected": {}}', "utf-8")
    result = replay_files([tmp_path])
    assert [case.id for case in result.cases if case.ok] == ["A01"]
    assert ["broken.json" in fault for fault in result.unreadable] == [True, False]
    with pytest.raises(InputError, match=r"broken\.json"):
        replay_files([tmp_path / "broken.json"])
