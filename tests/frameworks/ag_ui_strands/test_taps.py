"""Both taps before a real agent: they tell the same, and the classifier says what a person would."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from stopcause.agui.guard import ResumeGuard
from stopcause.agui.tap_asgi import AguiMiddleware, App
from stopcause.agui.tap_httpx import AguiTransport
from stopcause.classifier import engine
from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.receipts.testing import Recorded, recorded
from tests.frameworks.ag_ui_strands.service import MARK, Client, Counted, clerk, gave_up, ids_of, paid, serving, yes

Json = Any
Serving = AbstractContextManager[tuple[Client, Counted]]
Story = Callable[[Client], object]
Parts = Iterator[tuple[Story, Serving]]
SERVED = f"ag_ui_strands@{metadata.version('ag_ui_strands')}"  # which the agent's side sees in its process
_ROUTE = {"owner": "team:treasury", "due_s": 600}
_OF_THE_MOMENT = frozenset({"record_id", "at", "seq", "started_at", "duration_s", "requested_at", "decided_at"})
_OF_THE_MOMENT |= {"deadline", "last_at", "process"}


_asked: list[str] = []  # what was asked for last, which who answers has to know


def _asks(client: Client) -> None:
    _asked[:] = ids_of(client.send("r1"))


def _answers(client: Client) -> None:
    first, second = _asked
    client.send("r2", resume=[yes(first), gave_up(second)])


def _is_answered(client: Client) -> None:
    _asks(client)
    _answers(client)


def _is_answered_in_part(client: Client) -> None:
    _asks(client)
    client.send("r2", resume=[yes(_asked[0])])


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
    here = _told(lambda app: [(story, serving(app, AguiTransport(agent="clerk", integration=SERVED)))])
    there = _told(lambda app: [(story, serving(AguiMiddleware(app, "clerk")))])
    assert _lasting(here) == _lasting(there)
    assert _verdicts(here) == _verdicts(there) == expected


def test_what_a_guard_or_a_file_keeps_is_told_after_a_restart_too(tmp_path: Path) -> None:
    """The questions are asked through one tap, and answered through another that begins anew."""

    def with_guards(app: App) -> Parts:
        for part in (_asks, _answers):
            yield (
                part,
                serving(
                    app, AguiTransport(agent="clerk", guard=ResumeGuard(tmp_path / "guard.db"), integration=SERVED)
                ),
            )

    def with_files(app: App) -> Parts:
        for part in (_asks, _answers):
            yield part, serving(AguiMiddleware(app, "clerk", threads=tmp_path / "threads.db"))

    plain = _told(lambda app: [(_is_answered, serving(AguiMiddleware(app, "clerk")))])
    assert _lasting(_told(with_guards)) == _lasting(_told(with_files)) == _lasting(plain)


def _told(parts: Callable[[App], Iterable[tuple[Story, Serving]]]) -> Recorded:
    """What a new agent's runs leave behind."""
    paid.clear()
    with recorded(route=_ROUTE) as receipts:
        for story, opened in parts(clerk()):
            with opened as (client, _):
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
