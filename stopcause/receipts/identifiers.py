"""The shapes that strings may have, and how to tell those that name a person. No prose fits an identifier.

What an identifier can still hold (an e-mail address, a phone number, a token, a key, an IBAN) is replaced wherever a
person's handle is expected: `thread_id`, `owner`, `actor`, labels. By what, says `pseudonyms`.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

IDENTIFIER_PATTERN = r"^[A-Za-z0-9._:/@#+=~-]{1,200}$"
IDENTIFIER_WORDS = "1 to 200 of A-Z a-z 0-9 . _ : / @ # + = ~ - (no spaces)"
DISPLAY_NAME_PATTERN = r"^[\w.:/@+-]{1,64}$"
DISPLAY_NAME_WORDS = "1 to 64 letters, digits or . _ : / @ + - (spaces turned to _)"

_IDENTIFIER = re.compile(IDENTIFIER_PATTERN[1:-1])
_DISPLAY_NAME = re.compile(DISPLAY_NAME_PATTERN[1:-1])

_PERSONAL = re.compile(
    r"""[^@\s:/]+@[^@\s]+\.[A-Za-z]{2}                         # e-mail address
      | eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8}                 # JWT
      | (?:^|[^A-Za-z0-9])(?:
          (?:\+|00)\d[\d./-]{6,18}\d$                          # phone number, international
        | (?:AKIA|ASIA)[A-Z0-9]{16}                            # keys by their makers' prefixes: AWS,
        | hf_[A-Za-z0-9]{30}                                   # Hugging Face, often without any digit,
        | (?:sk-|[spr]k_live_|gh[pousr]_|github_pat_|glpat-|xox[abposr]-|AIza|ya29\.)
          (?=[-_.A-Za-z]*\d)[-_.A-Za-z0-9]{16}                 # and the others, with one
        )
      | (?:^|[^A-Za-z0-9.-])\d{3}[./-]\d{3}[./-]\d{4}$         # phone number, North American
    """,
    re.VERBOSE | re.ASCII,
)
_IBAN = re.compile(r"(?:^|[^A-Za-z0-9])([A-Z]{2}\d{2}[A-Z0-9]{11,30})$", re.ASCII)

# A line as most writers write it: every string has the shape of an identifier, so that no prose is anywhere in it. And
# what has to be in such a line before anything in it can be personal. Both run in pydantic-core's engine, which takes a
# tenth of the time of Python's and has no lookahead.
PLAIN_LINE_PATTERN = r'^(?:[{}\[\],: ]|"[A-Za-z0-9._:/@#+=~-]{0,200}"|[0-9.eE+-]+|true|false|null)*$'
PERSONAL_IN_LINE_PATTERN = (
    r"@[^\"]*\.[A-Za-z]{2}|eyJ[A-Za-z0-9_-]{8}|[^A-Za-z0-9](?:"
    r"(?:\+|00)[0-9][0-9./-]{7,19}\"|[0-9]{3}[./-][0-9]{3}[./-][0-9]{4}\"|[A-Z]{2}[0-9]{2}[A-Z0-9]{11}"
    r"|AKIA|ASIA|hf_|sk-|[spr]k_live_|gh[pousr]_|github_pat_|glpat-|xox[abposr]-|AIza|ya29\.)"
)
HASH_HEAD = "hmac:"


def is_identifier(text: str) -> bool:
    """Whether a string may be stored as it is."""
    return _IDENTIFIER.fullmatch(text) is not None


@lru_cache(maxsize=1024)
def display_name(text: str) -> str | None:
    """The display name that `text` gives once spaces are `_`, or None where it cannot be one. For writers."""
    name = "_".join(text.split())
    fits = _DISPLAY_NAME.fullmatch(name) and (name.isascii() or not any(unicodedata.category(c) == "No" for c in name))
    return name if fits else None  # ² and ½ are letters to Python's engine and none to the one that reads records


@lru_cache(maxsize=4096)
def is_personal(text: str) -> bool:
    """Whether an identifier looks like an e-mail address, phone number, JWT, key or IBAN."""
    if text.startswith(HASH_HEAD):
        return False
    return _PERSONAL.search(text) is not None or _is_iban(text)


def _is_iban(text: str) -> bool:
    found = _IBAN.search(text)
    if found is None:
        return False
    moved = found[1][4:] + found[1][:4]
    return int("".join(str(int(letter, 36)) for letter in moved)) % 97 == 1
