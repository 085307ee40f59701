"""A complete list of answers to what a thread waits for, built one by one."""

from __future__ import annotations

from stopcause.agui.values import Thread


class Answers:
    """The answers of one input."""

    def __init__(self, thread: Thread) -> None:
        self.thread = thread
