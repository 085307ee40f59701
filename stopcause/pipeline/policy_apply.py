"""A policy put in force: checked as what it will be, written so that nobody reads half of it, and then judged by.

A file becomes `policy.toml` beside the store; where `policy.d/` is in use it becomes the file of its name in there.
A folder becomes `policy.d/`: each file is replaced in one step, then those that it does not have are taken away.
The old text is in the store's table `policies`, as every text that ever judged a run. Judging anew goes by batches
(`Keeper.rejudge`): killed on the way, the next command that reads goes on where it was.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections import Counter
from pathlib import Path

from stopcause import settings
from stopcause.classifier.policy import DEFAULT_POLICY, Policy
from stopcause.classifier.verdict import VerdictName
from stopcause.errors import InputError
from stopcause.pipeline.policy_diff import EPOCH, stretches
from stopcause.pipeline.policy_file import check_files, files_of, usable
from stopcause.render.policy_diff import Change, Said
from stopcause.store.duckdb_store import DuckStore
from stopcause.store.queries import text

_FILE, _FOLDER = "policy.toml", "policy.d"


def target_of(store: Path, given: Path) -> Path:
    """Where a policy goes: a file or a folder beside the store, or a file in the folder that is there.

    Raises:
        InputError: STOPCAUSE_POLICY names another place; a folder where a file is in use; no `.toml` for a folder.
    """
    file, folder = store.parent / _FILE, store.parent / _FOLDER
    named = settings.setting("STOPCAUSE_POLICY")
    if named and Path(named).resolve() not in (file.resolve(), folder.resolve()):
        raise InputError(f"STOPCAUSE_POLICY names {named}, so that is in force; change it there, or unset the variable")
    if given.is_dir():
        if file.exists():
            raise InputError(f"{file} is in use and comes before {_FOLDER}/; move it away first, or apply one file")
        return folder
    if not folder.is_dir() or file.exists():
        return file
    if given.suffix != ".toml":
        raise InputError(f"{given}: {_FOLDER}/ is in use, and only files that end in .toml are read there; rename it")
    return folder / given.name


def candidate(given: Path, target: Path) -> Policy:
    """The policy as it will be once `given` is at `target`.

    Raises:
        InputError: It cannot be read.
        PolicyError: It has faults, or it and the files that it joins have.
    """
    files = files_of(given)
    if not given.is_dir() and target.parent.name == _FOLDER and target.suffix == ".toml":
        files += [each for each in target.parent.glob("*.toml") if each.name != target.name]
    return usable(check_files(sorted(files, key=lambda each: each.name), given))


def in_force(store: Path) -> Policy:
    """The policy that runs are judged by now.

    Raises:
        PolicyError: It has faults.
    """
    path = settings.policy_path(store)
    return DEFAULT_POLICY if path is None else usable(check_files(files_of(path), path))


def keep_unread(target: Path) -> None:
    """A copy, beside it, of a file that is about to be replaced and that the store has no text of."""
    if target.is_file():
        shutil.copy2(target, target.with_name(f"{target.name}.before"))


def put(given: Path, target: Path) -> None:
    """Writes the policy where it is read from. Each file is there whole or not at all.

    Raises:
        InputError: It cannot be written there.
    """
    try:
        if not given.is_dir():
            target.parent.mkdir(parents=True, exist_ok=True)
            _replace(given, target)
            return
        target.mkdir(parents=True, exist_ok=True)
        files = files_of(given)
        for file in files:
            _replace(file, target / file.name)
        for old in target.glob("*.toml"):
            if old.name not in {file.name for file in files}:
                old.unlink()
    except OSError as error:
        raise InputError(f"{target}: {error.strerror}; nothing is judged by the new policy yet") from error


def _replace(source: Path, target: Path) -> None:
    if target.exists() and source.samefile(target):
        return
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(source.read_bytes())
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o644)
        Path(name).replace(target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def outcome_of(store: DuckStore, policy: Policy) -> tuple[Change, ...]:
    """Which verdicts the policy changed, against what judged the same attempts before it; the most first."""
    counted: Counter[tuple[Said, Said]] = Counter()
    for stretch in stretches(store, EPOCH):
        asked = {"digest": policy.digest, "first": stretch.first, "last": stretch.last}
        for before, why, after, reason, count in store.ask(text("policy_outcome"), asked).rows:
            counted[Said(_verdict(before), why), Said(_verdict(after), reason)] += count
    ordered = sorted(counted.items(), key=lambda each: (-each[1], str(each[0])))
    return tuple(Change(*key, count, (), ()) for key, count in ordered)


def _verdict(name: str | None) -> VerdictName | None:
    return VerdictName(name) if name else None
