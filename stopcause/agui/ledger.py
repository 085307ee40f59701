"""What a thread waits for, run by run: pure transitions of `values.Thread`, and how each run hangs in its thread."""

from __future__ import annotations

from stopcause.agui.values import Begun, Link, RunSeen, Thread


class Ledger:
    """The threads of one or many streams."""

    def __init__(self) -> None:
        self.threads: dict[str, Thread] = {}

    def begun(self, run: Begun) -> Link:
        """What the run's input says of its thread; its answers are under way from now on."""
        thread, link = begun(self.threads.get(run.thread_id) or Thread(run.thread_id), run)
        self.threads[run.thread_id] = thread
        return link

    def ended(self, run: RunSeen) -> Link:
        """The whole link, that of `begun` included. A run that ended before changes nothing, but for a late error."""
        thread, link = ended(self.threads.get(run.thread_id) or Thread(run.thread_id), run)
        self.threads[run.thread_id] = thread
        return link


def begun(thread: Thread, run: Begun) -> tuple[Thread, Link]:
    """The thread once a run began. Said twice, it is the same as once."""
    return thread, Link()


def ended(thread: Thread, run: RunSeen) -> tuple[Thread, Link]:
    """The thread once a run ended, whether it was said to begin or not."""
    return thread, Link()
