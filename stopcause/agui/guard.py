"""The consumer's duty before it sends: whether an input may go out, by what its thread waits for (spec 1.0, resume)."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple

from stopcause.agui.answers import Answers
from stopcause.agui.findings import Finding
from stopcause.agui.values import Begun, Json, RunSeen, Thread


class Check(NamedTuple):
    """Whether an input may be sent, and what was found."""

    refused: bool
    findings: tuple[Finding, ...]


class ResumeGuard:
    """What the threads of one consumer wait for, and which inputs may go out.

    Args:
        path: The guard's own file; None keeps nothing beyond this process.
        on_unreadable: What `check` does where that file cannot be read.
    """

    def __init__(
        self, path: str | Path | None = None, *, on_unreadable: Literal["refuse", "allow"] = "refuse"
    ) -> None:
        self.path, self.on_unreadable = path, on_unreadable

    def check(self, input: Json, now: datetime | None = None) -> Check:  # noqa: A002 - what AG-UI calls it
        """Whether this RunAgentInput may be sent now. Never raises."""
        raise NotImplementedError

    def sent(self, input: Json) -> None:  # noqa: A002 - what AG-UI calls it
        """It is about to be sent; durable when this returns."""
        raise NotImplementedError

    def saw(self, run: Begun | RunSeen) -> None:
        """What the stream said. Never raises."""
        raise NotImplementedError

    def thread(self, thread_id: str) -> Thread:
        """What is known of a thread; an empty one where nothing is."""
        raise NotImplementedError

    def answers(self, thread_id: str) -> Answers:
        """Builds a complete list of answers."""
        raise NotImplementedError
