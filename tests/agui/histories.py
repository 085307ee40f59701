"""Any runs at all on one thread, for the laws of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import strategies as st

from stopcause.agui.values import Entry, Input, Interrupt, Result, RunSeen
from stopcause.agui.words import Channel, Ending, Mode
from stopcause.receipts.vocabulary import ApprovalKind, StopCause

T = TypeVar("T")


def made(kind: Callable[..., T], *fields: st.SearchStrategy[Any], **more: st.SearchStrategy[Any]) -> Any:  # noqa: ANN401
    """Values of a kind; fields that are not named keep their defaults, which hypothesis would not let them."""
    return st.builds(lambda *args, **named: kind(*args, **named), *fields, **more)  # noqa: PLW0108 - as it says


IDS = st.sampled_from(["a", "b", "c"])
CALLS = st.none() | st.sampled_from(["tc-1", "tc-2", "tc-3"])
ENTRIES = made(
    Entry,
    IDS,
    st.sampled_from(["resolved", "cancelled", "maybe"]),
    st.sampled_from(["d1", "d2"]),
    has_payload=st.booleans(),
    approved=st.none() | st.booleans(),
)
INTERRUPTS = made(
    Interrupt,
    IDS,
    st.sampled_from(ApprovalKind),
    channel=st.sampled_from(Channel),
    tool_call_id=CALLS,
)
RESULTS = made(Result, st.sampled_from(["tc-1", "tc-2", "tc-3"]), st.none() | IDS, is_event=st.booleans())
INPUTS = made(
    Input,
    st.just("t1"),
    st.just("-"),
    resume=st.none() | st.lists(ENTRIES, max_size=3).map(tuple),
    legacy_answers=st.lists(ENTRIES | ENTRIES.map(lambda each: each._replace(id="")), max_size=2).map(tuple),
    answered=st.frozensets(st.sampled_from(["tc-1", "tc-2"]), max_size=2),
)
RUNS = made(
    RunSeen,
    st.just("t1"),
    st.sampled_from([f"r{number}" for number in range(5)]),
    st.sampled_from(Mode),
    st.sampled_from(Ending),
    st.sampled_from([StopCause.NATURAL, StopCause.APPROVAL_PENDING, StopCause.INPUT_REJECTED]),
    error_code=st.none() | st.sampled_from(["X", "Y"]),
    is_late=st.booleans(),
    input=st.none() | INPUTS,
    interrupts=st.lists(INTERRUPTS, max_size=3).map(tuple),
    results=st.lists(RESULTS, max_size=3).map(tuple),
)
HISTORIES = st.lists(RUNS, max_size=8)
