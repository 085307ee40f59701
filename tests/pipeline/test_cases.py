"""The loader of case files: what it reads, and what it says where it cannot."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from stopcause.classifier.policy import policy_from_mapping
from stopcause.classifier.verdict import VerdictName
from stopcause.errors import InputError
from stopcause.pipeline import cases

STOP = {"schema": "stopcause/1", "kind": "run.stopped", "run_id": "r1", "at": "2026-11-28T08:00:00Z"}
CASE: dict[str, Any] = {
    "id": "X1",
    "now": "2026-11-28T09:00:00Z",
    "records": [{**STOP, "stop_cause": "natural"}],
    "expected": {"verdict": "FALSE_COMPLETE", "reason": "no_contract"},
}


def write(path: Path, *values: object) -> Path:
    path.write_text("\n".join(map(json.dumps, values)), "utf-8")
    return path


def load(path: Path) -> list[cases.Case]:
    return list(cases.load_cases([path]))


def test_a_json_file_is_one_case(tmp_path: Path) -> None:
    (case,) = load(write(tmp_path / "x1.json", CASE))

    assert case.id == "X1"
    assert case.now == datetime(2026, 11, 28, 9, tzinfo=UTC)
    assert case.expected_verdict is VerdictName.FALSE_COMPLETE
    assert (case.source, case.why, case.policy, case.run_id, case.attempt, case.history) == (
        "",
        "",
        None,
        None,
        None,
        None,
    )


def test_ndjson_has_a_case_a_line_and_blank_lines_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text(f"{json.dumps(CASE)}\n\n{json.dumps({**CASE, 'id': 'X2'})}\n", "utf-8")

    assert [case.id for case in load(path)] == ["X1", "X2"]


def test_a_folder_is_walked_in_name_order_without_assertions_and_rejected_lines(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    write(tmp_path / "b" / "2.json", {**CASE, "id": "second"})
    write(tmp_path / "a.json", {**CASE, "id": "first"})
    write(tmp_path / "assertions.json", [])
    write(tmp_path / "a.json.rejected.jsonl", {"line": 1})

    assert [case.id for case in load(tmp_path)] == ["first", "second"]


def test_null_is_absent(tmp_path: Path) -> None:
    (case,) = load(write(tmp_path / "x.json", {**CASE, "policy": None, "run_id": None, "why": None}))

    assert (case.policy, case.run_id, case.why) == (None, None, "")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": None}, "id: is missing; give a string"),
        ({"id": 4}, "id: has the wrong shape; give a string"),
        ({"now": "yesterday"}, "now: has the wrong shape; give a time with offset"),
        ({"now": None}, "now: is missing; give a time"),
        ({"records": []}, "records: has the wrong shape; give at least one record"),
        ({"expected": {"verdict": "FINE"}}, "expected.verdict: has the wrong shape; give one of FAILED"),
        ({"expected": {}}, "expected.verdict: is missing"),
        ({"attempt": True}, "attempt: has the wrong shape; give a whole number"),
    ],
)
def test_a_bad_field_is_named_with_its_file_and_the_way_out(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = write(tmp_path / "x.json", {**CASE, **change})

    with pytest.raises(InputError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}: {said}")


def test_a_bad_line_of_ndjson_is_named_by_its_number(tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", CASE, {**CASE, "now": 5})

    with pytest.raises(InputError, match=r"x\.jsonl: line 2: now: has the wrong shape"):
        load(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"id": "x",\n "now": }', "line 2, column 9: broken JSON"),
        ("[1]", "is no JSON object"),
        ("[" * 100_000, "nested"),
    ],
)
def test_what_is_no_case_says_where(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, "utf-8")

    with pytest.raises(InputError, match=said):
        load(path)


def test_files_that_are_not_there_or_no_text_or_empty_folders_are_errors(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_bytes(b"\xff{}")
    (tmp_path / "empty").mkdir()

    for path, said in (
        (tmp_path / "no.json", "no such file"),
        (tmp_path / "x.json", "UTF-8"),
        (tmp_path / "empty", "no case"),
    ):
        with pytest.raises(InputError, match=said):
            load(path)


def test_a_bad_record_is_named_by_place_and_field(tmp_path: Path) -> None:
    (case,) = load(write(tmp_path / "x.json", {**CASE, "records": [{**STOP, "stop_cause": "natural", "steps": "3"}]}))

    with pytest.raises(InputError, match=r"records\[0\]\..*steps: is no integer; expected"):
        cases.judge_case(case)


def test_a_bad_policy_is_named(tmp_path: Path) -> None:
    (case,) = load(write(tmp_path / "x.json", {**CASE, "policy": {"agents": [{"stag": 1}]}}))

    with pytest.raises(InputError, match=r"policy: agents\[0\]\.stag: is not known here; did you mean stage"):
        cases.judge_case(case)


@pytest.mark.parametrize("change", [{"run_id": "other"}, {"attempt": 7}])
def test_a_run_or_attempt_without_records_is_an_error(tmp_path: Path, change: dict[str, Any]) -> None:
    (case,) = load(write(tmp_path / "x.json", {**CASE, **change}))

    with pytest.raises(InputError, match="leave it out"):
        cases.judge_case(case)


def test_a_policy_can_take_the_place_of_the_cases_own(tmp_path: Path) -> None:
    (case,) = load(write(tmp_path / "x.json", CASE))
    stricter = policy_from_mapping({"agents": [{"contract": "c"}]})

    assert cases.judge_case(case).reason == "no_contract"
    assert cases.judge_case(case, stricter).reason == "receipt_missing"


def test_assertions_are_read_from_their_own_file_only(tmp_path: Path) -> None:
    write(tmp_path / "x.json", CASE)
    write(tmp_path / "assertions.json", [{"id": "A", "why": "w", "checks": [{"history": {}, "fired": ["n"]}]}])

    (assertion,) = cases.load_assertions([tmp_path])

    assert (assertion.id, assertion.why) == ("A", "w")
    assert assertion.checks == (cases.Check({}, ("n",)),)


def test_a_bad_assertion_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "assertions.json", [{"id": "A", "checks": [{"history": {}}]}])

    with pytest.raises(InputError, match=r"\[0\]: checks\[0\]\.fired: is missing"):
        list(cases.load_assertions([path]))


# What `classify` and `explain` are given


def test_input_is_told_apart_by_its_first_line() -> None:
    line, case = json.dumps(CASE["records"][0]).encode(), json.dumps(CASE).encode()
    path = Path("given")

    assert len(cases.read_input(path, b"\n" + line + b"\n" + line).records) == 2
    assert len(cases.read_input(path, case + b"\n" + case).cases) == 2
    assert len(cases.read_input(path, json.dumps(CASE, indent=1).encode()).cases) == 1
    assert cases.read_input(path, b"") == cases.Input()


def test_a_bad_line_never_costs_the_good_ones() -> None:
    good = json.dumps(CASE["records"][0]).encode()

    given = cases.read_input(Path("given"), b"nonsense\n" + good)

    assert [error.line for error in given.errors] == [1]
    assert [v.reason for v in cases.judge_input(given, None, None)] == ["no_contract"]


def test_a_case_brings_its_own_time_and_policy_unless_others_are_named() -> None:
    given = cases.read_input(Path("given"), json.dumps({**CASE, "policy": {"agents": [{"contract": "c"}]}}).encode())
    early = datetime(2026, 11, 28, 8, 0, 1, tzinfo=UTC)

    assert [v.reason for v in cases.judge_input(given, None, None)] == ["receipt_missing"]
    assert [v.reason for v in cases.judge_input(given, None, early)] == ["receipt_pending"]
    assert [v.reason for v in cases.judge_input(given, policy_from_mapping(None), None)] == ["no_contract"]


def test_the_first_run_is_explained_and_nothing_where_there_is_none() -> None:
    given = cases.read_input(Path("given"), json.dumps(CASE["records"][0]).encode())

    it = cases.explain_input(given, None, None)

    assert it is not None
    assert it.run.run_id == "r1"
    assert cases.explain_input(cases.Input(), None, None) is None
