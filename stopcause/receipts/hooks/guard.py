"""What every hook stands on: nothing of it raises into the host, and it turns itself off where it keeps failing.

Reading a framework's object goes through `Hook.read`: an attribute that is gone or of another type is absent from the
receipt, and a finding names the hook and the attribute.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, TypeVar

from stopcause.receipts import capture
from stopcause.receipts.causes import Rank
from stopcause.receipts.vocabulary import Boundary, StopCause

if TYPE_CHECKING:
    from types import TracebackType

    from stopcause.receipts.hooks import Spec
    from stopcause.receipts.run import Run

_MOST_FAILURES = 20
_T = TypeVar("_T")


class Hook:
    """One framework's hook while it is installed.

    Attributes:
        is_tested: Whether the installed version is in the tested range. Where not, read exception classes only: that a
            run came back is then no end that is known.
        is_on: Whether it begins runs. Runs that it began are ended also when it is off.
    """

    def __init__(self, spec: Spec, version: str | None, *, is_tested: bool) -> None:
        self.name = spec.name
        self.adapter = f"stopcause.{spec.name}"
        self.version = version
        self.is_tested = is_tested
        self.is_on = True
        self._failures = 0
        self._guards: dict[str, Guard] = {}

    def begin(self, agent: str | None = None, *, parent: Run | None = None) -> Run | None:
        """A run of this framework, not started yet; None where the hook is off, or hooks are."""
        if not self.is_on or capture.is_off(self.name):
            return None
        run = capture.begin(self.adapter, self.name, self.version, agent, parent=parent)
        if not self.is_tested:
            run.is_untested = True
            run.find("untested_version", self.adapter)
        return run

    def guard(self, where: str) -> Guard:
        """A `with` block that swallows and counts what goes wrong inside it. Only our own work belongs into it."""
        return self._guards.get(where) or self._guards.setdefault(where, Guard(self, where))

    def ending(self, where: str, run: Run) -> Ending:
        """The same for the block in which a run ends: where that fails it is over all the same, nobody knows why."""
        return Ending(self, where, run)

    def failed(self, where: str) -> None:
        """Something of ours went wrong at a place."""
        self._failures += 1
        writer = capture.writer()
        if writer is None:
            return
        if self._failures in (1, _MOST_FAILURES):
            writer.say("hook_failed", f"{self.adapter}:{where}")
        if self._failures >= _MOST_FAILURES and self.is_on:
            self.is_on = False
            writer.say("hook_off", self.adapter)

    def read(self, run: Run, owner: object, path: str, kind: type[_T] | tuple[type[_T], ...]) -> _T | None:
        """An attribute of a framework's object, or of what a dotted path leads to; None where it is None or not there.

        What is there and is no `kind` is found. `bool` is no `int` here.
        """
        value: Any = owner
        with contextlib.suppress(Exception):  # a property of the framework's may raise anything; so may `__class__`
            for name in path.split("."):
                value = getattr(value, name)
            if value is None or (isinstance(value, kind) and not (isinstance(value, bool) and kind is int)):
                return value
        run.find("shape_changed", f"{self.adapter}:{path}")
        return None


class Guard:
    """A block of a hook's own work. One object for each place: entering costs two calls and no allocation."""

    __slots__ = ("_hook", "_where")

    def __init__(self, hook: Hook, where: str) -> None:
        self._hook = hook
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        if kind is None or not issubclass(kind, Exception):
            return False
        self._hook.failed(self._where)
        return True


class Ending:
    """A block that ends a run. One that it left open would give signs of life for ever."""

    __slots__ = ("_guard", "_run", "_where")

    def __init__(self, hook: Hook, where: str, run: Run) -> None:
        self._guard = hook.guard(where)
        self._where = f"{hook.adapter}:{where}"
        self._run = run

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        is_ours = self._guard.__exit__(kind, error, traceback)
        if is_ours:
            with self._guard:
                self._run.find("hook_failed", self._where)
                self._run.say(StopCause.UNKNOWN, Rank.SIGNAL, Boundary.CALLBACK)
                self._run.start().end()  # a setup that failed may not have got so far
        return is_ours
