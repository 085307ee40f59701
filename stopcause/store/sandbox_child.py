"""The whole program of the process that runs one free query: shut off, limited, and ended with its parent.

It is started by its path, without site packages and environment, and imports nothing of stopcause: what it costs is
what importing the engine costs. Orders come in as one line of JSON on stdin, which stays open for as long as somebody
waits; answers go out as lines of JSON: the columns, a list for each row, then how it ended. All of it is ASCII.
Not here: the deadline (the parent keeps it), and what is said to people (`sandbox`).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import sys
import threading
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

_MEGABYTE = 1024 * 1024
_ADDRESS_SPACE = 1536 * _MEGABYTE  # the engine's own limit does not count what a single function call makes
_FILES = 64
_THREADS = 2
_ROWS = 64  # a fetch
_READING = ("SELECT", "EXPLAIN")  # DESCRIBE, SHOW and SUMMARIZE are a SELECT here
_FOUND = 4  # as an exit code: somebody else is to say what happened


class Refused(Exception):  # noqa: N818 - it is no error of this program
    """A text that is not one reading statement; the words say what it is."""


def main() -> None:
    """Run the query of stdin."""
    orders = json.loads(sys.stdin.buffer.readline())
    sys.path += orders["packages"]
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _limit_process(orders["timeout_s"])
    try:
        _answer(orders)
    except Refused as refused:
        _say({"refused": str(refused)})
    except MemoryError:
        _say({"error": {"exception_type": "Out of Memory"}})
    except RecursionError:
        _say({"error": {"exception_type": "Depth", "exception_message": "a value is nested too deeply to be shown"}})
    except Exception as error:  # noqa: BLE001 - whatever the engine raises is told to who asked
        _say({"error": _told(error)})


def _end_with_parent() -> None:
    """Ends this process, in the middle of whatever, once nobody waits for it any more."""
    while os.read(0, 4096):
        pass
    os._exit(_FOUND)


def _limit_process(timeout_s: float) -> None:
    """What the engine's settings do not hold back. Not the number of processes: it counts all that a user runs."""
    if sys.platform == "linux":  # macOS does not keep to it
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", "ascii")  # where memory runs out, this ends first
        _limit(resource.RLIMIT_AS, _ADDRESS_SPACE)
    _limit(resource.RLIMIT_CPU, math.ceil(timeout_s) * _THREADS + 2)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_NOFILE, _FILES)
    _limit(resource.RLIMIT_CORE, 0)


def _limit(which: int, most: int) -> None:
    hard = resource.getrlimit(which)[1]
    least = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (least, least))


def _answer(orders: dict[str, Any]) -> None:
    import duckdb  # noqa: PLC0415 - after the limits, and from where the parent has it

    connection = duckdb.connect(orders["store"], read_only=True, config=_config(orders))
    for setting in ("enable_external_access = false", "GLOBAL TimeZone = 'UTC'", "lock_configuration = true"):
        connection.execute(f"SET {setting}").fetchall()
    _say({"ready": True})
    cursor = connection.execute(_only_statement(connection, orders["query"]))
    _say({"columns": [[column[0], str(column[1])] for column in cursor.description or ()]})
    _say({"more": _send_rows(cursor, orders["most"])})


def _config(orders: dict[str, Any]) -> dict[str, Any]:
    """No spilling, no extensions, no secrets of this user, no Python objects as tables; errors with their places."""
    return {
        "memory_limit": f"{orders['memory_mb']}MB",
        "max_temp_directory_size": "0B",
        "threads": _THREADS,
        "max_execution_time": math.ceil(orders["timeout_s"] * 1000),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "allow_persistent_secrets": False,
        "python_enable_replacements": False,
        "python_scan_all_frames": False,
        "errors_as_json": True,
    }


def _only_statement(connection: Any, query: str) -> Any:  # noqa: ANN401 - the engine is imported late
    """The one statement of the text. A type alone is no guard (a CTE can insert): the connection reads only."""
    statements = connection.extract_statements(query)
    if len(statements) != 1:
        raise Refused(f"{len(statements)} statements" if statements else "nothing")
    kind = _type_of(statements[0])
    if kind not in _READING:
        raise Refused(kind)
    return statements[0]


def _type_of(statement: Any) -> str:  # noqa: ANN401
    try:
        name = str(statement.type.name)
    except ValueError:  # a type that the engine has and its Python does not know
        return "something else"
    return "PIVOT" if name == "MULTI" else name


def _send_rows(cursor: Any, most: int) -> bool:  # noqa: ANN401
    """Sends at most so many rows; whether there are more."""
    left = most
    while rows := cursor.fetchmany(min(_ROWS, left + 1)):
        for row in rows[:left]:
            _say([_plain(value) for value in row])
        if len(rows) > left:
            return True
        left -= len(rows)
    return False


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever a column holds
    """A value as JSON has it. Times without a zone are UTC in a store; what is no number is a word."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=None).isoformat() + "Z"
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return _word(value)


def _word(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, Decimal):
        return float(value) if value.is_finite() else str(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    return value.hex() if isinstance(value, bytes | bytearray) else str(value)


def _told(error: Exception) -> dict[str, Any]:
    """What the engine says, in its parts: type, message, place, names that are near."""
    text = str(error)
    try:
        told = json.loads(text[text.index("{") :])
    except ValueError:
        told = None
    if isinstance(told, dict):
        return told
    return {"exception_type": type(error).__name__, "exception_message": text[:2000]}


def _say(value: object) -> None:
    data = memoryview(json.dumps(value, separators=(",", ":"), allow_nan=False).encode() + b"\n")
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main()
