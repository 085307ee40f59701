"""The sidecar: takes in what hooks leave in a spool, for as long as it is let.

It holds the store only while there is something to take in, so that commands can read it in between; where another
process has it, it waits. Here: the rounds, and the signals that end them. Not here: what a round does (`spool`).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from stopcause.classifier.policy import Policy
from stopcause.errors import InputError, PolicyError, StoreFullError, StoreInUseError
from stopcause.pipeline.keeper import Keeper
from stopcause.pipeline.spool import TakenIn, take_in
from stopcause.pipeline.spool_files import has_news

EVERY_S = 1.0
_SETTLE_EVERY = timedelta(minutes=1)  # commands settle before they read; this is for who reads the store otherwise


@contextlib.contextmanager
def until_signalled() -> Iterator[Callable[[float], bool]]:
    """A wait that SIGTERM and SIGINT end: it is True from then on. What is going on meanwhile is not broken off."""
    heard, said = os.pipe()  # not an event: a handler that takes a lock may wait for the very thread that it is on
    before = {each: signal.signal(each, lambda *_: os.write(said, b".")) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield lambda seconds: bool(select.select([heard], [], [], seconds)[0])
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        os.close(said)
        os.close(heard)


class Round(NamedTuple):
    """What one round did. `trouble`: why the records stay in the spool for now."""

    at: datetime
    taken: TakenIn = TakenIn()
    judged: int = 0  # verdicts that changed with time
    trouble: str | None = None


def follow(
    spool: Path, store: Path, policy: Callable[[], Policy], clock: Callable[[], datetime], wait: Callable[[float], bool]
) -> Iterator[Round]:
    """Yields a round whenever there was something to do. Its end is the caller's: `wait` says that it is enough.

    Args:
        spool: The folder that hooks write into; it need not exist yet.
        store: The database file, made where there is none.
        policy: The policy in force. Asked for each round; one that is being edited leaves the one before in force.
        clock: The present time.
        wait: Waits so many seconds at most; True ends it.

    Raises:
        PolicyError: The first policy cannot be used.
        StoreError: The store cannot be used, and waiting does not help.
    """
    in_force, settled_at = policy(), None
    while True:
        now = clock()
        is_due = store.exists() and (settled_at is None or now - settled_at >= _SETTLE_EVERY)
        if is_due or has_news(spool, store):
            with contextlib.suppress(PolicyError, InputError):
                in_force = policy()
            done = _round(spool, store, in_force, now)
            settled_at = now if done.trouble is None else settled_at
            yield done
        if wait(EVERY_S):
            return


def _round(spool: Path, store: Path, policy: Policy, now: datetime) -> Round:
    try:
        with Keeper.open(store, policy, now) as keeper:
            taken = take_in(spool, keeper, now)
            return Round(now, taken, keeper.settle(now))
    except (StoreInUseError, StoreFullError) as error:
        return Round(now, trouble=str(error))
