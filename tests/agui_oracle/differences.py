"""Where the reader and the reference client disagree, on purpose: one table, for the test and for its page in the docs.

Each row has a predicate, so that a new false alarm of a known finding does not hide behind the old ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from stopcause.agui.values import RunSeen
from stopcause.agui.words import Mode
from tests.agui_oracle.streams import Event, Stream


class Stricter(NamedTuple):
    """A finding that is fatal here, where the client takes the stream. `places`: what the finding is about."""

    finding: str
    when: str
    why: str
    holds: Callable[[Stream, tuple[str, ...]], bool]


class Looser(NamedTuple):
    """What the client rejects, and is not fatal here. `holds` gets the field at which it stops."""

    when: str
    why: str
    holds: Callable[[Stream, tuple[RunSeen, ...], str], bool]


# What the predicates look at ------------------------------------------------------------------------------------------

_NAMING = ("RUN_STARTED", "RUN_FINISHED")
_ROLES = ("developer", "system", "assistant", "user", "tool", "activity", "reasoning")
_UNTAGGED = ("RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "MESSAGES_SNAPSHOT")


def _of(stream: Stream, *kinds: str) -> Iterator[Event]:
    return (each for each in stream.events if each.get("type") in kinds)


def _has_no_type(stream: Stream, _places: tuple[str, ...]) -> bool:
    return any(not isinstance(each.get("type"), str) for each in stream.events)


def _names_other_runs(stream: Stream, _places: tuple[str, ...]) -> bool:
    """A run ends under another name than it began, or none has the name that was asked for."""
    begun = None
    for event in _of(stream, *_NAMING):
        if event["type"] == "RUN_STARTED":
            begun = event.get("runId")
        elif event.get("runId") != begun:
            return True
    return stream.run_id not in [each.get("runId") for each in _of(stream, "RUN_STARTED")]


def _names_other_threads(stream: Stream, _places: tuple[str, ...]) -> bool:
    return any(each.get("threadId") != stream.thread_id for each in _of(stream, *_NAMING))


def _contradicts_itself(stream: Stream, _places: tuple[str, ...]) -> bool:
    outcomes = [each.get("outcome") for each in _of(stream, "RUN_FINISHED", "SUBAGENT_FINISHED")]
    return any(
        (said.get("interrupts") and said.get("type") != "interrupt")
        or (said.get("interruptIds") and said.get("type") != "suspended")
        for said in outcomes
        if isinstance(said, dict)
    )


def _asks_in_vain(stream: Stream, places: tuple[str, ...]) -> bool:
    """What is wrong is in interrupts of an outcome that cannot have any."""
    return _contradicts_itself(stream, places) and all(each.startswith("interrupt.") for each in places)


def _lacks_a_known_role(stream: Stream, places: tuple[str, ...]) -> bool:
    """Whatever else is wrong with such a message: it is dropped as a whole."""
    messages = [each for event in _of(stream, "MESSAGES_SNAPSHOT") for each in event.get("messages", ())]
    read = [each for each in messages if isinstance(each, dict) and each.get("role") in _ROLES]
    is_of_it = len(read) < len(messages) and all(isinstance(each.get("id"), str) for each in read)
    return is_of_it and set(places) <= {"message.role", "message.id"}


def _is_tagged_in_vain(_stream: Stream, places: tuple[str, ...]) -> bool:
    return set(places) <= {f"{kind}.subagentRunId" for kind in _UNTAGGED}


def _is_old_null(stream: Stream, runs: tuple[RunSeen, ...], field: str) -> bool:
    """A run before 1.0 has a null that we note, and the client stops at a field of that name which is null."""
    noted = any(
        each.name in ("NULL_FIELD", "OLD_NULL") for run in runs if run.mode is not Mode.SPEC for each in run.findings
    )
    return noted and _has_null(stream.events, field.rpartition(".")[2])


def _has_null(value: Any, name: str) -> bool:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return (name in value and value[name] is None) or any(_has_null(each, name) for each in value.values())
    return isinstance(value, list) and any(_has_null(each, name) for each in value)


def _is_old_reasoning(stream: Stream, runs: tuple[RunSeen, ...], field: str) -> bool:
    said = [each.get("role") for each in _of(stream, "REASONING_MESSAGE_START")]
    return field == "role" and any(run.mode is not Mode.SPEC for run in runs) and bool({None, "assistant"} & {*said})


# The tables -----------------------------------------------------------------------------------------------------------

STRICTER = (
    Stricter(
        "FRAME_UNREADABLE",
        "an event has no `type` that is a string",
        "the client passes it on as one that it does not know; what it was to say nobody can tell, so that an auditor "
        "cannot vouch for the rest",
        _has_no_type,
    ),
    Stricter(
        "RUN_ID_MISMATCH",
        "RUN_FINISHED names another run than RUN_STARTED, or no run has the id of the input",
        "the client does not compare ids; a receipt is filed under one",
        _names_other_runs,
    ),
    Stricter(
        "THREAD_ID_MISMATCH",
        "RUN_STARTED or RUN_FINISHED names another thread than the input",
        "the same: a question would wait in another thread than its answer comes to",
        _names_other_threads,
    ),
    Stricter(
        "OUTCOME_CONTRADICTION",
        "an outcome that asks for nothing carries interrupts, or a subagent that is not suspended does",
        "the client drops the field and reads a success; a question is never passed over here",
        _contradicts_itself,
    ),
    Stricter(
        "MALFORMED",
        "an interrupt of such an outcome is not whole",
        "the same: the client does not look at it",
        _asks_in_vain,
    ),
    Stricter(
        "MALFORMED",
        "a message of a snapshot has no `role` that is a string, or one that nobody knows and no `id`",
        "the client drops the message; whose calls and results it holds is not known then",
        _lacks_a_known_role,
    ),
    Stricter(
        "MALFORMED",
        "`subagentRunId` is no string, on an event that cannot have one",
        "the client does not look at it there; the specification gives the name one type everywhere",
        _is_tagged_in_vain,
    ),
    Stricter(
        "NULL_FIELD",
        "`subagentRunId` is null, on an event that cannot have one",
        "the same",
        _is_tagged_in_vain,
    ),
)

LOOSER = (
    Looser(
        "a run before 1.0 has a null where nothing had to be",
        "SDKs before 1.0 wrote them; it is noted (`NULL_FIELD`, `OLD_NULL`), and the run believed",
        _is_old_null,
    ),
    Looser(
        "a run before 1.0 says that a reasoning message is the assistant's, or does not say whose it is",
        "the role `reasoning` came with 1.0",
        _is_old_reasoning,
    ),
)
