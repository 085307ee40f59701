"""Ids and names of the wire: as they are kept while a stream is read, and as records have them.

What is kept is whole Unicode and of bounded length. In a record, what is no identifier, or names a person, is a keyed
hash.
"""

from __future__ import annotations

import hashlib

from stopcause.receipts.identifiers import display_name, is_identifier, is_personal
from stopcause.receipts.pseudonyms import pseudonym

LONGEST = 512  # longer ids are hashed before anything remembers them
_LONGEST_TOKEN = 200
_LONGEST_WORD = 64


def whole(text: str) -> str:
    """A text without halves of surrogate pairs, which no writer of UTF-8 takes. What differs stays different."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def key_of(name: str) -> str:
    """An id as it is kept: one that is longer than any that people make is a hash of itself."""
    if len(name) <= LONGEST:
        return whole(name)
    return f"sha256:{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"


def name_of(text: str | None) -> str | None:
    """A tool's or a model's name, where it is one as it stands: what has spaces may be anything that people write.

    What is far too long is not even looked at, nor remembered.
    """
    return text if text is not None and len(text) <= LONGEST and display_name(text) == text else None


def safe(text: str) -> str:
    """An id that may leave this room. The same text gives the same id."""
    if len(text) > LONGEST:
        return pseudonym(hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())
    return text if is_identifier(text) and not is_personal(text) else pseudonym(text)


def safe_or_none(value: object) -> str | None:
    """The same for a value that may be anything: only a filled string is an id."""
    return safe(value) if isinstance(value, str) and value else None


def word_or_none(value: object) -> str | None:
    """A word of somebody's vocabulary (a code, a kind): kept where it is one, never hashed."""
    fits = isinstance(value, str) and len(value) <= _LONGEST_WORD and is_identifier(value) and not is_personal(value)
    return str(value) if fits else None


def resume_token(thread_id: str, run_id: str, interrupt_id: str) -> str:
    """What names the paused state: thread, run, interrupt. A hash of the three where they are too long together."""
    token = "/".join((safe(thread_id), safe(run_id), safe(interrupt_id)))
    return token if len(token) <= _LONGEST_TOKEN else pseudonym(token)
