"""Google ADK: where it is listened to.

`Runner.run_async` and `run_live` are wrapped: every way to run an agent, a workflow or an app goes through one of them
(`run` in a thread of its own, `run_debug`, `AgentTool`), and a cancelled task or a reader who leaves passes through
nothing else. What goes on inside is heard where ADK itself calls its plugins and callbacks, and counts its model
calls, after it has done so: no plugin is added, so that plugins, their order and what they answer stay as they are.

What the framework's words mean is in `causes`; what an invocation says is in `call` and
`callbacks`, what it waits for in `waits`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from stopcause.receipts.hooks import wrapping
from stopcause.receipts.hooks.google_adk import call as google_adk_call
from stopcause.receipts.hooks.google_adk.waits import open_call
from stopcause.receipts.hooks.waiting import Waiting
from stopcause.receipts.hooks.wrapping import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.google_adk.waits import Asked
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.wrapping import Undo

_PLUGINS = (
    "run_before_run_callback", "run_before_tool_callback", "run_after_tool_callback", "run_on_tool_error_callback",
    "run_on_model_error_callback",
)  # fmt: skip


def install(hook: Hook) -> Undo:
    """Listens."""
    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.flows.llm_flows.base_llm_flow import BaseLlmFlow
    from google.adk.plugins.plugin_manager import PluginManager
    from google.adk.runners import Runner

    waiting: Waiting[Asked] = Waiting()
    undos = [
        replace(Runner, name, functools.partial(_runs, hook, waiting, name == "run_live"))
        for name in ("run_async", "run_live")
    ]
    if hook.is_tested:
        heard = [(PluginManager, name) for name in _PLUGINS]
        heard += [(BaseLlmFlow, "_handle_before_model_callback"), (BaseAgent, "_handle_before_agent_callback")]
        for owner, name in heard:
            undos.append(replace(owner, name, functools.partial(_heard, hook, name)))
        undos.append(replace(InvocationContext, "increment_llm_call_count", functools.partial(_counted, hook)))
    return wrapping.undo_all(hook, undos)


def _runs(hook: Hook, waiting: Waiting[Asked], is_live: bool, original: Foreign) -> Foreign:  # noqa: FBT001 - of a partial
    def opened(runner: Foreign, /, *_: Any, **given: Any) -> google_adk_call.RunnerCall | None:  # noqa: ANN401 - as called
        return google_adk_call.begin(hook, runner, waiting, given, is_live=is_live)

    return wrapping.watched(hook, original, opened)


def _heard(hook: Hook, name: str, original: Callable[..., Any]) -> Foreign:
    """One of ADK's own calls of callbacks: what it was called with, and what they answered.

    An error is noted before they are called, who may raise it again.
    """
    is_error = name.endswith("_error_callback")

    @functools.wraps(original)
    async def heard(owner: Foreign, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the wrapped one
        call = open_call.get()
        if call is not None and is_error:
            with hook.guard(name):
                call.heard(name, owner, args, kwargs, None)
        answer = await original(owner, *args, **kwargs)
        if call is not None and not is_error:
            with hook.guard(name):
                call.heard(name, owner, args, kwargs, answer)
        return answer

    return heard


def _counted(hook: Hook, original: Callable[..., Any]) -> Foreign:
    """ADK counts a model call, and raises where it is one too many."""

    @functools.wraps(original)
    def increment_llm_call_count(context: Foreign) -> Any:  # noqa: ANN401 - as the wrapped one
        counted = original(context)
        call = open_call.get()
        if call is not None:
            with hook.guard("model_call"):
                call.stepped(context)
        return counted

    return increment_llm_call_count
