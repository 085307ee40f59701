"""Runs inside code that a durable engine runs again from its history, whenever another worker takes it up.

Each time they are made anew: with the same ids, and of what was recorded before nothing is recorded twice.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from stopcause.receipts.writer import Writer

_INSIDE = uuid.uuid5(uuid.NAMESPACE_URL, "stopcause/replayed")


class Replayed:
    """A writer that hears of what happens for the first time only.

    Args:
        writer: What hears it then.
        is_live: Whether now is such a time. Not while a worker lets go of an execution.
        now_ns: The clock of the history.
    """

    def __init__(self, writer: Writer | Replayed, is_live: Callable[[], bool], now_ns: Callable[[], int]) -> None:
        self._writer = writer
        self._is_live = is_live
        self.now_ns = now_ns

    @property
    def epoch(self) -> int:
        """The writer's."""
        return self._writer.epoch

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method of the writer's
        return getattr(self._writer, name) if self._is_live() else _nothing


def inner_id(outer: str, attempt: int, number: int) -> str:
    """The id of the nth run inside of an attempt of another: the same whenever it is made."""
    return str(uuid.uuid5(_INSIDE, f"{outer}/{attempt}/{number}"))


def _nothing(*_: object, **__: object) -> None:
    """All is told already."""
