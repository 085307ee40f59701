"""Free SQL, in a process of its own that reads only, is shut off and limited, and is killed when its time is over.

The engine's own settings are no fence: a single function call passes its memory limit and its time limit. So the query
runs in `sandbox_child`, under limits of the system, and this side keeps the deadline, counts what comes back and
believes none of it. While it runs the store's lock is the caller's: nobody writes in the meantime.
Not here: what the answer looks like (`render.sql`), and the words about columns (`meanings`).
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from stopcause.errors import QueryError, QueryStoppedError, StoreError
from stopcause.store.meanings import TABLES

MEMORY_MB = 768
MOST_SECONDS = 300
_MOST_QUERY = 1_000_000  # letters
_MOST_BYTES = 32 * 1024 * 1024  # of an answer
_CHUNK = 64 * 1024
_MOST_SAID = 300  # letters of what the engine says
_PROGRAM = Path(__file__).with_name("sandbox_child.py")
_READS = "takes one SELECT, EXPLAIN, DESCRIBE, SHOW or SUMMARIZE, and changes nothing"
_CLOSED = re.compile(
    "disabled (by|through) configuration|configuration has been locked|read-only mode|requires the extension"
    "|exists in the .* extension|belongs to an attached database"
)


class Limits(NamedTuple):
    """What a query may take: seconds by the clock, from its start on, and rows."""

    timeout_s: float = 10
    rows: int = 1000


class Found(NamedTuple):
    """An answer. `more`: there are more rows than these, by the limit of rows or because the answer got too large."""

    names: list[str]
    types: list[str]
    rows: list[list[Any]]
    more: bool


def ask(store: Path, query: str, limits: Limits) -> Found:
    """Runs one reading statement on a store that is settled and at rest.

    Args:
        store: The database file; it must exist, no engine may have it open (`DuckStore.close_engine`), and its lock is
            the caller's.
        query: The SQL. It is not trusted.
        limits: When to stop it.

    Raises:
        StoreError: The store cannot be read.
        QueryError: It is not one reading statement, or the engine does not take it; says where and what is near.
        QueryStoppedError: It took too long, or too much memory.
    """
    if len(query) > _MOST_QUERY:
        raise QueryError(f"the SQL is {len(query)} letters long; at most {_MOST_QUERY} are taken.")
    deadline = time.monotonic() + limits.timeout_s
    orders = {
        "store": str(store.absolute()),
        "query": query,
        "most": limits.rows,
        "timeout_s": limits.timeout_s,
        "memory_mb": MEMORY_MB,
        "packages": _packages(),
    }
    reader = _Reader(store, query, limits)
    with _child() as child:
        _order(child, json.dumps(orders).encode() + b"\n")
        for line in _lines(child, deadline, limits):
            if reader.take(line):
                return reader.found()
    raise _broken(child.returncode)


@contextlib.contextmanager
def _child() -> Iterator[subprocess.Popen[bytes]]:
    """The process, in a group of its own; whatever happens, all of the group is gone in the end."""
    environment = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}  # Python may need it
    child = subprocess.Popen(  # noqa: S603 - our own program, and the SQL is no argument of it
        (sys.executable, "-I", "-S", str(_PROGRAM)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd="/",
        start_new_session=True,
        bufsize=0,
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        for stream in (child.stdin, child.stdout):
            if stream:
                stream.close()
        child.wait()


def _order(child: subprocess.Popen[bytes], orders: bytes) -> None:
    """Hands the orders over; stdin stays open, because its end is the child's end."""
    if child.stdin is None:
        raise StoreError("A process for the query cannot be started.")
    with contextlib.suppress(BrokenPipeError):  # it is gone: the end of its answer tells
        left = memoryview(orders)
        while left:
            left = left[os.write(child.stdin.fileno(), left) :]


def _packages() -> list[str]:
    """Where the engine is: the child has no site packages."""
    found = importlib.util.find_spec("duckdb")
    return [str(Path(found.origin).parents[1])] if found and found.origin else []


def _lines(child: subprocess.Popen[bytes], deadline: float, limits: Limits) -> Iterator[bytes]:
    """What the child says, line by line, until its end, the deadline, or too many bytes."""
    if child.stdout is None:
        return
    held, total, fd = bytearray(), 0, child.stdout.fileno()
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        while total <= _MOST_BYTES:
            left = deadline - time.monotonic()
            if left <= 0 or not selector.select(left):
                raise _late(limits.timeout_s)
            chunk = os.read(fd, _CHUNK)
            if not chunk:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(1)
                return
            total += len(chunk)
            held += chunk
            if b"\n" in chunk:
                *lines, held = held.split(b"\n")
                yield from map(bytes, lines)
    yield b'{"more":true}'


class _Reader:
    """Puts an answer together out of lines, and takes no more than was asked for."""

    def __init__(self, store: Path, query: str, limits: Limits) -> None:
        self._store, self._query, self._limits = store, query, limits
        self._columns: list[list[str]] = []
        self._rows: list[list[Any]] = []
        self._is_open = self._more = False

    def found(self) -> Found:
        names, types = ([column[i] for column in self._columns] for i in (0, 1))
        return Found(names, types, self._rows, self._more)

    def take(self, line: bytes) -> bool:
        """Takes one line; whether the answer is complete."""
        try:
            said = json.loads(line)
        except ValueError:
            raise _broken(None) from None
        if isinstance(said, list):
            return self._take_row(said)
        if "ready" in said:
            self._is_open = True
        elif "columns" in said:
            self._columns = [[str(name), str(kind)] for name, kind in said["columns"]]
        elif "more" in said:
            self._more = bool(said["more"])
            return True
        else:
            raise self._fault(said)
        return False

    def _take_row(self, row: list[Any]) -> bool:
        if len(row) != len(self._columns):
            raise _broken(None)
        self._more = len(self._rows) >= self._limits.rows
        if not self._more:
            self._rows.append(row)
        return self._more

    def _fault(self, said: dict[str, Any]) -> StoreError | QueryError:
        if refused := said.get("refused"):
            return _refused(str(refused))
        error = said.get("error")
        told = {str(key): str(value) for key, value in error.items()} if isinstance(error, dict) else {}
        if self._is_open or told.get("exception_type") == "Out of Memory":
            return _fault(told, self._query, self._limits)
        return StoreError(
            f"{self._store}: the engine cannot open it to read ({told.get('exception_type', 'no reason given')}). "
            "See what `doctor` says about it."
        )


# What is said ---------------------------------------------------------------------------------------------------------


def _refused(kind: str) -> QueryError:
    if kind == "nothing":
        return QueryError("there is no SQL in it. `sql .examples` has some.")
    if kind == "PIVOT":
        return QueryError("PIVOT has to name its values here: PIVOT runs ON verdict IN ('STUCK') USING count(*)")
    return QueryError(f"sql {_READS}; this is {_printable(kind)}.")


def _fault(told: dict[str, str], query: str, limits: Limits) -> QueryError:
    """An error of the engine in one or two plain lines."""
    kind, said = told.get("exception_type", ""), told.get("exception_message", "")
    if kind == "INTERRUPT":
        return _late(limits.timeout_s)
    if kind == "Out of Memory":
        return QueryStoppedError(
            f"the query needs more memory than it gets ({MEMORY_MB} MB). Ask for less: fewer columns, a filter on "
            "`hour` or `opened_at`, count or sum in place of rows."
        )
    if _CLOSED.search(said):
        return QueryError(
            "sql reads this store only: no files, no network, no other databases, no settings, no writes."
        )
    first = _printable(said.split("\n", 1)[0]).rstrip(".!") or "the engine gave no reason"
    return QueryError(f"{first}{_place(told.get('position'), query)}.{_near(told)}")


def _place(position: str | None, query: str) -> str:
    """Where in the text: the engine counts bytes, people count lines and letters."""
    if position is None or not position.isdigit():
        return ""
    before = query.encode()[: int(position)].decode(errors="ignore")
    line, letter = before.count("\n") + 1, len(before) - before.rfind("\n")
    return f" (line {line}, letter {letter})" if "\n" in query.strip() else f" (letter {letter})"


def _near(told: dict[str, str]) -> str:
    """Names that were perhaps meant, and where all of them are."""
    if told.get("error_subtype") not in ("COLUMN_NOT_FOUND", "MISSING_ENTRY"):
        return ""
    near = [_printable(name) for name in told.get("candidates", "").split(",") if name]
    if told.get("type") == "Table":  # the engine also offers tables of its own
        near = difflib.get_close_matches(told.get("name", ""), TABLES, n=2)
    meant = f" Near: {', '.join(near[:4])}." if near else ""
    return meant if told.get("type") == "Scalar Function" else f"{meant} All names: sql .schema"


def _late(timeout_s: float) -> QueryStoppedError:
    return QueryStoppedError(
        f"the query was stopped after {timeout_s:g} s. Ask for less, for example a filter on `hour` or `opened_at`, or "
        f"give it longer: --timeout 1m (at most {MOST_SECONDS // 60}m)."
    )


def _broken(code: int | None) -> QueryStoppedError:
    """The process ended without an answer: a limit of the system, or a fault of the engine."""
    how = f"signal {-code}" if code is not None and code < 0 else f"exit {code}" if code else "no answer"
    return QueryStoppedError(
        f"the query ended the process that ran it ({how}), most often because it took too much memory. Nothing else is "
        "harmed. Ask for less."
    )


def _printable(text: str) -> str:
    """Words of the engine, which quote the query: no letter in them moves a terminal's cursor."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    return shown if len(shown) <= _MOST_SAID else shown[: _MOST_SAID - 1] + "…"
