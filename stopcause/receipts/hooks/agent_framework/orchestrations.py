"""Agent Framework: orchestrations, a package of their own. They make workflows, whose bounds leave no trace.

A group chat and Magentic that have used up their rounds answer with a sentence of their own and go idle, as one that is
done does. What the two look at before that is wrapped, once a program has imported it. The other builders (sequential,
concurrent, handoff) have no such bound. Source: `_base_group_chat_orchestrator.py` and `_magentic.py` of
agent-framework-orchestrations 1.4, each compared with 1.0.0b260402.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from stopcause.receipts import imports
from stopcause.receipts.hooks.agent_framework.call import open_call
from stopcause.receipts.hooks.agent_framework.workflow import WorkflowCall
from stopcause.receipts.hooks.wrapping import replace
from stopcause.receipts.vocabulary import StopCause

if TYPE_CHECKING:
    from collections.abc import Callable

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.wrapping import Undo

_GROUP_CHAT = "agent_framework_orchestrations._base_group_chat_orchestrator"
_MAGENTIC = "agent_framework_orchestrations._magentic"


def listen(hook: Hook, undos: list[Undo]) -> None:
    """Waits for the two modules. What undoes it is added to the list, which grows when they come."""

    def when(module: str, kind: str, name: str, wrap: Callable[[Hook, Foreign], Foreign]) -> None:
        def found() -> None:
            with hook.guard("orchestrations"):
                undos.append(replace(getattr(sys.modules[module], kind), name, functools.partial(wrap, hook)))

        undos.append(imports.when_imported(module, found))

    when(_GROUP_CHAT, "BaseGroupChatOrchestrator", "_check_round_limit", _rounds)
    when(_MAGENTIC, "MagenticOrchestrator", "_check_within_limits_or_complete", _limits)


def _rounds(hook: Hook, original: Foreign) -> Foreign:
    @functools.wraps(original)
    def _check_round_limit(chat: Foreign, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the wrapped one
        is_over = original(chat, *args, **kwargs)
        call = open_call.get()
        if is_over is True and isinstance(call, WorkflowCall):
            with hook.guard("rounds"):
                call.used_up(StopCause.STEP_LIMIT, "max_rounds", chat._max_rounds, chat._round_index)  # noqa: SLF001
        return is_over

    return _check_round_limit


def _limits(hook: Hook, original: Foreign) -> Foreign:
    @functools.wraps(original)
    async def _check_within_limits_or_complete(chat: Foreign, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the wrapped one
        is_within = await original(chat, *args, **kwargs)
        call = open_call.get()
        if is_within is False and isinstance(call, WorkflowCall):
            with hook.guard("rounds"):
                call.used_up(*_used_up(chat))
        return is_within

    return _check_within_limits_or_complete


def _used_up(chat: Foreign) -> tuple[StopCause, str, int, int]:
    """Its rounds, else its resets: it begins anew each time that it has stalled, and has done so too often."""
    rounds, limit = chat._round_index, chat._max_rounds  # noqa: SLF001 - read inside a guard
    if limit is not None and rounds >= limit:
        return StopCause.STEP_LIMIT, "max_round_count", limit, rounds
    context = chat._magentic_context  # noqa: SLF001
    return StopCause.LOOP_GUARD, "max_reset_count", chat._manager.max_reset_count, context.reset_count  # noqa: SLF001
