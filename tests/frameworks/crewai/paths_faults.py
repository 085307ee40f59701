"""Ends that something broke: a model, a tool, a guardrail, a hook, the program's own code. And what was recovered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openai
from crewai.hooks import (
    clear_before_llm_call_hooks,
    clear_before_tool_call_hooks,
    register_before_llm_call_hook,
    register_before_tool_call_hook,
)
from crewai.utilities.exceptions.context_window_exceeding_exception import LLMContextLengthExceededError

from tests.frameworks.crewai.models import Turn, agent, call, crew, failing, say
from tests.frameworks.crewai.paths_ends import UNPROVEN
from tests.frameworks.harness import Path_, Scripted


class Unpaid(openai.OpenAIError):
    """What a provider's client raises for it."""

    status_code = 402


ONCE = {"max_retry_limit": 0}


def _raised(error: BaseException, times: int = 3) -> list[Turn]:
    return [Turn(error=error)] * times


def _model_fails() -> None:
    failing(crew(*_raised(RuntimeError("canary-7f3a"))).kickoff)


def _interrupted() -> None:
    failing(crew(*_raised(KeyboardInterrupt(), 1)).kickoff)


def _interrupted_in_a_retry() -> None:
    failing(crew(*_raised(RuntimeError("canary-7f3a"), 1), *_raised(KeyboardInterrupt(), 1)).kickoff)


def _out_of_money() -> None:
    failing(crew(*_raised(Unpaid("canary-7f3a"))).kickoff)


def _alone_fails() -> None:
    failing(lambda: agent(*_raised(RuntimeError("canary-7f3a"))).kickoff("Go."))


def _context_full() -> None:
    error = LLMContextLengthExceededError("canary-7f3a: maximum context length")
    failing(crew(Turn(error=error), of={"respect_context_window": False}).kickoff)


def _nothing_forced() -> None:
    failing(crew(call(), say(""), of={"max_iter": 1, **ONCE}).kickoff)


def _tools(*names: str) -> None:
    crew(*(call(name) for name in names), say()).kickoff()


def _repeats() -> None:
    failing(crew(*[call()] * 12, say()).kickoff)


def _policy_raises() -> None:
    failing(crew(call("breaks"), say(), of={"tool_failure_policy": "raise"}).kickoff)


def _raises(*_: Any, **__: Any) -> Any:
    raise Scripted("canary-7f3a")


def _guarded(guardrail: Callable[[Any], Any]) -> None:
    failing(crew(say(), say(), doing={"guardrail": guardrail, "guardrail_max_retries": 1}).kickoff)


def _guarded_alone() -> None:
    failing(
        lambda: agent(say(), guardrail=lambda _: (False, "canary-7f3a: no"), guardrail_max_retries=0).kickoff("Go.")
    )


def _guarded_by_model(verdict: str) -> Any:
    """The guardrail is a text, and the agent's model is asked whether the answer keeps to it."""
    turns = [say(), say(f'{{"valid": {verdict}, "feedback": "canary-7f3a"}}', finish="length")]
    return crew(*turns, doing={"guardrail": "canary-7f3a: be kind", "guardrail_max_retries": 0})


def _guarded_once() -> None:
    passes = iter([False, True])
    crew(say("No."), say(), doing={"guardrail": lambda output: (next(passes), output.raw)}).kickoff()


def _model_denied() -> None:
    register_before_llm_call_hook(lambda _: False)
    try:
        failing(crew(say(), of=ONCE).kickoff)
    finally:
        clear_before_llm_call_hooks()


def _tool_denied() -> None:
    register_before_tool_call_hook(lambda _: False)
    try:
        crew(call(), say()).kickoff()
    finally:
        clear_before_tool_call_hooks()


def _aborted(point: str) -> None:
    from crewai.hooks.dispatch import (  # noqa: PLC0415 - the oldest version has none
        HookAborted,
        InterceptionPoint,
        clear,
        register,
    )

    def hook(_: Any) -> None:
        raise HookAborted("canary-7f3a")

    register(InterceptionPoint(point), hook)
    try:
        failing(crew(call(), say()).kickoff)
    finally:
        clear(InterceptionPoint(point))


def _callback_raises() -> None:
    failing(crew(say(), task_callback=_raises).kickoff)


def _before_raises() -> None:
    failing(crew(say(), before_kickoff_callbacks=[_raises]).kickoff)


def _after_raises() -> None:
    failing(crew(say(), after_kickoff_callbacks=[_raises]).kickoff)


async def _in_a_loop() -> None:
    """Agents cannot be run plainly there; CrewAI says so, and the program wanted `akickoff`."""
    failing(crew(say()).kickoff)


def _no_such_input() -> None:
    made = crew(say(), doing={"description": "About {topic} of {place}."})
    failing(lambda: made.kickoff(inputs={"topic": "canary-7f3a"}))


def _wrong_input() -> None:
    given: Any = "canary-7f3a"
    failing(lambda: crew(say()).kickoff(inputs=given))


PATHS = [
    Path_(
        "model-fails",
        "The model's client raised each time that it was tried.",
        ("FAILED", "model_failure"),
        _model_fails,
    ),
    Path_(
        "model-interrupted",
        "Somebody pressed Ctrl-C while the model answered, which is no fault of the model.",
        ("BOUNDED_STOP", "user_abort"),
        _interrupted,
    ),
    Path_(
        "model-interrupted-again",
        "The same while it was tried again: the first error is not why it stopped.",
        ("BOUNDED_STOP", "user_abort"),
        _interrupted_in_a_retry,
    ),
    Path_(
        "model-fails-alone",
        "The same of an agent without a crew, which tries once.",
        ("FAILED", "model_failure"),
        _alone_fails,
    ),
    Path_(
        "model-fails-once",
        "The model's client raised once; CrewAI tried again.",
        UNPROVEN,
        lambda: crew(*_raised(RuntimeError("canary-7f3a"), 1), say()).kickoff(),
    ),
    Path_("model-quota", "The provider's own exception says 402.", ("FAILED", "quota"), _out_of_money),
    Path_(
        "model-says-nothing",
        "The model's answers were empty.",
        ("FAILED", "model_failure"),
        lambda: failing(crew(say(""), say(""), say("")).kickoff),
    ),
    Path_(
        "forced-says-nothing",
        "The answer that the bound forced was empty.",
        ("FAILED", "model_failure"),
        _nothing_forced,
    ),
    Path_(
        "context-full",
        "The window is full, and the agent may not shorten what is in it.",
        ("BOUNDED_STOP", "context_limit"),
        _context_full,
    ),
    Path_("tool-fails", "A tool raised; the model was told and went on.", UNPROVEN, lambda: _tools("breaks")),
    Path_(
        "tool-invented",
        "The model called a tool that is not there, and went on.",
        UNPROVEN,
        lambda: _tools("nothing_like_it"),
    ),
    Path_(
        "tool-used-up",
        "A tool may be used once, and the model called it twice.",
        UNPROVEN,
        lambda: _tools("once", "once"),
    ),
    Path_(
        "tool-policy",
        "A tool failed, and the agent's policy is to end with it.",
        ("FAILED", "tool_failure"),
        _policy_raises,
    ),
    Path_(
        "tool-repeated",
        "The same call with the same result again and again: CrewAI's guard fired.",
        ("STUCK", "loop_guard"),
        _repeats,
    ),
    Path_("tool-denied", "A hook denied a tool call, and the model went on.", UNPROVEN, _tool_denied),
    Path_(
        "guardrail",
        "A task's guardrail refused every answer.",
        ("BOUNDED_STOP", "guardrail"),
        lambda: _guarded(lambda _: (False, "canary-7f3a: no")),
    ),
    Path_(
        "guardrail-alone", "An agent's guardrail refused every answer.", ("BOUNDED_STOP", "guardrail"), _guarded_alone
    ),
    Path_(
        "guardrail-by-model",
        "A guardrail that asks a model let it pass.",
        UNPROVEN,
        lambda: _guarded_by_model("true").kickoff(),
    ),
    Path_(
        "guardrail-by-model-refuses",
        "A guardrail that asks a model refused the answer.",
        ("BOUNDED_STOP", "guardrail"),
        lambda: failing(_guarded_by_model("false").kickoff),
    ),
    Path_("guardrail-once", "A task's guardrail refused one answer, and took the next.", UNPROVEN, _guarded_once),
    Path_(
        "guardrail-faulty",
        "A guardrail passed and gave nothing: a fault of the program's.",
        ("FAILED", "host_error"),
        lambda: _guarded(lambda _: (True, None)),
    ),
    Path_("guardrail-raises", "A guardrail raised.", ("FAILED", "host_error"), lambda: _guarded(lambda _: _raises())),
    Path_("model-denied", "A hook denied the call of the model.", ("BOUNDED_STOP", "guardrail"), _model_denied),
    Path_(
        "hook-aborts-model",
        "A hook aborted before a call of the model.",
        ("BOUNDED_STOP", "guardrail"),
        lambda: _aborted("pre_model_call"),
    ),
    Path_(
        "hook-aborts-step", "A hook aborted before a task.", ("BOUNDED_STOP", "guardrail"), lambda: _aborted("pre_step")
    ),
    Path_(
        "hook-aborts-start",
        "A hook aborted before anything was done.",
        ("BOUNDED_STOP", "guardrail"),
        lambda: _aborted("execution_start"),
    ),
    Path_(
        "callback-raises", "The program's own callback after a task raised.", ("FAILED", "host_error"), _callback_raises
    ),
    Path_(
        "before-raises",
        "The program's own callback before the kickoff raised.",
        ("FAILED", "host_error"),
        _before_raises,
    ),
    Path_(
        "after-raises", "The program's own callback after the kickoff raised.", ("FAILED", "host_error"), _after_raises
    ),
    Path_("in-a-loop", "The plain call inside of an event loop is refused.", ("FAILED", "host_error"), _in_a_loop),
    Path_("input-missing", "A task needs an input that was not given.", ("FAILED", "input_rejected"), _no_such_input),
    Path_("input-refused", "What was given as inputs is none.", ("FAILED", "input_rejected"), _wrong_input),
]
