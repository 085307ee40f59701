"""Failures: of the model, of tools and of code, of the program around them."""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

from smolagents import ActionStep, FinalAnswerStep
from smolagents.models import ChatMessageStreamDelta

from tests.frameworks.harness import Path_, Scripted
from tests.frameworks.smolagents.models import Turn, agent, call, code, coder, done, failing, say
from tests.frameworks.smolagents.paths_ends import UNPROVEN

MODEL_FAILED = ("FAILED", "model_failure")


class ServiceDown(Exception):  # noqa: N818 - as a provider calls it
    """What a model's client raises."""


class TooMany(ServiceDown):
    """With the status that a provider sends."""

    status_code = 429


class TooLong(ServiceDown):
    """With the code that a provider documents."""

    code = "context_length_exceeded"


class SoftTimeLimitExceeded(Exception):  # noqa: N818 - as a job queue calls it
    """What Celery's soft time limit raises, wherever the job is."""


ServiceDown.__module__ = TooMany.__module__ = TooLong.__module__ = "openai._exceptions"
SoftTimeLimitExceeded.__module__ = "billiard.exceptions"


def _payment() -> BaseException:
    """As Hugging Face's client says that the credits of a month are used up."""
    errors: Any = importlib.import_module("huggingface_hub.errors")  # comes with the framework
    response = SimpleNamespace(headers={}, request=None, status_code=402)
    error: BaseException = errors.HfHubHTTPError("canary-7f3a", response=response)
    return error


def _model_fails(error: BaseException, *, before: tuple[Turn, ...] = (), **more: Any) -> None:
    failing(lambda: agent(*before, Turn(error=error), **more).run("Close it."))


def _streamed() -> None:
    failing(lambda: list(agent(Turn(error=ValueError("canary-7f3a"))).run("Close it.", stream=True)))


def _stream_breaks() -> None:
    """Answers come in pieces, and the second one does not come."""
    made = coder(stream_outputs=True)

    def breaks(*_: Any, **__: Any) -> Any:
        yield ChatMessageStreamDelta(content="canary-7f3a")
        raise ServiceDown("canary-7f3a")

    made.model.generate_stream = breaks
    failing(lambda: made.run("Close it."))


def _code_timed_out() -> None:
    made = coder(
        code("import time", "time.sleep(0.4)"), code("final_answer(1)"), executor_kwargs={"timeout_seconds": 0.2}
    )
    made.run("Close it.")


def _bad_template() -> None:
    made = agent(done(), planning_interval=1)
    made.prompt_templates["planning"]["initial_plan"] = "{{canary7f3a}}"
    failing(lambda: made.run("Close it."))


def _raises(*_: Any, **__: Any) -> None:
    raise Scripted("canary-7f3a")


def _callback_raises(kind: type) -> None:
    failing(lambda: agent(done(), step_callbacks={kind: _raises}).run("Close it."))


def _executor_fails() -> None:
    """The place where code is executed is not there, which comes out before the first step."""
    made = coder(done())
    made.python_executor = SimpleNamespace(send_variables=_raises)  # as far as it gets
    failing(lambda: made.run("Close it."))


def _recovered(*turns: Turn, **more: Any) -> None:
    agent(*turns, done(), **more).run("Close it.")


def _recovered_code(*turns: Turn) -> None:
    coder(*turns, code("final_answer(1)")).run("Close it.")


PATHS = [
    Path_(
        "model-fails",
        "The model's client raised, and nothing recovered it.",
        MODEL_FAILED,
        lambda: _model_fails(ServiceDown("canary-7f3a")),
    ),
    Path_(
        "model-fails-plainly",
        "An error of no provider's class, but it came out of the model.",
        MODEL_FAILED,
        lambda: _model_fails(ValueError("canary-7f3a"), before=(call(key="a"),)),
    ),
    Path_(
        "model-fails-code",
        "The model failed to write code, and nothing recovered it.",
        MODEL_FAILED,
        lambda: failing(lambda: coder(Turn(error=ValueError("canary-7f3a"))).run("Close it.")),
    ),
    Path_(
        "model-fails-streamed",
        "The model failed, and whoever read the stream got the exception.",
        MODEL_FAILED,
        _streamed,
    ),
    Path_("model-breaks-off", "The model's answer broke off in the middle.", MODEL_FAILED, _stream_breaks),
    Path_(
        "model-rate-limit",
        "The provider's own exception says 429.",
        ("FAILED", "quota"),
        lambda: _model_fails(TooMany("canary-7f3a")),
    ),
    Path_(
        "credits-used-up",
        "Hugging Face's inference wants to be paid: the status is on the response.",
        ("FAILED", "quota"),
        lambda: _model_fails(_payment()),
    ),
    Path_(
        "context-overflow",
        "The provider says that the window is full.",
        ("BOUNDED_STOP", "context_limit"),
        lambda: _model_fails(TooLong("canary-7f3a")),
    ),
    Path_(
        "job-timed-out",
        "A job queue's timer fired while the model answered, and nothing was done before.",
        ("STUCK", "time_limit"),
        lambda: _model_fails(SoftTimeLimitExceeded("canary-7f3a")),
    ),
    Path_(
        "job-timed-out-with-progress",
        "A job queue's timer fired while the model answered; a tool had answered before.",
        ("BOUNDED_STOP", "time_limit"),
        lambda: _model_fails(SoftTimeLimitExceeded("canary-7f3a"), before=(call(key="a"),)),
    ),
    Path_(
        "plan-fails",
        "The model failed to make a plan, which the framework hands on as it is.",
        MODEL_FAILED,
        lambda: _model_fails(ValueError("canary-7f3a"), planning_interval=1),
    ),
    Path_(
        "plan-fails-later",
        "The model failed to make a new plan after a step.",
        MODEL_FAILED,
        lambda: _model_fails(ValueError("canary-7f3a"), before=(say("Plan."), call(key="a")), planning_interval=1),
    ),
    Path_("template-wrong", "The program's own prompt template is wrong.", ("FAILED", "host_error"), _bad_template),
    Path_(
        "callback-raises",
        "A callback of the program's raised.",
        ("FAILED", "host_error"),
        lambda: _callback_raises(ActionStep),
    ),
    Path_(
        "callback-raises-at-the-end",
        "A callback of the program's raised at the final answer.",
        ("FAILED", "host_error"),
        lambda: _callback_raises(FinalAnswerStep),
    ),
    Path_("set-up-fails", "It failed before the first step.", ("FAILED", "host_error"), _executor_fails),
    Path_(
        "tool-raises",
        "A tool raised; the model was told and went on.",
        UNPROVEN,
        lambda: _recovered(call("breaks", key="a")),
    ),
    Path_(
        "tool-unknown",
        "The model made up a tool, was told and went on.",
        UNPROVEN,
        lambda: _recovered(call("canary7f3a", key="a")),
    ),
    Path_(
        "tool-misused",
        "The model gave a tool the wrong arguments, was told and went on.",
        UNPROVEN,
        lambda: _recovered(call("look_up", nothing="a")),
    ),
    Path_(
        "one-of-two-fails",
        "Of two calls at once one failed; the model was told and went on.",
        UNPROVEN,
        lambda: _recovered(Turn(calls=(("breaks", {"key": "a"}), ("look_up", {"key": "b"})))),
    ),
    Path_(
        "call-unreadable",
        "The model wrote prose in place of a call, was told and went on.",
        UNPROVEN,
        lambda: _recovered(say("I will.")),
    ),
    Path_(
        "code-raises",
        "Code raised; the model was told and went on.",
        UNPROVEN,
        lambda: _recovered_code(code("breaks(key='a')")),
    ),
    Path_(
        "code-timed-out",
        "Code took too long, which ends the code and not the run; the model was told and went on.",
        UNPROVEN,
        _code_timed_out,
    ),
    Path_(
        "code-unreadable",
        "The model wrote no code, was told and went on.",
        UNPROVEN,
        lambda: _recovered_code(say("I will.")),
    ),
    Path_(
        "import-refused",
        "Code imported what it must not; the model was told and went on.",
        UNPROVEN,
        lambda: _recovered_code(code("import subprocess")),
    ),
]
