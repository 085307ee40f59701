"""The dialects of JSON Schema with keywords that cannot explode: each is paid for, and no pattern takes its time.

Patterns run in pydantic-core's linear-time engine, where jsonschema has Python's. One that it does not take is passed
over here: `schemas` knows what that makes of the outcome.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any

from pydantic_core import SchemaError, SchemaValidator, core_schema

from stopcause.agui.schema_budget import TooLargeError, spend
from stopcause.agui.values import Json

Foreign = Any  # what jsonschema hands around: validators, errors
Keyword = Callable[[Foreign, Json, Json, Json], Foreign]

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
_CLASS = r"\[(?:[^\]\\]|\\.)*"
# A class with what means one thing to JavaScript, and another to Rust.
_OTHER_CLASS = re.compile(rf"(?:\\.|[^\\\[]|{_CLASS}\])*?{_CLASS}?(?:&&|--|~~|\[)", re.DOTALL)


@cache
def dialect(name: str) -> Foreign:
    """Its class, by `$schema` without the scheme: every keyword counts, and those that can explode are ours."""
    import jsonschema  # noqa: PLC0415 - of an extra

    base: Foreign = getattr(jsonschema, _CLASSES[name])
    ours = {each: keyword for each, keyword in _OURS.items() if each in base.VALIDATORS}
    limited = {"format": _limited(base.VALIDATORS["format"])}
    keywords = {each: _counted(keyword) for each, keyword in {**base.VALIDATORS, **ours, **limited}.items()}
    extend: Foreign = jsonschema.validators.extend
    return extend(base, keywords)


def _counted(keyword: Keyword) -> Keyword:
    def evaluate(validator: Foreign, value: Json, instance: Json, schema: Json) -> Foreign:
        spend()
        return keyword(validator, value, instance, schema)

    return evaluate


def _limited(keyword: Keyword) -> Keyword:
    def evaluate(validator: Foreign, value: Json, instance: Json, schema: Json) -> Foreign:
        if isinstance(instance, str) and len(instance) > _LONGEST_FORMATTED:
            raise TooLargeError
        return keyword(validator, value, instance, schema)

    return evaluate


@lru_cache(maxsize=1024)
def compiled(text: str) -> SchemaValidator | None:
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
        raise TooLargeError
    read = compiled(pattern)
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
            spend()
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
