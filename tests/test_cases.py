"""Every case of `fixtures/`, one test each. The loader is the one that `stopcause replay` uses."""

from __future__ import annotations

import pytest

from stopcause.pipeline import cases, replay
from stopcause.pipeline.cases import Case
from stopcause.resources import data_folder

ALL = tuple(cases.load_cases([data_folder("fixtures")]))


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_case(case: Case) -> None:
    verdict = cases.judge_case(case)

    assert verdict.verdict == case.expected_verdict, case.why
    assert case.expected_reason in (None, verdict.reason), case.why


def test_there_are_as_many_as_were_published() -> None:
    folders = [case.path.relative_to(data_folder("fixtures")).parts[0] for case in ALL]

    assert {name: folders.count(name) for name in set(folders)} == {
        "article": 11,
        "public": 73,
        "ai_sdk": folders.count("ai_sdk"),
        "frameworks": folders.count("frameworks"),
        "pairs": folders.count("pairs"),
    }
    assert folders.count("pairs") >= 40
    assert folders.count("ai_sdk") >= 45
    assert folders.count("frameworks") >= 75
    assert len({case.id for case in ALL}) == len(ALL)


def test_replay_finds_no_miss_in_any_folder() -> None:
    report = replay.replay(ALL)

    assert report
