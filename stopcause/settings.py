"""Every setting, in one table, and the folders that follow from it. Reading the environment happens only here.

Light on purpose: hooks read it inside other people's agents, so there is no library behind it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NamedTuple

from stopcause.errors import InputError


class Setting(NamedTuple):
    """One row: the environment variable, what holds without it, and what it is for."""

    env: str
    default: str
    meaning: str


SETTINGS = (
    Setting("STOPCAUSE_STORE", "stopcause.duckdb in the user data folder", "the store that commands read and write"),
    Setting("STOPCAUSE_POLICY", "policy.toml or policy.d/ beside the store", "the policy that runs are judged by"),
    Setting("STOPCAUSE_SPOOL", "spool/ in the user data folder", "where hooks leave their records"),
    Setting("STOPCAUSE_DATA", "the platform's user data folder", "the folder that the other defaults live in"),
    Setting(
        "STOPCAUSE_HMAC_KEY",
        "32 random bytes in the user data folder",
        "key of the hashes that replace personal values",
    ),
    Setting("STOPCAUSE_DISABLED", "", "1 turns every hook off; names of hooks (`langgraph,strands`) turn those off"),
    Setting("NO_COLOR", "", "any value: no colour"),
)


def setting(env: str) -> str | None:
    """The value of a setting of the table, or None; an empty value counts as not set."""
    if not any(row.env == env for row in SETTINGS):
        raise KeyError(env)
    return os.environ.get(env) or None


def data_dir() -> Path:
    """The user data folder; made by whoever writes first.

    Raises:
        InputError: Nobody knows where this user's home is, as in some containers.
    """
    if chosen := setting("STOPCAUSE_DATA"):
        return Path(chosen)
    if sys.platform == "darwin":
        return _home() / "Library" / "Application Support" / "stopcause"
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA") or _home() / "AppData" / "Local") / "stopcause"
    return Path(os.environ.get("XDG_DATA_HOME") or _home() / ".local" / "share") / "stopcause"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise InputError("this user has no home folder; set STOPCAUSE_DATA to a folder to keep data in") from None


def store_path(chosen: Path | None = None) -> Path:
    """The store: the command line's, else the setting's, else the default's.

    Raises:
        InputError: It is a folder.
    """
    path = chosen or Path(setting("STOPCAUSE_STORE") or data_dir() / "stopcause.duckdb")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name the file of the store, as {path / 'stopcause.duckdb'}")
    return path


def spool_dir() -> Path:
    """The folder that hooks write into and reading commands take in."""
    return Path(setting("STOPCAUSE_SPOOL") or data_dir() / "spool")


def policy_path(store: Path, chosen: Path | None = None) -> Path | None:
    """The policy: the command line's, else the setting's, else beside the store, else None (the built-in defaults)."""
    if chosen or (named := setting("STOPCAUSE_POLICY")):
        return chosen or Path(str(named))
    for beside in (store.parent / "policy.toml", store.parent / "policy.d"):
        if beside.exists():
            return beside
    return None
