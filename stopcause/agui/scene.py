"""One run in its thread, once it is over: what the rules of `audit` look at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from stopcause.agui.resumes import NOTHING_SAID, Matched
from stopcause.agui.turns import NOTHING_HAPPENED, Turned
from stopcause.agui.values import NOTHING, Json, Link, Raised, RunSeen, Thread


def _nowhere(_id: str) -> bool:
    return False


class Request(NamedTuple):
    """What is known of a request beside its input. Nothing of it is kept.

    Attributes:
        payloads: Of its answers, each by its digest; None where nobody looks at them.
        capabilities: What the agent declares (spec 1.0, basic/capabilities).
        is_unreadable: There is an input, and it is none.
    """

    payloads: Mapping[str, Json] | None = None
    capabilities: Json = None
    is_unreadable: bool = False


NO_REQUEST = Request()


class Scene(NamedTuple):
    """One run in its thread.

    Attributes:
        before: The thread when the run began: its answers are not under way in it yet.
        after: The thread now.
        run: The run, as it ended.
        link: How it hangs in its thread.
        turned: What its end did to its thread; nothing, where it had been counted.
        matched: Which of its answers answers what. Places are those of `before.raised`.
        sent_at: When its input was sent; None where nobody says.
        unfit: What is wrong with the payloads of its answers: the name of a finding -> interrupts.
        has_payloads: Whether anybody looked at them.
        capabilities: What the agent declares, where that is known.
        is_unreadable: What was sent is no input.
        is_elsewhere: Whether an interrupt of this id is known on another thread.
    """

    before: Thread
    after: Thread
    run: RunSeen
    link: Link
    turned: Turned = NOTHING_HAPPENED
    matched: Matched = NOTHING_SAID
    sent_at: datetime | None = None
    unfit: Mapping[str, tuple[str, ...]] = NOTHING
    has_payloads: bool = False
    capabilities: Json = None
    is_unreadable: bool = False
    is_elsewhere: Callable[[str], bool] = _nowhere

    def raised(self, places: Iterable[int]) -> list[Raised]:
        """The interrupts at these places of the thread, as they stood before."""
        return [self.before.raised[place] for place in places]

    def ids(self, places: Iterable[int]) -> list[str]:
        """Their ids."""
        return [each.interrupt.id for each in self.raised(places)]
