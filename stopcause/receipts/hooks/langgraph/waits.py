"""Interrupts and their answers: what a paused graph waits for, and which run takes it up.

Read of an interrupt's value: whether it has the form of LangChain's own approval requests, and the names of the tools
in it, where the graph has tools of these names. Read of an answer: the word of its decision. Nothing else of either.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from stopcause.receipts.identifiers import is_identifier, is_personal
from stopcause.receipts.vocabulary import ApprovalKind, Decision

MOST_PAUSED = 20_000  # runs that are remembered; who resumes one that is forgotten is not linked to it

# The words of `langchain.agents.middleware.human_in_the_loop`; `respond` answers in the tool's place.
DECISIONS = {
    "approve": Decision.APPROVED,
    "edit": Decision.EDITED,
    "reject": Decision.DENIED,
    "respond": Decision.ANSWERED,
}
YES = (Decision.APPROVED, Decision.EDITED)


class Asked(NamedTuple):
    """One thing that is waited for.

    Attributes:
        approval_id: The interrupt's id; with a number where one interrupt asks for several calls.
        interrupt_id: What `Command(resume={id: ...})` names; None for a breakpoint, which has no id.
        number: Which of the interrupt's calls, from 0.
        kind: What is waited for.
        tool: The gated tool.
        tool_call_id: The gated call, where the interrupt says which.
    """

    approval_id: str
    interrupt_id: str | None
    number: int = 0
    kind: ApprovalKind = ApprovalKind.INPUT_REQUIRED
    tool: str | None = None
    tool_call_id: str | None = None


class Answer(NamedTuple):
    """What was said to one of them. `tool`: what is to run; an edit may change it."""

    decision: Decision | None = None
    tool: str | None = None


class Address(NamedTuple):
    """Where a graph's state is kept: in which store, on which thread, and which graph inside the outermost one."""

    store: object
    thread: str
    namespace: str


class Paused(NamedTuple):
    """A run that waits.

    Attributes:
        run_id: Its id; None where it was another process's.
        asked: For what.
        answers: What a run brought that took it up and failed.
        saver: Gives what keeps its state, while that lives.
    """

    run_id: str | None
    asked: tuple[Asked, ...]
    answers: Mapping[str, Answer] = {}
    saver: Callable[[], Any] = lambda: None


class Memory:
    """The runs of this process that wait, by their addresses. Bounded; safe without a lock."""

    def __init__(self) -> None:
        self._paused: OrderedDict[Address, Paused] = OrderedDict()

    def keep(self, place: Address | None, paused: Paused) -> None:
        """A run waits. What waited there before is taken up or given up."""
        if place is None:
            return
        self._paused[place] = paused
        with contextlib.suppress(KeyError):  # another thread may just have taken it
            self._paused.move_to_end(place)
            while len(self._paused) > MOST_PAUSED:
                self._paused.popitem(last=False)

    def take(self, place: Address | None) -> Paused | None:
        """The run that waited there; nobody waits there afterwards."""
        return None if place is None else self._paused.pop(place, None)

    def give_back(self, place: Address | None, paused: Paused) -> None:
        """It waits there still, unless another one does."""
        if place is not None:
            self._paused.setdefault(place, paused)


def weakly(saver: Any) -> Callable[[], Any]:  # noqa: ANN401 - a checkpointer
    """What gives it back while it lives; nothing where it is of a kind that cannot be referred to."""
    try:
        return weakref.ref(saver)
    except TypeError:
        return lambda: None


def interrupts_of(error: BaseException) -> list[Any]:
    """What a `GraphInterrupt` is about; nothing where the program raised one of its own making."""
    given = error.args[0] if error.args else ()
    return list(given) if isinstance(given, list | tuple) else []


def asked_in(interrupt: Any, tools: frozenset[str], tool: str | None) -> list[Asked]:  # noqa: ANN401 - an Interrupt
    """What an interrupt asks for.

    Args:
        interrupt: The framework's.
        tools: The names of the tools that the graph has.
        tool: The tool that raised it, where one did.
    """
    name = getattr(interrupt, "id", None)
    if not isinstance(name, str):
        return []
    value = getattr(interrupt, "value", None)
    if not isinstance(value, dict):
        return [Asked(name, name, tool=tool)]
    requests = value.get("action_requests")
    if isinstance(requests, list) and requests:
        names = [_known(each, tools) for each in requests]
        ids = [name] if len(names) == 1 else [f"{name}/{number}" for number in range(1, len(names) + 1)]
        return [Asked(ids[i], name, i, ApprovalKind.TOOL_CALL, each) for i, each in enumerate(names)]
    if value.get("type") == "tool_approval":
        asked = _known(value, tools)  # else it may be the program's own, and say anything
        return [
            Asked(name, name, 0, ApprovalKind.TOOL_CALL, asked, None if asked is None else value.get("tool_call_id"))
        ]
    return [Asked(name, name, tool=tool)]


def answers_to(paused: Paused, resume: object, tools: frozenset[str]) -> dict[str, Answer]:
    """What a `Command(resume=...)` says to each thing that a run waits for.

    All of them, also those that it leaves open: the run that resumes takes the whole pause up, and asks again for what
    is still open. `resume` None resumes a breakpoint; a mapping from interrupt ids answers these, any other value the
    only interrupt.
    """
    ids = {each.interrupt_id for each in paused.asked if each.interrupt_id is not None}
    given: dict[Any, object] = {}
    if isinstance(resume, dict) and ids & resume.keys():
        given = resume
    elif len(ids) == 1 and resume is not None:
        given = dict.fromkeys(ids, resume)
    answers = {each.approval_id: _answer(each, given, tools) for each in paused.asked}
    return {name: paused.answers.get(name, new) if new == Answer() else new for name, new in answers.items()}


def resume_token(thread: str | None, checkpoint: str | None) -> str | None:
    """What names the paused state. A thread that is called by a person's handle or a sentence stays out of it."""
    if thread is None or checkpoint is None:
        return None
    is_plain = is_identifier(thread) and not is_personal(thread)
    return f"{thread}/{checkpoint}" if is_plain else checkpoint


def _answer(asked: Asked, given: dict[Any, object], tools: frozenset[str]) -> Answer:
    if asked.kind is ApprovalKind.CONFIRMATION:
        return Answer(Decision.APPROVED)
    if asked.interrupt_id not in given:
        return Answer()
    value = given[asked.interrupt_id]
    if asked.kind is not ApprovalKind.TOOL_CALL:
        return Answer(Decision.ANSWERED)
    word = _decision(value, asked.number)
    edited = _known(word.get("edited_action"), tools)
    return Answer(DECISIONS.get(str(word.get("type"))), edited or asked.tool)


def _decision(value: object, index: int) -> dict[str, Any]:
    """The decision on one call: in a list of them, or by itself where each call has an interrupt of its own."""
    if isinstance(value, dict) and isinstance(listed := value.get("decisions"), list):
        value = listed[index] if index < len(listed) else None
    return value if isinstance(value, dict) else {}


def _known(request: object, tools: frozenset[str]) -> str | None:
    """The tool that a request names, where there is one of that name: a model may ask for what there is not."""
    name = request.get("name") if isinstance(request, dict) else None
    return name if isinstance(name, str) and name in tools else None
