"""What holding a payload against a schema may cost. Schemas are somebody else's: none takes more than its share."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from stopcause.agui.values import Json

MOST_STEPS = 100_000  # evaluations of a keyword, for one input
_MOST_S = 2.0  # and for how long: an error that is looked past costs as much as what it would show
LARGEST_SCHEMA = 5_000  # values in it; a string counts once more for each thousand characters
LARGEST_PAYLOAD = 20_000
_DEEPEST = 48  # levels of a schema or payload: each takes several calls, and Python has a thousand
_MOST_BITS = 1024  # of an integer: as many as a float counts


class UnreadableError(Exception):
    """The schema cannot be used."""


class SpentError(UnreadableError):
    """It may be fine; nobody can afford to see."""


class TooLargeError(Exception):
    """The payload is larger than is looked at."""


class _Budget:
    """What may still be spent."""

    def __init__(self) -> None:
        self.steps = MOST_STEPS
        self.until = time.monotonic() + _MOST_S

    def spend(self) -> None:
        self.steps -= 1
        if self.steps < 0 or time.monotonic() > self.until:
            raise SpentError


_budget: ContextVar[_Budget | None] = ContextVar("budget", default=None)


@contextmanager
def one_budget() -> Iterator[None]:
    """All that is held inside is paid from one budget: a thousand answers may not take a thousand times as long."""
    if _budget.get() is not None:
        yield
        return
    token = _budget.set(_Budget())
    try:
        yield
    finally:
        _budget.reset(token)


def spend() -> None:
    """For one step. Raises where there is nothing left."""
    if (budget := _budget.get()) is not None:
        budget.spend()


def measure(value: Json, room: int) -> None:
    """Raises where a value is too deep, too large, or no JSON. It may be anything that Python can hold."""
    rest: list[tuple[Json, int]] = [(value, _DEEPEST)]
    while rest:
        here, depth = rest.pop()
        room -= _cost(here)
        inner = here.values() if isinstance(here, dict) else here if isinstance(here, list) else ()
        if len(inner) > room or depth == 0:
            raise TooLargeError
        rest.extend((each, depth - 1) for each in inner)


def _cost(value: Json) -> int:
    if isinstance(value, str):
        return 1 + len(value) // 1000
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return 1 + sum(1 + len(name) // 1000 for name in value)
    if isinstance(value, int):
        return 1 + (value.bit_length() // _MOST_BITS) * LARGEST_PAYLOAD
    if value is None or isinstance(value, list) or (isinstance(value, float) and math.isfinite(value)):
        return 1
    raise TypeError
