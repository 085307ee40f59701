"""The shapes that strings may have, and what happens to those that name a person: the one place for both.

No prose fits an identifier. What an identifier can still hold (an e-mail address, a phone number, a token, a key, an
IBAN) is replaced by a keyed hash wherever a person's handle is expected: `thread_id`, `owner`, `actor`, labels.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from functools import cache, lru_cache
from pathlib import Path

from stopcause import settings

IDENTIFIER_PATTERN = r"^[A-Za-z0-9._:/@#+=~-]{1,200}$"
IDENTIFIER_WORDS = "1 to 200 of A-Z a-z 0-9 . _ : / @ # + = ~ - (no spaces)"
DISPLAY_NAME_PATTERN = r"^[\w.:/@+-]{1,64}$"
DISPLAY_NAME_WORDS = "1 to 64 letters, digits or . _ : / @ + - (spaces turned to _)"

_IDENTIFIER = re.compile(IDENTIFIER_PATTERN[1:-1])
_DISPLAY_NAME = re.compile(DISPLAY_NAME_PATTERN[1:-1])

_PERSONAL = re.compile(
    r"""[^@\s:/]+@[^@\s]+\.[A-Za-z]{2,}                      # e-mail address
      | (?:^|[^A-Za-z0-9])(?:\+|00)\d[\d./-]{6,18}\d$        # phone number, international
      | (?:^|[^A-Za-z0-9.-])\(?\d{3}\)?[./-]\d{3}[./-]\d{4}$ # phone number, North American
      | eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}              # JWT
      | (?:^|[^A-Za-z0-9])(?:sk|pk|rk|xox[abposr]|gh[pousr]|github_pat|glpat|hf|AKIA|ASIA|AIza|ya29)
        [-_.A-Za-z0-9]{16,}                                  # API keys by their makers' prefixes
    """,
    re.VERBOSE,
)
_IBAN = re.compile(r"(?:^|[^A-Za-z0-9])([A-Z]{2}\d{2}[A-Z0-9]{11,30})$")
_HASH_HEAD = "hmac:"


def is_identifier(text: str) -> bool:
    """Whether a string may be stored as it is."""
    return _IDENTIFIER.fullmatch(text) is not None


def display_name(text: str) -> str | None:
    """The display name that `text` gives once spaces are `_`, or None where it cannot be one. For writers."""
    name = "_".join(text.split())
    return name if _DISPLAY_NAME.fullmatch(name) else None


@lru_cache(maxsize=4096)
def is_personal(text: str) -> bool:
    """Whether an identifier looks like an e-mail address, phone number, JWT, key or IBAN."""
    if text.startswith(_HASH_HEAD):
        return False
    return _PERSONAL.search(text) is not None or _is_iban(text)


def _is_iban(text: str) -> bool:
    found = _IBAN.search(text)
    if found is None:
        return False
    moved = found[1][4:] + found[1][:4]
    return int("".join(str(int(letter, 36)) for letter in moved)) % 97 == 1


@lru_cache(maxsize=4096)
def pseudonym(text: str) -> str:
    """A keyed hash in place of `text`; the same text gives the same hash. A leading `user:` or the like stays."""
    head, colon, rest = text.partition(":")
    if not (colon and rest and head.isalpha()):
        head, colon, rest = "", "", text
    digest = hmac.new(hmac_key(), rest.encode(), hashlib.sha256).hexdigest()[:32]
    return f"{head}{colon}{_HASH_HEAD}{digest}"


@cache
def hmac_key() -> bytes:
    """The key: the setting's, else 32 random bytes that the user data folder keeps (mode 0600, made once)."""
    if chosen := settings.setting("STOPCAUSE_HMAC_KEY"):
        return chosen.encode()
    path = settings.data_dir() / "hmac.key"
    return _read_key(path) or _make_key(path)


def _read_key(path: Path) -> bytes | None:
    try:
        return path.read_bytes() or None
    except FileNotFoundError:
        return None


def _make_key(path: Path) -> bytes:
    """Made beside and linked into place, so that of two processes that start at once both end up with one key."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(secrets.token_bytes(32))
    try:
        os.link(draft, path)
    except FileExistsError:
        pass  # the other process was first; its key is the key
    finally:
        draft.unlink()
    return path.read_bytes()
