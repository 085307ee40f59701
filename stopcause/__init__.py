"""stopcause: why did the agent stop, and is the work there?

This is a front door, opened lazily: `import stopcause` loads nothing, because it happens inside other people's agents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # what type checkers see; at run time `__getattr__` opens the door
    from stopcause.receipts.capture import configure, current_run, flush, run, tracked, wrap_stream
    from stopcause.receipts.instrumentation import instrument, uninstrument

__version__ = "0.1.0"

_DOORS = {
    "configure": "capture",
    "current_run": "capture",
    "flush": "capture",
    "run": "capture",
    "tracked": "capture",
    "wrap_stream": "capture",
    "instrument": "instrumentation",
    "uninstrument": "instrumentation",
}
__all__ = [  # noqa: RUF022 - in the order in which one meets them
    "__version__", "configure", "instrument", "uninstrument", "run", "tracked", "wrap_stream", "current_run", "flush",
]  # fmt: skip


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever stands behind the name
    """Loads the room behind a door when it is first used."""
    if (room := _DOORS.get(name)) is None:
        raise AttributeError(f"module 'stopcause' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - `import stopcause` is to cost nothing

    return getattr(import_module(f"stopcause.receipts.{room}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
