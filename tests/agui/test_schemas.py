from __future__ import annotations

import socket
import time
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.agui.schema_budget import one_budget
from stopcause.agui.schemas import Held, hold, offers_edits
from tests.agui.asking import doubling
from tests.support.laws import tried_on

Json = Any
FITS, MISMATCH, UNREADABLE, TOO_LARGE = Held.FITS, Held.MISMATCH, Held.UNREADABLE, Held.TOO_LARGE


def nested(levels: int, innermost: Json, wrap: str) -> Json:
    for _ in range(levels):
        innermost = {wrap: innermost}
    return innermost


@pytest.mark.parametrize(
    ("schema", "payload", "expected"),
    [
        (True, {"any": 1}, FITS),
        (False, 1, MISMATCH),
        ({}, None, FITS),
        ({"type": "boolean"}, False, FITS),
        ({"type": "boolean"}, 0, MISMATCH),
        ({"type": "integer"}, 1.0, FITS),
        ({"type": "integer"}, True, MISMATCH),
        ({"type": "object", "required": ["a"]}, {}, MISMATCH),
        ({"format": "email"}, "nobody", MISMATCH),
        ({"format": "date-time"}, "2026-11-30", MISMATCH),
        ({"format": "date-time"}, "2026-11-30T12:00:00Z", FITS),
        ({"format": "uri"}, "not a uri", MISMATCH),
        ({"format": "no-such-format"}, "x", FITS),
        ({"uniqueItems": True}, [1, True, "1"], FITS),
        ({"uniqueItems": True}, [{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}], MISMATCH),
        ({"uniqueItems": False}, [1, 1], FITS),
        ({"pattern": "b"}, "abc", FITS),
        ({"pattern": "^b"}, "abc", MISMATCH),
        ({"pattern": "^b"}, 5, FITS),
        ({"pattern": r"^\p{L}+$"}, "Žižek", FITS),
        ({"patternProperties": {"^x": {"type": "string"}}}, {"xa": 1}, MISMATCH),
        ({"patternProperties": {"^x": True}, "additionalProperties": False}, {"xa": 1}, FITS),
        ({"patternProperties": {"^x": True}, "additionalProperties": False}, {"a": 1}, MISMATCH),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}, {"a": 1, "b": 2}, MISMATCH),
        ({"additionalProperties": False}, [], FITS),
        ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"a": 1}, FITS),
        ({"allOf": [{"properties": {"a": {}}}], "unevaluatedProperties": False}, {"b": 1}, MISMATCH),
        ({"$ref": "#/$defs/a%20b", "$defs": {"a b": {"const": 1}}}, 1, FITS),
        ({"$ref": "#here", "$defs": {"a": {"$anchor": "here", "const": 1}}}, 2, MISMATCH),
        ({"properties": {"$ref": {"type": "string"}}}, {"$ref": 5}, MISMATCH),
        ({"properties": {"pattern": {"type": "string"}}}, {"pattern": "(?=x)"}, FITS),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}, [1], MISMATCH),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "items": [{"type": "string"}]}, ["x", 1], FITS),
    ],
)
def test_a_payload_is_held_as_json_schema_says(schema: Json, payload: Json, expected: Held) -> None:
    assert hold(schema, payload) is expected


@pytest.mark.parametrize(
    "schema",
    [
        None,
        "string",
        ["type"],
        {"type": "no such type"},
        {"type": 5},
        {"required": "a"},
        {"properties": []},
        {"$ref": "https://schemas.example/answer.json"},
        {"$ref": "other.json#/a"},
        {"properties": {"deep": {"anyOf": [{"$ref": "file:///etc/passwd"}]}}},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "#"},
        {"$dynamicRef": "#nowhere"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"$schema": "https://schemas.example/dialect"},
        {"$schema": 5},
        {"pattern": "(?=a)b"},
        {"pattern": r"(a)\1"},
        {"pattern": "("},
        {"pattern": "a" * 1_001},
        {"pattern": "(a{1000}){1000}"},
        {"patternProperties": {"(?<!a)b": True}},
        {"patternProperties": {"^(a+)+$": True}, "unevaluatedProperties": False},
        {"enum": list(range(5_001))},
        {"const": "x" * 6_000_000},
        {"const": float("nan")},
        {1: 2},
        {"const": {1, 2}},
        nested(60, True, "not"),
        nested(5_000, True, "not"),
        doubling("allOf", 40, True),
        doubling("anyOf", 40, False),
        {**doubling("allOf", 40, True), "unevaluatedProperties": False},
    ],
)
def test_a_schema_that_cannot_be_used_is_unreadable_and_is_so_soon(schema: Json) -> None:
    began = time.monotonic()
    assert hold(schema, {"a": [1]}) is UNREADABLE
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "payload",
    [nested(60, 1, "a"), ["x"] * 30_000, "x" * 30_000_000, {"a" * 30_000_000: 1}, 10**400],
    ids=["deep", "long", "string", "name", "number"],
)
def test_a_payload_beyond_the_caps_is_too_large_for_any_schema(payload: Json) -> None:
    assert hold(True, payload) is TOO_LARGE


@pytest.mark.parametrize(
    "schema",
    [{"pattern": "x"}, {"format": "uri"}, {"patternProperties": {"x": True}}, {"propertyNames": {"pattern": "x"}}],
)
def test_no_pattern_or_format_looks_at_a_string_of_any_length(schema: Json) -> None:
    text = "y" * 100_000
    assert hold(schema, {text: 1} if "ropert" in str(schema) else text) is TOO_LARGE


@pytest.mark.parametrize("payload", [{1: 2}, {"a": {2}}, object(), float("inf"), [float("nan")], b"x"])
def test_what_is_no_json_fits_no_schema(payload: Json) -> None:
    assert hold(True, payload) is MISMATCH


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(.*a){25}$", "(x+x+)+y"])
def test_patterns_that_explode_elsewhere_take_no_time(pattern: str) -> None:
    began = time.monotonic()
    assert hold({"pattern": pattern}, "a" * 2_000 + "!") is MISMATCH
    assert hold({"patternProperties": {pattern: False}, "additionalProperties": True}, {"a" * 2_000 + "!": 1}) is FITS
    assert time.monotonic() - began < 5


def test_nothing_is_ever_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        pytest.fail("the network was asked")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    for reference in ("http://localhost:9/x", "https://json-schema.org/other", "//host/x", "urn:x:y"):
        assert hold({"$ref": reference}, 1) is UNREADABLE
        assert hold({"$id": "http://localhost:9/", "$defs": {"a": {"$dynamicRef": reference}}}, 1) is UNREADABLE


def test_a_schema_that_could_not_be_afforded_once_is_no_worse_for_it() -> None:
    fine = {"type": "integer", "maximum": 41}
    with one_budget():
        assert hold(doubling("allOf", 40, True), 1) is UNREADABLE
        assert hold(fine, 1) is UNREADABLE
    assert hold(fine, 1) is FITS


def test_a_budget_is_for_one_payload_and_not_for_all() -> None:
    assert hold(doubling("allOf", 40, True), 1) is UNREADABLE
    assert hold({"type": "integer"}, 1) is FITS


NAMES = st.sampled_from(["a", "b", "xa"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 0.5, "", "a", "xa"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


def schemas(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    several = st.lists(inner, min_size=1, max_size=2)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"]),
            "properties": st.dictionaries(NAMES, inner, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from(["^x", "a$", "."]), inner, max_size=2),
            "additionalProperties": inner,
            "required": st.lists(NAMES, unique=True, max_size=2),
            "items": inner,
            "uniqueItems": st.booleans(),
            "enum": st.lists(VALUES, min_size=1, max_size=2),
            "pattern": st.sampled_from(["^x", "a$", "^$"]),
            "minimum": st.integers(-1, 1),
            "allOf": several,
            "anyOf": several,
            "oneOf": several,
            "not": inner,
        },
    )


@given(st.recursive(st.booleans(), schemas, max_leaves=6), VALUES)
@tried_on(400)
def test_where_nothing_explodes_it_is_what_jsonschema_says(schema: Json, payload: Json) -> None:
    expected = jsonschema.Draft202012Validator(schema).is_valid(payload)
    assert hold(schema, payload) is (FITS if expected else MISMATCH)


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["$ref", "type", "properties", "allOf", "pattern", "enum", "$id", "$defs", "items", "then"])
            | st.text(max_size=3),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)


@given(ANY, ANY)
@tried_on(300)
def test_nothing_is_raised_whatever_the_schema_and_the_payload(schema: Json, payload: Json) -> None:
    assert hold(schema, payload) in Held
    assert offers_edits(schema) in (True, False)


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"properties": {"editedArgs": {}}}, True),
        ({"properties": {"editedArgs": {}}, "pattern": "(?=x)"}, True),
        ({"anyOf": [{"type": "null"}, {"properties": {"editedArgs": {}}}]}, True),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"editedArgs": {}}}}}, True),
        ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"then": {"properties": {"editedArgs": {}}}}}}, True),
        ({"$defs": {"a": {"properties": {"editedArgs": {}}}}}, False),
        ({"properties": {"inner": {"properties": {"editedArgs": {}}}}}, False),
        ({"$ref": "#"}, False),
        ({"additionalProperties": True}, False),
        (True, False),
        (None, False),
        ({"allOf": 5, "$ref": "#/allOf/x"}, False),
    ],
)
def test_edits_are_offered_where_the_payload_itself_is_described(schema: Json, expected: bool) -> None:
    assert offers_edits(schema) is expected


# Schemas as libraries write them --------------------------------------------------------------------------------------

EMAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
ZOD_4 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "email": {"type": "string", "format": "email", "pattern": EMAIL}},
    "required": ["approved"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("payload", "held"),
    [
        ({"approved": True, "email": "a@b.example"}, UNREADABLE),  # what is left is fine, and nobody can tell the rest
        ({}, MISMATCH),
        ({"approved": "yes"}, MISMATCH),
        ({"approved": True, "else": 1}, MISMATCH),
        ({"approved": True, "email": "nobody"}, MISMATCH),  # by its format
    ],
)
def test_one_pattern_that_the_engine_does_not_take_opens_no_door(payload: Json, held: Held) -> None:
    assert hold(ZOD_4, payload) is held


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        ({"not": {"pattern": "(?=a)b"}}, "x"),
        ({"oneOf": [{"pattern": "(?=a)b"}, {"type": "string"}]}, "x"),
        ({"if": {"pattern": "(?=a)b"}, "then": False}, "x"),
        ({"contains": {"pattern": "(?=a)b"}, "maxContains": 1}, ["x", "y"]),
        ({"patternProperties": {"(?=a)b": True}, "additionalProperties": False}, {"x": 1}),
        ({"pattern": "^[a&&b]$"}, "&"),
        ({"pattern": r"^[^[\]]+$"}, "x"),
    ],
)
def test_a_pattern_that_is_passed_over_makes_no_mismatch(schema: Json, payload: Json) -> None:
    assert hold(schema, payload) is UNREADABLE


@pytest.mark.parametrize("pattern", [r"^\[[a-z]+\]$", r"^[a-z]+--[&]+&&$", r"^[\[a-z]+$"])
def test_brackets_and_signs_that_mean_the_same_everywhere_are_held(pattern: str) -> None:
    assert hold({"pattern": pattern}, "9") is MISMATCH


@pytest.mark.parametrize(
    ("schema", "fits", "does_not"),
    [
        ({"$schema": "https://json-schema.org/draft-07/schema#", "type": "string"}, "x", 1),
        ({"type": "array", "items": [{"type": "string"}]}, ["x"], [1]),  # Draft 7, and does not say so
        ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, 1, 0),  # Draft 4
    ],
)
def test_a_dialect_that_is_written_otherwise_or_not_at_all_is_found(schema: Json, fits: Json, does_not: Json) -> None:
    assert hold(schema, fits) is FITS
    assert hold(schema, does_not) is MISMATCH
