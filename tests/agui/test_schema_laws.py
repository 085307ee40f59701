"""A `responseSchema` that is kept without what people read in it still takes and refuses the same answers."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.agui.watched import STARTED, ask, interrupted, run
from tests.support.laws import tried_on

Json = Any
PROSE = "PROSE, for people"
# Names that are keywords are names of properties here: they are what a careless reader takes out.
NAMES = st.sampled_from(["title", "default", "description", "examples", "a", "enum", "properties"])
ANSWERS = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["", "a", "title"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
FOR_PEOPLE = st.fixed_dictionaries(
    {},
    optional={
        "title": st.just(PROSE),
        "description": st.just(PROSE),
        "default": st.just({"title": PROSE}),
        "examples": st.just([PROSE]),
        "$comment": st.just(PROSE),
    },
)


def _deeper(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    named = st.dictionaries(NAMES, inner, max_size=3)
    keywords = st.fixed_dictionaries(
        {},
        optional={
            "properties": named,
            "patternProperties": st.dictionaries(st.sampled_from(["^t", "a"]), inner, max_size=2),
            "additionalProperties": inner,
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "contains": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "propertyNames": inner,
            "dependentSchemas": named,
            "required": st.lists(NAMES, max_size=2, unique=True),
            "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=1), max_size=1),
            "enum": st.lists(ANSWERS, min_size=1, max_size=3),
            "const": ANSWERS,
        },
    )
    return st.builds(lambda prose, rest: {**prose, **rest}, FOR_PEOPLE, keywords)


LEAVES = st.booleans() | st.builds(
    lambda prose, rest: {**prose, **rest},
    FOR_PEOPLE,
    st.sampled_from([{"type": "string"}, {"type": ["object", "null"]}, {"minimum": 2}, {"maxLength": 0}, {}]),
)
SCHEMAS = st.recursive(LEAVES, _deeper, max_leaves=6).filter(lambda schema: isinstance(schema, dict))


@given(SCHEMAS, st.lists(ANSWERS, min_size=1, max_size=4))
@tried_on(500)
def test_a_schema_without_prose_takes_and_refuses_the_same_answers(schema: Json, answers: list[Json]) -> None:
    (interrupt,) = run([STARTED, interrupted(ask(responseSchema=schema))]).interrupts
    whole, kept = Draft202012Validator(schema), Draft202012Validator(interrupt.schema)
    assert [kept.is_valid(each) for each in answers] == [whole.is_valid(each) for each in answers]
    assert PROSE not in repr(interrupt)
