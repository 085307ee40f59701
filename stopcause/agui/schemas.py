"""A payload held against a `responseSchema`: JSON Schema as jsonschema reads it, formats on, and never out of hand.

Schemas are somebody else's. Nothing is ever fetched: a `$ref` that leaves its schema makes it unreadable, and so does
what asks for more than `MOST_STEPS` evaluations. Patterns run in pydantic-core's linear-time engine, so that none
explodes. One that it does not take (zod's of an email looks ahead) is passed over: what breaks the rest of the schema
is a mismatch, and what does not is unreadable. What comes out is one word: no value, no message.

Needs the extra `agui`. A schema that names its dialect is read by it, any other by the newest that it is valid in.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from functools import cache, lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote

from pydantic_core import SchemaError, SchemaValidator, core_schema

from stopcause.agui.values import Json
from stopcause.errors import MissingExtraError

Foreign = Any  # what jsonschema hands around: validators, errors
Keyword = Callable[[Foreign, Json, Json, Json], Foreign]

MOST_STEPS = 100_000  # evaluations of a keyword, for one input
_MOST_S = 2.0  # and for how long: an error that is looked past costs as much as what it would show
_DEEPEST = 48  # levels of a schema or payload: each takes several calls, and Python has a thousand
_LARGEST_SCHEMA = 5_000  # values in it; a string counts once more for each thousand characters
_LARGEST_PAYLOAD = 20_000
_MOST_BITS = 1024  # of an integer: as many as a float counts
_LONGEST_PATTERN = 1_000  # characters
_LONGEST_MATCHED = 20_000  # that a pattern looks at
_LONGEST_FORMATTED = 2_000  # that a format looks at: some take the square of it

_CLASSES = {  # by `$schema`, which is written with http and with https
    "json-schema.org/draft/2020-12/schema": "Draft202012Validator",
    "json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "json-schema.org/draft-07/schema": "Draft7Validator",
    "json-schema.org/draft-06/schema": "Draft6Validator",
    "json-schema.org/draft-04/schema": "Draft4Validator",
}
_UNNAMED = tuple(f"json-schema.org/{name}/schema" for name in ("draft/2020-12", "draft-07", "draft-04"))
_SCHEME = re.compile(r"https?://")
_TURNS = frozenset({"not", "oneOf", "if", "maxContains"})  # where more that fits may be a mismatch
_CLASS = r"\[(?:[^\]\\]|\\.)*"
# A class with what means one thing to JavaScript, and another to Rust.
_OTHER_CLASS = re.compile(rf"(?:\\.|[^\\\[]|{_CLASS}\])*?{_CLASS}?(?:&&|--|~~|\[)", re.DOTALL)


class Held(Enum):
    """What came of it."""

    FITS = "fits"
    MISMATCH = "mismatch"
    UNREADABLE = "unreadable"  # the schema
    TOO_LARGE = "too large"  # the payload


class _UnreadableError(Exception):
    """The schema cannot be used."""


class _SpentError(_UnreadableError):
    """It may be fine; nobody can afford to see."""


class _TooLargeError(Exception):
    """The payload is larger than is looked at."""


class _Budget:
    """What may still be spent."""

    def __init__(self) -> None:
        self.steps = MOST_STEPS
        self.until = time.monotonic() + _MOST_S

    def spend(self) -> None:
        self.steps -= 1
        if self.steps < 0 or time.monotonic() > self.until:
            raise _SpentError


_budget: ContextVar[_Budget | None] = ContextVar("budget", default=None)


@contextmanager
def one_budget() -> Iterator[None]:
    """All that is held inside is paid from one budget: a thousand answers may not take a thousand times as long."""
    if _budget.get() is not None:
        yield
        return
    token = _budget.set(_Budget())
    try:
        yield
    finally:
        _budget.reset(token)


def _spend() -> None:
    if (budget := _budget.get()) is not None:
        budget.spend()


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
        except _TooLargeError:
            return Held.TOO_LARGE
        except Exception:  # noqa: BLE001 - out of budget, a reference to nowhere or to itself
            return Held.UNREADABLE


def _hold(schema: Json, payload: Json) -> Held:
    ready = _prepared(schema)
    try:
        _measure(payload, _LARGEST_PAYLOAD)
    except TypeError:  # made in Python, and no JSON: no schema describes it
        return Held.MISMATCH
    return ready.fits if ready.validator.is_valid(payload) else ready.mismatch


def offers_edits(schema: Json) -> bool:
    """Whether a schema has the property `editedArgs`: only then may edits be given (the contract before 1.0).

    Also where a payload cannot be held against it.
    """
    try:
        _measure(schema, _LARGEST_SCHEMA)
        return _has_property(schema, "editedArgs")
    except (_TooLargeError, TypeError, AttributeError):  # or a keyword of another type than it has to be
        return False


def _measure(value: Json, room: int) -> None:
    """Raises where a value is too deep, too large, or no JSON. It may be anything that Python can hold."""
    rest: list[tuple[Json, int]] = [(value, _DEEPEST)]
    while rest:
        here, depth = rest.pop()
        room -= _cost(here)
        inner = here.values() if isinstance(here, dict) else here if isinstance(here, list) else ()
        if len(inner) > room or depth == 0:
            raise _TooLargeError
        rest.extend((each, depth - 1) for each in inner)


def _cost(value: Json) -> int:
    if isinstance(value, str):
        return 1 + len(value) // 1000
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return 1 + sum(1 + len(name) // 1000 for name in value)
    if isinstance(value, int):
        return 1 + (value.bit_length() // _MOST_BITS) * _LARGEST_PAYLOAD
    if value is None or isinstance(value, list) or (isinstance(value, float) and math.isfinite(value)):
        return 1
    raise TypeError


# Preparing a schema ---------------------------------------------------------------------------------------------------


class _Ready(NamedTuple):
    """A schema's validator, and what its word is worth: one that passes over a pattern may be sure of a mismatch."""

    validator: Foreign
    fits: Held = Held.FITS
    mismatch: Held = Held.MISMATCH


def _prepared(schema: Json) -> _Ready:
    _spend()
    try:
        _measure(schema, _LARGEST_SCHEMA)
    except _TooLargeError:
        raise _UnreadableError from None
    if not isinstance(schema, dict | bool) or (ready := _prepare(json.dumps(schema, sort_keys=True))) is None:
        raise _UnreadableError
    return ready


@lru_cache(maxsize=256)
def _prepare(text: str) -> _Ready | None:
    """None where the schema cannot be used. What could not be afforded now is not remembered."""
    try:
        schema = json.loads(text)
        patterns, names = _look_at(schema)
        if all(map(_pattern, patterns)):
            return _Ready(_validator(schema))
        return _Ready(_validator(schema), Held.UNREADABLE, Held.UNREADABLE if names & _TURNS else Held.MISMATCH)
    except _SpentError:
        raise
    except Exception:  # noqa: BLE001 - whatever a schema that is none makes of its own check
        return None


def _validator(schema: Json) -> Foreign:
    """Ready to be used. Keywords are in order of their names, so that `unevaluated…` comes after what it asks about."""
    from referencing import Registry  # noqa: PLC0415 - of an extra

    named = schema.get("$schema") if isinstance(schema, dict) else None
    for dialect in _UNNAMED if named is None else (_SCHEME.sub("", named, count=1).rstrip("#"),):
        kind = _kind(dialect)
        if kind(kind.META_SCHEMA, registry=Registry()).is_valid(schema):
            return kind(schema, registry=Registry(), format_checker=kind.FORMAT_CHECKER)
    raise _UnreadableError


def _look_at(schema: Json) -> tuple[set[str], set[str]]:
    """Its patterns and names. Refuses what would be found only when a payload comes that needs it."""
    names, patterns = set(), set()
    for name, value in _named(schema):
        names.add(name)
        if name in {"$ref", "$dynamicRef", "$recursiveRef"} and isinstance(value, str) and not value.startswith("#"):
            raise _UnreadableError
        if name == "pattern" and isinstance(value, str):
            patterns.add(value)
        elif name == "patternProperties" and isinstance(value, dict):
            patterns.update(value)
    if {"patternProperties", "unevaluatedProperties"} <= names:  # together they go through Python's own engine
        raise _UnreadableError
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


# Keywords -------------------------------------------------------------------------------------------------------------


@cache
def _kind(dialect: str) -> Foreign:
    """The dialect's class, with keywords that count, and ours for those that can explode."""
    import jsonschema  # noqa: PLC0415 - of an extra

    base: Foreign = getattr(jsonschema, _CLASSES[dialect])
    ours = {name: keyword for name, keyword in _OURS.items() if name in base.VALIDATORS}
    limited = {"format": _limited(base.VALIDATORS["format"])}
    keywords = {name: _counted(keyword) for name, keyword in {**base.VALIDATORS, **ours, **limited}.items()}
    extend: Foreign = jsonschema.validators.extend
    return extend(base, keywords)


def _counted(keyword: Keyword) -> Keyword:
    def evaluate(validator: Foreign, value: Json, instance: Json, schema: Json) -> Foreign:
        _spend()
        return keyword(validator, value, instance, schema)

    return evaluate


def _limited(keyword: Keyword) -> Keyword:
    def evaluate(validator: Foreign, value: Json, instance: Json, schema: Json) -> Foreign:
        if isinstance(instance, str) and len(instance) > _LONGEST_FORMATTED:
            raise _TooLargeError
        return keyword(validator, value, instance, schema)

    return evaluate


@lru_cache(maxsize=1024)
def _pattern(text: str) -> SchemaValidator | None:
    """A pattern as the linear-time engine takes it (its program is limited in size); None where it does not."""
    if len(text) > _LONGEST_PATTERN or _OTHER_CLASS.match(text):
        return None
    try:
        return SchemaValidator(core_schema.str_schema(strict=True, pattern=text, regex_engine="rust-regex"))
    except SchemaError:
        return None


def _is_found(pattern: str, text: str) -> bool | None:
    """Anywhere in the text; None where nobody can tell."""
    if len(text) > _LONGEST_MATCHED:
        raise _TooLargeError
    read = _pattern(pattern)
    return None if read is None else read.isinstance_python(text)


def _error() -> Foreign:
    from jsonschema import ValidationError  # noqa: PLC0415 - of an extra

    return ValidationError("does not fit")


def _match(_: Foreign, pattern: Json, instance: Json, __: Json) -> Iterator[Foreign]:
    if isinstance(instance, str) and _is_found(pattern, instance) is False:
        yield _error()


def _pattern_properties(validator: Foreign, patterns: Json, instance: Json, _: Json) -> Iterator[Foreign]:
    for pattern, schema in patterns.items() if isinstance(instance, dict) else ():
        for name, value in instance.items():
            _spend()
            if _is_found(pattern, name):
                yield from validator.descend(value, schema)


def _additional_properties(validator: Foreign, inner: Json, instance: Json, schema: Json) -> Iterator[Foreign]:
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for name, value in instance.items() if isinstance(instance, dict) else ():
        if name not in known and all(_is_found(each, name) is False for each in patterns):
            yield from validator.descend(value, inner)


def _unique_items(_: Foreign, is_asked: Json, instance: Json, __: Json) -> Iterator[Foreign]:
    """In linear time: jsonschema compares each with each."""
    if is_asked and isinstance(instance, list) and len({_hashable(each) for each in instance}) < len(instance):
        yield _error()


def _hashable(value: Json) -> Foreign:
    """Equal where JSON Schema calls values equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return frozenset((name, _hashable(each)) for name, each in value.items())
    if isinstance(value, list):
        return tuple(_hashable(each) for each in value)
    return isinstance(value, bool), value


_OURS: Mapping[str, Keyword] = {
    "pattern": _match,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}
