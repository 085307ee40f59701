"""A guard whose file cannot be used, or does not take everything: it refuses, and forgets nothing in silence."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from stopcause.agui.guard import ResumeGuard
from stopcause.errors import ConfigurationError, ResumeRefusedError
from tests.agui.asking import NOW, asks, given, gives_up, names, paused, says


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "guard.db"


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"SQLite format 3\x00", bytes(range(256)) * 32], ids=["empty", "json", "head", "bytes"]
)
def test_a_file_that_is_none_is_refused_and_left_as_it_is(
    path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_bytes(content)
    guard = paused(path)
    check = guard.check(given("t9", "r1"), NOW)
    assert check.refused
    assert names(check) == {"GUARD_STATE_UNREADABLE"}
    assert path.read_bytes() == content
    assert [record.message for record in caplog.records if "Move it away" in record.message]


def test_trouble_is_logged_once(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_bytes(b"no database")
    guard = ResumeGuard(path)
    for _ in range(5):
        guard.check(given("t1", "r1"), NOW)
    assert len(caplog.records) == 1
    assert caplog.records[0].levelno == logging.ERROR


def test_nothing_is_sent_that_cannot_be_kept(path: Path) -> None:
    path.write_bytes(b"")
    with pytest.raises(ResumeRefusedError) as caught:
        ResumeGuard(path).sent(given("t1", "r1", says("i-1")))
    assert [each.name for each in caught.value.findings] == ["GUARD_STATE_UNREADABLE"]


def test_a_host_may_choose_to_go_on_and_is_told_each_time(path: Path) -> None:
    path.write_bytes(b"")
    guard = ResumeGuard(path, on_unreadable="allow")
    first = guard.check(given("t1", "r1"), NOW)
    assert not first.refused
    assert names(first) == {"GUARD_STATE_UNREADABLE"}
    guard.saw(asks("t1", "r1", "i-1"))
    assert names(guard.check(given("t1", "r2"), NOW)) == {"GUARD_STATE_UNREADABLE", "SILENT_CONTINUE"}
    guard.sent(given("t1", "r2", says("i-1")))
    assert "ANSWER_CHANGED" in names(guard.check(given("t1", "r3", gives_up("i-1")), NOW))


def test_another_word_for_what_to_do_without_the_file_is_an_error_at_once() -> None:
    with pytest.raises(ConfigurationError, match="on_unreadable must be 'refuse' or 'allow', not 'ignore'"):
        ResumeGuard(on_unreadable="ignore")  # type: ignore[arg-type]  # what a reader may write


def test_what_was_seen_while_the_file_was_in_trouble_is_kept_once_it_is_well(path: Path) -> None:
    path.mkdir()
    guard = paused(path)
    assert names(guard.check(given("t1", "r2"), NOW)) == {"GUARD_STATE_UNREADABLE"}
    path.rmdir()
    assert names(guard.check(given("t1", "r2"), NOW)) == {"SILENT_CONTINUE"}
    assert ResumeGuard(path).check(given("t1", "r2"), NOW).refused


def test_more_than_can_wait_for_a_file_is_not_forgotten_in_silence(path: Path) -> None:
    path.mkdir()
    guard = ResumeGuard(path)
    for number in range(1_001):
        guard.saw(asks(f"t{number}", "r1", "i-1"))
    path.rmdir()
    check = guard.check(given("t0", "r2"), NOW)
    assert [(each.name, each.ids) for each in check.findings] == [("GUARD_STATE_UNREADABLE", ("forgot",))]
    assert names(guard.check(given("t1", "r2"), NOW)) == {"SILENT_CONTINUE"}


def test_a_file_that_goes_away_under_a_guard_is_no_fresh_start(path: Path) -> None:
    guard = paused(path)
    assert guard.check(given("t1", "r2"), NOW).refused
    path.unlink()
    check = guard.check(given("t1", "r2"), NOW)
    assert [(each.name, each.ids) for each in check.findings] == [("GUARD_STATE_UNREADABLE", ("replaced",))]


def test_a_stream_is_never_harmed_and_its_thread_alone_is_not_known_any_more(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    guard = paused(path)
    guard.saw(asks("t2", "r1", "i-1"))
    monkeypatch.setattr("stopcause.agui.ledger.ended", broken)
    guard.saw(asks("t1", "r2", "i-2"))
    monkeypatch.undo()
    assert names(guard.check(given("t1", "r3"), NOW)) == {"GUARD_STATE_UNREADABLE"}
    assert names(guard.check(given("t2", "r3"), NOW)) == {"SILENT_CONTINUE"}
