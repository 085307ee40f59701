"""What the agent made of answers, where a case file cannot look: what is known, what excuses, and what is said once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

import pytest

from stopcause.agui.findings import Finding, names
from stopcause.agui.ledger import Ledger
from stopcause.agui.scene import Request
from stopcause.agui.values import Begun, Entry, Input, Interrupt, Json, RunSeen
from stopcause.agui.words import Channel, Ending, Mode
from stopcause.receipts.vocabulary import ApprovalKind, StopCause
from tests.agui.asking import APPROVE
from tests.agui.seen import NOON, THREAD, asked, gives_up, run, yes

ASKS = run("r1", asks=(asked("i-1", "tc-1", tool="send"),))
OLD = Mode.LEGACY_OUTCOME


def found(*runs: RunSeen, payloads: Mapping[str, Json] | None = None, capabilities: Json = None) -> frozenset[str]:
    """What is said of the last of these."""
    return names(findings(*runs, request=Request(payloads, capabilities)))


def findings(*runs: RunSeen, request: Request) -> tuple[Finding, ...]:
    ledger = Ledger()
    for each in runs[:-1]:
        ledger.ended(each)
    return ledger.ended(runs[-1], request).findings


def refused(run_id: str, *answers: Entry, code: str = "INVALID_PAYLOAD", **more: Json) -> RunSeen:
    return run(run_id, Ending.ERROR, *answers, cause=StopCause.INPUT_REJECTED, error_code=code, **more)


# What it could tell ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capabilities", "is_known"),
    [
        (None, False),
        ({"state": {"persistentState": True}}, True),
        ({"state": {"persistentState": "yes"}}, False),
        ({"state": []}, False),
        ("state", False),
    ],
)
def test_an_agent_that_says_it_keeps_state_could_tell(capabilities: Json, is_known: bool) -> None:
    said = found(ASKS, run("r2"), capabilities=capabilities)

    assert ("SUCCESS_OVER_OPEN_INTERRUPT" in said) is is_known
    assert ("SUCCESS_OVER_UNSEEN_INTERRUPT" in said) is not is_known


def test_an_agent_that_had_asked_again_could_tell() -> None:
    assert "SUCCESS_OVER_OPEN_INTERRUPT" in found(ASKS, run("r2", asks=ASKS.interrupts), run("r3"))


def test_of_two_that_are_passed_over_each_is_said_once() -> None:
    asks = run("r1", asks=(asked("i-1", "tc-1"), asked("i-2", "tc-2")))
    shows = Input(THREAD, "r2", calls={"tc-2": "send"})

    said = {each.name: each.ids for each in findings(asks, run("r2", input=shows), request=Request())}

    assert said["SUCCESS_OVER_OPEN_INTERRUPT"] == ("i-2",)
    assert said["SUCCESS_OVER_UNSEEN_INTERRUPT"] == ("i-1",)


@pytest.mark.parametrize("ending", [Ending.CANCELLED, Ending.UNKNOWN_OUTCOME, Ending.TRUNCATED])
def test_what_was_stopped_or_cut_off_need_not_ask_again(ending: Ending) -> None:
    said = found(ASKS, run("r2", ending, input=Input(THREAD, "r2", calls={"tc-1": "send"})))

    assert not said & {"UNCOVERED_MISHANDLED", "SUCCESS_OVER_OPEN_INTERRUPT", "SUCCESS_OVER_UNSEEN_INTERRUPT"}


def test_before_1_0_an_input_with_a_gap_fails_whatever_the_agent_could_tell() -> None:
    assert "UNCOVERED_MISHANDLED" in found(ASKS, run("r2")._replace(mode=OLD))
    assert "UNCOVERED_MISHANDLED" in found(ASKS, run("r2", asks=ASKS.interrupts)._replace(mode=OLD))
    assert "UNCOVERED_MISHANDLED" not in found(ASKS, run("r2", Ending.ERROR)._replace(mode=OLD))


def test_a_wait_of_the_client_s_own_is_no_gap() -> None:
    asks = run("r1", asks=(asked("tc-1", "tc-1", channel=Channel.TOOL),))

    assert "UNCOVERED_MISHANDLED" not in found(asks, run("r2")._replace(mode=OLD))


def test_an_answer_to_something_else_is_passed_over_or_acted_on() -> None:
    acts = found(ASKS, run("r2", Ending.SUCCESS, yes("i-9"), results=("tc-1",)))
    passes = found(ASKS, run("r2", Ending.SUCCESS, yes("i-9"), asks=ASKS.interrupts))

    assert acts & {"UNRECOGNISED_ENTRY", "ACTION_ON_UNRECOGNISED_ANSWER"} == {"ACTION_ON_UNRECOGNISED_ANSWER"}
    assert passes & {"UNRECOGNISED_ENTRY", "ACTION_ON_UNRECOGNISED_ANSWER"} == {"UNRECOGNISED_ENTRY"}


# Gated calls ----------------------------------------------------------------------------------------------------------


def test_of_an_input_that_nobody_saw_nobody_says_that_it_had_no_answer() -> None:
    assert found(ASKS, run("r2", results=("tc-1",), knows_input=False)) == {"INPUT_UNSEEN"}


def test_a_call_of_which_no_tool_is_known_agrees_with_any() -> None:
    asks = run("r1", asks=(asked("i-1", "tc-1"),))
    again = run("r2", Ending.SUCCESS, yes("i-1"), results=("tc-1",), calls={"tc-1": "drop"})

    assert found(asks, again) == {"CALL_REOPENED"}
    assert found(ASKS, again) == {"REOPEN_MISMATCH"}
    assert found(ASKS, again._replace(calls={"tc-1": None})) == {"CALL_REOPENED"}
    assert found(ASKS, again._replace(calls={"tc-2": "drop"})) == frozenset()


def test_a_call_that_was_asked_for_long_ago_is_nobody_s() -> None:
    later = run("r2", Ending.SUCCESS, yes("i-1"), asks=(asked("i-2", "tc-2"),), results=("tc-1",))

    assert found(ASKS, later, run("r3", Ending.SUCCESS, yes("i-2"), results=("tc-2",), calls={"tc-1": "x"})) == set()


@pytest.mark.parametrize(
    ("answer", "more", "is_found"),
    [
        (yes("i-1"), {}, True),
        (yes("i-1")._replace(is_edited=True), {}, True),
        (yes("i-1")._replace(approved=None), {}, False),
        (yes("i-1")._replace(approved=False), {}, False),
        (gives_up("i-1"), {}, False),
        (yes("i-1"), {"results": ("tc-1",)}, False),
        (yes("i-1"), {"left": ("tc-1",)}, False),
        (yes("i-1"), {"asks": ASKS.interrupts}, False),
    ],
)
def test_what_was_allowed_and_never_came_back(answer: Entry, more: dict[str, Json], is_found: bool) -> None:
    assert ("APPROVED_NOT_EXECUTED" in found(ASKS, run("r2", Ending.SUCCESS, answer, **more))) is is_found


def test_the_client_s_own_tool_runs_at_the_client_s() -> None:
    given = Input(THREAD, "r2", resume=(yes("i-1"),), tools=frozenset({"send"}))

    assert "APPROVED_NOT_EXECUTED" not in found(ASKS, run("r2", input=given))


# Answers that ought to have been refused ------------------------------------------------------------------------------

FORM = run("r1", asks=(Interrupt("i-1", ApprovalKind.INPUT_REQUIRED, schema=APPROVE, schema_digest="s"),))
FITS = yes("i-1")
LATE = run("r1", asks=(asked("i-1", "tc-1", expires_at=NOON + timedelta(seconds=1)),))


def test_a_payload_that_does_not_fit_is_swallowed_where_the_run_goes_on() -> None:
    bad = {FITS.digest: {"approved": 1}}

    assert "BAD_ANSWER_SWALLOWED" in found(FORM, run("r2", Ending.SUCCESS, FITS), payloads=bad)
    assert "BAD_ANSWER_SWALLOWED" not in found(FORM, run("r2", Ending.ERROR, FITS), payloads=bad)
    assert "BAD_ANSWER_SWALLOWED" not in found(FORM, run("r2", Ending.TRUNCATED, FITS), payloads=bad)
    assert "BAD_ANSWER_SWALLOWED" not in found(FORM, run("r2", Ending.SUCCESS, FITS), payloads={FITS.digest: APPROVED})


def test_that_a_payload_is_missing_is_seen_without_it() -> None:
    missing = Entry("i-1", "resolved", "d-absent")

    assert "BAD_ANSWER_SWALLOWED" in found(FORM, run("r2", Ending.SUCCESS, missing))
    assert "BAD_ANSWER_SWALLOWED" not in found(ASKS, run("r2", Ending.SUCCESS, missing))


def test_what_is_asked_once_more_was_not_taken() -> None:
    bad = {FITS.digest: {"approved": 1}}

    assert "BAD_ANSWER_SWALLOWED" not in found(
        FORM, run("r2", Ending.SUCCESS, FITS, asks=FORM.interrupts), payloads=bad
    )
    assert "LATE_ANSWER_TAKEN" not in found(LATE, run("r2", Ending.SUCCESS, yes("i-1"), asks=LATE.interrupts))


def test_an_answer_is_late_by_when_it_was_sent() -> None:
    taken = run("r2", Ending.SUCCESS, yes("i-1"), results=("tc-1",))

    assert "LATE_ANSWER_TAKEN" in found(LATE, taken)
    assert "LATE_ANSWER_TAKEN" not in found(LATE, taken._replace(began_at=NOON))
    assert "LATE_ANSWER_TAKEN" not in found(LATE, run("r2", Ending.SUCCESS, gives_up("i-1")))


# Refusals -------------------------------------------------------------------------------------------------------------

APPROVED = {"approved": True}
REFUSALS = {"VALID_RESUME_REFUSED", "EXPIRED_CANCEL_REJECTED"}


@pytest.mark.parametrize("status", [400, 410, 422])
def test_http_refuses_an_input_by_three_codes(status: int) -> None:
    assert "VALID_RESUME_REFUSED" in found(ASKS, run("r2", Ending.REFUSED, yes("i-1"), http_status=status))


@pytest.mark.parametrize("status", [401, 403, 404, 408, 409, 413, 429, 500, 503])
def test_others_are_about_something_else(status: int) -> None:
    unknown = run("r2", Ending.REFUSED, yes("i-1"), yes("i-9"), http_status=status)

    assert "UNRECOGNISED_ENTRY_FAILED_RUN" not in found(ASKS, unknown)
    assert "UNRECOGNISED_ENTRY_FAILED_RUN" in found(ASKS, unknown._replace(http_status=422))
    assert "VALID_RESUME_REFUSED" not in found(ASKS, run("r2", Ending.REFUSED, yes("i-1"), http_status=status))


@pytest.mark.parametrize(
    "answers",
    [
        (yes("i-1"), yes("i-9")),
        (yes("i-1"), yes("i-1", "d-other")),
        (Entry("i-1", "maybe", "d"),),
        (Entry("i-1", "resolved", "d-absent"),),
        (Entry("i-1", "resolved", "d", has_payload=True),),
        (),
    ],
)
def test_what_is_wrong_or_unclear_may_be_refused(answers: tuple[Entry, ...]) -> None:
    assert not found(ASKS, refused("r2", *answers)) & REFUSALS


def test_of_a_payload_that_nobody_saw_it_is_not_said_that_it_fits() -> None:
    assert not found(FORM, refused("r2", FITS)) & REFUSALS
    assert not found(FORM, refused("r2", FITS), payloads={FITS.digest: {"approved": 1}}) & REFUSALS
    assert "VALID_RESUME_REFUSED" in found(FORM, refused("r2", FITS), payloads={FITS.digest: APPROVED})


def test_an_answer_may_expire_on_its_way() -> None:
    asks = run("r1", asks=(asked("i-1", "tc-1", expires_at=NOON + timedelta(minutes=2, seconds=5)),))

    assert not found(asks, refused("r2", yes("i-1"), code="INTERRUPT_EXPIRED")) & REFUSALS
    in_time = refused("r2", yes("i-1"), ended_at=NOON + timedelta(minutes=2, seconds=4))
    assert "VALID_RESUME_REFUSED" in found(asks, in_time)


def test_where_nobody_says_when_it_was_sent_nothing_has_expired_and_all_may_have() -> None:
    untold: dict[str, Json] = {"began_at": None, "ended_at": None}

    assert not found(LATE, refused("r2", yes("i-1"), **untold)) & REFUSALS
    assert found(LATE, refused("r2", gives_up("i-1"), **untold)) & REFUSALS == {"VALID_RESUME_REFUSED"}
    assert found(LATE, refused("r2", gives_up("i-1"))) & REFUSALS == {"EXPIRED_CANCEL_REJECTED"}


def test_what_may_have_arrived_before_may_be_refused() -> None:
    assert not found(ASKS, run("r2", Ending.TRUNCATED, yes("i-1")), refused("r3", yes("i-1"))) & REFUSALS


FAILS = run("r2", Ending.ERROR, yes("i-1"))


@pytest.mark.parametrize(
    ("last", "is_found"),
    [
        (run("r3", Ending.ERROR, yes("i-1")), True),
        (run("r3", Ending.ERROR, yes("i-1", "d-other")), False),
        (run("r3", Ending.ERROR, gives_up("i-1")), False),
        (run("r3", Ending.ERROR, yes("i-1"), has_output=True), False),
        (run("r3", Ending.ERROR, yes("i-1"), calls={"tc-9": None}), False),
        (run("r3", Ending.ERROR, yes("i-1"), cause=StopCause.TIME_LIMIT), False),
        (run("r3", Ending.ERROR, yes("i-1"), cause=StopCause.CALLER_ABORT), False),
        (run("r3", Ending.REFUSED, yes("i-1"), http_status=503), False),
        (run("r3", Ending.TRUNCATED, yes("i-1")), False),
    ],
)
def test_the_same_answers_that_fail_a_second_time_before_any_work_are_refused(
    last: RunSeen,
    is_found: bool,
) -> None:
    assert ("VALID_RESUME_REFUSED" in found(ASKS, FAILS, last)) is is_found


def test_between_two_failures_that_are_one_refusal_nothing_got_anywhere() -> None:
    between = run("r3", Ending.SUCCESS, yes("i-1"), asks=ASKS.interrupts)

    assert "VALID_RESUME_REFUSED" not in found(ASKS, FAILS, between, run("r4", Ending.ERROR, yes("i-1")))


# Runs that were counted -----------------------------------------------------------------------------------------------


def test_of_a_run_that_is_asked_for_again_nothing_is_said_twice() -> None:
    ledger = Ledger()
    taken = run("r2", Ending.SUCCESS, yes("i-1"), yes("i-9"), calls={"tc-1": "drop"})
    for each in (ASKS, taken):
        ledger.ended(each)
    before = ledger.threads[THREAD]
    again = taken._replace(ending=Ending.ERROR, cause=StopCause.INPUT_REJECTED)
    ledger.begun(Begun(THREAD, "r2", again.mode, again.input, again.began_at))

    said = [each.name for each in ledger.ended(again).findings]

    assert ledger.threads[THREAD] == before
    assert len(said) == len(set(said))
    assert not set(said) & (REFUSALS | {"UNRECOGNISED_ENTRY_FAILED_RUN", "RESUME_FAILED_STILL_OPEN"})
