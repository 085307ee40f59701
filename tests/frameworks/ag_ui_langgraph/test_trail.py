"""The four examples of the contract before 1.0, told by each of the three configurations: the trail that they leave.

What is proposed stands in the run that asks, what was decided in the next input, what came of it in the next run. What
must be found was read from the rules before the adapter was tried.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from stopcause.agui.findings import names
from stopcause.agui.tap_asgi import AguiMiddleware, App
from stopcause.agui.tap_httpx import AguiTransport
from stopcause.classifier import engine
from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.receipts.testing import recorded
from tests.agui.recorded import GIVES_UP, Client, verdicts
from tests.frameworks.ag_ui_langgraph.service import CONFIGURATIONS, MARK, NO, YES, ById, clerk, done, serving

Json = Any

CONFIGURED = pytest.mark.parametrize("configuration", CONFIGURATIONS)

# The adapter declares no version, whatever SDK it stands on; by default it asks beside an ordinary finish.
_ALWAYS = {"legacy": {"NO_VERSION", "LEGACY_INTERRUPT"}, "both": {"NO_VERSION"}, "outcome": {"NO_VERSION"}}


class Example(NamedTuple):
    """What an agent would call, what it is told, what was decided, what it then did, and what is found."""

    calls: tuple[str, ...]
    answers: tuple[Json, ...]
    decided: tuple[str, ...]
    found: str
    done: int = 1


EXAMPLES = {
    # A gated call is begun anew by the run that takes it up.
    "minimal approval": Example(("send",), (YES,), ("approved",), "NO_DEADLINE CALL_REOPENED"),
    "approve with edits": Example(
        ("send_edited",),
        ({**YES, "editedArgs": {"to": f"{MARK} else"}},),
        ("edited",),
        "NO_DEADLINE CALL_REOPENED",
    ),
    # What was given up has a result too, which says so; of that nobody else can know.
    "parallel approvals": Example(
        ("send", "send", "send"),
        (YES, YES, GIVES_UP),
        ("approved", "approved", "cancelled"),
        "NO_DEADLINE CALL_REOPENED RESULT_AFTER_CANCEL",
        done=2,
    ),
    # It says when it expires, and it gates no call.
    "form input": Example(("file_report",), ({"quarter": "Q1", "year": 2026, "revenue": 4200000},), ("answered",), ""),
}
EACH = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


def _app(example: Example, configuration: str) -> App:
    return clerk(*example.calls, kind=ById, **CONFIGURATIONS[configuration])


def _told(client: Client, example: Example, configuration: str) -> Client:
    """Asks and answers, by the channel that goes with what the adapter tells."""
    client.send("r1")
    if configuration == "legacy":
        client.answer_as_before("r2", *(NO if each is GIVES_UP else each for each in example.answers))
    else:
        client.answer("r2", *example.answers)
    return client


@EACH
@CONFIGURED
def test_proposal_decision_and_result_are_in_their_runs(example: Example, configuration: str) -> None:
    with serving(_app(example, configuration)) as client:
        asking, answering = _told(client, example, configuration).audited().runs
    calls = [f"tc-{number + 1}" for number in range(len(example.calls))]
    assert len(asking.run.interrupts) == len(calls)  # each once, by however many channels it was told
    assert [*asking.run.calls] == [*asking.run.pending] == calls
    given_up = "denied" if configuration == "legacy" else "cancelled"  # the old channel knows no giving up
    expected = tuple(given_up if each == "cancelled" else each for each in example.decided)
    assert tuple(str(each.decision) for each in answering.link.decided) == expected
    assert {each.tool_call_id for each in answering.run.results} == set(calls)
    assert len(done) == example.done


@EACH
@CONFIGURED
def test_what_is_found_is_what_the_rules_say(example: Example, configuration: str) -> None:
    with serving(_app(example, configuration)) as client:
        audit = _told(client, example, configuration).audited()
    assert verdicts(audit) == {"r1": ("WAITING", "answered"), "r2": ("FALSE_COMPLETE", "no_contract")}
    assert [(each.verdict, each.open) for each in audit.threads] == [("FALSE_COMPLETE", ())]
    assert names(audit.findings) == {*example.found.split()} | _ALWAYS[configuration]


@EACH
@CONFIGURED
@pytest.mark.parametrize("side", ["server", "client"])
def test_the_taps_and_the_audit_of_what_was_recorded_agree(example: Example, configuration: str, side: str) -> None:
    app = _app(example, configuration)
    opened = serving(AguiMiddleware(app, "clerk")) if side == "server" else serving(app, AguiTransport(agent="clerk"))
    with recorded() as receipts:
        with opened as client:
            audit = _told(client, example, configuration).audited()
        judged = engine.judge_all(receipts.records, DEFAULT_POLICY, datetime.now(UTC))
    assert {each.run_id: (each.verdict, each.reason) for each in judged} == verdicts(audit)


@EACH
@CONFIGURED
def test_until_it_is_answered_it_waits_for_somebody(example: Example, configuration: str) -> None:
    """By default, what waits looks finished on the wire."""
    with serving(_app(example, configuration)) as client:
        last = client.send("r1")[-1]
        audit = client.audited()
    assert last["type"] == "RUN_FINISHED"
    assert ("outcome" in last) is (configuration != "legacy")
    assert verdicts(audit) == {"r1": ("WAITING_UNROUTED", "owner")}
    assert [len(each.open) for each in audit.threads] == [len(example.calls)]


def test_without_raw_events_what_is_asked_by_events_has_no_id_and_can_be_answered_all_the_same() -> None:
    """It goes by its call; several of them at once nobody could answer."""
    with serving(clerk("send", emit_raw_events=False)) as client:
        client.send("r1")
        assert client.asked == []
        client.answer_as_before("r2", YES)
        audit = client.audited()
    assert [each.id for each in audit.runs[0].run.interrupts] == ["tc-1"]
    assert verdicts(audit) == {"r1": ("WAITING", "answered"), "r2": ("FALSE_COMPLETE", "no_contract")}
    assert len(done) == 1
