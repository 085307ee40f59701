"""Digests of payloads: what is one answer and what is another, on both sides of the wire."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.agui.inputs import digest_of
from tests.support.laws import tried_on

ABSENT = digest_of(None, is_absent=True)
NULL = digest_of(None, is_absent=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def test_what_is_nothing_is_not_all_the_same() -> None:
    others: tuple[object, ...] = (False, "", 0, [], {}, "null", True, 1, "1")
    assert len({ABSENT, NULL, *(digest_of(each, is_absent=False) for each in others)}) == 2 + len(others)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0), (0, -0.0), (10**20, 1e20), ({"a": 1, "b": [2.0]}, {"b": [2], "a": 1.0}),
        ((1, 2), [1, 2]), ({1: 2}, {"1": 2}),
    ],
)  # fmt: skip
def test_two_ways_to_write_one_value_are_one(one: object, other: object) -> None:
    assert digest_of(one, is_absent=False) == digest_of(other, is_absent=False)


@pytest.mark.parametrize(
    ("one", "other"), [([1, 2], [2, 1]), (1, 1.5), ("a", "A"), ({"a": None}, {}), (1, True), ("\u00e9", "e\u0301")]
)
def test_two_values_are_two(one: object, other: object) -> None:
    assert digest_of(one, is_absent=False) != digest_of(other, is_absent=False)


@tried_on(500)
@given(JSON)
def test_a_digest_survives_the_wire(payload: Any) -> None:  # noqa: ANN401 - any JSON
    digest = digest_of(payload, is_absent=False)
    assert len(digest) == 32
    assert digest == digest_of(json.loads(json.dumps(payload)), is_absent=False)
    assert digest == digest_of(json.loads(json.dumps(payload, sort_keys=True, indent=1)), is_absent=False)
    assert digest != ABSENT


@tried_on(500)
@given(JSON, JSON)
def test_different_payloads_have_different_digests(one: Any, other: Any) -> None:  # noqa: ANN401 - any JSON
    is_same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert not is_same or digest_of(one, is_absent=False) == digest_of(other, is_absent=False)
    if digest_of(one, is_absent=False) == digest_of(other, is_absent=False):
        assert one == other
