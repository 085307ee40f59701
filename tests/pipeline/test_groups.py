"""Groups as the store counts them: the marks, names, what a group differs in. Each rule has a test."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stopcause.errors import NotFoundError
from stopcause.pipeline import attention, groups
from stopcause.pipeline.attention import attention_of
from stopcause.pipeline.keeper import Keeper
from stopcause.render.attention import attention_table
from stopcause.render.pen import Pen
from stopcause.render.views import Difference, Group, GroupNote
from tests.support.stops import DAY, HOUR, NOW, filled, group_of, scope, stop, stops, wait

if TYPE_CHECKING:
    from collections.abc import Sequence

AHEAD = -20 * DAY  # a clock that jumped
WEEK_OLD = stop("old", 8 * DAY, "model_failure")  # the store has seven whole days before its last one


def only(keeper: Keeper, reason: str = "loop_guard") -> Group:
    (found,) = [each for each in attention_of(keeper, scope()).groups if each.reason == reason]
    return found


def usual(each_day: int, days: int = 7) -> list[bytes]:
    """So many runs on each of the days before the last."""
    return [line for day in range(1, days + 1) for line in stops(each_day, day * DAY + 2 * HOUR)]


# New ------------------------------------------------------------------------------------------------------------------


def test_a_group_is_new_where_the_store_has_older_runs_and_none_of_it() -> None:
    with filled(WEEK_OLD, stop("r")) as keeper:
        assert only(keeper).marks.new
    with filled(stop("r")) as keeper:
        assert not only(keeper).marks.new
    with filled(WEEK_OLD, stop("before", 26 * HOUR), stop("r")) as keeper:
        assert not only(keeper).marks.new


def test_a_group_is_new_again_after_the_memory() -> None:
    with filled(stop("before", groups.MEMORY + 2 * DAY), stop("r")) as keeper:
        assert only(keeper).marks.new
    with filled(stop("before", groups.MEMORY), stop("r")) as keeper:
        assert not only(keeper).marks.new


def test_the_mark_is_about_the_window_that_is_looked_at() -> None:
    with filled(WEEK_OLD, stop("r", 2 * HOUR), stop("again", HOUR / 2)) as keeper:
        day, hour = (attention_of(keeper, scope(span)).groups for span in (DAY, HOUR))
        everything = attention_of(keeper, scope(everything=True))

    assert [group.marks.new for group in (*day, *hour)] == [True, False]
    assert {group.reason: group.marks.new for group in everything.groups} == {
        "loop_guard": True,
        "model_failure": False,
    }


# Escalating -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("each_day", "today", "factor"),
    [(2, 10, 5.0), (2, 6, 3.0), (2, 5, None), (1, 4, None), (1, 5, 5.0), (4, 11, None), (4, 12, 3.0)],
)
def test_a_group_escalates_from_three_times_its_usual_and_five_runs_on(
    each_day: int, today: int, factor: float | None
) -> None:
    with filled(WEEK_OLD, usual(each_day), stops(today)) as keeper:
        assert only(keeper).marks.escalating == factor


def test_without_a_whole_window_of_history_nothing_escalates() -> None:
    with filled(stops(1, 47 * HOUR), stops(20)) as keeper:
        assert only(keeper).marks.escalating is None
    with filled(stops(1, 49 * HOUR), stops(20)) as keeper:
        assert only(keeper).marks.escalating == pytest.approx(20 / (24 / 25), rel=0.01)


def test_what_was_quiet_in_all_windows_counts_as_one_run_in_them() -> None:
    with filled(stops(5, 20 * DAY), WEEK_OLD, stops(6)) as keeper:
        assert only(keeper).marks == (False, 42.0, None)


def test_a_bounded_stop_needs_somebody_only_when_it_is_new_or_escalates() -> None:
    lines = [WEEK_OLD, *(line for day in range(1, 8) for line in stops(2, day * DAY + 2 * HOUR, cause="step_limit"))]
    with filled(lines, stops(5, cause="step_limit")) as keeper:
        assert attention_of(keeper, scope()).groups == ()
    with filled(lines, stops(6, cause="step_limit")) as keeper:
        assert only(keeper, "step_limit").marks == (False, 3.0, None)
    with filled(WEEK_OLD, stops(1, cause="step_limit")) as keeper:
        assert only(keeper, "step_limit").marks.new


def test_old_waits_do_not_count_for_the_window() -> None:
    with filled(WEEK_OLD, [wait(f"r{day}", day * DAY) for day in range(1, 8)], wait("new")) as keeper:
        (found,) = attention_of(keeper, scope()).groups

    assert (found.size, found.marks.new, found.marks.escalating) == (8, False, None)


def test_a_run_whose_verdict_changed_counts_once_and_in_its_present_group() -> None:
    """Three runs of a group turn out to be another's: a later receipt of a boundary that saw more supersedes theirs."""
    with filled(WEEK_OLD, usual(2), stops(5)) as keeper:
        moved = [stop(f"r-3600-{i}", HOUR / 2, "tool_failure", boundary="exception") for i in range(3)]
        assert keeper.accept(moved, NOW).accepted == 3
        stuck, failed = attention_of(keeper, scope()).groups
        facts = groups.facts_of(keeper, [stuck.fingerprint, failed.fingerprint], NOW)
        rows = list(attention.rows_behind(keeper, scope(), [stuck, failed]))

    assert (stuck.reason, stuck.size, failed.reason, failed.size) == ("loop_guard", 2, "tool_failure", 3)
    assert [facts[each.fingerprint].size for each in (stuck, failed)] == [16, 3]
    assert sorted((row.run_id, row.reason) for row in rows) == [
        *((f"r-3600-{i}", "tool_failure") for i in range(3)),
        *((f"r-3600-{i}", "loop_guard") for i in range(3, 5)),
    ]


# A clock that jumped --------------------------------------------------------------------------------------------------


def test_a_time_ahead_makes_a_group_neither_new_nor_escalating_nor_its_newest() -> None:
    with filled(WEEK_OLD, stops(9, AHEAD)) as keeper:
        found = only(keeper)
        assert (found.size, found.marks, found.last) == (9, (False, None, None), NOW)
    with filled(WEEK_OLD, usual(2), stops(9, AHEAD), stop("now")) as keeper:
        found = only(keeper)
        assert (found.size, found.marks, found.run_id, found.last) == (10, (False, None, None), "now", NOW - HOUR)


def test_a_time_ahead_does_not_move_the_window() -> None:
    later = NOW + 3 * DAY
    with filled(stop("r"), stop("ahead", AHEAD)) as keeper:
        covered = attention.window(later, DAY, "24h", keeper.store.newest_at(later))
        assert covered.since == NOW - HOUR - DAY


# Names ----------------------------------------------------------------------------------------------------------------


def test_a_group_is_called_by_its_end() -> None:
    with filled(stop("r")) as keeper:
        whole = group_of(keeper, "r")
        assert {groups.named(keeper, whole[-length:], NOW) for length in (4, 6, 12)} == {whole}
        for unknown in ("0000", "zzzz", "", whole[-3:], f"{whole}0", "%"):
            with pytest.raises(NotFoundError, match=r"No group is called .* `runs --attention --all` lists them"):
                groups.named(keeper, unknown, NOW)


def alike(count: int) -> Sequence[str]:
    """Agents two of whose groups have the same four letters at their end."""
    seen: dict[str, list[tuple[str, str]]] = {}
    with filled([stop(f"r{i}", agent=f"a{i}") for i in range(count)]) as keeper:
        for row in keeper.store.rows(limit=None):
            seen.setdefault(row.fingerprint[-4:], []).append((row.agent or "", row.fingerprint))
    agents = next(found for found in seen.values() if len(found) > 1)
    return [agent for agent, _ in agents]


def test_of_groups_that_end_alike_the_one_of_the_last_day_is_meant_else_they_are_listed() -> None:
    one, other = alike(600)[:2]
    with filled(stop("r", agent=one), stop("r2", agent=other)) as keeper:
        whole, twin = group_of(keeper, "r"), group_of(keeper, "r2")
        found = attention_of(keeper, scope())
        shown = {group.name for group in found.groups}
        with pytest.raises(NotFoundError) as caught:
            groups.named(keeper, whole[-4:], NOW)
        with pytest.raises(NotFoundError, match="is not one group"):
            attention.explained(keeper, whole[-4:], NOW)
        assert groups.named(keeper, whole[-6:], NOW) == whole
    assert shown == {whole[-6:], twin[-6:]}
    lines = attention_table(found, scope().window, Pen())
    assert {line[:14] for line in lines if "STUCK" in line} == {f"{name} S STUCK" for name in shown}
    assert f"{whole[-6:]} (STUCK, {one})" in str(caught.value)
    with filled(stop("r", agent=one), stop("r2", 2 * DAY, agent=other)) as keeper:
        assert groups.named(keeper, whole[-4:], NOW) == whole


@given(st.sets(st.text("01", min_size=12, max_size=12), max_size=40))
@settings(max_examples=60)
def test_names_of_a_list_are_each_groups_own(fingerprints: set[str]) -> None:
    names = groups.short_names(fingerprints)

    assert names.keys() == fingerprints
    for fingerprint, name in names.items():
        assert fingerprint.endswith(name)
        assert len(name) in (4, 6, 12)
        assert [each for each in fingerprints if each.endswith(name)] == [fingerprint]
        assert name == groups.short_name(fingerprint, fingerprints)


# Explained ------------------------------------------------------------------------------------------------------------


def note_of(keeper: Keeper, name: str) -> GroupNote:
    note = attention.explained(keeper, name, NOW).group
    assert note is not None
    return note


def test_a_group_is_explained_by_its_newest_run() -> None:
    with filled(WEEK_OLD, stop("r1", 30 * HOUR), stop("r2"), stop("ahead", AHEAD)) as keeper:
        name = group_of(keeper, "r2")[-4:]
        it = attention.explained(keeper, name, NOW)

    assert it.verdict.run_id == "r2"
    assert it.group is not None
    assert it.group[:4] == (it.verdict.group, 2, NOW - 30 * HOUR, NOW - HOUR)


def test_a_run_alone_has_no_group_unless_it_is_asked_for() -> None:
    with filled(stop("r")) as keeper:
        assert attention.explained(keeper, "r", NOW).group is None
        assert note_of(keeper, group_of(keeper, "r")[-4:]).others == 0


def test_a_groups_marks_are_explained_as_the_list_shows_them() -> None:
    with filled(stop("older", 10 * DAY, "model_failure"), usual(2), stops(10)) as keeper:
        assert note_of(keeper, "r-3600-0").marks == only(keeper).marks == (False, 5.0, None)


def test_a_group_differs_in_what_its_runs_have_far_more_often_than_others_of_the_time() -> None:
    bad = stops(7, agent_version="2.4.1", model="m-2", provider="p")
    good = [
        line
        for number, line in enumerate(stops(300, 3 * HOUR, name="g", cause="step_limit", provider="p", model="m-1"))
    ]
    others = stops(20, 2 * HOUR, name="h", cause="step_limit", provider="p", model="m-2")
    with filled(bad, good, others) as keeper:
        differs = note_of(keeper, group_of(keeper, "r-3600-0")[-4:]).differs

    assert differs == (
        Difference("agent_version", "2.4.1", 7, 7, 0, 320),
        Difference("model", "m-2", 7, 7, 20, 320),
    )


@pytest.mark.parametrize("field", ["agent_version", "model", "provider", "adapter_version", "framework_version"])
def test_each_field_can_be_what_differs(field: str) -> None:
    known: dict[str, Any] = {"adapter": "x", "framework": "y"}
    with filled(stops(8, **known | {field: "9"}), stops(40, name="g", cause="step_limit", **known)) as keeper:
        (differs,) = note_of(keeper, "r-3600-0").differs

    assert differs[:4] == (field, "9", 8, 8)


def test_the_environment_and_the_service_can_be_what_differs() -> None:
    lines = [stops(8, environment="prod", service="s"), stops(40, name="g", environment="test", service="t")]
    with filled(*lines) as keeper:
        assert [each.field for each in note_of(keeper, "r-3600-0").differs] == ["environment", "service"]


def test_nothing_differs_where_others_have_it_too_or_there_are_no_others_or_it_may_be_chance() -> None:
    with filled(stops(7), stops(20, name="g", cause="step_limit")) as keeper:
        assert note_of(keeper, "r-3600-0").differs == ()
    with filled(stops(7, agent_version="2.4.1")) as keeper:
        assert note_of(keeper, "r-3600-0").differs == ()
    with filled(stops(2, agent_version="2.4.1"), stops(3, name="g", cause="step_limit")) as keeper:
        assert note_of(keeper, "r-3600-0").differs == ()


def test_runs_of_another_time_or_agent_are_not_compared_with() -> None:
    before = stops(50, 10 * DAY, name="g", cause="step_limit")
    with filled(stops(8, agent_version="2.4.1"), before, stops(50, name="h", agent="b")) as keeper:
        assert note_of(keeper, "r-3600-0").differs == ()


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 400), st.integers(0, 400))
def test_what_differs_is_much_more_common_inside(a: int, b: int, c: int, d: int) -> None:
    inside, of_inside, outside, of_outside = min(a, b), max(a, b), min(c, d), max(c, d)
    clear = groups._is_clear(Difference("model", "m", inside, of_inside, outside, of_outside))

    if clear:
        assert of_inside
        assert of_outside
        assert inside / of_inside >= outside / of_outside + groups.OFTEN


# Many -----------------------------------------------------------------------------------------------------------------


def test_an_agent_with_ten_thousand_names_is_listed_in_time() -> None:
    lines = [stop(f"r{i}", HOUR + timedelta(seconds=i), agent=f"agent-{i}") for i in range(10_000)]
    with filled(WEEK_OLD, lines) as keeper:
        began = time.perf_counter()
        found = attention_of(keeper, scope())
        seconds = time.perf_counter() - began

    assert len(found.groups) == 10_000
    assert len({group.name for group in found.groups}) == 10_000
    assert seconds < 5
