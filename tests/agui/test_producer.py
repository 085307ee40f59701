from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.agui.producer import Received, keys_of, receive
from stopcause.agui.values import Interrupt
from stopcause.agui.words import Mode
from stopcause.receipts.vocabulary import ApprovalKind, Decision
from tests.agui import asking
from tests.agui.asking import APPROVE, NOW, says
from tests.support.laws import tried_on

CANARY = "CANARY-51bd"
IDS = st.sampled_from(["i-1", "i-2", "i-3", "nope"])
PAYLOADS: st.SearchStrategy[Any] = st.sampled_from(
    [{"approved": True}, {"approved": False}, True, False, None, 0, "", {"editedArgs": {}}]
)
ENTRIES = st.fixed_dictionaries(
    {"interruptId": IDS, "status": st.sampled_from(["resolved", "cancelled", "done"])}, optional={"payload": PAYLOADS}
)
ASKED = st.lists(
    st.builds(
        Interrupt,
        st.sampled_from(["i-1", "i-2", "i-3"]),
        st.sampled_from([ApprovalKind.TOOL_CALL, ApprovalKind.CONFIRMATION, ApprovalKind.INPUT_REQUIRED]),
        expires_at=st.none() | st.just(NOW),
        schema=st.none() | st.just(APPROVE),
    ),
    max_size=3,
)


def interrupt(interrupt_id: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    return {"id": interrupt_id, "reason": "tool_call", "toolCallId": f"tc-{interrupt_id}", **more}


def got(asked: Any, *resume: Any, **more: Any) -> Received:  # noqa: ANN401 - as receive
    return receive(asked, asking.given("t1", "r2", *resume), now=NOW, **more)


@given(ASKED, st.lists(ENTRIES, max_size=4), st.sampled_from(Mode), st.sampled_from(["ask_again", "refuse"]))
@tried_on(400)
def test_nothing_runs_that_was_not_allowed_and_nothing_open_is_passed_over(
    asked: list[Interrupt],
    resume: list[dict[str, Any]],
    mode: Mode,
    on_uncovered: Any,  # noqa: ANN401 - a word
) -> None:
    received = got(asked, *resume, mode=mode, on_uncovered=on_uncovered)
    ids = {each.id for each in asked}
    acted = {each for each in ids | {"nope"} if received.may_act(each)}
    allowed = {each["interruptId"] for each in resume if each["status"] == "resolved"}
    assert acted <= allowed & ids
    assert not (acted and received.error)
    assert ids == (ids & set(received.answers)) | set(received.uncovered)
    assert not set(received.answers) & set(received.uncovered)
    assert received.may_succeed == (received.error is None and not received.must_ask_again)
    if received.uncovered and (mode is not Mode.SPEC or on_uncovered == "refuse"):
        assert received.error is not None


@given(ASKED, st.lists(ENTRIES, max_size=4))
@tried_on(200)
def test_the_same_list_a_second_time_acts_no_second_time(asked: list[Interrupt], resume: list[dict[str, Any]]) -> None:
    first = got(asked, *resume)
    taken = {each.id: each.key for each in first.answers.values()}
    still_open = [each for each in asked if each.id not in first.answers]
    second = got(still_open, *resume, taken=taken)
    assert not [each for each in taken if second.may_act(each)]
    assert {each.id for each in second.answers.values() if each.is_repeat} == set(taken)


def test_an_interrupt_that_is_open_and_was_answered_before_acts_once_only() -> None:
    taken = keys_of([says("i-1")])
    assert not got([interrupt("i-1")], says("i-1"), taken=taken).may_act("i-1")


def test_what_was_taken_in_time_is_not_late_when_it_comes_again() -> None:
    received = got([interrupt("i-1", expiresAt=NOW.isoformat())], says("i-1"), taken=keys_of([says("i-1")]))
    assert received.error is None
    assert not received.may_act("i-1")


def test_an_error_is_an_event_of_the_protocol_without_content() -> None:
    received = got([interrupt("i-1", responseSchema=APPROVE)], says("i-1", approved=CANARY))
    assert received.error is not None
    event = received.error.event()
    assert (event["type"], event["code"]) == ("RUN_ERROR", "INVALID_PAYLOAD")
    assert received.error.ids == ("i-1",)
    assert CANARY not in str(event) + repr(received)


def test_an_answer_reaches_the_agent_whole_and_is_not_shown() -> None:
    payload = {"approved": True, "note": CANARY}
    received = got([interrupt("i-1")], {"interruptId": "i-1", "status": "resolved", "payload": payload})
    answer = received.answers["i-1"]
    assert answer.payload == payload
    assert CANARY not in repr(received) + repr(answer) + answer.key


def test_a_warning_is_for_a_run_that_goes_on() -> None:
    assert [each.name for each in got([interrupt("i-1")], says("i-1"), says("nope")).warnings] == ["UNRECOGNISED_ENTRY"]
    refused = got([interrupt("i-1")], says("i-1"), says("nope"), mode=Mode.LEGACY_OUTCOME)
    assert refused.warnings == ()


def deep(levels: int) -> Any:  # noqa: ANN401 - JSON
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "asked",
    [[None], [5], [{}], [{"id": 5}], [{"id": ""}], [{"id": "i", "responseSchema": deep(5_000)}], [{"id": "i"}] * 2_000],
    ids=str.split("null number nameless numbered empty deep many"),
)
@pytest.mark.parametrize(
    "value", [None, [], {"threadId": "t", "runId": "r", "resume": [deep(5_000), 5, None]}, deep(5_000)]
)
def test_whatever_is_asked_and_answered_nothing_is_raised(asked: Any, value: Any) -> None:  # noqa: ANN401 - anything
    assert isinstance(receive(asked, value), Received)


def test_of_two_interrupts_with_one_id_one_answer_is_for_both() -> None:
    received = got([interrupt("i-1"), interrupt("i-1")], says("i-1"))
    assert received.may_act("i-1")
    assert received.may_succeed


def test_an_id_of_any_length_is_answered_by_itself() -> None:
    name = "i-" + "x" * 600

    received = got([interrupt(name)], says(name))

    assert received.may_act(name)
    assert received.may_succeed
    assert not received.may_act(name + "x")


def test_a_model_of_the_sdk_is_read_like_its_json() -> None:
    class Model:
        def __init__(self, value: dict[str, Any]) -> None:
            self.value = value

        def model_dump(self, **_: object) -> dict[str, Any]:
            return self.value

    value = Model(asking.given("t1", "r2", says("i-1")))
    assert receive([Model(interrupt("i-1"))], value, now=NOW).may_act("i-1")


def test_an_agent_gets_the_payload_of_the_answer_that_counts() -> None:
    asked = interrupt("i-1", responseSchema=APPROVE)
    malformed = {"interruptId": "i-1", "status": "ok", "payload": {"approved": True}}
    received = got([asked], malformed, says("i-1", approved=False))
    assert received.answers["i-1"].payload == {"approved": False}
    assert not received.may_act("i-1")


@pytest.mark.parametrize("approved", [None, 0, 1, "false", "true", []])
def test_an_approval_that_is_neither_yes_nor_no_allows_nothing(approved: object) -> None:
    asked = interrupt("i-1")
    received = got([asked], says("i-1", approved=approved))
    assert received.error is not None
    assert received.error.code == "INVALID_PAYLOAD"
    word = {"type": "object", "properties": {"approved": {}}}
    free = got([{**asked, "responseSchema": word}], says("i-1", approved=approved))
    assert free.answers["i-1"].decision is Decision.DENIED
    assert not free.may_act("i-1")
