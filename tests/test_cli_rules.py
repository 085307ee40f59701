"""`stopcause rules --agui`: the list and one card as a terminal shows them, rows, and names that there are not."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner, Result

from stopcause import cli
from stopcause.agui.cards import CARDS, ELSEWHERE
from stopcause.render.pen import WIDTH, cells

CARD_KEYS = ["rule", "finding", "code", "side", "level", "section", "effect", "meaning", "failing", "passing"]


def rules(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, ["rules", *arguments])


def test_in_a_pipe_every_card_is_a_row_with_the_keys_that_others_script_against() -> None:
    rows = [json.loads(line) for line in rules("--agui").stdout.splitlines()]

    assert [row["finding"] for row in rows] == [card.name for card in CARDS]
    assert all(list(row) == CARD_KEYS for row in rows)
    assert all(list(row["level"]) == ["spec-1.0", "legacy-outcome", "legacy-custom"] for row in rows)


def test_on_a_terminal_every_rule_is_there_and_no_line_is_too_long() -> None:
    screen = rules("--agui", "-o", "table").stdout

    assert all(card.name in screen for card in CARDS)
    assert all(f"  {rule} " in screen for rule in ELSEWHERE)
    assert all(cells(line) <= WIDTH for line in screen.splitlines())


@pytest.mark.parametrize("name", ["R76", "r76", "action_on_unrecognised_answer", "action-on-unrecognised-answer"])
def test_one_is_shown_whole_by_its_number_or_its_name(name: str) -> None:
    said = rules("--agui", name, "-o", "table")

    assert said.stdout.startswith("R76 ACTION_ON_UNRECOGNISED_ANSWER\n")
    assert "specification 1.0, basic/patterns/interrupt-resume" in said.stdout
    assert "rule-action-on-unrecognised-answer-failing.json" in said.stderr


def test_a_number_with_several_findings_shows_them_all() -> None:
    rows = [json.loads(line)["finding"] for line in rules("--agui", "R3").stdout.splitlines()]

    assert rows == ["EVENT_AFTER_CLOSE", "SECOND_TERMINAL"]


def test_one_that_there_is_not_names_what_is_near() -> None:
    said = rules("--agui", "ACTION_WITHOUT")

    assert said.exit_code == 2
    assert "did you mean ACTION_WITHOUT_ANSWER?" in said.stderr


def test_a_rule_is_shown_of_agui_only() -> None:
    said = rules("R71")

    assert said.exit_code == 2
    assert "--agui" in said.stderr
