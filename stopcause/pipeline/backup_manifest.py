"""What a backup is made of, and the manifest that its last member is.

    store.duckdb   journal/00000001.ndjson ...   journal/torn.ndjson   policy.toml   policy.d/NAME.toml   manifest.json

A plain tar file. The manifest names every other member with its size and SHA-256, and says what the store's rows are
(`store.digest`), so that a restored store can be held against it.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stopcause.errors import InputError
from stopcause.store.listed import FileEntry

FORMAT = "stopcause-backup/1"
MANIFEST = "manifest.json"
STORE = "store.duckdb"
MOST_BYTES = 64 * 1024 * 1024  # of a manifest
_MEMBER = re.compile(
    r"store\.duckdb|journal/(?:\d{8}|torn)\.ndjson|policy\.toml|policy\.d/[A-Za-z0-9_-][A-Za-z0-9._-]*\.toml"
)
_COLUMN = r"^[a-z_]+$"


class Manifest(BaseModel):
    """What a backup says of itself. `columns` are those that the digest was made of, by table."""

    model_config = ConfigDict(frozen=True)

    format: str
    taken_at: datetime
    stopcause: str
    records: int
    runs: int
    newest_at: datetime | None
    digest: str = Field(pattern="^[0-9a-f]{32}$")
    columns: dict[str, list[str]]
    files: tuple[FileEntry, ...]


def read_manifest(data: bytes, where: Path) -> Manifest:
    """The manifest of a backup.

    Raises:
        InputError: It is none, or of a newer version.
    """
    try:
        found = Manifest.model_validate_json(data)
    except ValidationError:
        raise InputError(f"{where}: its manifest cannot be read. Take another backup.") from None
    if found.format != FORMAT:
        raise InputError(f"{where} was written by a newer stopcause ({FORMAT} is known here). Upgrade stopcause.")
    names = [name for columns in found.columns.values() for name in columns]
    if not all(re.fullmatch(_COLUMN, name) for name in names) or set(found.columns) != {"records", "verdicts"}:
        raise InputError(f"{where}: its manifest cannot be read. Take another backup.")
    return found


def is_member(name: str) -> bool:
    """Whether a backup may have a file of this name, beside its manifest."""
    return _MEMBER.fullmatch(name) is not None
