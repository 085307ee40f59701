"""What is open in a run, and whose it is: messages, calls, reasoning, steps, subagents.

Sources: spec 1.0, basic/patterns/streaming (open, content, close), events/lifecycle (steps, what RUN_FINISHED wants
closed), events/subagents (attribution and its own lifecycle), events/reasoning (spans and messages are two). What is
wrong is said by its name and the ids that it is about. Only ids are kept, and so many of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from stopcause.agui.values import Subagents

MOST = 10_000
_LONGEST = 512
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
STEP = Family("step", "stepName", "step")
ACTIVITY = Family("activity", "messageId", "activity")


def key_of(name: str) -> str:
    """An id as it is kept: one that is longer than any that people make is a hash of itself."""
    if len(name) <= _LONGEST:
        return name
    return f"sha256:{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"


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
        key, opened = key_of(name), self._open[family.name]
        if key in opened:
            self._blame("UNBALANCED", name)
        self._own(family, key, tag, parent)
        if self._has_room(opened):
            opened[key] = None

    def goes_on(self, family: Family, name: str, tag: str | None) -> None:
        """Content of an item that is open."""
        if name not in self._open[family.name] and key_of(name) not in self._open[family.name]:
            self._blame("UNBALANCED", name)
        elif tag is not None:
            self.agree(family, name, tag)

    def close(self, family: Family, name: str, tag: str | None) -> None:
        """An item ends. Its owner stays: it may be opened again, and stays whose it was."""
        self.goes_on(family, name, tag)
        self._open[family.name].pop(key_of(name), None)

    def agree(self, family: Family, name: str, tag: str | None) -> None:
        """Something says whose an item is. Nothing said agrees with every owner."""
        owners = self._owners[family.owners]
        key = key_of(name)
        if tag is not None and key in owners and owners[key] != tag:
            self._blame("ATTRIBUTION_MISMATCH", name)

    def belongs(self, family: Family, name: str, owner: str | None, *, is_final: bool = True) -> None:
        """An item is there as a whole, with this owner. Not `is_final`: where nobody said another before."""
        owners, key = self._owners[family.owners], key_of(name)
        if is_final or key not in owners:
            self._keep(owners, key, owner)

    def _own(self, family: Family, key: str, tag: str | None, parent: str | None) -> None:
        owners = self._owners[family.owners]
        carrier = self._owners[MESSAGE.name]
        carried = parent is not None and key_of(parent) in carrier
        owner = tag if tag is not None or not carried else carrier[key_of(parent or "")]
        if carried and owner != carrier[key_of(parent or "")]:
            self._blame("ATTRIBUTION_MISMATCH", key)
        elif key not in owners:
            self._keep(owners, key, owner)
        elif (tag is not None or carried) and owners[key] != owner:
            self._blame("ATTRIBUTION_MISMATCH", key)

    # Steps ---------------------------------------------------------------------------------------------------------

    def step_starts(self, name: str, owner: str | None) -> None:
        """A step begins. Two owners may each have one of this name."""
        key = (owner, key_of(name))
        if key in self._steps:
            self._blame("STEP_UNBALANCED", name)
        if self._has_room(self._steps):
            self._steps[key] = None

    def step_ends(self, name: str, owner: str | None) -> None:
        """A step ends, by whoever began it."""
        key = (owner, key_of(name))
        if key not in self._steps:
            self._blame("STEP_UNBALANCED", name)
        self._steps.pop(key, None)

    # Subagents -----------------------------------------------------------------------------------------------------

    def subagent_starts(self, name: str, parent: str | None) -> None:
        """An invocation is announced: once in a run, under a parent that was."""
        key = key_of(name)
        if key in self._subagents or (parent is not None and key_of(parent) not in self._subagents):
            self._blame("SUBAGENT_LIFECYCLE", name)
        if self._has_room(self._subagents):
            self._subagents[key] = "active"

    def subagent_ends(self, name: str, how: str) -> None:
        """An invocation ends: `finished`, `failed`, or `suspended`."""
        key = key_of(name)
        if self._subagents.get(key) != "active":
            self._blame("SUBAGENT_LIFECYCLE", name)
        if key in self._subagents or self._has_room(self._subagents):
            self._subagents[key] = how

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

    def _keep(self, owners: dict[str, str | None], key: str, owner: str | None) -> None:
        """The oldest owners give way: what they owned has long been over."""
        if key not in owners and len(owners) >= MOST:
            del owners[next(iter(owners))]
        owners[key] = owner
