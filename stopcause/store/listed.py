"""Files as manifests list them: name, size, SHA-256."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import BinaryIO

from pydantic import BaseModel, ConfigDict, Field

_CHUNK = 4 * 1024 * 1024


class FileEntry(BaseModel):
    """A file: its name in the whole, its size in bytes and the SHA-256 of them."""

    model_config = ConfigDict(frozen=True)

    name: str
    bytes: int = Field(ge=0)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Hashed:
    """A binary file whose reads are counted and hashed on their way."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._hash, self._bytes = file, hashlib.sha256(), 0

    def read(self, size: int = -1) -> bytes:
        """As the file's own."""
        data = self._file.read(size)
        self._hash.update(data)
        self._bytes += len(data)
        return data

    def entry(self, name: str) -> FileEntry:
        """What was read, under this name."""
        return FileEntry(name=name, bytes=self._bytes, sha256=self._hash.hexdigest())


def entry_of(path: Path, name: str) -> FileEntry:
    """A whole file, under this name."""
    with path.open("rb") as file:
        hashed = Hashed(file)
        while hashed.read(_CHUNK):
            pass
    return hashed.entry(name)
