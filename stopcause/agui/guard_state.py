"""The guard's own file: one row for each thread, in SQLite. What is in it never leaves it.

    GuardState(path).change(thread_id, step)   read, step, write: one transaction, durable when it returns

Several processes may have it open at once. A file that cannot be trusted is never repaired and never written anew: it
stays where it is, and every use of it is a `StateError` that says what to do. Whether it can be trusted is looked at
when it is opened: its structure, and the seal of every row, so that a flipped bit is no thread that waits for nothing.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from stopcause.agui.guard_rows import Row, key_of, row_of
from stopcause.agui.values import Thread

_VERSION = 1
_APPLICATION = 0x5354_4F50  # "STOP"
_BUSY_S = 5.0
_KEPT_S = 30 * 86_400  # a settled thread
_MOST_SETTLED = 100_000
_COUNTED_EACH = 256  # writes: counting rows takes a while

_TABLES = """
CREATE TABLE thread (
    id BLOB PRIMARY KEY NOT NULL, body BLOB NOT NULL, seal BLOB NOT NULL, is_open INTEGER NOT NULL, at INTEGER NOT NULL
);
CREATE INDEX thread_by_age ON thread (is_open, at);
CREATE TABLE raised (interrupt BLOB NOT NULL, thread BLOB NOT NULL, PRIMARY KEY (interrupt, thread)) WITHOUT ROWID;
CREATE INDEX raised_by_thread ON raised (thread);
CREATE TRIGGER forgotten AFTER DELETE ON thread BEGIN DELETE FROM raised WHERE thread = OLD.id; END;
"""
_COLUMNS = ", ".join(Row._fields)


class StateError(Exception):
    """The file cannot be used. `word` says why, for a finding; the message says where, and what to do."""

    def __init__(self, word: str, path: Path | None) -> None:
        super().__init__(f"{path}: {_REASONS[word]}")
        self.word = word


_KEPT = "It is left as it is. Move it away, and the guard begins anew, knowing of no question that is open."
_REASONS = {
    "damaged": f"the guard's file is empty, broken off, damaged, or none of its files. {_KEPT}",
    "newer_version": "the guard's file was written by another version of stopcause. Use that version, or another path.",
    "busy": f"another process has kept the guard's file for more than {_BUSY_S:g} s. Try again.",
    "no_access": "the guard's file cannot be read or written: look at the folder, its owner, and the disk.",
    "forgot": "a run of this thread could not be kept: what it waits for is not known. Start the program anew.",
    "replaced": "the guard's file was moved or replaced while it was in use. Start the program anew.",
}

_WORDS = {
    sqlite3.SQLITE_BUSY: "busy",
    sqlite3.SQLITE_LOCKED: "busy",
    sqlite3.SQLITE_PERM: "no_access",
    sqlite3.SQLITE_READONLY: "no_access",
    sqlite3.SQLITE_IOERR: "no_access",
    sqlite3.SQLITE_FULL: "no_access",
    sqlite3.SQLITE_CANTOPEN: "no_access",
}


class GuardState:
    """Threads by id. All methods may be called from any thread, and after a fork; each may raise `StateError`.

    Args:
        path: The file; made where there is none. None: memory.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None
        self._opened: tuple[int, object] | None = None  # the process, and which file it was
        self._inherited: list[sqlite3.Connection] = []  # of the process before a fork: closing one would touch its file
        self._writes = 0

    def thread(self, thread_id: str) -> Thread:
        """What is known of a thread; an empty one where nothing is."""
        with self._use() as db:
            return self._read(db, thread_id) or Thread(thread_id)

    def is_known_elsewhere(self, interrupt_id: str, thread_id: str) -> bool:
        """Whether another thread than this one asks or asked by that id."""
        with self._use() as db:
            sql = "SELECT 1 FROM raised WHERE interrupt = ? AND thread <> ? LIMIT 1"
            return db.execute(sql, (key_of(interrupt_id), key_of(thread_id))).fetchone() is not None

    def change(self, thread_id: str, step: Callable[[Thread], Thread]) -> None:
        """A step of a thread, with nobody else's in between. What `step` raises undoes it."""
        with self._use() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                before = self._read(db, thread_id)
                after = step(before or Thread(thread_id))
                if after != before and (before is not None or after.raised):  # a thread that never asked is no news
                    self._write(db, after)
                db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
                raise

    def _read(self, db: sqlite3.Connection, thread_id: str) -> Thread | None:
        sql = f"SELECT {_COLUMNS} FROM thread WHERE id = ?"  # noqa: S608 - names of ours
        row = db.execute(sql, (key_of(thread_id),)).fetchone()
        try:
            return None if row is None else Row(*row).thread()
        except (ValueError, TypeError, KeyError, RecursionError):
            raise StateError("damaged", self.path) from None

    def _write(self, db: sqlite3.Connection, thread: Thread) -> None:
        row = row_of(thread, int(time.time()))
        db.execute("DELETE FROM thread WHERE id = ?", (row.id,))
        db.execute(f"INSERT INTO thread ({_COLUMNS}) VALUES (?, ?, ?, ?, ?)", row)  # noqa: S608 - names of ours
        interrupts = {(key_of(each.interrupt.id), row.id) for each in thread.raised}
        db.executemany("INSERT INTO raised (interrupt, thread) VALUES (?, ?)", interrupts)
        self._forget(db, row.at)

    def _forget(self, db: sqlite3.Connection, now: int) -> None:
        """Settled threads that are old or too many; one that waits stays for as long as it waits."""
        db.execute("DELETE FROM thread WHERE is_open = 0 AND at < ?", (now - _KEPT_S,))
        self._writes += 1
        if self._writes % _COUNTED_EACH == 0:
            settled = "SELECT rowid FROM thread WHERE is_open = 0 ORDER BY at DESC LIMIT -1 OFFSET ?"
            db.execute(f"DELETE FROM thread WHERE rowid IN ({settled})", (_MOST_SETTLED,))  # noqa: S608 - ours

    @contextlib.contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connection()
            except sqlite3.Error as error:
                code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
                raise StateError(_WORDS.get(code & 0xFF, "damaged"), self.path) from None
            except OSError:
                raise StateError("no_access", self.path) from None

    def _connection(self) -> sqlite3.Connection:
        if self._db is None:
            return self._open()
        if self.path is None:
            return self._db
        process, file = self._opened or (0, None)
        if process != os.getpid():
            self._inherited.append(self._db)
            return self._open()
        if file != _identity(self.path):
            raise StateError("replaced", self.path)
        return self._db

    def _open(self) -> sqlite3.Connection:
        if self.path is None:
            self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            self._db.executescript(_TABLES)
            return self._db
        if not self.path.exists():
            _make(self.path)
        self._db = None
        db = _connect(self.path)
        try:
            _verify(db, self.path)
        except BaseException:
            db.close()
            raise
        self._db, self._opened = db, (os.getpid(), _identity(self.path))
        return db


def _identity(path: Path) -> object:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _connect(path: Path) -> sqlite3.Connection:
    """Each commit is on the disk, and in the file itself: a log that is lost takes nothing with it."""
    name = f"{path.absolute().as_uri()}?mode=rw"
    db = sqlite3.connect(name, uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA wal_autocheckpoint = 1")
    return db


def _make(path: Path) -> None:
    """Made beside and linked into place: of two processes that start at once one is first, and no file is half made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute(f"PRAGMA application_id = {_APPLICATION}")
            db.executescript(_TABLES)
            db.execute(f"PRAGMA user_version = {_VERSION}")
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        _sync_folder(path.parent)
    finally:
        draft.unlink()


def _sync_folder(folder: Path) -> None:
    """The name of a new file is on the disk too; where folders cannot be opened, the system sees to it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _verify(db: sqlite3.Connection, path: Path) -> None:
    if db.execute("PRAGMA application_id").fetchone() != (_APPLICATION,):
        raise StateError("damaged", path)
    if db.execute("PRAGMA user_version").fetchone() != (_VERSION,):
        raise StateError("newer_version", path)
    if db.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
        raise StateError("damaged", path)
    rows = db.execute(f"SELECT {_COLUMNS} FROM thread")  # noqa: S608 - names of ours
    if not all(Row(*row).is_sealed() for row in rows):
        raise StateError("damaged", path)
