"""Inputs of any kind: none raises, and none passes that was not looked at."""

from __future__ import annotations

from typing import Any

import pytest

from stopcause.agui import inputs, interrupts
from stopcause.agui.guard import Check, ResumeGuard
from stopcause.agui.ids import whole
from tests.agui.asking import NOW, asks, given, gives_up, names, paused, says


class Model:
    """As a model of the SDK looks from here."""

    def __init__(self, value: dict[str, Any]) -> None:
        self._value = value

    def model_dump(self, *, mode: str, by_alias: bool, exclude_unset: bool) -> dict[str, Any]:
        assert (mode, by_alias, exclude_unset) == ("json", True, True)
        return self._value


class Broken:
    def model_dump(self, **_: object) -> None:
        raise RuntimeError


def test_a_model_of_the_sdk_is_read_like_its_json() -> None:
    guard = paused(None)
    assert guard.check(Model(given("t1", "r2", says("i-1"))), NOW) == Check(refused=False, findings=())
    guard.sent(Model(given("t1", "r2", says("i-1"))))
    assert "ANSWER_CHANGED" in names(guard.check(given("t1", "r3", gives_up("i-1")), NOW))


def deep(levels: int) -> Any:  # noqa: ANN401 - JSON
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [None, 5, "x", [], {}, {"threadId": "t1"}, {"threadId": 1, "runId": "r"}, Broken(), object(), deep(9_000)],
    ids=str.split("none number text list empty half number-as-id broken object deep"),
)
def test_what_is_no_input_is_refused_and_never_raises(value: object) -> None:
    guard = paused(None)
    assert names(guard.check(value, NOW)) == {"INPUT_UNREADABLE"}
    guard.sent(value)


@pytest.mark.parametrize(
    "payload",
    [deep(9_000), {1: {2}}, float("nan"), 10**5_000, "\ud800", {"approved": object()}, ["x"] * 100_000],
    ids=str.split("deep set nan digits surrogate object long"),
)
def test_a_payload_of_any_kind_is_refused_and_never_raises(payload: object) -> None:
    guard = paused(None)
    entry = {"interruptId": "i-1", "status": "resolved", "payload": payload}
    check = guard.check(given("t1", "r2", entry), NOW)
    assert check.refused
    assert names(check) & {"PAYLOAD_SCHEMA_MISMATCH", "PAYLOAD_TOO_LARGE", "INPUT_UNREADABLE"}


def test_answers_beyond_the_cap_are_never_looked_at_and_never_pass() -> None:
    guard = ResumeGuard()
    guard.saw(asks("t1", "r1", *(f"i-{n}" for n in range(interrupts.MOST))))
    answers = [says(f"i-{n % interrupts.MOST}") for n in range(inputs.MOST)]
    check = guard.check(given("t1", "r2", *answers, {"interruptId": "i-0", "status": "resolved", "payload": 5}), NOW)
    assert check.refused
    assert {"INPUT_TOO_LARGE", "RESUME_DUPLICATE"} <= names(check)


def test_a_moment_without_an_offset_is_utc() -> None:
    guard = ResumeGuard()
    guard.saw(asks("t1", "r1", "i-1", expires_at=NOW))
    assert names(guard.check(given("t1", "r2", says("i-1")), NOW.replace(tzinfo=None))) == {"EXPIRED_ANSWER"}


def test_an_id_that_is_no_unicode_hides_no_payload() -> None:
    guard = ResumeGuard()
    guard.saw(asks("t1", "r1", whole("i\ud800")))
    assert names(guard.check(given("t1", "r2", says("i\ud800", approved="yes")), NOW)) == {"PAYLOAD_SCHEMA_MISMATCH"}
    assert not guard.check(given("t1", "r2", says("i\ud800")), NOW).refused


@pytest.mark.parametrize("resume", [[Model(says("i-1"))], (Model(says("i-1")),), (says("i-1"),)])
def test_models_and_tuples_in_a_dictionary_of_the_hosts_are_answers(resume: object) -> None:
    guard = paused(None)
    value = {**given("t1", "r2"), "resume": resume}
    assert guard.check(value, NOW) == Check(refused=False, findings=())
    guard.sent(value)
    assert not guard.thread("t1").open()
