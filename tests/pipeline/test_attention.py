"""What needs somebody: the order, what the stage and the grace time hold back, what is new."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stopcause.classifier.policy import policy_from_mapping
from stopcause.pipeline.attention import Before, attend, window
from stopcause.store.rows import VerdictRow

NOW = datetime(2026, 11, 30, 8, tzinfo=UTC)
ENFORCED = policy_from_mapping(
    {"agents": [{"match": {"agent": "watched-*"}, "stage": "observe"}, {"stage": "enforce", "owner": "team:x"}]}
)
RULES = {
    "FAILED": "failed",
    "WAITING": "waiting",
    "WAITING_UNROUTED": "waiting_unrouted",
    "STUCK": "stuck",
    "BOUNDED_STOP": "bounded_stop",
    "VERIFIED_COMPLETE": "verified_complete",
    "FALSE_COMPLETE": "false_complete",
    "UNCERTAIN": "uncertain",
    None: "running",
}
BLANK: dict[str, Any] = dict.fromkeys(VerdictRow._fields)


def row(verdict: str | None, reason: str, ago: timedelta = timedelta(hours=1), **fields: Any) -> VerdictRow:  # noqa: ANN401
    at = NOW - ago
    known = {
        "run_id": fields.get("fingerprint", f"{verdict}-{reason}"),
        "attempt": 1,
        "opened_at": at,
        "agent": "a",
        "contract": "c",
        "verdict": verdict,
        "reason": reason,
        "rule": RULES[verdict],
        "fingerprint": f"{verdict}-{reason}",
        "stopped_at": at,
        "last_at": at,
        "missing": (),
        "findings": (),
    }
    return VerdictRow(**{**BLANK, **known, **fields})


def reasons(*rows: VerdictRow, before: Before = Before()) -> list[str]:  # noqa: B008 - a frozen value
    return [group.reason for group in attend(rows, ENFORCED, NOW, before).groups]


def test_groups_come_in_the_order_of_the_plan() -> None:
    rows = [
        row("BOUNDED_STOP", "step_limit"),
        row("UNCERTAIN", "finish_unknown"),
        row("FALSE_COMPLETE", "receipt_missing"),
        row("FAILED", "tool_failure"),
        row("STUCK", "loop_guard"),
        row("FALSE_COMPLETE", "receipt_refuted"),
        row("WAITING_UNROUTED", "owner"),
    ]

    assert reasons(*rows, before=Before(anything=True)) == [
        *("owner", "receipt_refuted", "loop_guard", "tool_failure", "receipt_missing", "finish_unknown", "step_limit")
    ]


@pytest.mark.parametrize(
    "quiet",
    [
        row("VERIFIED_COMPLETE", "receipt"),
        row("WAITING", "tool_call"),
        row("WAITING", "answered"),
        row(None, "running"),
        row("FALSE_COMPLETE", "no_contract", contract=None),
        row("FALSE_COMPLETE", "receipt_pending"),
        row("FALSE_COMPLETE", "receipt_refuted", agent="watched-1"),
        row("FALSE_COMPLETE", "empty_output", contract=None),
        row("WAITING_UNROUTED", "owner", timedelta(seconds=119)),
        row("BOUNDED_STOP", "step_limit"),
    ],
    ids=lambda each: f"{each.verdict}-{each.reason}-{each.agent}",
)
def test_what_needs_nobody_is_in_no_group(quiet: VerdictRow) -> None:
    assert reasons(quiet) == []


def test_what_is_left_out_is_counted_apart() -> None:
    until = NOW + timedelta(minutes=4)
    found = attend(
        [
            row("FALSE_COMPLETE", "no_contract", contract=None),
            row("FALSE_COMPLETE", "receipt_missing", agent="watched-1"),
            row("FALSE_COMPLETE", "receipt_pending", judge_again_at=until),
            row("WAITING_UNROUTED", "owner", timedelta(seconds=1)),
        ],
        ENFORCED,
        NOW,
    )

    assert found.unproven[:2] == (2, 2)
    assert found.pending == (1, 1, until)
    assert found.graced.runs == 1


def test_the_grace_time_ends_by_itself() -> None:
    assert reasons(row("WAITING_UNROUTED", "owner", timedelta(minutes=2))) == ["owner"]


def test_the_stage_holds_back_only_what_is_not_proven() -> None:
    rows = [row(verdict, "x", agent="watched-1") for verdict in ("STUCK", "FAILED", "UNCERTAIN", "WAITING_UNROUTED")]

    assert len(attend(rows, ENFORCED, NOW).groups) == 4


def test_a_bounded_stop_is_new_once_the_store_knew_something_before() -> None:
    stop = row("BOUNDED_STOP", "step_limit")

    assert reasons(stop) == []
    assert reasons(stop, before=Before(anything=True, groups={stop.fingerprint})) == []
    assert reasons(stop, before=Before(anything=True, groups={"other"})) == ["step_limit"]
    assert attend([stop], ENFORCED, NOW, Before(anything=True)).groups[0].new


def test_a_group_sums_up_its_runs() -> None:
    rows = [
        row("STUCK", "loop_guard", timedelta(hours=5), run_id="old", agent="b"),
        row("STUCK", "loop_guard", timedelta(hours=1), run_id="new"),
    ]

    (group,) = attend(rows, ENFORCED, NOW).groups

    assert (group.size, group.run_id, group.agents, group.owner) == (2, "new", ("a", "b"), "team:x")
    assert (group.first, group.last) == (NOW - timedelta(hours=5), NOW - timedelta(hours=1))
    assert group.action.startswith("Read the last progress record")
    assert group.stage == "enforce"


def test_everything_makes_groups_of_what_is_counted_apart_but_not_of_what_is_fine() -> None:
    rows = [
        row("BOUNDED_STOP", "step_limit"),
        row("FALSE_COMPLETE", "no_contract", contract=None),
        row("VERIFIED_COMPLETE", "receipt"),
        row("WAITING", "tool_call"),
    ]

    found = attend(rows, ENFORCED, NOW, everything=True)

    assert [group.reason for group in found.groups] == ["no_contract", "step_limit"]


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
