"""Sinks that are of no use, and a function that fails: what must change nothing for the program beside them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any


class Raises:
    """A sink that never takes anything."""

    def write(self, _: Sequence[bytes]) -> None:
        raise OSError(28, "full")

    def close(self) -> None:
        raise OSError(28, "full")


class Blocks:
    """A sink that hangs until it is let go."""

    holds_s = 20.0

    def __init__(self) -> None:
        self.go = threading.Event()

    def write(self, _: Sequence[bytes]) -> None:
        self.go.wait(self.holds_s)

    def close(self) -> None:
        pass


def broken(*_: Any, **__: Any) -> Any:
    """In place of a function of ours."""
    raise RuntimeError("ours")
