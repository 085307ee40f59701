"""For tests of integrations: what an agent is sent after it has asked, and what must be said of it, as rows of a table.

`told` plays a row, `holds` compares, `taps_agree` does the same with both taps and looks for content. Whose agent it is
and what is expected stand in the integration's own test.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any, NamedTuple

from stopcause.agui.findings import names
from stopcause.agui.tap_asgi import AguiMiddleware, App
from stopcause.agui.tap_httpx import AguiTransport
from stopcause.agui.words import Ending
from stopcause.classifier import engine
from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.pipeline.agui import Audit
from stopcause.pipeline.agui_views import audit_file_view
from stopcause.receipts import testing
from stopcause.render.agui import audit_objects, audit_screen
from stopcause.render.pen import Pen
from tests.agui.recorded import Client, entry, verdicts

Json = Any
Step = Callable[[Client, str], object]  # sends something, as the run of this id
Recording = Callable[..., AbstractContextManager[Client]]  # of an application, with a transport or without
Verdict = tuple[str, str]

WAITS = ("WAITING_UNROUTED", "owner")
ANSWERED = ("WAITING", "answered")
DONE = ("FALSE_COMPLETE", "no_contract")
FAILED = ("FAILED", "self_reported_failure")
REFUSED = ("FAILED", "input_rejected")


class Story(NamedTuple):
    """One row.

    Attributes:
        calls: The tools that the agent would call.
        steps: What is sent after the run that asks, run by run.
        runs: The verdict on each run.
        thread: The verdict on their thread.
        found: The names of what is found.
        decided: What the answers that were taken say.
        done: How often a tool did its work.
        kind: Of the agent, where there is more than one.
    """

    calls: tuple[str, ...]
    steps: tuple[Step, ...]
    runs: tuple[Verdict, ...]
    thread: Verdict
    found: str
    decided: tuple[str, ...] = ()
    done: int = 0
    kind: Any = None


def answers(*said: Json) -> Step:
    """Answers what was asked, in order."""
    return lambda client, run_id: client.answer(run_id, *said)


def answers_another(said: Json, name: str = "nobody-s", *, besides: bool = False) -> Step:
    """Answers something that was not asked; with `besides`, what was asked first, too."""

    def step(client: Client, run_id: str) -> object:
        own = [entry(client.asked[0], said)] if besides else []
        return client.send(run_id, resume=[*own, entry(name, said)])

    return step


def goes_on(client: Client, run_id: str) -> object:
    """Answers nothing."""
    return client.send(run_id)


def told(client: Client, story: Story) -> Client:
    """The whole of it."""
    client.send("r1")
    for number, step in enumerate(story.steps, 2):
        step(client, f"r{number}")
    return client


def holds(audit: Audit, story: Story, *always: str) -> None:
    """That it is said of a story what must be; `always` is found in each."""
    asking = audit.runs[0].run
    assert [*asking.calls] == [*asking.pending] == [f"tc-{number + 1}" for number in range(len(story.calls))]
    assert tuple(str(each.decision) for run in audit.runs for each in run.link.decided) == story.decided
    assert verdicts(audit) == {f"r{number}": verdict for number, verdict in enumerate(story.runs, 1)}
    assert [(each.verdict, each.reason) for each in audit.threads] == [story.thread]
    assert names(audit.findings) == {*story.found.split(), *always}


def taps_agree(story: Story, app: Callable[[], App], recording: Recording, mark: str) -> None:
    """That each tap tells what the audit says of the recording, and that nothing with this mark comes out."""
    ways: tuple[Callable[[], AbstractContextManager[Client]], ...] = (
        lambda: recording(AguiMiddleware(app(), "clerk")),
        lambda: recording(app(), AguiTransport(agent="clerk")),
    )
    for way in ways:
        with testing.recorded() as receipts, way() as client:
            audit = told(client, story).audited()
        judged = engine.judge_all(receipts.records, DEFAULT_POLICY, datetime.now(UTC))
        assert {each.run_id: (each.verdict, each.reason) for each in judged} == _in_a_store(audit)
        assert mark in json.dumps(client.exchanges)
        assert mark.encode() not in b"\n".join(receipts.lines)
        assert mark not in "\n".join([repr(audit), *_screens(audit)])


def _in_a_store(audit: Audit) -> dict[str, tuple[str | None, str]]:
    """The verdicts of the same runs there: what is asked again counts where it was asked last, and there alone."""
    again = (each.link.resumes_run_id for each in audit.runs if each.run.ending is Ending.INTERRUPT)
    return verdicts(audit) | {run_id: ANSWERED for run_id in again if run_id is not None}


def _screens(audit: Audit) -> list[str]:
    view, now = audit_file_view("recording", audit), datetime.now(UTC)
    return [json.dumps([*audit_objects([view])], default=str), *audit_screen([view], now, Pen(), everything=True)]
