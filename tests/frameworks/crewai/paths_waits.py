"""Waits for a person: of a flow that stops meanwhile, and of a run that blocks and goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any
from unittest import mock

import stopcause
from tests.frameworks.crewai.flows import Asking, Console, Forgets, Review, Reviewed, Rounds, store
from tests.frameworks.crewai.models import crew, failing, say
from tests.frameworks.crewai.paths_ends import UNPROVEN
from tests.frameworks.harness import Path_

ROUTED = {"route": {"owner": "finance", "due_s": 3600}}
UNROUTED = ("WAITING_UNROUTED", "owner")


def _paused(kind: Any = Review, **more: Any) -> Any:
    flow = kind(**({"persistence": store()} | more))
    flow.kickoff()
    return flow


def _taken_up(flow: Any, answer: str = "canary-7f3a: fine", **more: Any) -> Any:
    """As after a restart: another object, made from the store."""
    made = type(flow).from_pending(flow.flow_id, flow.persistence, **more)
    made.resume(answer)
    return made


def _other_process() -> None:
    """Of what this process remembers nothing is left."""
    flow = _paused()
    stopcause.uninstrument("crewai")
    stopcause.instrument("crewai")
    _taken_up(flow)


async def _natively() -> None:
    flow = Review(persistence=store())
    await flow.kickoff_async()
    await Review.from_pending(flow.flow_id, flow.persistence).resume_async("canary-7f3a: fine")


def _paused_twice() -> None:
    _taken_up(_paused(Rounds), "")


def _twice_and_done() -> None:
    _taken_up(_taken_up(_paused(Rounds), ""), "")


def _goes_wrong() -> None:
    flow = _paused()
    failing(lambda: _taken_up(flow, then="badly"))


def _cannot_be_read() -> None:
    """The answer has to be put in one of the flow's words by a model, which is not there."""
    flow = _paused(Rounds)
    with mock.patch("crewai.flow.runtime._resolve_llm_instance", return_value=None):
        failing(lambda: _taken_up(flow))


def _in_a_block() -> None:
    with stopcause.run("desk"):
        _paused()


def _typed(run: Callable[[], Any], *answers: Any) -> None:
    """What a person types in the meantime; an exception is raised instead."""
    with mock.patch("builtins.input", side_effect=list(answers)):
        run()


def _reviewed(*turns: Any) -> Any:
    return crew(*turns, doing={"human_input": True})


class Answers:
    """Who answers what a flow asks."""

    def __init__(self, answers: Iterable[Any]) -> None:
        self._answers = iter(answers)

    def request_input(self, *_: Any, **__: Any) -> Any:
        return next(self._answers)


def _asks(answer: Any) -> None:
    Asking(input_provider=Answers([answer])).kickoff()


PATHS = [
    Path_("feedback", "A flow stops for somebody's feedback; nobody is named.", UNROUTED, _paused),
    Path_(
        "feedback-routed",
        "Owner and deadline from the route; the flow's id names the paused state.",
        ("WAITING", "input_required"),
        _paused,
        options=ROUTED,
    ),
    Path_(
        "feedback-outcomes",
        "The answer will be one of the flow's words.",
        ("WAITING", "confirmation"),
        lambda: _paused(Rounds),
        options=ROUTED,
    ),
    Path_(
        "feedback-overdue",
        "Routed, and nobody answered in time.",
        ("WAITING_UNROUTED", "overdue"),
        _paused,
        options=ROUTED,
        after_s=3700.0,
    ),
    Path_(
        "feedback-keys",
        "The owner is in the feedback's metadata, under a key that is allowed; no deadline.",
        ("WAITING_UNROUTED", "deadline"),
        _paused,
        options={"approval_keys": {"owner": "who"}},
    ),
    Path_(
        "feedback-default-store",
        "Without a store of the program's own CrewAI keeps it in its own.",
        UNROUTED,
        lambda: _paused(persistence=None),
    ),
    Path_(
        "feedback-forgotten",
        "Routed, but the program's store does not keep what is asked.",
        ("WAITING_UNROUTED", "resume_token"),
        lambda: _paused(persistence=Forgets()),
        options=ROUTED,
    ),
    Path_(
        "feedback-in-a-block", "The flow in the host's own block waits, so the block's run does.", UNROUTED, _in_a_block
    ),
    Path_(
        "feedback-answered",
        "The answer came, and another object took the flow up.",
        ("WAITING", "answered"),
        lambda: _taken_up(_paused()),
    ),
    Path_("feedback-resumed", "The flow that was taken up finished.", UNPROVEN, lambda: _taken_up(_paused()), judged=1),
    Path_("feedback-async", "The same by coroutines.", ("WAITING", "answered"), _natively),
    Path_(
        "feedback-other-process",
        "Another process took it up: it names what it answers, not the run that asked.",
        UNPROVEN,
        _other_process,
        judged=1,
    ),
    Path_("feedback-again", "After a no it asks again: another wait.", UNROUTED, _paused_twice, judged=1),
    Path_(
        "feedback-again-answered",
        "The second wait was answered too, and it finished.",
        UNPROVEN,
        _twice_and_done,
        judged=2,
    ),
    Path_(
        "feedback-then-fails",
        "The answer was taken; what came then raised.",
        ("FAILED", "host_error"),
        _goes_wrong,
        judged=1,
    ),
    Path_(
        "feedback-then-failed",
        "The flow went past what it asked for, and failed later: that was answered.",
        ("WAITING", "answered"),
        _goes_wrong,
    ),
    Path_(
        "feedback-unreadable",
        "The answer could not be put in one of the flow's words.",
        ("FAILED", "model_failure"),
        _cannot_be_read,
        judged=1,
    ),
    Path_("feedback-still-open", "An answer that could not be taken leaves it open.", UNROUTED, _cannot_be_read),
    Path_(
        "console",
        "A flow asks on the terminal, and goes on with the answer.",
        UNPROVEN,
        lambda: _typed(Console().kickoff, "canary-7f3a: fine"),
    ),
    Path_(
        "human-input-interrupted",
        "Somebody pressed Ctrl-C instead of answering.",
        ("BOUNDED_STOP", "user_abort"),
        lambda: failing(lambda: _typed(_reviewed(say()).kickoff, KeyboardInterrupt())),
    ),
    Path_("ask", "A flow's method asks, and goes on with the answer.", UNPROVEN, lambda: _asks("canary-7f3a")),
    Path_(
        "ask-unanswered",
        "A flow's method asks, nobody answers, and it goes on as if that were a no.",
        ("FALSE_COMPLETE", "denied"),
        lambda: _asks(None),
    ),
    Path_(
        "human-input",
        "A person looked at the task's answer, and had nothing to say.",
        UNPROVEN,
        lambda: _typed(_reviewed(say()).kickoff, ""),
    ),
    Path_(
        "human-input-elsewhere",
        "A crew inside of a flow waits for somebody elsewhere.",
        UNROUTED,
        lambda: _paused(Reviewed),
        judged=1,
    ),
    Path_(
        "feedback-by-crew-answered",
        "The answer went to the flow; what the crew inside asked is no longer open.",
        ("BOUNDED_STOP", "approval_denied"),
        lambda: _taken_up(_paused(Reviewed)),
        judged=1,
    ),
    Path_(
        "feedback-by-crew",
        "The flow stops because a crew inside of it waits.",
        ("WAITING", "input_required"),
        lambda: _paused(Reviewed),
        options=ROUTED,
    ),
    Path_(
        "human-input-revised",
        "A person wanted it otherwise, and then had nothing to say.",
        UNPROVEN,
        lambda: _typed(_reviewed(say(), say("Better.")).kickoff, "canary-7f3a: no", ""),
    ),
    Path_(
        "human-input-closed",
        "Nobody is at the terminal.",
        ("FAILED", "host_error"),
        lambda: failing(
            lambda: _typed(crew(say(), of={"max_retry_limit": 0}, doing={"human_input": True}).kickoff, EOFError())
        ),
    ),
]
