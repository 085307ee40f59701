"""Orchestrations, a package of their own: workflows whose bounds end with a sentence, as if all were done."""

from __future__ import annotations

from typing import Any

from agent_framework import Message
from agent_framework_orchestrations import (  # type: ignore[import-not-found]  # it is in no other environment
    ConcurrentBuilder,
    GroupChatBuilder,
    MagenticBuilder,
    MagenticManagerBase,
    MagenticProgressLedger,
    MagenticProgressLedgerItem,
    SequentialBuilder,
)

from tests.frameworks.agent_framework.models import agent, call, read, say
from tests.frameworks.agent_framework.paths_bounds import BOUNDED
from tests.frameworks.agent_framework.paths_ends import UNPROVEN
from tests.frameworks.agent_framework.paths_waits import ANSWERED, OPEN
from tests.frameworks.harness import Path_


class Manager(MagenticManagerBase):
    """Plans nothing, and finds that there is progress or that there is none."""

    def __init__(self, *, moves: bool = True, done_after: int = 9, **limits: Any) -> None:
        super().__init__(**limits)
        self._moves = moves
        self._left = done_after

    async def plan(self, magentic_context: Any) -> Message:
        del magentic_context
        return Message("assistant", ["canary-7f3a"])

    replan = prepare_final_answer = plan

    async def create_progress_ledger(self, magentic_context: Any) -> MagenticProgressLedger:
        del magentic_context
        self._left -= 1
        return MagenticProgressLedger(
            is_request_satisfied=_item(self._left < 0),
            is_in_loop=_item(not self._moves),
            is_progress_being_made=_item(self._moves),
            next_speaker=_item("clerk"),
            instruction_or_question=_item("canary-7f3a"),
        )


def _item(answer: Any) -> MagenticProgressLedgerItem:
    return MagenticProgressLedgerItem(reason="canary-7f3a", answer=answer)


def magentic(**how: Any) -> Any:
    """A run with a manager; nobody looks at a model."""
    return MagenticBuilder(participants=[agent(*[say()] * 9)], manager=Manager(**how)).build().run("Go.")


def group_chat(*, stream: bool = False, **how: Any) -> Any:
    """A run of two who speak in turn."""
    members = [agent(*[say()] * 9, name="clerk"), agent(*[say()] * 9, name="critic")]
    chat = GroupChatBuilder(
        participants=members, selection_func=lambda state: ("clerk", "critic")[state.current_round % 2], **how
    ).build()
    return read(chat.run("Go.", stream=True)) if stream else chat.run("Go.")


def _asks_in_sequence() -> Any:
    return SequentialBuilder(participants=[agent(call("pay")), agent(say(), name="critic")]).build().run("Go.")


async def _ask_side_by_side() -> None:
    """Both ask; the second is answered first."""
    both = [agent(call("pay"), say(), name=name) for name in ("clerk", "critic")]
    flow = ConcurrentBuilder(participants=both).build()
    for each in reversed((await flow.run("Go.")).get_request_info_events()):
        await flow.run(responses={each.request_id: each.data.to_function_approval_response(True)})


def _side_by_side() -> Any:
    bounded = agent(call(), say(), limits={"max_iterations": 1})
    return ConcurrentBuilder(participants=[bounded, agent(say(), name="critic")]).build().run("Go.")


PATHS = [
    Path_("group-chat", "A group chat whose condition ended it.", UNPROVEN,
          lambda: group_chat(termination_condition=lambda said: len(said) > 2)),
    Path_("group-chat-rounds", "Its rounds were used up, and it went idle with a sentence of its own.", BOUNDED,
          lambda: group_chat(max_rounds=2)),
    Path_("group-chat-rounds-streamed", "The same as a stream.", BOUNDED,
          lambda: group_chat(max_rounds=2, stream=True)),
    Path_("magentic", "The manager was content.", UNPROVEN, lambda: magentic(done_after=1)),
    Path_("magentic-rounds", "The manager's rounds were used up.", BOUNDED, lambda: magentic(max_round_count=2)),
    Path_("magentic-resets", "It stalled, and began anew as often as it may.", ("STUCK", "loop_guard"),
          lambda: magentic(moves=False, max_stall_count=0, max_reset_count=1)),
    Path_("sequential-asks", "An agent in a sequence needs an approval.", OPEN, _asks_in_sequence),
    Path_("concurrent-asks", "Two at once asked, and were answered one by one.", ANSWERED, _ask_side_by_side),
    Path_("concurrent", "Two at once; the bound of one is its own.", UNPROVEN, _side_by_side),
    Path_("concurrent-bounded", "The one that was bounded.", BOUNDED, _side_by_side, judged=1),
]  # fmt: skip
