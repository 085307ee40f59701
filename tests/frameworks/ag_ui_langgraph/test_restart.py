"""An answer to an agent that lives on, and the same to one that began anew: what they do, and what the audit says.

The contract before 1.0 has both look the same (state at the interrupt boundary): who has no checkpoint goes on
from the messages and the state of the input. This adapter needs its checkpoint. Without it LangGraph begins with
nothing at all, the messages of the input are passed over, and the answer is gone.
"""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from stopcause.agui.findings import Finding
from stopcause.agui.words import Side
from stopcause.pipeline.agui import Audit
from tests.agui.recorded import Client, plain, verdicts
from tests.frameworks.ag_ui_langgraph.service import CONFIGURATIONS, MARK, YES, clerk, done, serving
from tests.frameworks.ag_ui_langgraph.test_faults import BREAKS_OFF
from tests.frameworks.ag_ui_langgraph.test_trail import CONFIGURED

Json = Any

_GOES_ON = [
    "RUN_STARTED", "STEP_STARTED", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT",
    "STEP_FINISHED", "STEP_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "STEP_FINISHED",
    "RUN_FINISHED",
]  # fmt: skip
_SAYS_SOMETHING = [
    "RUN_STARTED", "STEP_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "STEP_FINISHED",
    "RUN_FINISHED",
]  # fmt: skip
_FAILS = ["RUN_STARTED", "STEP_STARTED", *([] if BREAKS_OFF else ["RUN_ERROR"])]


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


def _answered(client: Client, configuration: str, run_id: str = "r2") -> list[dict[str, Json]]:
    return client.answer_as_before(run_id, YES) if configuration == "legacy" else client.answer(run_id, YES)


def _live(configuration: str) -> list[dict[str, Json]]:
    """What an agent that lives on does with an answer."""
    with serving(clerk("send", **CONFIGURATIONS[configuration])) as client:
        client.send("r1")
        return _answered(client, configuration)


def _restarted(
    configuration: str, *, is_kept: bool = False, times: int = 1, **options: Json
) -> tuple[list[dict[str, Json]], Audit]:
    """What one does that began anew, with the messages and the state of its client; and what the audit says."""
    memories = [InMemorySaver()] * 2 if is_kept else [InMemorySaver(), InMemorySaver()]
    apps = [clerk("send", memory=each, **options, **CONFIGURATIONS[configuration]) for each in memories]
    with serving(apps[0]) as before, serving(apps[1]) as after:
        before.send("r1")
        client = before.moved_to(after)
        events = [_answered(client, configuration, f"r{number + 2}") for number in range(times)]
        return events[-1], client.audited()


def _types(events: list[dict[str, Json]]) -> list[str]:
    return [each["type"] for each in plain(events)]


def _found(audit: Audit, run_id: str) -> dict[str, Side]:
    """About a run in its thread: the finding, and whose it is."""
    found: list[Finding] = [each for run in audit.runs if run.run.run_id == run_id for each in run.link.findings]
    return {each.name: each.side for each in found}


@CONFIGURED
def test_one_that_kept_its_checkpoint_does_the_same_after_a_restart(configuration: str) -> None:
    live = _live(configuration)
    restarted, audit = _restarted(configuration, is_kept=True)
    assert _types(live) == _GOES_ON
    assert plain(restarted) == plain(live)
    assert done == [f"{MARK} send"] * 2
    assert verdicts(audit) == {"r1": ("WAITING", "answered"), "r2": ("FALSE_COMPLETE", "no_contract")}


@CONFIGURED
def test_without_its_checkpoint_a_good_answer_fails_and_from_the_second_time_on_that_is_the_agent_s_fault(
    configuration: str,
) -> None:
    """Its model is given no messages at all, which a provider refuses."""
    restarted, audit = _restarted(configuration, times=2)
    assert _types(restarted) == _FAILS
    assert done == []
    by_resume = configuration != "legacy"  # of an answer without an id nobody can say that it was good
    if BREAKS_OFF:
        assert verdicts(audit)["r2"] == verdicts(audit)["r3"] == ("UNCERTAIN", "stream_truncated")
        assert _found(audit, "r2") == {"ANSWER_FATE_UNKNOWN": Side.AUDITOR}
    else:
        assert verdicts(audit)["r2"] == verdicts(audit)["r3"] == ("FAILED", "self_reported_failure")
        assert _found(audit, "r2") == {"RESUME_FAILED_STILL_OPEN": Side.AUDITOR}
        blamed = {"VALID_RESUME_REFUSED": Side.PRODUCER} if by_resume else {}
        assert _found(audit, "r3") == {"RESUME_FAILED_STILL_OPEN": Side.AUDITOR, **blamed}
        assert [each.verdict for each in audit.threads] == ["WAITING_UNROUTED"]


@CONFIGURED
def test_with_a_system_prompt_it_says_that_it_is_done_and_nothing_was(configuration: str) -> None:
    """The worst of it: a green run, an answer that was allowed, and no trace of the call."""
    restarted, audit = _restarted(configuration, system_prompt=f"{MARK}: be good")
    assert _types(restarted) == _SAYS_SOMETHING
    assert done == []
    assert verdicts(audit) == {"r1": ("WAITING", "answered"), "r2": ("FALSE_COMPLETE", "no_contract")}
    assert _found(audit, "r2") == {"APPROVED_NOT_EXECUTED": Side.AUDITOR}
