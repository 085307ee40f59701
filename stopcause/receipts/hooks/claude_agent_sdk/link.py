"""Claude Agent SDK: one connection to the command line. Which turn is open in it, its session, who was asked what.

A connection of `query()` ends with its generator. One of a client outlives those who read from it: that one of them
went away, or ran out of time, ends no turn; a result does, and closing the connection.
"""

from __future__ import annotations

import contextlib
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING, Self

from stopcause.receipts.faults import is_cancelled
from stopcause.receipts.hooks.claude_agent_sdk import causes
from stopcause.receipts.hooks.claude_agent_sdk.turn import Asked, Sub, Turn
from stopcause.receipts.hooks.wrapping import end
from stopcause.receipts.run import current
from stopcause.receipts.vocabulary import FINISHED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextvars import Token

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.claude_agent_sdk.turn import Loop
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.waiting import Waiting
    from stopcause.receipts.run import Run

# The connection whose code works here: also in the tasks that it starts, which run tools and callbacks of the program.
open_link: ContextVar[Link | None] = ContextVar("stopcause_claude_link", default=None)

_AGENT = "claude"  # what the command line itself calls an agent that nobody has named
_AGENTS_TASK = "local_agent"  # the type of a task that is a sub-agent; others are shells, monitors and workflows


class Link:
    """A connection, and the turns in it, one after the other."""

    is_kept = True  # whether the command line keeps the session, so that it can be resumed
    is_fork = False  # whether the session that is named is only what another begins with

    def __init__(self, hook: Hook, options: Foreign, waiting: Waiting[Asked], *, is_bound: bool) -> None:
        """`is_bound`: whether the limits in the options reach whoever is connected."""
        self.hook = hook
        self.model: str | None = None
        self.limits: dict[str, float] = {}
        self.turn: Turn | None = None
        self.session: str | None = None
        self.allowed: set[str] = set()
        self.refused: set[str] = set()
        self.is_refusal_final = False
        self._subs: dict[str, Sub] = {}
        self._tools: frozenset[object] | None = None
        self._agents: frozenset[object] = frozenset()
        self._spent: float | None = 0.0
        self._waiting = waiting
        with hook.guard("options"):
            self._read(options)
            self.limits = self.limits if is_bound else {}

    def _read(self, options: Foreign) -> None:
        """What counts of the options, which are not kept: their callbacks may hold on to the client.

        A resumed session counts its cost on from what it was, and a fork of it will have another id.
        """
        self.model = options.model if isinstance(options.model, str) else None
        for name, _, _ in causes.BOUNDS.values():
            value = getattr(options, name, None)
            if isinstance(value, int | float):
                self.limits[name] = value
        if options.resume or options.continue_conversation:
            self._spent, self.session = None, options.resume
        self.is_fork = bool(options.fork_session)
        self.is_kept = "no-session-persistence" not in options.extra_args

    @property
    def run(self) -> Run | None:
        """That of the open turn, or of the last one."""
        return None if self.turn is None else self.turn.run

    @property
    def thread(self) -> str | None:
        """The session, as far as is known."""
        return None if self.is_fork else self.session

    @property
    def has_turn(self) -> bool:
        """Whether a turn is open."""
        return self.turn is not None and not self.turn.is_over and not self.turn.run.is_closed

    def begin(self) -> None:
        """A prompt is on its way, or the command line begins a turn of its own. What is open stays open."""
        if self.has_turn:
            return
        run = self.hook.begin(_AGENT)
        self.turn = None if run is None else Turn(self.hook, run, self)
        if self.turn is not None:
            self.allowed, self.refused, self.is_refusal_final = set(), set(), False
            if self.hook.is_tested:
                with self.hook.guard("describe"):
                    self.turn.describe()
            self.turn.begin()

    # Messages ---------------------------------------------------------------------------------------------------------

    def item(self, message: Foreign) -> None:
        """A message, before its reader has it."""
        name = type(message).__name__
        if not self.hook.is_tested:
            if name == "ResultMessage" and self.turn is not None:
                end(self.turn, "came_back", message)
            return
        note = self._notes.get(name)
        if note is not None:
            note(self, message)
        if self.turn is not None:
            self.turn.has_begun = True

    def _system(self, message: Foreign) -> None:
        if message.subtype == "init":
            self._init(message.data)
        elif self.turn is not None and message.data.get("prevent_continuation") is True:
            self.turn.is_prevented = True

    def _init(self, data: Mapping[str, object]) -> None:
        """A turn begins. What there is: the session, the model, tools and agents by their names."""
        tools, agents, session, model = (data.get(name) for name in ("tools", "agents", "session_id", "model"))
        self._tools = frozenset(tools) if isinstance(tools, list) else None
        self._agents = frozenset(agents) if isinstance(agents, list) else frozenset()
        if isinstance(session, str):
            self.session, self.is_fork = session, False
        self.begin()
        if self.turn is not None:
            self.turn.run.thread_id = self.turn.run.thread_id or self.session
            self.turn.run.model = model if isinstance(model, str) else self.turn.run.model

    def _assistant(self, message: Foreign) -> None:
        if message.parent_tool_use_id is None:
            self.begin()
        loop = self._loop(message)
        if loop is not None:
            loop.answered(message)

    def _user(self, message: Foreign) -> None:
        loop = self._loop(message)
        if loop is not None:
            loop.told(message)

    def _loop(self, message: Foreign) -> Loop | None:
        """Whose message it is: the turn's, or a sub-agent's by the call that started it."""
        parent = message.parent_tool_use_id
        return self.turn if parent is None else self._subs.get(str(parent))

    def _task_started(self, message: Foreign) -> None:
        """A sub-agent begins: a child of the turn."""
        if message.task_type == _AGENTS_TASK and message.tool_use_id is not None and self.turn is not None:
            kind = message.data.get("subagent_type")
            run = self.hook.begin(kind if kind in self._agents else None, parent=self.turn.run)
            if run is not None:
                run.thread_id = run.thread_id or self.session
                self._subs[message.tool_use_id] = Sub(self.hook, run, self, message.task_id).begin()

    def _task_told(self, message: Foreign) -> None:
        """It is over. Some say so once, some twice, some only in an update."""
        if message.status in causes.BY_TASK_STATUS:
            for call_id, sub in list(self._subs.items()):
                if sub.task_id == message.task_id:
                    del self._subs[call_id]
                    end(sub, "over", message.status)

    def _result(self, message: Foreign) -> None:
        """The end of a turn. One that no prompt was seen of is a turn all the same."""
        self.begin()
        if self.turn is not None:
            self.session = message.session_id
            self.turn.run.thread_id = self.turn.run.thread_id or self.session
            end(self.turn, "returned", message)

    _notes: Mapping[str, Callable[[Link, Foreign], None]] = {
        "SystemMessage": _system,
        "AssistantMessage": _assistant,
        "UserMessage": _user,
        "TaskStartedMessage": _task_started,
        "TaskNotificationMessage": _task_told,
        "TaskUpdatedMessage": _task_told,
        "ResultMessage": _result,
    }

    def has_tool(self, name: object) -> bool:
        """Whether there is such a tool, as far as is known."""
        return self._tools is None or name in self._tools

    def tool(self, name: object) -> str | None:
        """A tool by its name, where it is known that there is one."""
        return name if isinstance(name, str) and self._tools is not None and name in self._tools else None

    def cost_since(self, total: object) -> float | None:
        """What a turn cost: the command line says the sum of its session."""
        if not isinstance(total, int | float):
            return None
        spent, self._spent = self._spent, float(total)
        return None if spent is None else max(round(total - spent, 9), 0.0)

    # Waits ------------------------------------------------------------------------------------------------------------

    def asks(self, name: str, call_id: str | None) -> None:
        """The program is asked whether a tool may be used."""
        if self.turn is not None and self.has_turn and call_id is not None:
            self.turn.asks(call_id, name)

    def answers(self, call_id: str | None, answer: Foreign) -> None:
        """It has answered; None: it did not get that far."""
        if self.turn is None or not self.has_turn or call_id is None:
            return
        behavior = getattr(answer, "behavior", None)
        wait = next((each for each in self.turn.run.waits if each["approval_id"] == call_id), None)
        yes = "answered" if wait is not None and wait["kind"] == "input_required" else "approved"
        self.turn.run.decided(call_id, {"allow": yes, "deny": "denied"}.get(str(behavior), "cancelled"))
        if behavior == "allow":
            self.allowed.add(call_id)
        else:
            self.refused.add(call_id)
        self.is_refusal_final |= behavior == "deny" and bool(getattr(answer, "interrupt", False))

    def executed(self, call_id: str) -> None:
        """A call that was allowed has run."""
        if self.turn is not None:
            self.turn.run.executed(call_id)

    def wait(self, asked: Asked) -> None:
        """The session waits for a call that was deferred; there is one at a time."""
        if self.session is not None:
            self._waiting.add(self.session, causes.DEFERRED, asked)

    def deferred(self) -> Asked | None:
        """The call that its session waits for, once."""
        asked = None if self.session is None else self._waiting.of(self.session, causes.DEFERRED)
        self._waiting.forget(self.session, [causes.DEFERRED])
        return asked

    def interrupted(self) -> None:
        """The program asks to stop the turn."""
        if self.turn is not None and self.has_turn:
            self.turn.run.abort_requested_ns = time.time_ns()

    # How it ends ------------------------------------------------------------------------------------------------------

    def ended(self) -> None:
        """There are no more messages."""
        for loop in (self.turn, *self._subs.values()):
            end(loop, "ended")

    def failed(self, error: BaseException) -> None:
        """An exception leaves it. After a result that is an error, it says the same once more."""
        turn = self.turn
        if turn is not None and turn.is_over and turn.result is not None and turn.result.cause not in FINISHED:
            turn.run.raised(error, cause=turn.result.cause, reason=turn.result.reason)
        end(turn, "failed", error)
        for sub in self._subs.values():
            end(sub, "left")

    def left(self) -> None:
        """Its reader went away, which ends the command line."""
        for loop in (self.turn, *self._subs.values()):
            end(loop, "left")


class Inside:
    """A place where code of a connection works: it is known there, and its open turn is current.

    One object for each place: a client is sent to, read from and asked at the same time.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self._tokens: tuple[Token[Link | None], Token[Run | None]] | None = None

    def __enter__(self) -> Self:
        link = self.link
        run = link.run if link.has_turn else current.get()
        self._tokens = open_link.set(link), current.set(run)
        return self

    def __exit__(self, *_: object) -> None:
        if self._tokens is not None:
            with contextlib.suppress(ValueError):  # a generator may be finalised in another context
                current.reset(self._tokens[1])
                open_link.reset(self._tokens[0])


class Reader(Inside):
    """A stream of a connection's messages. To what is put around it, it ends as a call does."""

    @property
    def hook(self) -> Hook:
        """The connection's."""
        return self.link.hook

    @property
    def run(self) -> Run | None:
        """That of its turn."""
        return self.link.run

    def item(self, message: Foreign) -> None:
        """A message, before its reader has it."""
        self.link.item(message)

    def ended(self) -> None:
        """There are no more."""
        self.link.ended()

    def failed(self, error: BaseException) -> None:
        """An exception instead of one."""
        self.link.failed(error)

    def left(self) -> None:
        """Nobody reads on."""
        self.link.left()


class ClientLink(Link):
    """That of a client."""

    _cut: BaseException | None = None

    def failed(self, error: BaseException) -> None:
        """A reader that was cancelled has only stopped to read."""
        if is_cancelled(error):
            self._cut = error
        else:
            super().failed(error)

    def left(self) -> None:
        """A reader went away; another may come."""

    def closed(self) -> None:
        """The client closes it. A turn without a result goes with it: cancelled where a reader was, else left."""
        if self.turn is not None and self.has_turn:
            if self._cut is not None:
                end(self.turn, "failed", self._cut)
            else:
                end(self.turn, "disconnected")
        self._cut = None
        super().left()
