"""Files and folders that get their name last: written beside it under a hidden one, synced, then named in one step.

Whoever looks finds the old one or the whole new one. What a killed process left under a hidden name goes the next time.
Here also: what is said where a disk is full or broken. Not here: what is written.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from stopcause.errors import StoreError, StoreFullError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_CHUNK = 4 * 1024 * 1024


@contextlib.contextmanager
def written(target: Path) -> Iterator[Path]:
    """A path to write a file or a folder at; at the regular end it takes the place of `target`, durably.

    Args:
        target: A file is replaced; a folder must be empty, or not be there.

    Raises:
        StoreFullError: The disk took no more; nothing is left of it.
        StoreError: The place cannot be used; nothing is left there.
    """
    with reporting(target), drafted(target) as draft:
        yield draft
        sync(draft)
        draft.replace(target)
        sync_folder(target.parent)


@contextlib.contextmanager
def drafted(target: Path) -> Iterator[Path]:
    """A hidden path beside `target`; what is there at the end is removed."""
    if not target.parent.is_dir():
        raise StoreError(f"{target.parent}: no such folder. Make it first, or name another place.")
    _remove_leftovers(target)
    draft = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield draft
    finally:
        _remove(draft)


def copy(source: Path, target: Path) -> None:
    """A copy under another name, which it gets when it is whole and durable."""
    with written(target) as draft, source.open("rb") as read, draft.open("xb") as write:
        shutil.copyfileobj(read, write, _CHUNK)


def sync(path: Path) -> None:
    """Makes a file durable, or a folder with all that is in it."""
    if path.is_dir():
        for each in sorted(path.iterdir()):
            sync(each)
        sync_folder(path)
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_folder(folder: Path) -> None:
    """Makes the names in a folder durable; syncing a file does not."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def reporting(target: Path) -> Iterator[None]:
    """Turns what the system says about a place into an error of ours."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StoreFullError(
                f"{target}: the disk took no more ({error.strerror}). Nothing is left there, and the store is as it "
                "was. Free space, or name a place on another disk."
            ) from error
        raise StoreError(f"{error.filename or target}: {error.strerror}. See to it, or name another place.") from error


def _remove_leftovers(target: Path) -> None:
    """What processes that are gone began and did not end."""
    for left in target.parent.glob(f".{_literal(target.name)}.*.part*"):
        number = left.name.removeprefix(f".{target.name}.").split(".")[0]
        if number.isdigit() and not _lives(int(number)):
            _remove(left)


def _literal(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _lives(pid: int) -> bool:
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OverflowError:
        return False
    except PermissionError:
        return True
    return True


def _remove(draft: Path) -> None:
    """A draft, and what an engine put beside it."""
    for left in (draft, draft.with_name(draft.name + ".wal"), draft.with_name(draft.name + ".tmp")):
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)
