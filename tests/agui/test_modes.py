"""By which contract a run is read, and what that makes of versions and nulls."""

import pytest

from stopcause.agui.values import Json
from stopcause.agui.words import Ending, Level, Mode
from tests.agui.watched import FINISHED, OLD_STARTED, STARTED, TEXT, custom, fatal, finished, names, run, said


@pytest.mark.parametrize(
    ("version", "warns"),
    [("1.0", False), ("1.1", False), ("1.10", True), ("2.0", True), ("latest", True), ("", True)],
)
def test_a_declared_version_is_the_specification(version: str, warns: bool) -> None:
    seen = run([{**STARTED, "protocolVersion": version}, FINISHED])
    assert (seen.mode, "VERSION_UNREADABLE" in names(seen), fatal(seen)) == (Mode.SPEC, warns, set())


def test_without_a_version_the_contract_before_holds_and_is_only_noted() -> None:
    seen = run([OLD_STARTED, FINISHED])
    assert seen.mode is Mode.LEGACY_OUTCOME
    assert [(each.name, each.level) for each in seen.findings] == [("NO_VERSION", Level.NOTE)]


def test_a_null_is_fatal_since_the_specification_and_a_note_before() -> None:
    body = [{**TEXT[0], "name": None}, TEXT[2], FINISHED]
    new, old = run([STARTED, *body]), run([OLD_STARTED, *body])
    assert (new.ending, fatal(new)) == (Ending.REJECTED, {"NULL_FIELD"})
    (null,) = (each for each in old.findings if each.name == "NULL_FIELD")
    assert (old.ending, null.level, null.fatal) == (Ending.SUCCESS, Level.NOTE, False)


def test_a_null_that_older_sdks_wrote_is_nothing() -> None:
    seen = run([STARTED, finished(result=None) | {"outcome": None}])
    assert (seen.ending, [(each.name, each.level) for each in seen.findings]) == (
        Ending.SUCCESS,
        [("OLD_NULL", Level.NOTE)],
    )


OF_QUESTIONS = {"INTERRUPT_AS_SUCCESS", "LEGACY_INTERRUPT"}
ASKS_OLD = [custom({"question": "may I?"}), FINISHED]
OLD_REASONING = [{"type": "REASONING_MESSAGE_START", "messageId": "m1", "role": "assistant"}]


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("started", [STARTED, OLD_STARTED])
def test_a_contract_that_somebody_chose_counts_in_place_of_what_is_declared(started: Json, mode: Mode) -> None:
    assert [each.mode for each in said([started, FINISHED], mode=mode)] == [mode, mode]
    assert run([started, *ASKS_OLD], mode=mode).mode is mode


@pytest.mark.parametrize("started", [STARTED, OLD_STARTED])
def test_a_question_beside_an_ordinary_finish_is_judged_by_it(started: Json) -> None:
    new, old = (run([started, *ASKS_OLD], mode=mode) for mode in (Mode.SPEC, Mode.LEGACY_CUSTOM))
    assert names(new) & OF_QUESTIONS == {"INTERRUPT_AS_SUCCESS"}
    assert names(old) & OF_QUESTIONS == {"LEGACY_INTERRUPT"}
    assert new.ending is old.ending is Ending.INTERRUPT


@pytest.mark.parametrize("started", [STARTED, OLD_STARTED])
def test_what_is_fatal_since_the_specification_is_so_where_it_was_chosen(started: Json) -> None:
    body = [{**TEXT[0], "name": None}, TEXT[2], *OLD_REASONING]
    new, old = (run([started, *body, FINISHED], mode=mode) for mode in (Mode.SPEC, Mode.LEGACY_OUTCOME))
    assert fatal(new) >= {"NULL_FIELD", "MALFORMED"}
    assert not fatal(old) & {"NULL_FIELD", "MALFORMED"}


def test_what_a_stream_declares_is_told_whatever_was_chosen() -> None:
    assert "NO_VERSION" in names(run([OLD_STARTED, FINISHED], mode=Mode.SPEC))
    assert run([STARTED, FINISHED], mode=Mode.LEGACY_OUTCOME).protocol_version == "1.0"
