from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.agui.answers import Answers
from stopcause.agui.guard import ResumeGuard
from stopcause.agui.values import Interrupt, RunSeen
from stopcause.agui.words import Channel, Ending, Mode
from stopcause.errors import ResumeRefusedError
from stopcause.receipts.vocabulary import ApprovalKind, StopCause
from tests.agui import asking
from tests.agui.asking import APPROVE, NOW
from tests.support.laws import tried_on

EDIT = {"type": "object", "properties": {"approved": {"type": "boolean"}, "editedArgs": {"type": "object"}}}


def guard_that_waits(*interrupts: Interrupt) -> ResumeGuard:
    guard = ResumeGuard()
    guard.saw(
        RunSeen(
            "t1", "r1", Mode.SPEC, Ending.INTERRUPT, StopCause.APPROVAL_PENDING, interrupts=interrupts, ended_at=NOW
        )
    )
    return guard


def answers(*interrupts: Interrupt) -> Answers:
    return guard_that_waits(*interrupts).answers("t1", NOW)


def call(interrupt_id: str, **more: Any) -> Interrupt:  # noqa: ANN401 - any field
    return Interrupt(interrupt_id, ApprovalKind.TOOL_CALL, **{"schema": APPROVE, **more})


def found(caught: pytest.ExceptionInfo[ResumeRefusedError]) -> list[tuple[str, tuple[str, ...]]]:
    return [(each.name, each.ids) for each in caught.value.findings]


def test_a_list_is_complete_and_in_the_order_in_which_it_was_asked() -> None:
    built = answers(call("i-1"), call("i-2"), call("i-3")).deny("i-3").approve("i-1").cancel_rest().build()
    assert built == [
        {"interruptId": "i-1", "status": "resolved", "payload": {"approved": True}},
        {"interruptId": "i-2", "status": "cancelled"},
        {"interruptId": "i-3", "status": "resolved", "payload": {"approved": False}},
    ]


def test_what_lacks_an_answer_is_named() -> None:
    builder = answers(call("i-1"), call("i-2")).approve("i-1")
    assert builder.missing == ("i-2",)
    with pytest.raises(ResumeRefusedError) as caught:
        builder.build()
    assert found(caught) == [("UNCOVERED", ("i-2",))]


def test_the_last_answer_counts() -> None:
    assert answers(call("i-1")).approve("i-1").cancel("i-1").build() == [{"interruptId": "i-1", "status": "cancelled"}]


@pytest.mark.parametrize(
    ("interrupt", "yes", "no"),
    [
        (call("i"), {"approved": True}, {"approved": False}),
        (call("i", schema=None), {"approved": True}, {"approved": False}),
        (call("i", schema={"type": "boolean"}), True, False),
        (Interrupt("i", ApprovalKind.CONFIRMATION), True, False),
        (Interrupt("i", ApprovalKind.CONFIRMATION, schema=APPROVE), {"approved": True}, {"approved": False}),
    ],
)
def test_a_yes_and_a_no_have_the_form_that_was_asked_for(interrupt: Interrupt, yes: object, no: object) -> None:
    assert answers(interrupt).approve("i").build()[0]["payload"] == yes
    assert answers(interrupt).deny("i").build()[0]["payload"] == no


@pytest.mark.parametrize("payload", [False, 0, "", None, [], {}])
def test_falsy_answers_are_answers(payload: object) -> None:
    built = answers(Interrupt("i", ApprovalKind.INPUT_REQUIRED)).resolve("i", payload).build()
    assert built == [{"interruptId": "i", "status": "resolved", "payload": payload}]


def test_an_answer_without_a_payload_has_none() -> None:
    built = answers(Interrupt("i", ApprovalKind.INPUT_REQUIRED)).resolve("i").build()
    assert built == [{"interruptId": "i", "status": "resolved"}]


def test_edits_are_the_whole_of_the_new_arguments_and_only_where_they_are_offered() -> None:
    built = answers(call("i", schema=EDIT)).approve("i", {"to": "x"}).build()
    assert built[0]["payload"] == {"approved": True, "editedArgs": {"to": "x"}}
    with pytest.raises(ResumeRefusedError) as caught:
        answers(call("i")).approve("i", {})
    assert found(caught) == [("EDITS_NOT_OFFERED", ("i",))]


def test_what_has_expired_may_only_be_given_up() -> None:
    builder = answers(call("i", expires_at=NOW))
    for answer in (builder.approve, builder.deny, builder.resolve):
        with pytest.raises(ResumeRefusedError) as caught:
            answer("i")
        assert found(caught) == [("EXPIRED_ANSWER", ("i",))]
    assert builder.cancel("i").build() == [{"interruptId": "i", "status": "cancelled"}]


@pytest.mark.parametrize("way", ["approve", "deny", "cancel", "resolve"])
def test_what_is_not_open_has_no_answer(way: str) -> None:
    with pytest.raises(ResumeRefusedError) as caught:
        getattr(answers(call("i")), way)("nope")
    assert found(caught) == [("RESUME_UNKNOWN_ID", ("nope",))]


def test_a_form_that_no_yes_fits_is_refused() -> None:
    with pytest.raises(ResumeRefusedError) as caught:
        answers(call("i", schema={"type": "string"})).approve("i")
    assert found(caught) == [("PAYLOAD_SCHEMA_MISMATCH", ("i",))]


def test_a_schema_that_cannot_be_used_stops_no_answer() -> None:
    assert answers(call("i", schema={"$ref": "https://schemas.example/x"})).approve("i").build()


def test_a_wait_of_the_clients_own_is_answered_by_a_message() -> None:
    waiting = answers(call("i-1"), Interrupt("i-2", ApprovalKind.INPUT_REQUIRED, Channel.TOOL, "tc-2")).waiting
    assert list(waiting) == ["i-1"]


def test_nothing_open_is_an_empty_list() -> None:
    assert ResumeGuard().answers("t1").build() == []


@given(st.lists(st.sampled_from(["approve", "deny", "cancel", "leave"]), min_size=1, max_size=6), st.booleans())
@tried_on(100)
def test_whatever_is_built_is_what_the_guard_lets_pass(ways: list[str], is_expired: bool) -> None:
    asked = [call(f"i-{n}", expires_at=NOW if is_expired and n == 0 else None) for n in range(len(ways))]
    guard = guard_that_waits(*asked)
    builder = guard.answers("t1", NOW)
    for interrupt, way in zip(asked, ways, strict=True):
        if way != "leave" and interrupt.expires_at is None:
            getattr(builder, way)(interrupt.id)
    built = builder.cancel_rest().build()
    check = guard.check(asking.given("t1", "r2", *built), NOW)
    assert not check.refused
    assert not check.findings
