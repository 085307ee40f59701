"""By which contract a run is read, and what that makes of versions and nulls."""

import pytest

from stopcause.agui.words import Ending, Level, Mode
from tests.agui.watched import (
    FINISHED,
    OLD_STARTED,
    STARTED,
    TEXT,
    fatal,
    finished,
    names,
    run,
)


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
