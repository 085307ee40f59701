from __future__ import annotations

import json
import sqlite3
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stopcause.agui import findings, guard_rows, guard_state
from stopcause.agui.guard import ResumeGuard
from stopcause.agui.guard_rows import read_thread, write_thread
from stopcause.agui.guard_state import GuardState, StateError
from stopcause.agui.values import Entry, Interrupt, Raised, Result, Thread
from stopcause.agui.words import Channel, State
from stopcause.receipts.vocabulary import ApprovalKind
from tests.agui import asking
from tests.support.laws import tried_on

TEXTS = st.text(st.characters(), min_size=1, max_size=12) | st.just("i\udc00")
TIMES = st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
JSON = st.recursive(st.none() | st.booleans() | st.integers() | TEXTS, lambda inner: st.dictionaries(TEXTS, inner))
ENTRIES = st.builds(Entry, TEXTS, TEXTS, TEXTS, st.booleans(), st.none() | st.booleans(), st.none() | st.booleans())
INTERRUPTS = st.builds(
    Interrupt,
    id=TEXTS,
    kind=st.sampled_from(ApprovalKind),
    channel=st.sampled_from(Channel),
    tool_call_id=st.none() | TEXTS,
    expires_at=st.none() | TIMES,
    due=st.none() | TIMES,
    due_in_s=st.none() | st.floats(0, 1e9),
    is_expiry_unreadable=st.booleans(),
    schema=JSON,
)
RAISED = st.builds(Raised, TEXTS, INTERRUPTS, st.sampled_from(State), st.none() | ENTRIES, st.none() | TEXTS)
THREADS = st.builds(
    Thread,
    id=TEXTS,
    paused_run=st.none() | TEXTS,
    raised=st.lists(RAISED, max_size=4).map(tuple),
    results=st.lists(st.builds(Result, TEXTS, st.none() | TEXTS, st.booleans()), max_size=3).map(tuple),
    same_set=st.integers(0, 9),
    refusals=st.tuples(st.integers(0, 9), TEXTS),
    runs=st.lists(TEXTS, max_size=3).map(tuple),
)


@given(THREADS)
@tried_on(300)
def test_a_thread_reads_back_as_it_was_written(thread: Thread) -> None:
    assert read_thread(write_thread(thread)) == thread


@given(THREADS, TEXTS, JSON)
@tried_on(100)
def test_fields_of_a_later_version_are_passed_over(thread: Thread, name: str, value: Any) -> None:  # noqa: ANN401
    written = json.loads(write_thread(thread))
    written[f"later {name}"] = value
    for raised in written.get("raised", ()):
        raised[f"later {name}"] = value
        raised["interrupt"][f"later {name}"] = value
    assert read_thread(json.dumps(written).encode()) == thread


@given(st.lists(THREADS, min_size=1, max_size=4))
@tried_on(60)
def test_a_state_gives_back_the_last_that_it_was_given(threads: list[Thread]) -> None:
    state = GuardState(None)
    last: dict[str, Thread] = {}
    for thread in threads:
        keep(state, thread)
        if thread.raised or thread.id in last:
            last[thread.id] = thread
    assert {each: state.thread(each) for each in last} == last


def raised(thread_id: str, state: State = State.OPEN, interrupt_id: str = "i-1") -> Thread:
    interrupt = Interrupt(interrupt_id, ApprovalKind.TOOL_CALL)
    return Thread(thread_id, "r1", (Raised("r1", interrupt, state),))


def keep(state: GuardState, thread: Thread) -> None:
    state.change(thread.id, lambda _: thread)


def test_a_thread_that_never_asked_makes_no_row() -> None:
    state = GuardState(None)
    keep(state, Thread("t1", runs=("r1",)))
    assert state.thread("t1") == Thread("t1")


def test_what_a_step_raises_undoes_it(tmp_path: Path) -> None:
    state = GuardState(tmp_path / "guard.db")
    keep(state, raised("t1"))

    def step(_: Thread) -> Thread:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        state.change("t1", step)
    keep(state, raised("t1", State.CLOSED))
    assert state.thread("t1") == raised("t1", State.CLOSED)


def test_an_id_is_known_elsewhere_only_where_another_thread_asked() -> None:
    state = GuardState(None)
    keep(state, raised("t1"))
    assert state.is_known_elsewhere("i-1", "t2")
    assert not state.is_known_elsewhere("i-1", "t1")
    keep(state, raised("t1", interrupt_id="i-2"))
    assert not state.is_known_elsewhere("i-1", "t2")


# What is kept, and for how long ---------------------------------------------------------------------------------------


def test_settled_threads_go_after_thirty_days_and_open_ones_never(monkeypatch: pytest.MonkeyPatch) -> None:
    state = GuardState(None)
    keep(state, raised("settled", State.CLOSED, "i-settled"))
    for each in (State.OPEN, State.SENT, State.UNKNOWN, State.LOST):
        keep(state, raised(f"is {each}", each))
    later = time.time() + timedelta(days=31).total_seconds()
    monkeypatch.setattr("stopcause.agui.guard_state.time.time", lambda: later)
    keep(state, raised("new"))
    assert state.thread("settled") == Thread("settled")
    assert not state.is_known_elsewhere("i-settled", "x")
    assert all(state.thread(f"is {each}").raised for each in (State.OPEN, State.SENT, State.UNKNOWN, State.LOST))


def test_of_too_many_settled_threads_the_oldest_go_and_open_ones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_state, "_MOST_SETTLED", 5)
    monkeypatch.setattr(guard_state, "_COUNTED_EACH", 1)
    clock = iter(range(1_000_000, 2_000_000))
    monkeypatch.setattr("stopcause.agui.guard_state.time.time", lambda: next(clock))
    state = GuardState(None)
    for number in range(10):
        keep(state, raised(f"open {number}"))
        keep(state, raised(f"settled {number}", State.CLOSED, f"s-{number}"))
    assert [number for number in range(10) if state.thread(f"settled {number}").raised] == [5, 6, 7, 8, 9]
    assert all(state.thread(f"open {number}").raised for number in range(10))
    assert not state.is_known_elsewhere("s-0", "x")


# Files in trouble -----------------------------------------------------------------------------------------------------


def test_a_file_of_another_version_is_neither_read_nor_changed(tmp_path: Path) -> None:
    path = tmp_path / "guard.db"
    keep(GuardState(path), raised("t1"))
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 2")
    db.close()
    with pytest.raises(StateError, match="another version") as caught:
        GuardState(path).thread("t1")
    assert caught.value.word == "newer_version"


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE thread (id)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StateError):
        keep(GuardState(path), raised("t1"))
    assert path.read_bytes() == before


def test_a_row_that_does_not_parse_is_damage_though_its_seal_is_right(tmp_path: Path) -> None:
    path = tmp_path / "guard.db"
    keep(GuardState(path), raised("t1"))
    body = b'{"id":"t1","raised":[{"run_id":"r1","interrupt":{"id":"i-1","kind":"no such kind"}}]}'
    with sqlite3.connect(path) as db:
        at = db.execute("SELECT at FROM thread").fetchone()[0]
        db.execute("UPDATE thread SET body = ?, seal = ?", (body, guard_rows.seal_of(b"t1", body, 1, at)))
    db.close()
    with pytest.raises(StateError) as caught:
        GuardState(path).thread("t1")
    assert caught.value.word == "damaged"


def spoil(path: Path, thread_id: str) -> None:
    """Another body of the same length, as a disk makes it that loses bits."""
    with sqlite3.connect(path) as db:
        (body,) = db.execute("SELECT body FROM thread WHERE id = ?", (thread_id.encode(),)).fetchone()
        db.execute("UPDATE thread SET body = ? WHERE id = ?", (body.replace(b"i-1", b"i-2"), thread_id.encode()))
    db.close()


def test_one_spoilt_row_makes_the_file_one_that_nobody_trusts(tmp_path: Path) -> None:
    path = tmp_path / "guard.db"
    state = GuardState(path)
    keep(state, raised("t1"))
    keep(state, raised("t2"))
    spoil(path, "t1")
    assert state.thread("t2") == raised("t2")  # it was opened when all was well
    with pytest.raises(StateError, match="damaged"):
        state.thread("t1")
    with pytest.raises(StateError, match="damaged"):
        GuardState(path).thread("t2")


def test_what_is_kept_waits_for_the_disk(tmp_path: Path) -> None:
    with GuardState(tmp_path / "guard.db")._use() as db:
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file with a hundred paused threads."""
    path = tmp_path_factory.mktemp("guard") / "guard.db"
    guard = ResumeGuard(path)
    for number in range(100):
        guard.saw(asking.asks(f"t{number}", "r1", f"i-{number}"))
    return path.read_bytes()


def is_safe(path: Path, content: bytes) -> bool:
    """Whether a guard on this file still refuses to pass over what is open, and leaves a file that it refuses."""
    path.write_bytes(content)
    check = ResumeGuard(path).check(asking.given("t42", "r2"), asking.NOW)
    is_trouble = "GUARD_STATE_UNREADABLE" in findings.names(check.findings)
    return check.refused and (not is_trouble or path.read_bytes() == content)


KEPT = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@given(st.data())
@tried_on(300, parent=KEPT)
def test_flipped_bits_are_never_accepted_in_silence(tmp_path: Path, image: bytes, data: st.DataObject) -> None:
    content = bytearray(image)
    places = st.integers(0, len(image) - 1) | st.integers(0, 4096)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(places)] ^= 1 << data.draw(st.integers(0, 7))
    assert is_safe(tmp_path / "guard.db", bytes(content))


def test_an_id_that_is_spelt_otherwise_anywhere_in_the_file_is_not_one_that_is_not_known(
    tmp_path: Path, image: bytes
) -> None:
    places = [place for place in range(len(image)) if image.startswith(b"t42", place)]
    assert len(places) >= 4  # in its row, in the index of ids, and beside its interrupt
    for place in places:
        content = bytearray(image)
        content[place + 2] ^= 1
        assert is_safe(tmp_path / f"{place}.db", bytes(content))


@given(st.data())
@tried_on(100, parent=KEPT)
def test_a_file_that_is_cut_off_is_never_accepted_in_silence(tmp_path: Path, image: bytes, data: st.DataObject) -> None:
    length = data.draw(st.integers(0, len(image) - 1) | st.sampled_from(range(0, len(image), 4096)))
    assert is_safe(tmp_path / "guard.db", image[:length])


def test_what_was_kept_is_in_the_file_itself_and_no_log_has_to_survive(tmp_path: Path) -> None:
    path = tmp_path / "guard.db"
    state = GuardState(path)
    for number in range(20):
        keep(state, raised(f"t{number}"))
    copy = tmp_path / "copy.db"
    copy.write_bytes(path.read_bytes())  # as after a crash that took the log
    assert all(GuardState(copy).thread(f"t{number}").raised for number in range(20))
