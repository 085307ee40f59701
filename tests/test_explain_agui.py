"""`explain` of a run that came by AG-UI: the rule that a finding is of, whose it is, and how much it weighs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from stopcause import cli

RUN: dict[str, Any] = {
    "schema": "stopcause/1",
    "kind": "run.stopped",
    "run_id": "r2",
    "at": "2026-11-30T08:00:00Z",
    "stop_cause": "natural",
    "adapter": "stopcause.agui",
    "findings": [
        {"code": "action_without_answer", "where": "i-1"},
        {"code": "bad_answer_swallowed", "where": "i-2"},
        {"code": "of_another", "where": "x"},
    ],
}


def explained(folder: Path, *arguments: str, **more: Any) -> Result:  # noqa: ANN401 - fields of the record
    file = folder / "runs.jsonl"
    file.write_text(json.dumps(RUN | more) + "\n", "utf-8")
    return CliRunner().invoke(cli.app, ["explain", str(file), *arguments])


def test_in_rows_it_stands_beside_the_code(tmp_path: Path) -> None:
    findings = {each.pop("code"): each for each in json.loads(explained(tmp_path).stdout)["findings"]}

    assert findings["action_without_answer"] == {"where": "i-1", "rule": "R71", "side": "producer", "level": "MUST"}
    assert findings["bad_answer_swallowed"]["level"] == "NOTE"
    assert findings["of_another"] == {"where": "x"}


def test_of_a_run_without_a_version_it_weighs_as_before_1_0(tmp_path: Path) -> None:
    said = explained(tmp_path, findings=[*RUN["findings"], {"code": "no_version"}])

    levels = {each["code"]: each.get("level") for each in json.loads(said.stdout)["findings"]}
    assert (levels["bad_answer_swallowed"], levels["action_without_answer"]) == ("MUST", "MUST")


def test_on_a_screen_it_is_said_behind_it(tmp_path: Path) -> None:
    said = " ".join(explained(tmp_path, "--format", "table").stdout.split())

    assert "action_without_answer i-1 (R71 producer MUST)" in said


def test_what_another_hook_calls_so_is_no_rule_of_agui(tmp_path: Path) -> None:
    (first, *_) = json.loads(explained(tmp_path, adapter="stopcause.langgraph").stdout)["findings"]

    assert first == {"code": "action_without_answer", "where": "i-1"}
