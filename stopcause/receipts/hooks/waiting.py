"""Which run waits for which answer, in this process, so that the run that brings the answer can name it.

An approval's id counts only together with the place that keeps the paused state (a session, a conversation, a live
object): frameworks take the ids that a model gives its calls, and those repeat.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_WAITING = 20_000

_T = TypeVar("_T")


class Waiting(Generic[_T]):
    """By place and approval id, what the hook wants to know of the wait: its run, the gated call. Oldest go first."""

    def __init__(self, most: int = _MOST_WAITING) -> None:
        self._most = most
        self._asked: OrderedDict[tuple[object, str], _T] = OrderedDict()

    def add(self, place: object, approval_id: str, asked: _T) -> None:
        """A run begins to wait."""
        self._asked.pop((place, approval_id), None)  # asked again, it is the newest
        self._asked[place, approval_id] = asked
        while len(self._asked) > self._most:
            with contextlib.suppress(KeyError):  # another thread was here first
                self._asked.popitem(last=False)

    def of(self, place: object, approval_id: str) -> _T | None:
        """Who waits for it."""
        return self._asked.get((place, approval_id))

    def forget(self, place: object, approval_ids: Iterable[str]) -> None:
        """Their answers were taken."""
        for approval_id in approval_ids:
            self._asked.pop((place, approval_id), None)
