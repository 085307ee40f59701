"""Both taps before a real agent: they tell the same, and the classifier says what a person would."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from stopcause.classifier import engine
from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.receipts.testing import Recorded, recorded
from tests.frameworks.ag_ui_strands.service import MARK, Client, clerk, gave_up, ids_of, paid, serving, yes

Json = Any
Story = Callable[[Client], object]
_ROUTE = {"owner": "team:treasury", "due_s": 600}
_OF_THE_MOMENT = frozenset({"record_id", "at", "seq", "started_at", "duration_s", "requested_at", "decided_at"})
_OF_THE_MOMENT |= {"deadline", "last_at", "process"}


def _asks(client: Client) -> list[str]:
    return ids_of(client.send("r1"))


def _is_answered(client: Client) -> None:
    first, second = _asks(client)
    client.send("r2", resume=[yes(first), gave_up(second)])


def _is_answered_in_part(client: Client) -> None:
    client.send("r2", resume=[yes(_asks(client)[0])])


def _is_passed_over(client: Client) -> None:
    _asks(client)
    client.send("r2")


STORIES: dict[str, tuple[Story, dict[str, tuple[str, str]]]] = {
    "asks": (_asks, {"r1": ("WAITING", "tool_call")}),
    "is answered": (_is_answered, {"r1": ("WAITING", "answered"), "r2": ("FALSE_COMPLETE", "no_contract")}),
    "is answered in part": (
        _is_answered_in_part,
        {"r1": ("WAITING", "tool_call"), "r2": ("FAILED", "input_rejected")},
    ),
    "is passed over": (_is_passed_over, {"r1": ("WAITING", "tool_call"), "r2": ("FAILED", "input_rejected")}),
}


@pytest.mark.parametrize(("story", "expected"), STORIES.values(), ids=STORIES)
def test_both_taps_tell_the_same_and_it_is_judged_rightly(story: Story, expected: dict[str, tuple[str, str]]) -> None:
    here, there = _told(story, at_the_agent=False), _told(story, at_the_agent=True)
    assert _lasting(here) == _lasting(there)
    assert _verdicts(here) == _verdicts(there) == expected


def _told(story: Story, *, at_the_agent: bool) -> Recorded:
    paid.clear()
    with recorded(route=_ROUTE) as receipts:
        with serving(clerk(), is_tapped_here=not at_the_agent, is_tapped_there=at_the_agent) as (client, _):
            story(client)
        assert MARK.encode() not in b"\n".join(receipts.lines)
    return receipts


def _lasting(told: Recorded) -> list[Json]:
    return [_without(json.loads(line)) for line in told.lines]


def _without(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _without(each) for key, each in value.items() if key not in _OF_THE_MOMENT}
    return [_without(each) for each in value] if isinstance(value, Sequence) and not isinstance(value, str) else value


def _verdicts(told: Recorded) -> dict[str, tuple[str | None, str]]:
    verdicts = engine.judge_all(told.records, DEFAULT_POLICY, datetime.now(UTC))
    return {each.run_id: (each.verdict, each.reason) for each in verdicts}
