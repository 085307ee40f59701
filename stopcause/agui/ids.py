"""Ids of the wire as ids of records: what is no identifier, or names a person, becomes a keyed hash."""

from __future__ import annotations

import hashlib

from stopcause.receipts.identifiers import is_identifier, is_personal
from stopcause.receipts.pseudonyms import pseudonym

_LONGEST = 200
_WORD = 64
_REMEMBERED = 512  # longer ids are hashed before anything remembers them


def safe(text: str) -> str:
    """An id that may leave this room. The same text gives the same id."""
    if len(text) > _REMEMBERED:
        return pseudonym(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
    return text if is_identifier(text) and not is_personal(text) else pseudonym(text)


def safe_or_none(value: object) -> str | None:
    """The same for a value that may be anything: only a filled string is an id."""
    return safe(value) if isinstance(value, str) and value else None


def word_or_none(value: object) -> str | None:
    """A word of somebody's vocabulary (a code, a kind): kept where it is one, never hashed."""
    fits = isinstance(value, str) and len(value) <= _WORD and is_identifier(value) and not is_personal(value)
    return str(value) if fits else None


def resume_token(thread_id: str, run_id: str, interrupt_id: str) -> str:
    """What names the paused state: thread, run, interrupt. A hash of the three where they are too long together."""
    token = "/".join((safe(thread_id), safe(run_id), safe(interrupt_id)))
    return token if len(token) <= _LONGEST else pseudonym(token)
