"""Screens by their laws: nothing wider than 80, every reason has its sentence, colour only where it is asked for."""

from __future__ import annotations

import json
import re
import shlex
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.classifier import rules
from stopcause.classifier.engine import judge
from stopcause.classifier.verdict import Verdict, VerdictName
from stopcause.pipeline import cases
from stopcause.pipeline.cases import Case
from stopcause.receipts import model
from stopcause.render import lines, sentences, tables, why
from stopcause.render.caller import Hint, program_name, shown_path
from stopcause.render.explain import explain_note, explain_screen
from stopcause.render.hints import Caller, hint_lines
from stopcause.render.pen import WIDTH, Pen, age, cells, cut, fit, pasted, short_age, short_names
from stopcause.render.schema import wire_schema
from stopcause.render.views import Explained, GroupNote, Revision, WaitLine, Window
from stopcause.render.waits import wait_lines, waiting_table
from stopcause.resources import data_folder
from tests.support.laws import some_of

CASES = tuple(cases.load_cases([data_folder("fixtures")]))
NOW = datetime(2026, 11, 28, 9, tzinfo=UTC)
ANSI = re.compile(r"\x1b\[[0-9;]*m")
by_id = pytest.mark.parametrize("case", some_of(CASES), ids=lambda case: case.id)


def explained(case: Case) -> Explained:
    run, _resumers, facts = cases.situation_of(case)
    verdict = judge(facts)
    history = [Revision(case.now, None, "running"), Revision(case.now, verdict.verdict, verdict.reason)]
    return Explained(run, facts, verdict, history, GroupNote(verdict.group, 3, case.now))


def assert_fits(text: list[str]) -> None:
    for line in text:
        assert cells(ANSI.sub("", line)) <= WIDTH, line
        assert "\n" not in line


# Every fixture on every screen


@by_id
def test_a_run_explained_fits_its_screen(case: Case) -> None:
    screen = explain_screen(explained(case), Pen(zone=UTC))

    assert_fits(screen)
    assert [line for line in screen if line != line.rstrip()] == []
    assert any(line.startswith("Why") for line in screen)
    assert any(line.startswith("Do") for line in screen)
    assert any(line.startswith("Retry") for line in screen)


@by_id
def test_the_rules_tried_are_told_with_a_fact_each(case: Case) -> None:
    it = explained(case)
    steps = why.steps(it.facts, it.verdict)

    assert all(step.phrase for step in steps)
    assert [step.matched for step in steps] == [False] * (len(steps) - 1) + [True] * bool(steps)
    assert all(step.rule is rules.RULES[step.number - 1] for step in steps)


@by_id
def test_colour_changes_nothing_but_the_colour(case: Case) -> None:
    it = explained(case)
    plain, coloured = explain_screen(it, Pen(zone=UTC)), explain_screen(it, Pen(colour=True, zone=UTC))

    assert [ANSI.sub("", line) for line in coloured] == plain
    assert coloured != plain


@by_id
def test_the_note_for_a_channel_is_three_lines_of_markdown(case: Case) -> None:
    it = explained(case)
    first, second, third = explain_note(it, Pen(zone=UTC))

    assert first.startswith(f"**{it.verdict.verdict or 'RUNNING'} ({it.verdict.reason})** ")
    assert second.endswith(".")
    assert f"Retry: {it.verdict.retry}" in third


@by_id
def test_waits_of_a_case_have_a_row_each(case: Case) -> None:
    it = explained(case)
    waits = wait_lines(it.facts, it.verdict)

    if it.verdict.verdict in (VerdictName.WAITING, VerdictName.WAITING_UNROUTED) and it.verdict.reason != "answered":
        assert waits
    assert_fits(waiting_table(waits, Window(case.now, "", case.now), Pen(zone=UTC)))


def test_lists_of_all_cases_fit() -> None:
    verdicts = [explained(case).verdict for case in CASES]

    assert_fits(tables.verdicts_table(verdicts, Pen()))
    assert_fits(tables.rules_screen(Pen()))


@pytest.mark.parametrize(
    ("places", "window", "line"),
    [
        (("prod",), Window(NOW, "24 h", NOW), "prod, last 24 h: 4128 runs of 9 agents."),
        (("prod", "dev"), Window(NOW, "24 h", NOW), "Last 24 h: 4128 runs of 9 agents."),
        ((), Window(NOW, "7 d", NOW, NOW, by_newest=True), "Last 7 d of records: 4128 runs of 9 agents."),
        (("p" * 40,), Window(NOW, "", NOW), "All: 4128 runs of 9 agents."),
        (("", "prod"), Window(NOW, "24 h", NOW), "Last 24 h: 4128 runs of 9 agents."),
        (("",), Window(NOW, "24 h", NOW), "Last 24 h: 4128 runs of 9 agents."),
    ],
)
def test_the_first_line_says_what_is_shown(places: tuple[str, ...], window: Window, line: str) -> None:
    told = tables.window_line(window, 4128, 9, places, Pen(zone=UTC))

    assert told == f"{line} As of 2026-11-28 09:00 +00:00"


# Sentences


@pytest.mark.parametrize(
    ("card", "reason"),
    [(card, reason) for card in rules.RULES for reason in card.reasons],
    ids=lambda each: str(each)[:20],
)
def test_every_reason_of_every_card_has_one_sentence(card: rules.Rule, reason: str) -> None:
    sentence = sentences.reason_sentence(card.verdict, reason)

    assert sentence[0].isupper()
    assert sentence.endswith(".")


def test_no_sentence_is_left_over() -> None:
    reasons = {reason for card in rules.RULES for reason in card.reasons} | {"running"}

    assert set(sentences.REASONS) | {reason for _verdict, reason in sentences._UNDER} == reasons


def test_short_actions_are_the_beginning_of_the_cards() -> None:
    for card in rules.RULES:
        short = sentences.short_action(card.action)
        assert card.action.startswith(short[:-1])
        assert len(short) < WIDTH - 7 - 20


# A wait in words


def test_a_route_fills_in_who_answers_and_until_when() -> None:
    (case,) = (case for case in CASES if case.id == "P18a")
    it = explained(case)

    (wait,) = wait_lines(it.facts, it.verdict)

    route = it.facts.policy.routes[0]
    assert wait.owner == route.owner
    assert route.due is not None
    assert wait.deadline == wait.since + route.due


def wait(**changes: object) -> WaitLine:
    known = dict.fromkeys(WaitLine._fields) | {
        "approval_id": "ap-1",
        "run_id": "run-1",
        "verdict": VerdictName.WAITING,
        "waits_for": "tool pay",
        "since": NOW - timedelta(minutes=5),
        "missing": (),
        **changes,
    }
    return WaitLine(**known)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "due", "note"),
    [
        ({"deadline": NOW + timedelta(minutes=18), "resume_token": "t"}, "in 18m", "resume run run-1 at t"),
        ({"deadline": NOW - timedelta(minutes=10), "missing": ("overdue",)}, "10m late", "overdue; run run-1"),
        (
            {"expires_at": NOW + timedelta(hours=3), "resume_token": "t"},
            "in 3h",
            "resume run run-1 at t; expires 12:00 (hard, the producer's)",
        ),
        (
            {"deadline": NOW - timedelta(minutes=10), "missing": ("overdue",), "escalate": "team:lead"},
            "10m late",
            "overdue; next team:lead; run run-1",
        ),
        (
            {"decision": "approved", "decided_at": NOW - timedelta(hours=2), "actor": "u:1", "missing": ("delivery",)},
            "decided",
            "missing delivery: approved 2h ago by u:1, no run has resumed it; run run-1",
        ),
        ({"missing": ("owner", "deadline")}, "-", "missing owner, deadline; run run-1"),
    ],
)
def test_a_wait_says_until_when_and_what_it_lacks(changes: dict[str, object], due: str, note: str) -> None:
    *_, first, second = waiting_table([wait(**changes)], Window(NOW, "", NOW), Pen(zone=UTC))

    assert first.endswith(f" {due}")
    assert second == f"   {note}"


# JSON


def test_a_verdict_in_json_has_the_fields_of_the_plan_and_times_in_utc() -> None:
    verdict = explained(CASES[0]).verdict

    told = json.loads(lines.as_line(lines.verdict_object(verdict)))

    assert tuple(told) == Verdict._fields
    assert told["as_of"].endswith("Z")
    assert told["resolved_by"] is None


def test_findings_of_a_row_come_apart_again() -> None:
    row = dict.fromkeys([*Verdict._fields, "fingerprint"]) | {"rule": "failed", "findings": ("a=b.c", "d")}

    assert lines.row_object(row)["findings"] == [{"code": "a", "where": "b.c"}, {"code": "d", "where": None}]


def test_the_schema_is_one_document_with_a_record_for_each_kind() -> None:
    schema = wire_schema()
    mapping = schema["discriminator"]["mapping"]

    assert set(mapping) == set(model.MODELS)
    for kind, reference in mapping.items():
        definition = schema["$defs"][reference.removeprefix("#/$defs/")]
        assert definition["properties"]["kind"]["const"] == kind
        assert {"schema", "kind", "at"} <= set(definition["required"])
        assert definition["additionalProperties"] is False


# The pen


@pytest.mark.parametrize(
    ("seconds", "long", "short"),
    [
        (0, "0s", "0s"),
        (59.9, "59s", "59s"),
        (2460, "41m", "41m"),
        (11_520, "3h 12m", "3h"),
        (10_800, "3h", "3h"),
        (93_600, "26h", "26h"),
        (260_000, "3d", "3d"),
        (-5, "0s", "0s"),
    ],
)
def test_ages(seconds: float, long: str, short: str) -> None:
    assert (age(timedelta(seconds=seconds)), short_age(timedelta(seconds=seconds))) == (long, short)


@given(st.text(), st.integers(1, 30))
def test_a_cell_is_as_wide_as_it_should_be(text: str, width: int) -> None:
    assert cells(cut(text, width)) <= width
    assert cells(fit(text, width)) == width
    if cells(text) <= width:
        assert cut(text, width) == text


def test_letters_of_two_cells_are_counted_as_two() -> None:
    assert cells("요약-agent") == 10
    assert fit("요약요약", 6) == "요약… "


UUID = "0198c0de-1111-7000-8000-00000a9f3a1c"


def test_a_run_is_called_by_its_id_where_there_is_room_else_by_its_end() -> None:
    names = short_names(["s-err-step2", UUID, "natural-without-outcome", "done-without-outcome", "--all"], 17)

    assert names["s-err-step2"] == "s-err-step2"
    assert names[UUID] == "9f3a1c"
    assert names["natural-without-outcome"] == "l-without-outcome"
    assert names["done-without-outcome"] == "e-without-outcome"
    assert names["--all"] == "all"


@given(st.sets(st.text("ab-1", min_size=1, max_size=24), max_size=12), st.integers(8, 20))
def test_names_of_a_list_fit_and_are_no_options(ids: set[str], room: int) -> None:
    names = short_names(ids, room)

    assert names.keys() == ids
    assert all(len(name) <= room and not name.startswith("-") and each.endswith(name) for each, name in names.items())


def test_a_hint_has_the_end_of_a_uuid_and_the_whole_of_another_id() -> None:
    assert pasted(UUID) == pasted(UUID.replace("-", "")) == "9f3a1c"
    assert pasted("timeout-in-tool-of-limit-step") == "timeout-in-tool-of-limit-step"


def test_times_are_local_with_their_offset_or_utc() -> None:
    assert Pen(zone=UTC).time(NOW) == "2026-11-28 09:00 +00:00"
    assert Pen(zone=timezone(timedelta(hours=-9.5))).time(NOW, seconds=True) == "2026-11-27 23:30:00 -09:30"
    assert Pen(zone=UTC).clock(NOW) == "09:00"
    assert re.fullmatch(r"2026-11-2[789] \d\d:\d\d [+-]\d\d:\d\d", Pen().time(NOW))


# Hints


@pytest.mark.parametrize(
    ("argv0", "found", "name"),
    [
        ("/p/.venv/bin/stopcause", "/p/.venv/bin/stopcause", ".venv/bin/stopcause"),
        ("/usr/bin/stopcause", "/usr/bin/stopcause", "stopcause"),
        ("/opt/x/bin/stopcause", "/usr/bin/stopcause", "/opt/x/bin/stopcause"),
        ("/opt/a b/stopcause", None, "'/opt/a b/stopcause'"),
        (".venv/bin/stopcause", None, ".venv/bin/stopcause"),
        ("/p/stopcause/__main__.py", None, ".venv/bin/python -m stopcause"),
    ],
)
def test_the_program_is_named_as_it_was_started(argv0: str, found: str | None, name: str) -> None:
    assert program_name(argv0, "/p/.venv/bin/python", Path("/p"), found) == name


def test_paths_are_as_short_as_a_shell_understands() -> None:
    here, home = Path("/home/u/p"), Path("/home/u")

    assert shown_path(Path("/home/u/p/a b.json"), here, home) == "'a b.json'"
    assert shown_path(Path("/home/u/.local/x"), here, home) == "~/.local/x"
    assert shown_path(Path("/tmp/x"), here, home) == "/tmp/x"  # noqa: S108 - nothing is written
    assert shown_path(Path("x"), here, home) == "x"


def test_hints_name_the_store_where_they_read_it_and_fold_where_they_must() -> None:
    caller = Caller("stopcause", Path("s.duckdb"))
    told = hint_lines(caller, [Hint(("runs",), "all"), Hint(("rules",), "how"), Hint(("a",)), Hint(("b",))])

    assert told == [
        "  stopcause runs --store s.duckdb  all",
        "  stopcause rules                  how",
        "  stopcause a --store s.duckdb",
    ]
    folded = hint_lines(Caller("stopcause", Path("/a/very/long/path" * 4)), [Hint(("runs", "--attention"), "about")])
    assert folded[0] == "  stopcause runs --attention \\"
    assert folded[1].startswith("    --store /a/very")


@pytest.mark.parametrize("name", ["-x", "-x y", "--all", "~root", "#x", "a b", "it's", "$HOME", "r-1"])
def test_a_hint_comes_back_from_a_shell_as_it_was_meant(name: str) -> None:
    caller = Caller("stopcause", Path("a b.duckdb"))

    note = shlex.split(caller.command(Hint(("explain", "--format", "md"), of=name)), comments=True)
    file = shlex.split(caller.command(Hint(("explain", "--policy", Path("~p.toml")), of=Path(name))), comments=True)

    of = ["--", name] if name.startswith("-") else [name]
    options = ["--format", "md", "--store", "a b.duckdb"]
    assert note == ["stopcause", "explain", *([*options, *of] if of[1:] else [*of, *options])]
    options = ["--policy", "~p.toml"]
    assert file == ["stopcause", "explain", *([*options, *of] if of[1:] else [*of, *options])]
    assert "'~" in caller.command(Hint(("explain",), of="~root"))  # a shell would make a home of it


# A wait that was answered


def explained_records(*told: dict[str, object], now: datetime = NOW) -> Explained:
    records = [{"schema": "stopcause/1", "run_id": "r-1", **each} for each in told]
    case = {"id": "x", "now": now.isoformat(), "records": records, "expected": {"verdict": None}}
    return explained(cases.case_of(case, Path("x.json")))


STOPPED: dict[str, object] = {
    "kind": "run.stopped",
    "at": "2026-11-28T08:00:00Z",
    "boundary": "call",
    "stop_cause": "approval_pending",
    "thread_id": "th-7",
}
ASKED: dict[str, object] = {
    "approval_id": "ap-1",
    "kind": "tool_call",
    "tool": "pay",
    "owner": "team:t",
    "resume_token": "tok-9",
}
DECIDED: dict[str, object] = {"approval_id": "ap-1", "state": "decided", "decision": "approved", "actor": "user:kim"}


def answered_wait(asked: dict[str, object], now: datetime) -> str:
    asked = {**ASKED, "state": "requested", "deadline": "2026-11-28T12:00:00Z", **asked}
    decided: dict[str, object] = {"kind": "approval.updated", "at": "2026-11-28T08:10:00Z", "approval": DECIDED}
    it = explained_records({**STOPPED, "approvals": [asked]}, decided, now=now)
    screen = explain_screen(it, Pen(zone=UTC))
    assert_fits(screen)
    assert explain_note(it, Pen(zone=UTC))[1].startswith("Approval ap-1 was approved")
    return re.sub(r"\s+", " ", " ".join(screen))


def test_an_answer_that_nobody_took_up_is_not_waited_for() -> None:
    told = answered_wait({}, datetime(2026, 11, 28, 8, 12, tzinfo=UTC))

    assert "W WAITING" in told
    assert "Why Approval ap-1 was approved by user:kim 2m ago, and no run has resumed it." in told
    assert "Do Resume it with the answer: resume token tok-9, thread th-7." in told
    assert "Retry resume: resume it with the answer; do not start it again." in told
    assert "1 approval, decided; no run has resumed it" in told
    assert "due in" not in told


@pytest.mark.parametrize(
    ("asked", "do"),
    [
        ({}, "Resume it with the answer: resume token tok-9, thread th-7."),
        ({"resume_token": None}, "find its paused state first, for it has no resume token, thread th-7."),
        ({"resumable": False}, "Its paused state is gone"),
    ],
)
def test_an_answer_that_did_not_arrive_says_so_and_how_to_go_on(asked: dict[str, object], do: str) -> None:
    told = answered_wait(asked, datetime(2026, 11, 28, 11, tzinfo=UTC))

    assert "R WAITING_UNROUTED" in told
    assert "delivery (the answer did not reach the run)" in told
    assert do in told


def test_a_question_that_did_not_arrive_says_so() -> None:
    asked = {**ASKED, "state": "undelivered", "deadline": "2026-11-28T12:00:00Z"}
    it = explained_records(STOPPED | {"approvals": [asked]})
    told = re.sub(r"\s+", " ", " ".join(explain_screen(it, Pen(zone=UTC))))

    assert "Why It waits: the question did not reach its owner." in told
    assert "Missing delivery (the question did not reach its owner)" in told
    (line,) = wait_lines(it.facts, it.verdict)
    assert waiting_table([line], Window(NOW, "", NOW), Pen(zone=UTC))[-1] == (
        "   missing delivery to its owner; run r-1"
    )
