"""Lines that were set aside: one file for each source that has any, `NAME.rejected.jsonl` beside it.

It holds what was wrong and the line itself, so only its owner may read it. Each ingest of a file writes its file anew,
and takes it away where nothing was wrong. A stream cannot be read again: what is set aside of it stays, each time under
a name of its own.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import hashlib
import json
import os
from pathlib import Path
from typing import Any, BinaryIO, Self

from stopcause import settings
from stopcause.errors import StoreError, StoreFullError
from stopcause.pipeline.ingest_sources import REJECTED, Bad, Source
from stopcause.receipts.codec import MAX_LINE_BYTES

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MODE = 0o600


class Rejects:
    """The lines of one source that are set aside; in a `with`, whose regular end makes them durable under their name.

    Args:
        source: Where the lines come from.
        folder: Where to put the file; None is beside the source, and for a stream the current folder. The user data
            folder takes it where that one cannot be written.
    """

    def __init__(self, source: Source, folder: Path | None) -> None:
        self.path: Path | None = None  # the file, once there is one
        self.count = 0
        self._places = _places(source, folder)
        self._is_file = isinstance(source.opened, Path)
        self._file: BinaryIO | None = None

    def add(self, bad: Bad) -> None:
        """Sets a line aside.

        Raises:
            StoreFullError: The disk took no more.
            StoreError: No file can be made.
        """
        if self._file is None:
            self._file = self._open()
        self.count += 1
        with_newline = json.dumps(_entry(bad), ensure_ascii=False, separators=(",", ":")) + "\n"
        try:
            self._file.write(with_newline.encode())
        except OSError as error:
            raise _refused(self._places[0], error) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if failed:
            self._drop()
        elif self._file is None or self.path is None:
            self._remove_old(self._places if self._is_file else [])
        else:
            self._finish(self._file, self.path)

    def _open(self) -> BinaryIO:
        """A fresh file in the first place that can be written."""
        problem: OSError | None = None
        for place in self._places:
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                handle = os.open(_draft(place), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, _MODE)
            except OSError as error:
                problem = error
                continue
            os.fchmod(handle, _MODE)
            self.path = place
            return os.fdopen(handle, "wb")
        raise _refused(self._places[-1], problem or OSError())

    def _finish(self, file: BinaryIO, path: Path) -> None:
        """Durable first, then under its name: nobody ever finds half of it."""
        try:
            with file:
                file.flush()
                os.fsync(file.fileno())
            _draft(path).replace(path)
            _sync_folder(path.parent)
        except OSError as error:
            raise _refused(path, error) from error
        self._remove_old([place for place in self._places if place != path and self._is_file])

    def _drop(self) -> None:
        if self._file is not None and self.path is not None:
            with contextlib.suppress(OSError):  # a full disk, told already by what brought us here
                self._file.close()
            _draft(self.path).unlink(missing_ok=True)

    def _remove_old(self, places: list[Path]) -> None:
        for place in places:
            try:
                place.unlink(missing_ok=True)
            except OSError:
                continue  # a folder that cannot be written holds none of ours


def _places(source: Source, folder: Path | None) -> list[Path]:
    """Where the file may go, the best place first. Away from its source, a name tells one folder's from another's."""
    data = settings.data_dir()
    if not isinstance(source.opened, Path):
        return [_free(place, source.name) for place in (folder or Path.cwd(), data)]
    origin = source.opened.resolve()
    digest = hashlib.blake2b(os.fsencode(origin), digest_size=3).hexdigest()
    away = f"{origin.name}.{digest}{REJECTED}"
    return [folder / away if folder else source.opened.with_name(source.opened.name + REJECTED), data / away]


def _free(folder: Path, name: str) -> Path:
    """A name that no earlier stream's lines have."""
    numbers = ("", *(f".{number}" for number in range(2, 10_000)))
    names = (folder / f"{name}{number}{REJECTED}" for number in numbers)
    return next(place for place in names if not os.path.lexists(place))


def _draft(place: Path) -> Path:
    return place.with_name(place.name + ".new")


def _entry(bad: Bad) -> dict[str, Any]:
    """What is wrong, and the line: as text, in base64 where it is none, only its length where it is too long."""
    number, field, reason, expected = bad.error
    entry: dict[str, Any] = {"line": number, "field": field, "reason": reason, "expected": expected}
    if bad.raw is not None and bad.size <= MAX_LINE_BYTES:
        try:
            return {**entry, "raw": bad.raw.decode()}
        except UnicodeDecodeError:
            return {**entry, "bytes": bad.size, "raw_base64": base64.b64encode(bad.raw).decode()}
    return {**entry, "bytes": bad.size}


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _refused(place: Path, error: OSError) -> StoreError:
    if error.errno in _FULL:
        return StoreFullError(f"{place}: the disk took no more. Nothing acknowledged is lost. Free space, run again.")
    return StoreError(f"{place}: {error.strerror}. Bad lines cannot be set aside there; see to it, then run again.")
