"""What needs somebody: the order, what the stage, the grace time and people's words hold back, and what is counted."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from stopcause.pipeline import attention, groups, triage
from stopcause.pipeline.attention import attention_of, window
from stopcause.pipeline.triage import Order
from stopcause.receipts.vocabulary import TriageAction
from stopcause.render.views import Attention
from tests.support.stops import DAY, HOUR, NOW, filled, finish, group_of, refuted, row_of, scope, stop, stops, wait

OLD = stop("old", 3 * DAY, "model_failure", agent="other")  # that the store knew something before
UNKNOWN = {"raw": "x", "normalized": "other"}


def reasons(found: Attention) -> list[str]:
    return [group.reason for group in found.groups]


def test_groups_come_in_the_order_of_the_plan() -> None:
    lines = [
        stop("bounded", cause="step_limit"),
        finish("uncertain", finish_reason=UNKNOWN),
        finish("missing"),
        stop("failed", cause="tool_failure"),
        stop("stuck"),
        *(finish("refuted"), refuted("refuted", timedelta(minutes=59))),
        wait("unrouted"),
    ]
    with filled(OLD, lines) as keeper:
        found = attention_of(keeper, scope())

    assert reasons(found) == [
        *("owner", "receipt_refuted", "loop_guard", "tool_failure", "receipt_missing", "finish_unknown", "step_limit")
    ]


@pytest.mark.parametrize(
    "lines",
    [
        [wait("r", owner="team:x", deadline="2026-12-01T08:00:00Z", resume_token="t")],
        [finish("r", agent="free-1")],
        [finish("r", timedelta(minutes=1))],
        [finish("r", agent="watched-1")],
        [finish("r", agent="watched-1"), refuted("r", timedelta(minutes=59))],
        [wait("r", timedelta(seconds=119))],
        [stop("r", cause="step_limit"), stop("before", 2 * DAY, "step_limit")],
    ],
    ids=["routed", "no_contract", "pending", "observed", "observed-refuted", "young", "usual-bound"],
)
def test_what_needs_nobody_is_in_no_group(lines: list[bytes]) -> None:
    with filled(OLD, lines) as keeper:
        assert row_of(keeper, "r").verdict
        assert reasons(attention_of(keeper, scope())) == []


def test_what_is_left_out_is_counted_apart() -> None:
    lines = [
        finish("r1", agent="free-1"),
        finish("r2", agent="watched-1"),
        finish("r3", timedelta(minutes=6)),
        wait("r4", timedelta(seconds=1)),
    ]
    with filled(lines) as keeper:
        found = attention_of(keeper, scope())

    assert found.groups == found.hidden == ()
    assert found.unproven[:2] == (2, 2)
    assert found.pending == (1, 1, NOW + timedelta(minutes=4))
    assert found.graced.runs == 1
    assert (found.runs, found.agents, found.environments) == (4, 3, ("prod",))


def test_the_grace_time_ends_by_itself_and_a_time_ahead_grants_none() -> None:
    with filled(wait("r", timedelta(minutes=2)), wait("ahead", -DAY)) as keeper:
        assert [group.size for group in attention_of(keeper, scope()).groups] == [2]


def test_the_stage_holds_back_only_what_is_not_proven() -> None:
    lines = [
        stop("r1", agent="watched-1"),
        stop("r2", cause="tool_failure", agent="watched-1"),
        finish("r3", finish_reason=UNKNOWN, agent="watched-1"),
        wait("r4", agent="watched-1"),
    ]
    with filled(lines) as keeper:
        assert len(attention_of(keeper, scope()).groups) == 4


def test_a_wait_without_a_route_is_there_however_old() -> None:
    with filled(OLD, wait("r", 20 * DAY), stop("r2")) as keeper:
        found = attention_of(keeper, scope())
        assert reasons(found) == ["owner", "loop_guard"]
        assert found.runs == 1
        assert [row.run_id for row in attention.rows_behind(keeper, scope(), found.groups)] == ["r2", "r"]
        assert reasons(attention_of(keeper, scope(verdicts=(None,)))) == []
        assert reasons(attention_of(keeper, scope(agent="other"))) == []


def test_a_group_sums_up_its_runs() -> None:
    with filled(stop("old", 5 * HOUR), stop("new", HOUR), stop("elsewhere", environment="test")) as keeper:
        group, other = attention_of(keeper, scope()).groups

    assert (group.size, group.run_id, group.agent, group.owner) == (2, "new", "a", "team:x")
    assert (group.first, group.last) == (NOW - 5 * HOUR, NOW - HOUR)
    assert (group.environment, other.environment) == ("prod", "test")
    assert group.action.startswith("Read the last progress record")
    assert group.stage == "enforce"
    assert group.name == group.fingerprint[-4:]


def test_everything_makes_groups_of_what_is_counted_apart_but_not_of_what_is_fine() -> None:
    routed = wait("r4", owner="team:x", deadline="2026-12-01T08:00:00Z", resume_token="t")
    lines = [OLD, stop("r1", 2 * DAY, "step_limit"), finish("r2", agent="free-1"), routed]
    with filled(lines) as keeper:
        found = attention_of(keeper, scope(everything=True))

    assert reasons(found) == ["model_failure", "no_contract", "step_limit"]


def test_hidden_groups_are_counted_apart_and_come_back_with_everything() -> None:
    with filled(OLD, stop("r1"), stop("r2", cause="tool_failure")) as keeper:
        about = groups.facts_of(keeper, [group_of(keeper, "r1")], NOW)
        order = Order(TriageAction.ACKNOWLEDGED, "user:x", reason="known_cause")
        triage.tell(keeper, list(about.values()), order, NOW)
        found = attention_of(keeper, scope())
        everything = attention_of(keeper, scope(everything=True))

    assert reasons(found) == ["tool_failure"]
    assert [(group.reason, group.said and group.said.actor) for group in found.hidden] == [("loop_guard", "user:x")]
    assert [group.reason for group in everything.hidden] == ["loop_guard"]


@pytest.mark.parametrize(
    ("newest", "since", "by_newest"),
    [
        (None, NOW - timedelta(hours=24), False),
        (NOW - timedelta(seconds=3), NOW - timedelta(hours=24, seconds=3), False),
        (NOW - timedelta(days=2), NOW - timedelta(days=3), True),
        (NOW + timedelta(days=2), NOW - timedelta(days=1), False),
    ],
)
def test_a_window_counts_back_from_now_or_from_an_older_newest_record(
    newest: datetime | None, since: datetime, *, by_newest: bool
) -> None:
    found = window(NOW, timedelta(hours=24), "24h", newest)

    assert (found.since, found.by_newest, found.span) == (since, by_newest, "24 h")


def test_what_people_say_today_of_old_runs_does_not_move_the_window() -> None:
    later = NOW + 5 * DAY
    with filled(stops(3), stop("ahead", -30 * DAY)) as keeper:
        about = list(groups.facts_of(keeper, [group_of(keeper, "ahead")], later).values())
        triage.tell(keeper, about, Order(TriageAction.ASSIGNED, "user:x", owner="team:y"), later)
        covered = window(later, DAY, "24h", keeper.store.newest_at(later))

    assert (covered.since, covered.by_newest) == (NOW - HOUR - DAY, True)


def test_runs_are_counted_whole_and_listed_as_far_as_they_are_shown() -> None:
    with filled(stops(5), stops(3, 2 * DAY), stop("b", cause="tool_failure", agent="b")) as keeper:
        rows = attention.rows_of(keeper, scope(), 2)
        listed = attention.listed(keeper, scope(), rows)
        narrow = attention.listed(keeper, scope(agent="b"), [])
        everything = attention.listed(keeper, scope(everything=True), [])

    assert len(listed.lines) == 2
    assert (sum(listed.verdicts.values()), listed.agents, listed.older) == (6, 2, 3)
    assert listed.verdicts == {"STUCK": 5, "FAILED": 1}
    assert (narrow.verdicts, narrow.older) == ({"FAILED": 1}, 0)
    assert (sum(everything.verdicts.values()), everything.older) == (9, 0)
