"""Temporal: what a process remembers, beyond the time of an execution in the cache of a worker."""

from __future__ import annotations

from typing import NamedTuple

from stopcause.receipts.hooks.waiting import Waiting


class Attempt(NamedTuple):
    """Which attempt of which run an execution is that tries another one again."""

    run_id: str
    number: int


class Known:
    """What it knows of executions is bounded: the oldest is forgotten first.

    Attributes:
        activities: Those that workers here have run, by names of their own. One that takes every name has none.
    """

    def __init__(self) -> None:
        self.activities: set[str] = set()
        self._attempts: Waiting[Attempt] = Waiting()
        self._told: Waiting[int] = Waiting()
        self._asking: Waiting[tuple[str, ...]] = Waiting()

    def run_of(self, namespace: str, execution: str, number: int, before: str | None, first: str) -> str:
        """The run that an execution is: itself, or the one that it tries again.

        It names the execution before it and the first of its chain. The latter may have been continued as new since,
        which only a process knows that has seen both.
        """
        if number <= 1 or not before:
            return execution
        run_id = self.attempt(namespace, before).run_id
        if run_id == before and number > 2:  # noqa: PLR2004 - that one tried another again, too
            run_id = first
        self.tries(namespace, execution, Attempt(run_id, number))
        return run_id

    def tries(self, namespace: str, execution: str, attempt: Attempt) -> None:
        """An execution tries a run again."""
        self._attempts.add(namespace, execution, attempt)

    def attempt(self, namespace: str, execution: str) -> Attempt:
        """Which one an execution is; as far as we know, the first of itself."""
        return self._attempts.of(namespace, execution) or Attempt(execution, 1)

    def goes_on(self, namespace: str, execution: str, asking: tuple[str, ...]) -> None:
        """An execution goes on as a new one while it asks for these."""
        if asking:
            self._asking.add(namespace, execution, asking)

    def asked(self, namespace: str, execution: str) -> tuple[str, ...]:
        """What one that went on as a new one had asked for, and that one may ask again."""
        return self._asking.of(namespace, execution) or ()

    def is_news(self, execution: str, what: str, number: int) -> bool:
        """Whether the nth of a kind was not told before: a task that fails is tried again, without end."""
        is_news = number > (self._told.of(execution, what) or 0)
        if is_news:
            self._told.add(execution, what, number)
        return is_news
