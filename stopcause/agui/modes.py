"""By which contract a run is read, and what a `protocolVersion` says."""

from __future__ import annotations

import re
from typing import NamedTuple

from stopcause.agui.ids import word_or_none
from stopcause.agui.values import Json
from stopcause.agui.words import Mode

_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})", re.ASCII)
_NEWEST = (1, 1)  # 1.1 is 1.0 and one optional field


class Declared(NamedTuple):
    """What RUN_STARTED declares.

    Attributes:
        version: As it stands there, where that is a word.
        is_there: A version is declared, whatever it says: the producer knows the specification 1.0.
        is_readable: It is a version, and none that came later.
    """

    version: str | None = None
    is_there: bool = False
    is_readable: bool = True


def read_version(value: Json) -> Declared:
    """What a `protocolVersion` says. One that cannot be read is handled like a newer one (spec 1.0, versioning)."""
    if value is None:
        return Declared()
    found = _VERSION.fullmatch(value) if isinstance(value, str) else None
    is_known = found is not None and found[1] == "1" and (int(found[1]), int(found[2])) <= _NEWEST
    return Declared(word_or_none(value), is_there=True, is_readable=is_known)


def mode_of(declared: Declared, *, has_outcome: bool, has_custom: bool) -> Mode:
    """The contract that holds. Before 1.0 it shows only at the end whether a run tells outcomes."""
    if declared.is_there:
        return Mode.SPEC
    return Mode.LEGACY_CUSTOM if has_custom and not has_outcome else Mode.LEGACY_OUTCOME
