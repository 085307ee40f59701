"""What can be seen of a store from outside, whoever owns it: disk, journal, leftovers. Nothing is written."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice, pairwise
from pathlib import Path

from stopcause.errors import StoreError
from stopcause.pipeline.ingest_sources import REJECTED
from stopcause.pipeline.keeper import journal_folder
from stopcause.receipts import codec, journal, model, segments
from stopcause.receipts.segments import Position
from stopcause.render.caller import Hint, path_words
from stopcause.render.doctor import Check, State
from stopcause.render.pen import count
from stopcause.store.lock import lock_path

if sys.platform != "win32":
    import fcntl

_MEGABYTE = 1_000_000
_LITTLE, _TOO_LITTLE = 2000, 200  # megabytes that are free
_TAIL = 4 * 1024 * 1024  # bytes of the journal's end whose lines are read
_LEFT = (".tmp", ".new")
_QUOTED = 3


def megabytes(size: int) -> str:
    """`1.3 MB`, `12 GB`."""
    if size < 1000 * _MEGABYTE:
        return f"{size / _MEGABYTE:.1f} MB"
    return f"{size / _MEGABYTE / 1000:.1f} GB"


def is_there(path: Path) -> bool:
    """Whether there is such a file; one that may not be looked at counts."""
    try:
        path.stat()
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def is_folder(path: Path) -> bool:
    """Whether there is such a folder that this user can look for; where not, the checks of access say so."""
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        return False


def way_out(store: Path) -> str:
    """What to do with a store that cannot be used: its journal makes it anew."""
    words = path_words(store)
    return f"mv {words} {words}.broken" if is_folder(journal_folder(store)) else "Name another: --store PATH"


# The store's file -----------------------------------------------------------------------------------------------------


def check_missing(store: Path) -> Check:
    """A store that is not there: gone, not yet made, or in a place where none can be made."""
    if is_folder(journal_folder(store)):
        said = f"{store.name} is gone; the next command makes it again from the journal"
        return Check("store", State.LOOK, said, Hint(("runs",)))
    folder = _standing(store.parent)
    if not _allowed(folder, os.W_OK | os.X_OK):
        return Check("store", State.BAD, f"is not there, and {folder} may not be written by this user", listed(folder))
    return Check("store", State.LOOK, "is not there yet: nothing has reported to it", Hint(("doctor", "--wait")))


def check_access(store: Path) -> Check | None:
    """What the system would refuse; None where it would not."""
    if not _allowed(store.parent, os.W_OK | os.X_OK):
        return Check("store", State.BAD, f"{store.parent} may not be written by this user", listed(store.parent))
    for path in (store, lock_path(store)):
        if path.exists() and not _allowed(path, os.R_OK | os.W_OK):
            return Check("store", State.BAD, f"{path} may not be read and written by this user", listed(path))
    return None


def _allowed(path: Path, mode: int) -> bool:
    """Whether this process may, as whoever it acts."""
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def listed(path: Path) -> str:
    """A command that shows who may do what with a file or folder, and who asks."""
    return f"ls -ld {path_words(path)}; id"


def has_log(store: Path) -> bool:
    """Whether the engine left a log: its last owner did not close it."""
    log = store.with_name(store.name + ".wal")
    return log.exists() and log.stat().st_size > 0


def lock_is_held(store: Path) -> bool:
    """Whether a process of ours holds the store."""
    return _is_locked(lock_path(store))


def _is_locked(path: Path) -> bool:
    """Whether somebody holds a lock file, by a shared lock for a moment; asked only where a process is named in it."""
    try:
        if not path.read_bytes().strip():
            return False
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


# Disk -----------------------------------------------------------------------------------------------------------------


def check_disk(store: Path, spool: Path) -> Check:
    """Room where store, journal and spool are, each disk once."""
    free: dict[int, tuple[int, list[str]]] = {}
    for name, path in (("store", store.parent), ("journal", journal_folder(store)), ("spool", spool)):
        folder = _standing(path)
        try:
            device, room = folder.stat().st_dev, shutil.disk_usage(folder).free
        except OSError as error:
            return Check("disk", State.BAD, f"{folder}: {error.strerror}", listed(folder))
        free.setdefault(device, (room, []))[1].append(name)
    least = min(room for room, _ in free.values()) / _MEGABYTE
    state = State.BAD if least < _TOO_LITTLE else State.LOOK if least < _LITTLE else State.OK
    said = "; ".join(f"{megabytes(room)} free for {', '.join(names)}" for room, names in free.values())
    do = None if state is State.OK else f"df -h {path_words(_standing(store.parent))} {path_words(_standing(spool))}"
    return Check("disk", state, said, do)


def _standing(folder: Path) -> Path:
    """The nearest folder above that there is."""
    here = folder.absolute()
    while not is_folder(here) and here != here.parent:
        here = here.parent
    return here


# Journal --------------------------------------------------------------------------------------------------------------


def check_journal(store: Path, applied: tuple[int, int] | None) -> Check:
    """That no segment is missing, that the store has it all, and that no crash cut a line off.

    Args:
        store: The database file.
        applied: Up to where the store has it, (0, 0) where it has nothing; None where nobody can say.
    """
    folder = journal_folder(store)
    if not is_folder(folder):
        return Check("journal", State.LOOK, "there is none: what is lost of the store cannot be made again")
    try:
        return _check_segments(folder, applied)
    except StoreError as error:
        return Check("journal", State.BAD, str(error))
    except OSError as error:
        return Check("journal", State.BAD, f"{folder}: {error.strerror}", listed(folder))


def _check_segments(folder: Path, applied: tuple[int, int] | None) -> Check:
    numbers = segments.numbers(folder)
    if holes := [first + 1 for first, second in pairwise(numbers) if second != first + 1]:
        return Check("journal", State.BAD, f"segment {holes[0]:08d} is missing: bring it back from a copy")
    sizes = {number: segments.path_of(folder, number).stat().st_size for number in numbers}
    said = f"{count(len(numbers), 'segment')}, {megabytes(sum(sizes.values()))}"
    end = Position(numbers[-1], sizes[numbers[-1]]) if numbers else Position(0, 0)
    if applied and Position(*applied) > end:
        lost = "lost its end, or is another store's: the store knows more of it than there is"
        return Check("journal", State.BAD, f"{said}: {lost}. Bring it back from a copy, or move it and the store away")
    if applied and (behind := _after(folder, numbers, Position(*applied))):
        said = f"{said}; {count(behind, 'line')} not in the store yet: the next command takes them in"
        return Check("journal", State.LOOK, said, Hint(("runs",)))
    torn = _torn(folder, numbers)
    return Check("journal", State.LOOK, f"{said}; {torn}") if torn else Check("journal", State.OK, said)


def _after(folder: Path, numbers: list[int], applied: Position) -> int:
    """How many lines come after a position; raises where it is none."""
    if not numbers:
        return 0
    return sum(1 for _ in segments.read(folder, applied if applied.segment else None, max_bytes=_TAIL))


def _torn(folder: Path, numbers: list[int]) -> str:
    """What a crash cut off: never acknowledged, kept to look at."""
    kept = folder / journal.TORN_NAME
    if kept.exists() and kept.stat().st_size:
        lines = kept.read_bytes().count(b"\n")
        return f"a crash cut {count(lines, 'line')} off, never acknowledged, kept in {path_words(kept)}"
    last = segments.path_of(folder, numbers[-1]) if numbers else None
    if last and _ends_inside(last):
        return "its last line is torn, or being written now"
    return ""


def _ends_inside(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        if not file.tell():
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def unread_lines(store: Path) -> int:
    """How many lines at the journal's end this version cannot read: a newer one wrote them."""
    known = tuple(f'"kind":"{kind}"'.encode() for kind in model.MODELS)
    lines = list(last_lines(journal_folder(store)))
    doubtful = [line for line in lines if not any(kind in line for kind in known)]
    return sum(isinstance(each, codec.LineError) for each in codec.keep_lines(doubtful))


def last_lines(folder: Path, size: int = _TAIL) -> Iterator[bytes]:
    """The whole lines at the end of a journal's last segment, without its header."""
    numbers = segments.numbers(folder) if is_folder(folder) else []
    if not numbers:
        return
    yield from islice(_tail(segments.path_of(folder, numbers[-1]), size), 1, None)  # the first is the header, or torn


def lines_of(path: Path, size: int = _TAIL) -> list[bytes]:
    """The whole lines at the end of a file that has no header."""
    lines = _tail(path, size)
    return lines if path.stat().st_size <= size else lines[1:]


def _tail(path: Path, size: int) -> list[bytes]:
    with path.open("rb") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - size))
        return file.read(size).split(b"\n")[:-1]  # the last part is torn, or being written


def journal_written_at(store: Path) -> datetime | None:
    """When something was written to the journal last."""
    folder = journal_folder(store)
    numbers = segments.numbers(folder) if is_folder(folder) else []
    if not numbers:
        return None
    return datetime.fromtimestamp(segments.path_of(folder, numbers[-1]).stat().st_mtime, UTC)


# What lies about ------------------------------------------------------------------------------------------------------


def check_leftovers(store: Path) -> Check:
    """Files of work that was broken off, beside the store and in its journal."""
    if lock_is_held(store):
        return Check("leftovers", State.OK, "not looked for: who has the store may be using them")
    folders = [folder for folder in (store.parent, journal_folder(store)) if is_folder(folder)]
    try:
        found = sorted(path for folder in folders for path in folder.iterdir() if _is_left(path, store))
    except OSError as error:
        return Check("leftovers", State.BAD, f"{error.filename}: {error.strerror}", listed(store.parent))
    if not found:
        return Check("leftovers", State.OK, "none beside the store")
    named = " ".join(path_words(path) for path in found[:_QUOTED])
    said = f"{count(len(found), 'file')} of work that was broken off; nothing reads them, and they take room"
    return Check("leftovers", State.LOOK, said, f"rm -r {named}")


def _is_left(path: Path, store: Path) -> bool:
    """Only what our own programs name so: other people's files are theirs. A draft names the process that writes it."""
    draft = path.name.removeprefix(f".{store.name}")
    if draft != path.name and ".part" in draft:
        return not any(number.isdigit() and _lives(int(number)) for number in draft.split("."))
    ours = path.name.startswith(store.name) or path.parent != store.parent
    return ours and path.name.endswith(_LEFT)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def check_set_aside(store: Path, spool: Path) -> Check:
    """Lines that `ingest` could not read, kept beside store and spool and in the folder of this call."""
    folders = {folder.absolute() for folder in (store.parent, spool, Path()) if is_folder(folder)}
    found = sorted(path for folder in folders for path in folder.glob(f"*{REJECTED}"))
    if not found:
        return Check("set aside", State.OK, "no line is set aside beside store and spool, or here")
    said = f"{count(len(found), 'file')} of lines that were no records; mend them in their source and ingest it again"
    return Check("set aside", State.LOOK, said, f"head -3 {path_words(found[0])}")
