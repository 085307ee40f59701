"""A payload held against a `responseSchema`: JSON Schema as jsonschema reads it, formats on, and never out of hand.

Nothing is ever fetched: a `$ref` that leaves its schema makes it unreadable, and so does what asks for more than its
`schema_budget`. A pattern that `schema_keywords` cannot run (zod's of an email looks ahead) is passed over: what breaks
the rest of the schema is a mismatch, and what does not is unreadable. What comes out is one word: no value, no message.

Needs the extra `agui`. A schema that names its dialect is read by it, any other by the newest that it is valid in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from stopcause.agui.schema_budget import (
    LARGEST_PAYLOAD,
    LARGEST_SCHEMA,
    SpentError,
    TooLargeError,
    UnreadableError,
    measure,
    one_budget,
    spend,
)
from stopcause.agui.schema_keywords import Foreign, compiled, dialect
from stopcause.agui.values import Json
from stopcause.errors import MissingExtraError

_UNNAMED = tuple(f"json-schema.org/{name}/schema" for name in ("draft/2020-12", "draft-07", "draft-04"))
_SCHEME = re.compile(r"https?://")
_TURNS = frozenset({"not", "oneOf", "if", "maxContains"})  # where more that fits may be a mismatch


class Held(Enum):
    """What came of it."""

    FITS = "fits"
    MISMATCH = "mismatch"
    UNREADABLE = "unreadable"  # the schema
    TOO_LARGE = "too large"  # the payload


def require() -> None:
    """Says at once that schemas cannot be read here.

    Raises:
        MissingExtraError: The extra `agui` is not installed.
    """
    try:
        import jsonschema  # noqa: F401, PLC0415 - of an extra
    except ImportError:
        raise MissingExtraError("jsonschema", "agui") from None


def hold(schema: Json, payload: Json) -> Held:
    """A payload held against a schema; one that is absent is held as null, which an agent reads. Never raises."""
    with one_budget():
        try:
            return _hold(schema, payload)
        except TooLargeError:
            return Held.TOO_LARGE
        except Exception:  # noqa: BLE001 - out of budget, a reference to nowhere or to itself
            return Held.UNREADABLE


def _hold(schema: Json, payload: Json) -> Held:
    ready = _prepared(schema)
    try:
        measure(payload, LARGEST_PAYLOAD)
    except TypeError:  # made in Python, and no JSON: no schema describes it
        return Held.MISMATCH
    return ready.fits if ready.validator.is_valid(payload) else ready.mismatch


# Preparing a schema ---------------------------------------------------------------------------------------------------


class _Ready(NamedTuple):
    """A schema's validator, and what its word is worth: one that passes over a pattern may be sure of a mismatch."""

    validator: Foreign
    fits: Held = Held.FITS
    mismatch: Held = Held.MISMATCH


def _prepared(schema: Json) -> _Ready:
    spend()
    try:
        measure(schema, LARGEST_SCHEMA)
    except TooLargeError:
        raise UnreadableError from None
    if not isinstance(schema, dict | bool) or (ready := _prepare(json.dumps(schema, sort_keys=True))) is None:
        raise UnreadableError
    return ready


@lru_cache(maxsize=256)
def _prepare(text: str) -> _Ready | None:
    """None where the schema cannot be used. What could not be afforded now is not remembered."""
    try:
        schema = json.loads(text)
        patterns, names = _look_at(schema)
        if all(map(compiled, patterns)):
            return _Ready(_validator(schema))
        return _Ready(_validator(schema), Held.UNREADABLE, Held.UNREADABLE if names & _TURNS else Held.MISMATCH)
    except SpentError:
        raise
    except Exception:  # noqa: BLE001 - whatever a schema that is none makes of its own check
        return None


def _validator(schema: Json) -> Foreign:
    """Ready to be used. Keywords are in order of their names, so that `unevaluated…` comes after what it asks about."""
    from referencing import Registry  # noqa: PLC0415 - of an extra

    named = schema.get("$schema") if isinstance(schema, dict) else None
    for name in _UNNAMED if named is None else (_SCHEME.sub("", named, count=1).rstrip("#"),):
        kind = dialect(name)
        if kind(kind.META_SCHEMA, registry=Registry()).is_valid(schema):
            return kind(schema, registry=Registry(), format_checker=kind.FORMAT_CHECKER)
    raise UnreadableError


def _look_at(schema: Json) -> tuple[set[str], set[str]]:
    """Its patterns and names. Refuses what would be found only when a payload comes that needs it."""
    names, patterns = set(), set()
    for name, value in _named(schema):
        names.add(name)
        if name in {"$ref", "$dynamicRef", "$recursiveRef"} and isinstance(value, str) and not value.startswith("#"):
            raise UnreadableError
        if name == "pattern" and isinstance(value, str):
            patterns.add(value)
        elif name == "patternProperties" and isinstance(value, dict):
            patterns.update(value)
    if {"patternProperties", "unevaluatedProperties"} <= names:  # together they go through Python's own engine
        raise UnreadableError
    return patterns, names


def _named(schema: Json) -> Iterator[tuple[str, Json]]:
    """All that has a name in it, at any depth: keywords, and properties whose value is then no string."""
    rest = [schema]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            yield from value.items()
            rest.extend(value.values())
        elif isinstance(value, list):
            rest.extend(value)


# What a schema describes ----------------------------------------------------------------------------------------------


def offers_edits(schema: Json) -> bool:
    """Whether a schema has the property `editedArgs`: only then may edits be given (the contract before 1.0).

    Also where a payload cannot be held against it.
    """
    try:
        measure(schema, LARGEST_SCHEMA)
        return _has_property(schema, "editedArgs")
    except (TooLargeError, TypeError, AttributeError):  # or a keyword of another type than it has to be
        return False


def _has_property(schema: Json, name: str) -> bool:
    """Whether a property is described where the payload itself is."""
    seen: set[str] = set()
    rest = [schema]
    while rest:
        here = rest.pop()
        if not isinstance(here, dict):
            continue
        if name in here.get("properties", {}):
            return True
        for keyword in ("allOf", "anyOf", "oneOf"):
            rest.extend(here.get(keyword, ()))
        rest.extend(here.get(keyword) for keyword in ("then", "else"))
        if isinstance(reference := here.get("$ref"), str) and reference not in seen:
            seen.add(reference)
            rest.append(_resolved(schema, reference))
    return False


def _resolved(schema: Json, reference: str) -> Json:
    """What a `$ref` of the form `#/a/b` points at; None where that is nothing."""
    for step in unquote(reference[1:]).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        schema = schema.get(name) if isinstance(schema, dict) else None
    return schema
