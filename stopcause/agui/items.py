"""What is open in a run, and whose it is: messages, calls, reasoning, steps, subagents.

Sources: spec 1.0, basic/patterns/streaming (open, content, close), events/lifecycle (steps, what RUN_FINISHED needs
closed), events/subagents (attribution and its own lifecycle), events/reasoning (spans and messages are two). What is
wrong is said by its name and the ids that it is about. Only ids are kept, so many of them, and none that is very long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from stopcause.agui.values import Subagents

MOST = 10_000
ROOT = None  # the owner of what has no `subagentRunId`: the parent agent

Blame = Callable[..., None]  # the name of a finding, and ids


class Family(NamedTuple):
    """One kind of item that streams: what it is called, by which field it is named, and who shares its owners."""

    name: str
    field: str
    owners: str


MESSAGE = Family("message", "messageId", "message")
CALL = Family("call", "toolCallId", "call")
REASONING = Family("reasoning", "messageId", "reasoning")
SPAN = Family("span", "messageId", "reasoning")  # a span and the message inside it may share an id, and then an owner
ACTIVITY = Family("activity", "messageId", "activity")


class Items:
    """The open items of one run, and the owners of all that it opened.

    Args:
        blame: Is told what breaks a rule.
    """

    def __init__(self, blame: Blame) -> None:
        self._blame = blame
        self._open: dict[str, dict[str, None]] = {each.name: {} for each in (MESSAGE, CALL, REASONING, SPAN)}
        self._owners: dict[str, dict[str, str | None]] = {
            each.name: {} for each in (MESSAGE, CALL, REASONING, ACTIVITY)
        }
        self._steps: dict[tuple[str | None, str], None] = {}
        self._subagents: dict[str, str] = {}  # id -> active, finished, failed, suspended

    # Items that stream ---------------------------------------------------------------------------------------------

    def open(self, family: Family, name: str, tag: str | None, parent: str | None = None) -> None:
        """An item begins. `parent`: the message that carries a call, whose owner is the call's."""
        opened = self._open[family.name]
        if name in opened:
            self._blame("UNBALANCED", name)
        self._own(family, name, tag, parent)
        if self._has_room(opened):
            opened[name] = None

    def goes_on(self, family: Family, name: str, tag: str | None) -> None:
        """Content of an item that is open."""
        if name not in self._open[family.name]:
            self._blame("UNBALANCED", name)
        elif tag is not None:
            self.agree(name, tag, family)

    def close(self, family: Family, name: str, tag: str | None) -> None:
        """An item ends. Its owner stays: it may be opened again, and stays whose it was."""
        self.goes_on(family, name, tag)
        self._open[family.name].pop(name, None)

    def agree(self, name: str, tag: str | None, *families: Family) -> None:
        """Something says whose an item is, of the first of these that know it. Nothing said agrees with every owner."""
        owners = next((each for family in families if name in (each := self._owners[family.owners])), {})
        if tag is not None and owners.get(name, tag) != tag:
            self._blame("ATTRIBUTION_MISMATCH", name)

    def belongs(self, family: Family, name: str, owner: str | None, *, is_final: bool = True) -> None:
        """An item is there as a whole, with this owner. Not `is_final`: where nobody said another before."""
        owners = self._owners[family.owners]
        if is_final or name not in owners:
            self._keep(owners, name, owner)

    def _own(self, family: Family, name: str, tag: str | None, parent: str | None) -> None:
        """Whose an item is shows when it begins: its tag says it, else the message that carries it."""
        owners, carriers = self._owners[family.owners], self._owners[MESSAGE.owners]
        if parent in carriers:
            self.agree(parent, tag, MESSAGE)
            tag, is_said = carriers[parent], True
        else:
            is_said = tag is not None
        if name not in owners:
            self._keep(owners, name, tag)
        elif is_said and owners[name] != tag:
            self._blame("ATTRIBUTION_MISMATCH", name)

    # Steps ---------------------------------------------------------------------------------------------------------

    def step_starts(self, name: str, owner: str | None) -> None:
        """A step begins. Two owners may each have one of this name."""
        key = (owner, name)
        if key in self._steps:
            self._blame("STEP_UNBALANCED", name)
        if self._has_room(self._steps):
            self._steps[key] = None

    def step_ends(self, name: str, owner: str | None) -> None:
        """A step ends, by whoever began it."""
        key = (owner, name)
        if key not in self._steps:
            self._blame("STEP_UNBALANCED", name)
        self._steps.pop(key, None)

    # Subagents -----------------------------------------------------------------------------------------------------

    def subagent_starts(self, name: str, parent: str | None) -> None:
        """An invocation is announced: once in a run, under a parent that was."""
        if name in self._subagents or (parent is not None and parent not in self._subagents):
            self._blame("SUBAGENT_LIFECYCLE", name)
        if self._has_room(self._subagents):
            self._subagents[name] = "active"

    def subagent_ends(self, name: str, how: str) -> None:
        """An invocation ends: `finished`, `failed`, or `suspended`."""
        if self._subagents.get(name) != "active":
            self._blame("SUBAGENT_LIFECYCLE", name)
        if name in self._subagents or self._has_room(self._subagents):
            self._subagents[name] = how

    def subagents(self) -> Subagents:
        """How many there are, by how they ended."""
        how = list(self._subagents.values())
        return Subagents(open=how.count("active"), failed=how.count("failed"), suspended=how.count("suspended"))

    # The end -------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """RUN_FINISHED: everything that the run opened has to be closed. Not so at RUN_ERROR, which ends it all."""
        if left := list(self._left()):
            self._blame("OPEN_AT_FINISH", *left)

    def _left(self) -> Iterator[str]:
        for opened in self._open.values():
            yield from opened
        yield from (name for _, name in self._steps)
        yield from (name for name, how in self._subagents.items() if how == "active")

    # Bounds --------------------------------------------------------------------------------------------------------

    def _has_room(self, opened: dict[str, None] | dict[str, str] | dict[tuple[str | None, str], None]) -> bool:
        """Whether one more can be watched. Where not, what is open is no longer known: see what TOO_MANY does."""
        if len(opened) < MOST:
            return True
        self._blame("TOO_MANY")
        return False

    def _keep(self, owners: dict[str, str | None], name: str, owner: str | None) -> None:
        """The oldest owners give way: what they owned has long been over."""
        if name not in owners and len(owners) >= MOST:
            del owners[next(iter(owners))]
        owners[name] = owner
