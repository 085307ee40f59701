"""What stands in place of a value that names a person: a keyed hash, and the key that it needs."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from functools import cache, lru_cache
from pathlib import Path

from stopcause import settings
from stopcause.errors import InputError
from stopcause.receipts.identifiers import HASH_HEAD


@lru_cache(maxsize=4096)
def pseudonym(text: str) -> str:
    """A keyed hash in place of `text`; the same text gives the same hash. A leading `user:` or the like stays."""
    head, colon, rest = text.partition(":")
    if not (colon and rest and head.isalpha()):
        head, colon, rest = "", "", text
    digest = hmac.new(hmac_key(), rest.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]
    return f"{head}{colon}{HASH_HEAD}{digest}"


@cache
def hmac_key() -> bytes:
    """The key: the setting's, else 32 random bytes that the user data folder keeps (mode 0600, made once)."""
    if chosen := settings.setting("STOPCAUSE_HMAC_KEY"):
        return chosen.encode()
    path = settings.data_dir() / "hmac.key"
    try:
        return _read_key(path) or _make_key(path)
    except OSError as error:
        raise InputError(
            f"A value that names a person must be replaced, and the key for that cannot be kept in {path.parent} "
            f"({error.strerror}). Set STOPCAUSE_HMAC_KEY, or STOPCAUSE_DATA to a folder that can be written."
        ) from None


def _read_key(path: Path) -> bytes | None:
    try:
        return path.read_bytes() or None
    except FileNotFoundError:
        return None


def _make_key(path: Path) -> bytes:
    """Made beside and linked into place, so that of two processes that start at once both end up with one key."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(secrets.token_bytes(32))
        file.flush()
        os.fsync(handle)  # a key that a crash empties would leave hashes that anybody can guess
    try:
        with contextlib.suppress(FileExistsError):  # another process was first: its key is the key
            os.link(draft, path)
    finally:
        draft.unlink()
    if (key := _read_key(path)) is None:
        raise InputError(f"{path} is empty: remove it, and the next value that needs it makes a new one.")
    return key
