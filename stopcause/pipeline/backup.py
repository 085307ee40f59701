"""Backup of a store into one file, and back: the store, its journal, and the policy beside it.

Writing holds the store's locks with its engine closed. Restoring takes all of it apart in a hidden folder beside the
new place, holds every byte and the rows' digest against the manifest, and only then gives it its names.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from stopcause import __version__
from stopcause.errors import InputError, StopcauseError, StoreError, StoreVersionError
from stopcause.pipeline import backup_manifest as manifests
from stopcause.pipeline.backup_manifest import MANIFEST, STORE, Manifest
from stopcause.pipeline.keeper import Keeper, journal_folder
from stopcause.receipts import journal, segments
from stopcause.store import beside, offline
from stopcause.store.columns import utc
from stopcause.store.duckdb_store import DuckStore
from stopcause.store.listed import FileEntry, Hashed
from stopcause.store.migrations import MIGRATIONS

_MODE = 0o600
_CHUNK = 4 * 1024 * 1024
_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE)


class BackedUp(NamedTuple):
    """A backup: what its manifest says, and the size of the file."""

    manifest: Manifest
    bytes: int


class Restored(NamedTuple):
    """A restored store: what the manifest says, and policy files that were left out because others are there."""

    manifest: Manifest
    kept_policies: tuple[Path, ...]


# Writing --------------------------------------------------------------------------------------------------------------


def write_backup(keeper: Keeper, target: Path, now: datetime) -> BackedUp:
    """Writes all of a store into one file, durably and in one step. Its engine is closed then; only close the keeper.

    Args:
        keeper: An open one, with a store on a disk.
        target: A file that is not there yet, or an earlier backup.
        now: The present time.

    Raises:
        InputError: There is something else at `target`.
        StoreFullError: The disk took no more; `target` is as it was.
        StoreError: Something cannot be read or written; `target` is as it was.
    """
    store = keeper.store.path
    if store is None:
        raise StoreError("A store in memory has nothing to back up. Name one: --store PATH")
    check_target(target)
    counted = keeper.store.ask("SELECT count(*), count(DISTINCT run_id), max(event_at) FROM records")
    ((records, runs, newest),) = counted.rows
    keeper.store.close_engine()
    offline.check_there(store)
    with beside.written(target) as draft, _new_tar(draft) as tar:
        manifest = Manifest(
            format=manifests.FORMAT,
            taken_at=now.astimezone(UTC),
            stopcause=__version__,
            records=records,
            runs=runs,
            newest_at=utc(newest),
            digest=offline.file_digest(store).text,
            columns=offline.columns_of(store),
            files=tuple(_add(tar, name, path) for name, path in _members(store)),
        )
        _add_bytes(tar, MANIFEST, manifest.model_dump_json(indent=1).encode())
    return BackedUp(manifest, target.stat().st_size)


def check_target(target: Path) -> None:
    """Refuses to take the place of anything but an earlier backup.

    Raises:
        InputError: There is something else.
    """
    if target.is_dir():
        raise InputError(f"{target} is a folder; name a file, as {target / 'stopcause-backup.tar'}")
    if target.exists() and not _is_backup(target):
        raise InputError(f"{target} is there already, and is no backup. Name another file, or take it away.")


def _is_backup(path: Path) -> bool:
    try:
        with tarfile.open(path, "r:") as tar:
            first = tar.next()
    except (tarfile.TarError, OSError):
        return False
    return first is not None and first.name == STORE


def _members(store: Path) -> Iterator[tuple[str, Path]]:
    """Every file of a store, by the name that it has in a backup."""
    yield STORE, store
    folder = journal_folder(store)
    for number in segments.numbers(folder):
        path = segments.path_of(folder, number)
        yield f"journal/{path.name}", path
    beside_it = [folder / journal.TORN_NAME, store.with_name("policy.toml")]
    named = [(f"journal/{journal.TORN_NAME}", beside_it[0]), ("policy.toml", beside_it[1])]
    named += [(f"policy.d/{path.name}", path) for path in sorted(store.with_name("policy.d").glob("*.toml"))]
    yield from ((name, path) for name, path in named if path.is_file() and manifests.is_member(name))


@contextlib.contextmanager
def _new_tar(draft: Path) -> Iterator[tarfile.TarFile]:
    with draft.open("xb") as file:
        draft.chmod(_MODE)  # resume tokens are in it
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            yield tar


def _add(tar: tarfile.TarFile, name: str, path: Path) -> FileEntry:
    with path.open("rb") as file:
        hashed = Hashed(file)
        tar.addfile(_info(name, path.stat().st_size, int(path.stat().st_mtime)), cast("BinaryIO", hashed))
    return hashed.entry(name)


def _add_bytes(tar: tarfile.TarFile, name: str, data: bytes) -> None:
    tar.addfile(_info(name, len(data), 0), io.BytesIO(data))


def _info(name: str, size: int, changed: int) -> tarfile.TarInfo:
    """A member without the names of users: a backup says nothing about who made it."""
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = size, changed, _MODE
    return info


# Back -----------------------------------------------------------------------------------------------------------------


def restore(source: Path, store: Path) -> Restored:
    """Puts a backup in the place of a store that is empty or not there.

    Args:
        source: The backup.
        store: Where the store's file is to be; its folder is made.

    Raises:
        InputError: It is no backup, is cut off or was altered, or the store is not empty. Nothing was changed.
        StoreVersionError: A newer stopcause made it. Nothing was changed.
        StoreInUseError: Another process owns the store.
        StoreFullError: The disk took no more. Nothing was changed.
        StoreError: The place cannot be used.
    """
    if store.exists() or journal_folder(store).exists():
        with _empty(store):
            pass  # said before gigabytes are unpacked
    with beside.reporting(store), _folder_of(store), beside.drafted(store) as draft:
        manifest = _unpacked(source, draft)
        _check_rows(source, draft / STORE, manifest)
        beside.sync(draft)
        with _empty(store) as opened:
            opened.close_engine()
            kept = _name(draft, store)
    return Restored(manifest, kept)


@contextlib.contextmanager
def _empty(store: Path) -> Iterator[DuckStore]:
    """The store with its lock; it has no record, and its journal no line."""
    folder = journal_folder(store)
    with DuckStore.open(store) as opened:
        if not opened.is_empty() or (folder.exists() and next(journal.read(folder), None) is not None):
            raise InputError(
                f"{store} is not empty. Name another store (--store PATH), or move it and {folder.name} away first."
            )
        yield opened


@contextlib.contextmanager
def _folder_of(store: Path) -> Iterator[None]:
    """The folder of a store; made where there is none, and taken away again where nothing came into it."""
    made = [folder for folder in (store.parent, *store.parent.parents) if not folder.exists()]
    store.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def _unpacked(source: Path, draft: Path) -> Manifest:
    """Every member as a file in a folder, held against the manifest."""
    found: dict[str, FileEntry] = {}
    said = b""
    try:
        with tarfile.open(source, "r:") as tar:
            for member in tar:
                name, file = _checked_member(source, tar, member, found)
                if name == MANIFEST:
                    said = file.read(manifests.MOST_BYTES)
                    break
                found[name] = _write(draft / name, file, name)
    except FileNotFoundError as error:
        if error.filename == str(source):
            raise InputError(f"{source}: no such file. Name a backup.") from None
        raise
    except (tarfile.TarError, EOFError, IsADirectoryError):
        raise InputError(
            f"{source} is no backup, or is cut off. Nothing was changed. Take another copy of it."
        ) from None
    if not said:
        raise InputError(
            f"{source} is no whole backup: it has no manifest. Nothing was changed. Take another copy of it."
        )
    manifest = manifests.read_manifest(said, source)
    _compare(source, manifest, found)
    return manifest


def _checked_member(
    source: Path, tar: tarfile.TarFile, member: tarfile.TarInfo, found: dict[str, FileEntry]
) -> tuple[str, BinaryIO]:
    """A member that a backup may have, once: a plain file of a known name, and nothing that leads elsewhere."""
    known = member.name == MANIFEST or manifests.is_member(member.name)
    file = tar.extractfile(member) if known and member.type in _PLAIN and member.name not in found else None
    if file is None:
        raise InputError(f"{source} is no backup of stopcause: it has other things in it. Nothing was changed.")
    return member.name, cast("BinaryIO", file)


def _write(path: Path, file: BinaryIO, name: str) -> FileEntry:
    path.parent.mkdir(parents=True, exist_ok=True)
    hashed = Hashed(file)
    with path.open("xb") as out:
        path.chmod(0o640)
        shutil.copyfileobj(cast("BinaryIO", hashed), out, _CHUNK)
    return hashed.entry(name)


def _compare(source: Path, manifest: Manifest, found: dict[str, FileEntry]) -> None:
    expected = {entry.name: entry for entry in manifest.files}
    for name in [*expected, *found]:
        if name not in found or name not in expected:
            fault = "is missing" if name not in found else "is not in its manifest"
        elif found[name] != expected[name]:
            fault = "was altered"
        else:
            continue
        raise InputError(f"{source}: {name if manifests.is_member(name) else 'a file'} {fault}. Nothing was changed. "
                         "Take another copy of it.")  # fmt: skip
    if STORE not in found:
        raise InputError(f"{source} has no store in it. Nothing was changed.")


def _check_rows(source: Path, file: Path, manifest: Manifest) -> None:
    """Opens the store that was unpacked: it must be readable, of this version or older, and say what it said."""
    try:
        newer = set(offline.steps_of(file)) - {step.name for step in MIGRATIONS}
        digest = "" if newer else offline.file_digest(file, manifest.columns).text
    except StopcauseError as error:
        raise InputError(f"{source}: the store in it cannot be read. Nothing was changed.") from error
    if newer:
        raise StoreVersionError(
            f"A newer stopcause made {source}. Nothing was changed. Upgrade: pip install -U 'stopcause[server]'"
        )
    if digest != manifest.digest:
        raise InputError(f"{source}: the rows in it are not those of its manifest. Nothing was changed.")


def _name(draft: Path, store: Path) -> tuple[Path, ...]:
    """Gives everything its name. The journal first: from it alone the store can be made again.

    The empty store goes before that: it may know a position in a journal of its own, which this one does not have.
    """
    folder = journal_folder(store)
    for empty in (store.with_name(store.name + ".wal"), store):
        empty.unlink(missing_ok=True)
    beside.sync_folder(store.parent)
    if folder.exists():
        shutil.rmtree(folder)
    (draft / "journal").mkdir(exist_ok=True)
    (draft / "journal").replace(folder)
    beside.sync_folder(store.parent)
    (draft / STORE).replace(store)
    kept = [path for name in ("policy.toml", "policy.d") if (path := _name_policy(draft / name, store.with_name(name)))]
    beside.sync_folder(store.parent)
    return tuple(kept)


def _name_policy(unpacked: Path, target: Path) -> Path | None:
    """A policy that is there already is the operator's: it stays. Gives its path where it says something else."""
    if not unpacked.exists():
        return None
    if not target.exists():
        unpacked.replace(target)
        return None
    return None if _texts(unpacked) == _texts(target) else target


def _texts(policy: Path) -> dict[str, bytes]:
    files = policy.glob("*.toml") if policy.is_dir() else [policy]
    return {path.name: path.read_bytes() for path in files}
