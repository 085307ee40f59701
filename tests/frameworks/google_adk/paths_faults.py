"""Failures: of tools, of the model, of the program's own callbacks, and of what was given as input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.adk.agents.run_config import RunConfig, ToolThreadPoolConfig
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.reflect_retry_tool_plugin import ReflectAndRetryToolPlugin
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import errors, types

from tests.frameworks.google_adk.models import Desk, Turn, agent, call, failing, say, text
from tests.frameworks.google_adk.paths_ends import BROKEN, UNPROVEN, answer, guarded, playing
from tests.frameworks.harness import Path_, Scripted

TOOL = ("FAILED", "tool_failure")
HOST = ("FAILED", "host_error")
REFUSED = ("FAILED", "input_rejected")
BOTH = Turn(calls=(("breaks", "call-1", {}), ("look_up", "call-2", {})))


def raising(*turns: Turn, **more: Any) -> Callable[[], Any]:
    """An agent that plays these turns, and raises."""

    async def run() -> None:
        await failing(Desk(agent(*turns, **more)).run())

    return run


def raising_beside(callback: str, error: Exception, *turns: Turn) -> Callable[[], Any]:
    """The same beside a plugin whose callback raises."""

    def answers() -> Any:
        raise error

    async def run() -> None:
        await failing(guarded(callback, answers, *turns)())

    return run


def begins_nothing() -> dict[str, Any]:
    """Fails before anybody has begun what it is for."""
    raise Scripted("canary-7f3a")


def provider(kind: type[errors.APIError], code: int) -> errors.APIError:
    """What google-genai raises for an HTTP status."""
    return kind(code, {"error": {"code": code, "status": "canary7f3a", "message": "canary-7f3a"}})


def _callback_raises(**_: Any) -> Any:
    raise Scripted("canary-7f3a")


async def _no_session() -> None:
    desk = Desk(agent(say()))
    stream = desk.stream()
    await failing(anext(stream))


async def _no_message() -> None:
    desk = Desk(agent(say()))
    await failing(desk.run(types.Content(role="user", parts=[types.Part(text="Go."), _response()])))


async def _nobody_asked() -> None:
    desk = Desk(agent(say()))
    await failing(desk.run(types.Content(role="user", parts=[_response()])))


def _response() -> types.Part:
    return types.Part(function_response=types.FunctionResponse(id="call-9", name="look_up", response={}))


def look_up_both(first: str, second: str) -> dict[str, Any]:
    """Needs both."""
    return {"both": first + second}


def calling() -> LlmResponse:
    """What a callback answers: a call of a tool."""
    part = types.Part(function_call=types.FunctionCall(name="look_up", id="call-5", args={}))
    return LlmResponse(content=types.Content(role="model", parts=[part]))


def _reflecting(*turns: Turn, raises: bool = False) -> Callable[[], Any]:
    async def run() -> None:
        desk = Desk(agent(*turns), plugins=[ReflectAndRetryToolPlugin(max_retries=1)])
        await (failing(desk.run()) if raises else desk.run())

    return run


async def _bad_config() -> None:
    desk = Desk(agent(say(), mode="single_turn"))
    await failing(desk.run(text("Go."), RunConfig()))


PATHS = [
    # Tools
    Path_("tool-fails", "A tool raised, and nothing recovered it: with ADK that ends the run.", TOOL,
          raising(call("breaks"), say())),
    Path_("tool-fails-answered", "A tool raised; a plugin answered in its place, and the model went on.", UNPROVEN,
          guarded("on_tool_error_callback", lambda: {"note": "canary-7f3a"}, call("breaks"), say())),
    Path_("tool-fails-answered-by-agent", "A tool raised; a callback of the agent's answered in its place.", UNPROVEN,
          playing(call("breaks"), say(), on_tool_error_callback=lambda **_: {"note": "canary-7f3a"})),
    Path_("tool-fails-once", "A tool raised once; the framework's own plugin had the model try again.", UNPROVEN,
          _reflecting(call("breaks"), say())),
    Path_("tool-fails-again", "A tool raised more often than that plugin allows.", TOOL,
          _reflecting(call("breaks"), call("breaks", "call-2"), say(), raises=True)),
    Path_("tool-fails-beside", "Two calls of one turn, and one of them raised.", TOOL, raising(BOTH, say())),
    Path_("tool-invented", "The model called a tool that is not there, was told, and went on.", UNPROVEN,
          playing(call("canary7f3a"), say())),
    Path_("tool-answered", "A callback answered in the place of a tool.", UNPROVEN,
          playing(call(), say(), before_tool_callback=lambda **_: {"note": "canary-7f3a"})),
    Path_("long-running-fails", "A long-running tool raised before anything had begun: nothing to wait for.", TOOL,
          raising(call("begins_nothing"), tools=[LongRunningFunctionTool(begins_nothing)])),
    Path_("long-running-fails-answered", "The same; a plugin answered in its place, and the model went on.", UNPROVEN,
          guarded("on_tool_error_callback", lambda: {"canary-7f3a": 1}, call("begins_nothing"), say(),
                  tools=[LongRunningFunctionTool(begins_nothing)])),
    Path_("long-running-answered-by-plugin", "A plugin held a long-running call back: nobody will answer it.", UNPROVEN,
          guarded("before_tool_callback", lambda: {"canary-7f3a": 1}, call("submit"), say())),
    Path_("tools-at-once", "Two calls of one turn.", UNPROVEN,
          playing(Turn(calls=(("look_up", "call-1", {}), ("look_up", "call-2", {}))), say())),
    Path_("tools-in-threads", "Two calls of one turn, in threads of a pool.", UNPROVEN,
          playing(Turn(calls=(("look_up", "call-1", {}), ("look_up", "call-2", {}))), say(),
                  config=RunConfig(tool_thread_pool_config=ToolThreadPoolConfig(max_workers=2)))),
    Path_("wrong-arguments", "The model called a tool without what it needs; it was told, and went on.", UNPROVEN,
          playing(call("look_up_both", first="a"), say(), tools=[look_up_both])),
    # The model
    Path_("model-fails", "The model raised, and nothing recovered it.", BROKEN,
          raising(Turn(error=RuntimeError("canary-7f3a")))),
    Path_("model-unavailable", "The provider's own exception says 503.", BROKEN,
          raising(call(), Turn(error=provider(errors.ServerError, 503)))),
    Path_("model-rate-limit", "The provider's own exception says 429.", ("FAILED", "quota"),
          raising(Turn(error=provider(errors.ClientError, 429)))),
    Path_("model-fails-answered", "The model raised; a plugin answered in its place.", UNPROVEN,
          guarded("on_model_error_callback", answer, Turn(error=RuntimeError("canary-7f3a")))),
    Path_("model-fails-then-goes-on", "The model raised; a callback called a tool in its place, and it went on.",
          UNPROVEN, playing(Turn(error=RuntimeError("canary-7f3a")), say(),
                            on_model_error_callback=lambda **_: calling())),
    # The program's own
    Path_("callback-raises", "A callback of the agent's raised.", HOST,
          raising(say(), before_model_callback=_callback_raises)),
    Path_("tool-callback-raises", "A callback for tools raised.", HOST,
          raising(call(), say(), before_tool_callback=_callback_raises)),
    Path_("plugin-raises", "A plugin raised.", HOST,
          raising_beside("before_model_callback", Scripted("canary-7f3a"), say())),
    Path_("plugin-raises-last", "A plugin raised when all was done.", HOST,
          raising_beside("after_run_callback", Scripted("canary-7f3a"), say())),
    # The input
    Path_("no-session", "There is no such session: refused before anything ran.", REFUSED, _no_session),
    Path_("mixed-message", "A text and an answer in one message are refused.", REFUSED, _no_message),
    Path_("nobody-asked", "An answer to something that was not asked is refused.", REFUSED, _nobody_asked),
    Path_("wrong-mode", "An agent of this mode cannot be the root: refused.", REFUSED, _bad_config),
]  # fmt: skip
