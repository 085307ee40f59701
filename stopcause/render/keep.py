"""What backup, restore, forget and export say. Their values are handed in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from stopcause.render.caller import path_words
from stopcause.render.pen import Pen, age, count, utc_text

_KB, _MB, _GB = 1e3, 1e6, 1e9


class Copied(NamedTuple):
    """A copy of a store or a part of it: where it is and how large, what is in it, and what its rows say."""

    path: Path
    bytes: int
    records: int
    runs: int
    newest_at: datetime | None
    digest: str | None = None
    taken_at: datetime | None = None


class Leaving(NamedTuple):
    """What forgetting takes and leaves; `done` is None for a preview, else the journal's lines, bytes and segments."""

    before: datetime
    runs: int
    records: int
    first: datetime | None
    last: datetime | None
    waiting: int
    running: int
    unsettled: int
    resuming: int
    copies: Sequence[Path]
    done: tuple[int, int, int] | None = None


class Archived(NamedTuple):
    """An archive: where it is and how large, and what is in it."""

    path: Path
    bytes: int
    files: int
    days: int
    records: int
    verdicts: int
    records_digest: str
    verdicts_digest: str
    resume_tokens: bool
    tokens_taken_out: int


def size(number: int) -> str:
    """`900 B`, `12.3 MB`."""
    for unit, name in ((_GB, "GB"), (_MB, "MB"), (_KB, "kB")):
        if number >= unit:
            return f"{number / unit:.1f} {name}"
    return f"{number} B"


def copied_screen(verb: str, copied: Copied, now: datetime) -> list[str]:
    """What was copied, of how much, and the digest to compare."""
    newest = f", newest {age(now - copied.newest_at)} old" if copied.newest_at else ""
    lines = [
        f"{verb} {path_words(copied.path)} ({size(copied.bytes)}).",
        f"{count(copied.runs, 'run')}, {count(copied.records, 'record')}{newest}.",
    ]
    return lines + ([f"Content digest {copied.digest}."] if copied.digest else [])


def restored_screen(copied: Copied, kept: Sequence[Path], now: datetime, pen: Pen) -> list[str]:
    """The same for a store that is back, and the policies that were left as they are."""
    lines = copied_screen("Restored", copied, now)
    if copied.taken_at:
        lines[0] = f"{lines[0][:-1]}, backed up {pen.time(copied.taken_at)}."
    return lines + [f"{path_words(path)} is not the backup's; it stays as it is." for path in kept]


def copied_object(copied: Copied) -> dict[str, Any]:
    """The same for a pipe."""
    times = {"newest_at": utc_text(copied.newest_at), "taken_at": utc_text(copied.taken_at)}
    found = {**copied._asdict(), "path": str(copied.path), **times}
    return {name: value for name, value in found.items() if value is not None}


def leaving_screen(leaving: Leaving) -> list[str]:
    """What would go, what stays and why."""
    day = f"{leaving.before:%Y-%m-%d}"
    if not leaving.runs or leaving.first is None or leaving.last is None:
        lines = [f"Nothing to forget: no run that is over opened before {day} UTC."]
    else:
        opened = f"opened {leaving.first:%Y-%m-%d}"
        opened += f" to {leaving.last:%Y-%m-%d}" if leaving.last.date() > leaving.first.date() else ""
        lines = [
            f"Before {day} UTC: {count(leaving.runs, 'run')}, {count(leaving.records, 'record')}, {opened}.",
        ]
    stay = (
        (leaving.waiting, "waiting"),
        (leaving.running, "running"),
        (leaving.unsettled, "not settled"),
        (leaving.resuming, "taking up one that stays"),
    )
    if said := ", ".join(f"{number} {what}" for number, what in stay if number):
        lines.append(f"Older, and stay: {said}.")
    if leaving.runs:
        lines += [f"Goes too, as it holds them: {path_words(path)}." for path in leaving.copies]
    return lines


def gone_screen(leaving: Leaving, freed: int) -> list[str]:
    """What went."""
    _, lost, _ = leaving.done or (0, 0, 0)
    room = f"the store's file {size(freed)}" if freed > 0 else "the store's file nothing: new records use its room"
    return [
        f"Forgot {count(leaving.runs, 'run')}, {count(leaving.records, 'record')}.",
        f"The journal lost {size(lost)}, {room}.",
    ]


def leaving_object(leaving: Leaving) -> dict[str, Any]:
    """The same for a pipe."""
    lines, lost, segments = leaving.done or (0, 0, 0)
    stay = {name: getattr(leaving, name) for name in ("waiting", "running", "unsettled", "resuming")}
    return {
        "before": utc_text(leaving.before),
        "runs": leaving.runs,
        "records": leaving.records,
        "first": utc_text(leaving.first),
        "last": utc_text(leaving.last),
        "stay": stay,
        "copies": [str(path) for path in leaving.copies],
        "forgotten": leaving.done is not None,
        "journal": {"lines": lines, "bytes": lost, "segments": segments},
    }


def archived_screen(made: Archived) -> list[str]:
    """Where the archive is, what is in it, and what is not."""
    extent = f"{size(made.bytes)}, {count(made.files, 'file')}, {count(made.days, 'day')}"
    lines = [
        f"Archived in {path_words(made.path)} ({extent}).",
        f"{count(made.records, 'record')}, digest {made.records_digest}",
        f"{count(made.verdicts, 'verdict')}, digest {made.verdicts_digest}",
    ]
    if made.tokens_taken_out:
        lines.append(
            f"{count(made.tokens_taken_out, 'resume token')} left out: where this is taken in, waits lack them."
        )
    return lines


def archived_object(made: Archived) -> dict[str, Any]:
    """The same for a pipe."""
    return {**made._asdict(), "path": str(made.path)}
