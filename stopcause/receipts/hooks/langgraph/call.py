"""The call of a graph, as it stands: who made it, with what configuration, and how its loop ended.

The callback API tells neither the graph nor its configuration, nor that it is a graph that starts, nor that it stopped
at a breakpoint. All of that is in local variables of the one function that makes the call, `Pregel.stream` or
`Pregel.astream`: every other entry point goes through one of them. Reading them there leaves the framework as it is;
wrapping would not. What was read on which version is in `tests/frameworks/langgraph`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from stopcause.receipts.hooks.langgraph.waits import Address

if TYPE_CHECKING:
    from types import CodeType, FrameType

    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.run import Run

BREAKPOINTS = ("interrupt_before", "interrupt_after")
_IN_MEMORY = ("langgraph.checkpoint.memory", "InMemorySaver")
_CALLBACKS = "langchain_core.callbacks."
_OURS = "stopcause.receipts.hooks."


def starter(codes: frozenset[CodeType]) -> FrameType | None:
    """The call of a graph that a callback is made from; None where something else makes it."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - the documented way to a frame, whatever its name
    while frame is not None and frame.f_globals.get("__name__", "").startswith((_CALLBACKS, _OURS)):
        frame = frame.f_back
    return frame if frame is not None and frame.f_code in codes else None


class Call:
    """One call of a graph.

    Args:
        hook: Ours.
        run: Where a changed shape is found.
        frame: The call's; let go when the run ends.

    Attributes:
        thread: The thread that it continues.
        place: Where its state is kept, if it is: in a store, on the thread, in its checkpoint namespace.
        limit: Of supersteps, as it is in force: set by the call, by the graph or by the framework.
    """

    def __init__(self, hook: Hook, run: Run, frame: FrameType) -> None:
        self.hook = hook
        self._run = run
        self._frame: FrameType | None = frame
        self._keeps: bool | None = None
        self._locals: dict[str, Any] = dict(frame.f_locals)  # asking a frame costs a copy of all of them each time
        self.graph: Any = self._locals.get("self")
        self.thread: str | None = None
        self.place: Address | None = None
        self.limit: int | None = None

    def read(self) -> None:
        """Takes what its configuration says."""
        config = self._local("config") or {}
        configurable = config.get("configurable") or {}
        thread, limit = configurable.get("thread_id"), config.get("recursion_limit")
        self.thread = None if thread is None else str(thread)
        if self.thread is not None:
            self.place = self._address(self.thread, str(configurable.get("checkpoint_ns") or ""))
        self.limit = int(limit) if isinstance(limit, int) else None  # the default is of a class of its own

    @property
    def keeps(self) -> bool:
        """Whether a checkpointer keeps its state. The call settles that before its first node, but after it began."""
        if self._keeps is None:
            self._keeps = self._local("checkpointer") is not None
        return self._keeps

    @property
    def outlives(self) -> bool:
        """Whether what it keeps is there after this process: LangGraph's own saver in memory keeps it no longer."""
        kind = type(self._local("checkpointer"))
        return self.keeps and (kind.__module__, kind.__name__) != _IN_MEMORY

    @property
    def status(self) -> str | None:
        """How its loop stands: `done`, `out_of_steps`, one of `BREAKPOINTS`, `pending` where a node interrupted it."""
        loop = self._local("loop")
        return None if loop is None else self.hook.read(self._run, loop, "status", str)

    @property
    def checkpoint(self) -> str | None:
        """The id of its last checkpoint, whether anything keeps that or not."""
        loop = self._local("loop")
        checkpoint = None if loop is None else self.hook.read(self._run, loop, "checkpoint", dict)
        name = checkpoint.get("id") if checkpoint else None
        return name if isinstance(name, str) else None

    @property
    def saver(self) -> Any:  # noqa: ANN401 - a checkpointer
        """What the graph was compiled with to keep its state; one inside another has none of its own."""
        return getattr(self.graph, "checkpointer", None)

    def _address(self, thread: str, namespace: str) -> Address:
        """A saver in memory is a store of its own; those of a database are made anew often, and are taken for one."""
        saver = self.saver
        return Address(id(saver) if hasattr(saver, "storage") else type(saver).__name__, thread, namespace)

    @property
    def pending(self) -> list[Any]:
        """The interrupts of the state that it goes on from: `(task, channel, value)` beside the checkpoint."""
        loop = self._local("loop")
        writes = None if loop is None else self.hook.read(self._run, loop, "checkpoint_pending_writes", list)
        return [each for write in writes or () if write[1] == "__interrupt__" for each in write[2]]

    def let_go(self) -> None:
        """It is over: nothing of the framework's is held any longer."""
        self._frame = self.graph = None
        self._locals = {}

    def _local(self, name: str) -> Any:  # noqa: ANN401 - a variable of the framework's
        if self._locals.get(name) is None and self._frame is not None:
            self._locals = dict(self._frame.f_locals)
        return self._locals.get(name)
