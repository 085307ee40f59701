"""What a person points `ingest` at, as records and bad lines: files, folders, a stream. Nothing is held whole.

NDJSON of records, NDJSON of case files, a case file of its own, one record in a `.json` file, an archive of Parquet
files, a Parquet file with lines. Lines are read in chunks: one that is too long is counted, never held.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from stopcause.errors import InputError
from stopcause.receipts import codec
from stopcause.receipts.codec import MAX_LINE_BYTES, Kept, LineError
from stopcause.receipts.spool import is_mark
from stopcause.store import archive

PARQUET = ".parquet"
SUFFIXES = (".json", ".jsonl", ".ndjson")
REJECTED = ".rejected.jsonl"
_CHUNK = 2 * 1024 * 1024
_WHOLE_BYTES = 64 * 1024 * 1024  # a JSON file above this is read as NDJSON
_LOOK_AT_LINES = 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Took = Callable[[int], None]  # is told how many bytes were read


class Source(NamedTuple):
    """One file, or one stream. `named`: the caller named it; in a folder it was only found. `size` None: not known."""

    name: str
    opened: Path | BinaryIO
    size: int | None
    named: bool


class Bad(NamedTuple):
    """A line that is no record. `raw` is None where it was too long to hold; `size` is its length in bytes."""

    error: LineError
    raw: bytes | None
    size: int


class LongLine(NamedTuple):
    """A line over the limit, by its length in bytes."""

    size: int


class NoRecordsError(InputError):
    """A file that is fine, and holds no records."""


def expand(sources: Sequence[Path | BinaryIO | Source]) -> list[Source]:
    """Every file of these, in order; a folder's in name order, without what `ingest` set aside there.

    Raises:
        InputError: No such file, or an archive that is not whole.
    """
    found: list[Source] = []
    for source in sources:
        if isinstance(source, Source):
            found.append(source)
        elif not isinstance(source, Path):
            found.append(Source("stdin", source, None, named=True))
        elif source.is_dir():
            found += _inside(source)
        else:
            found.append(_source(source, named=True))
    return found


def _inside(folder: Path) -> Iterator[Source]:
    """The files of a folder. Of an archive those with records; it is held against its manifest first."""
    archives = [path.parent for path in sorted(folder.rglob(archive.MANIFEST)) if path.is_file()]
    whole = {each: archive.check(each, manifest) for each in archives if (manifest := archive.read_manifest(each))}
    paths = (path for path in folder.rglob("*") if not any(path.is_relative_to(each) for each in whole))
    files = [path for path in paths if _is_input(path)]
    if parts := [path for path in files if archive.is_part(path)]:
        raise InputError(
            f"{parts[0].parents[2]} is no whole archive: {archive.MANIFEST} is missing. Copy it again; nothing was "
            "taken in."
        )
    found = [*((path, False) for path in files), *((path, True) for each in whole.values() for path in each)]
    yield from (_source(path, named=named) for path, named in sorted(found))


def _is_input(path: Path) -> bool:
    return path.suffix in (*SUFFIXES, PARQUET) and not path.name.endswith(REJECTED) and path.is_file()


def _source(path: Path, *, named: bool) -> Source:
    try:
        return Source(str(path), path, path.stat().st_size, named)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}. Name a file or a folder that is there.") from error


def read_source(source: Source, took: Took) -> Iterator[Kept | Bad]:
    """The records and bad lines of a source, in order.

    Raises:
        NoRecordsError: It is JSON and holds no records.
        InputError: It cannot be read.
    """
    try:
        if not isinstance(source.opened, Path):
            yield from _read_lines(source.opened, took)
        elif source.opened.suffix == PARQUET:
            yield from _read_parquet(source.opened, took)
        elif source.opened.suffix == ".json" and source.size is not None and source.size <= _WHOLE_BYTES:
            yield from _read_json(source.opened, took)
        else:
            with source.opened.open("rb", buffering=0) as file:
                yield from _read_lines(file, took)
    except OSError as error:
        raise InputError(f"{source.name}: {error.strerror}. See to that file, then run again.") from error


# NDJSON ---------------------------------------------------------------------------------------------------------------


def _read_lines(file: Any, took: Took) -> Iterator[Kept | Bad]:  # noqa: ANN401 - anything with `read`
    for number, line in enumerate(lines_of(file, took), 1):
        if isinstance(line, LongLine):
            expected = f"at most {MAX_LINE_BYTES} bytes"
            yield Bad(LineError(number, "line", f"is {line.size} bytes long", expected), None, line.size)
            continue
        text = line.removeprefix(_BYTE_ORDER_MARK) if number == 1 else line
        if not text or text.isspace() or is_mark(text):
            continue
        read = codec.keep_line(text, number)
        if isinstance(read, LineError):
            yield from _read_case_line(text, read)
        else:
            yield read


def lines_of(file: Any, took: Took) -> Iterator[bytes | LongLine]:  # noqa: ANN401
    """The lines of a binary file without their newlines; the last one may have none. At most one chunk is held."""
    read = getattr(file, "read1", file.read)  # a pipe gives what it has, and not only whole chunks
    held, skipped = b"", 0
    while chunk := read(_CHUNK):
        took(len(chunk))
        lines = chunk.split(b"\n")
        if skipped and len(lines) == 1:
            skipped += len(chunk)
            continue
        if skipped:
            yield LongLine(skipped + len(lines.pop(0)))
            skipped = 0
        else:
            lines[0] = held + lines[0]
        held = lines.pop()
        for line in lines:
            yield line if len(line) <= MAX_LINE_BYTES else LongLine(len(line))
        if len(held) > MAX_LINE_BYTES:
            held, skipped = b"", len(held)
    if skipped:
        yield LongLine(skipped)
    elif held:
        yield held


def _read_case_line(line: bytes, error: LineError) -> Iterator[Kept | Bad]:
    """A line that is no record: perhaps a case file with records inside."""
    if b'"records"' in line:
        try:
            inside = _records_in(json.loads(line))
        except ValueError:
            inside = None
        if inside is not None:
            yield from _read_values(inside, error.line, "records[{}].{}")
            return
    yield Bad(error, line, len(line))


# Parquet --------------------------------------------------------------------------------------------------------------


def _read_parquet(path: Path, took: Took) -> Iterator[Kept | Bad]:
    """The lines of a file's column `line`. An archive's files are whole: they were held against their manifest."""
    number = 0
    for lines in archive.lines_of(path):
        for line in lines:
            number += 1
            if line is None or not line.strip():
                continue
            read = codec.keep_line(line, number)
            yield Bad(read, line, len(line)) if isinstance(read, LineError) else read
    took(path.stat().st_size)


# JSON -----------------------------------------------------------------------------------------------------------------


def _read_json(path: Path, took: Took) -> Iterator[Kept | Bad]:
    """A `.json` file: a case, one record, or NDJSON after all."""
    data = path.read_bytes()
    try:
        value = json.loads(data.removeprefix(_BYTE_ORDER_MARK))
    except (ValueError, RecursionError):
        if data.strip() and not any(map(_is_object, data.splitlines()[:_LOOK_AT_LINES])):
            raise NoRecordsError(f"{path} is broken JSON. Mend it, or take it away.") from None
        with path.open("rb", buffering=0) as file:
            yield from _read_lines(file, took)
        return
    took(len(data))
    inside = _records_in(value)
    if inside is not None:
        yield from _read_values(inside, 1, "records[{}].{}")
    elif isinstance(value, dict) and "schema" in value:
        yield from _read_values([value], 1, "{1}")
    elif isinstance(value, dict) and "exchanges" in value:
        raise NoRecordsError(f"{path} holds exchanges of AG-UI, and no records. `agui audit` reads it.")
    else:
        raise NoRecordsError(f"{path} holds no records. It takes one record a line, or a case file with `records`.")


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _records_in(value: object) -> list[Any] | None:
    records = value.get("records") if isinstance(value, dict) else None
    return records if isinstance(records, list) else None


def _read_values(values: Iterable[object], number: int, place: str) -> Iterator[Kept | Bad]:
    """Records that are parsed already; `place` says where the field of the i-th is: format of (i, field)."""
    for i, value in enumerate(values):
        raw = codec.value_line(value)
        read = codec.keep_line(raw, number)
        if isinstance(read, LineError):
            yield Bad(read._replace(field=place.format(i, read.field)), raw, len(raw))
        else:
            yield read
