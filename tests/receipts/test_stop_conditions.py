"""Stop conditions mean what the AI SDK's mean: its edge results, laws that hold for any history, and the fixtures."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.receipts.stop_conditions import (
    Condition,
    ConditionResult,
    Step,
    condition_from_mapping,
    cost_budget,
    evaluate,
    evaluate_history,
    fired,
    has_tool_call,
    history_matches,
    is_loop_finished,
    is_step_count,
    steps_from_mapping,
    time_budget,
    token_budget,
)
from stopcause.receipts.vocabulary import LimitKind
from stopcause.resources import data_folder

ARTICLE = data_folder("fixtures") / "article"
CASES = [json.loads(path.read_text("utf-8")) for path in sorted(ARTICLE.glob("A[0-9][0-9]-*.json"))]
ASSERTIONS = json.loads((ARTICLE / "assertions.json").read_text("utf-8"))

TOOLS = ("search", "pay", "done")
STEPS = st.lists(
    st.builds(
        Step,
        tool_calls=st.lists(st.sampled_from(TOOLS), max_size=3).map(tuple),
        total_tokens=st.integers(0, 10_000),
        cost_usd=st.floats(0, 100),
        duration_s=st.floats(0, 1_000),
    ),
    max_size=25,
)
CONDITIONS = st.lists(
    st.one_of(
        st.integers(-1, 25).map(is_step_count),
        st.lists(st.sampled_from(TOOLS), max_size=2).map(lambda names: has_tool_call(*names)),
        st.just(is_loop_finished()),
        st.integers(0, 50_000).map(token_budget),
        st.floats(0, 500).map(cost_budget),
        st.floats(0, 5_000).map(time_budget),
    ),
    max_size=6,
)


def fires(condition: Condition, steps: list[Step]) -> bool:
    return condition.over(steps).fired


def blank(count: int) -> list[Step]:
    return [Step()] * count


# The SDK's edge results


@pytest.mark.parametrize(
    ("limit", "completed", "expected"),
    [(4, 3, False), (4, 4, True), (4, 5, False), (20, 21, False), (0, 0, False), (0, 1, False), (-1, 1, False)],
)
def test_step_count_is_equality_and_never_fires_at_zero_or_less(limit: int, completed: int, *, expected: bool) -> None:
    assert fires(is_step_count(limit), blank(completed)) is expected


@pytest.mark.parametrize(
    ("names", "calls", "expected"),
    [
        (("done",), [("done",)], True),
        (("done",), [("search",), ("done",)], True),
        (("done",), [("done",), ("search",)], False),
        (("done",), [("done",), ()], False),
        (("done",), [], False),
        ((), [("done",)], False),
        (("done", "give_up"), [("search", "give_up")], True),
        (("done",), [("search", "done")], True),
        (("done",), [("Done",)], False),
    ],
)
def test_tool_call_looks_at_the_last_step_only(
    names: tuple[str, ...], calls: list[tuple[str, ...]], *, expected: bool
) -> None:
    assert fires(has_tool_call(*names), [Step(tool_calls=call) for call in calls]) is expected


def test_tool_call_observes_how_many_calls_of_the_last_step_match() -> None:
    steps = [Step(("done", "done", "done")), Step(("done", "search", "done"))]
    assert has_tool_call("done").over(steps) == ConditionResult("tool_call", LimitKind.TOOL_CALL, True, None, 2)
    assert has_tool_call("done").over([]) == ConditionResult("tool_call", LimitKind.TOOL_CALL, False, None, 0)


@pytest.mark.parametrize(
    ("condition", "spent", "short"),
    [
        (token_budget(100), Step(total_tokens=50), Step(total_tokens=49)),
        (cost_budget(1.0), Step(cost_usd=0.5), Step(cost_usd=0.49)),
        (time_budget(60), Step(duration_s=30), Step(duration_s=29.5)),
    ],
    ids=lambda value: value.name if isinstance(value, Condition) else "",
)
def test_a_budget_fires_from_its_limit_on(condition: Condition, spent: Step, short: Step) -> None:
    assert not fires(condition, [])
    assert not fires(condition, [spent, short])
    assert fires(condition, [spent, spent])
    assert fires(condition, [spent, spent, spent])


def test_ten_dimes_are_a_dollar() -> None:
    assert fires(cost_budget(1.0), [Step(cost_usd=0.1)] * 10)


def test_the_default_names_and_kinds() -> None:
    conditions = (
        is_step_count(1),
        has_tool_call("done"),
        is_loop_finished(),
        token_budget(1),
        cost_budget(1),
        time_budget(1),
    )
    assert [(c.name, c.kind.value) for c in conditions] == [
        ("step_count", "steps"),
        ("tool_call", "tool_call"),
        ("loop_finished", "custom"),
        ("tokens", "tokens"),
        ("cost", "cost"),
        ("time", "time"),
    ]
    assert is_step_count(1, name="turns").over([]).name == "turns"


@pytest.mark.parametrize("limit", [math.nan, math.inf])
def test_a_bound_that_is_not_finite_never_fires_and_is_not_written(limit: float) -> None:
    result = cost_budget(limit).over([Step(cost_usd=1e300)])
    assert (result.fired, result.limit) == (False, None)


@pytest.mark.parametrize("kind", list(LimitKind))
def test_a_condition_of_any_kind_answers_and_without_a_bound_never_fires(kind: LimitKind) -> None:
    assert not fires(Condition("bare", kind), [Step(("done",), 10, 1.0, 1.0)])


def test_several_conditions_fire_together_and_none_hides_another() -> None:
    steps = [Step(("search",), 10), Step(("done",), 10)]
    results = evaluate(steps, (is_loop_finished(), is_step_count(2), has_tool_call("done"), token_budget(21)))
    assert [result.fired for result in results] == [False, True, True, False]
    assert [result.name for result in fired(results)] == ["step_count", "tool_call"]


# Laws


@given(STEPS, st.integers(-2, 30))
def test_step_count_fires_for_at_most_one_length_of_a_growing_history(steps: list[Step], limit: int) -> None:
    hits = [size for size in range(len(steps) + 1) if fires(is_step_count(limit), steps[:size])]
    assert hits == ([limit] if 0 < limit <= len(steps) else [])


@given(STEPS, st.integers(0, 50_000), st.floats(0, 500), st.floats(0, 5_000))
def test_a_budget_that_fired_stays_fired(steps: list[Step], tokens: int, cost: float, seconds: float) -> None:
    for budget in (token_budget(tokens), cost_budget(cost), time_budget(seconds)):
        answers = [fires(budget, steps[:size]) for size in range(len(steps) + 1)]
        assert answers == sorted(answers)


@given(STEPS, st.integers(0, 50_000), st.integers(0, 50_000))
def test_a_smaller_budget_fires_whenever_a_larger_one_does(steps: list[Step], one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert fires(token_budget(small), steps) or not fires(token_budget(large), steps)


@given(STEPS, CONDITIONS)
def test_there_is_one_result_for_each_condition(steps: list[Step], conditions: list[Condition]) -> None:
    results = evaluate(steps, conditions)
    assert [(r.name, r.kind, r.limit) for r in results] == [(c.name, c.kind, c.limit) for c in conditions]
    assert set(fired(results)) <= set(results)


@given(STEPS, CONDITIONS, st.randoms(use_true_random=False))
def test_the_order_of_conditions_does_not_matter(steps: list[Step], conditions: list[Condition], random: Any) -> None:  # noqa: ANN401 - hypothesis hands a Random
    shuffled = random.sample(conditions, len(conditions))
    assert sorted(evaluate(steps, shuffled), key=repr) == sorted(evaluate(steps, conditions), key=repr)


@given(STEPS, st.permutations(TOOLS))
def test_nothing_before_the_last_step_changes_a_tool_call_condition(steps: list[Step], names: list[str]) -> None:
    condition = has_tool_call(*names[:2])
    assert condition.over(steps) == condition.over(steps[-1:])


@given(STEPS)
def test_loop_finished_never_fires(steps: list[Step]) -> None:
    assert is_loop_finished().over(steps) == ConditionResult("loop_finished", LimitKind.CUSTOM, False, None, None)


@given(STEPS, CONDITIONS)
def test_a_result_has_the_fields_of_the_wire_and_values_that_the_wire_takes(
    steps: list[Step], conditions: list[Condition]
) -> None:
    for entry in (result._asdict() for result in evaluate(steps, conditions)):
        assert list(entry) == ["name", "kind", "fired", "limit", "observed"]
        assert json.loads(json.dumps(entry, allow_nan=False)) == entry
        assert all(entry[field] is None or entry[field] >= 0 for field in ("limit", "observed"))


# A case file's history


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"kind": "steps", "limit": 4}, is_step_count(4)),
        ({"name": "budget:30", "kind": "tokens", "limit": 30}, token_budget(30, name="budget:30")),
        ({"kind": "cost", "limit": 0.5, "tools": None}, cost_budget(0.5)),
        ({"kind": "time", "limit": 60}, time_budget(60)),
        ({"name": "done", "kind": "tool_call", "limit": None, "tools": ["done"]}, has_tool_call("done", name="done")),
        ({"kind": "tool_call"}, has_tool_call()),
        ({"kind": "custom"}, is_loop_finished()),
    ],
)
def test_a_condition_is_read_from_a_case_file(entry: dict[str, object], expected: Condition) -> None:
    assert condition_from_mapping(entry) == expected


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"limit": 4}, "stop_when.kind"),
        ({"kind": "output", "limit": 4}, "stop_when.kind"),
        ({"kind": ["steps"], "limit": 4}, "stop_when.kind"),
        ({"kind": "steps"}, "stop_when.limit"),
        ({"kind": "steps", "limit": "4"}, "stop_when.limit"),
        ({"kind": "steps", "limit": True}, "stop_when.limit"),
        ({"kind": "cost", "limit": math.nan}, "stop_when.limit"),
        ({"kind": "tokens", "limit": -1}, "stop_when.limit"),
        ({"kind": "tool_call", "limit": 3}, "stop_when.limit"),
        ({"kind": "tool_call", "tools": "done"}, "stop_when.tools"),
        ({"kind": "steps", "limit": 4, "tools": ["done"]}, "stop_when.tools"),
        ({"kind": "steps", "limit": 4, "name": ""}, "stop_when.name"),
        ({"kind": "steps", "limt": 4}, "stop_when.limt"),
    ],
)
def test_a_condition_that_cannot_be_read_names_its_field(entry: dict[str, object], field: str) -> None:
    with pytest.raises(ValueError, match=rf"^{field} must be "):
        condition_from_mapping(entry)


def test_steps_are_read_from_a_case_file() -> None:
    entries: list[dict[str, object]] = [{"tool_calls": ["search"], "total_tokens": 10}, {"cost_usd": 0.5}, {}]
    assert steps_from_mapping(entries) == (Step(("search",), 10), Step(cost_usd=0.5), Step())


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"tool_calls": "search"}, "steps.tool_calls"),
        ({"tool_calls": [{"name": "search"}]}, "steps.tool_calls"),
        ({"total_tokens": 1.5}, "steps.total_tokens"),
        ({"total_tokens": -1}, "steps.total_tokens"),
        ({"duration_s": math.inf}, "steps.duration_s"),
        ({"text": "hello"}, "steps.text"),
    ],
)
def test_a_step_that_cannot_be_read_names_its_field(entry: dict[str, object], field: str) -> None:
    with pytest.raises(ValueError, match=rf"^{field} must be "):
        steps_from_mapping([entry])


@pytest.mark.parametrize(
    ("history", "field"),
    [
        ({"steps": {"total_tokens": 1}}, "history.steps"),
        ({"stop_when": ["step_count"]}, "history.stop_when"),
        ({"stopWhen": []}, "history.stopWhen"),
        ({"stop_when": [{"kind": "tool_call"}, {"kind": "tool_call"}]}, "stop_when.name"),
    ],
)
def test_a_history_that_cannot_be_read_names_its_field(history: dict[str, object], field: str) -> None:
    with pytest.raises(ValueError, match=rf"^{field} must be "):
        evaluate_history(history)


TWO_STEPS: dict[str, object] = {
    "steps": [{"total_tokens": 10}, {"total_tokens": 20}],
    "stop_when": [{"kind": "steps", "limit": 2}, {"kind": "tokens", "limit": 30}, {"kind": "time", "limit": 5}],
}
STEPS_HIT = {"name": "step_count", "kind": "steps", "fired": True, "limit": 2, "observed": 2}
TOKENS_HIT = {"name": "tokens", "kind": "tokens", "fired": True, "limit": 30, "observed": 30}
TIME_MISS = {"name": "time", "kind": "time", "fired": False, "limit": 5, "observed": 0}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([STEPS_HIT, TOKENS_HIT], True),
        ([TOKENS_HIT, TIME_MISS, STEPS_HIT], True),
        ([STEPS_HIT, {"name": "tokens", "kind": "tokens", "fired": True}], True),
        ([STEPS_HIT], False),
        ([STEPS_HIT, STEPS_HIT], False),
        ([STEPS_HIT, TOKENS_HIT, TOKENS_HIT], False),
        ([STEPS_HIT, TOKENS_HIT, {**TIME_MISS, "fired": True}], False),
        ([STEPS_HIT, {**TOKENS_HIT, "fired": False}], False),
        ([STEPS_HIT, {**TOKENS_HIT, "name": "budget"}], False),
        ([STEPS_HIT, {**TOKENS_HIT, "kind": "cost"}], False),
        ([STEPS_HIT, {**TOKENS_HIT, "limit": 31}], False),
        ([STEPS_HIT, {**TOKENS_HIT, "observed": 29}], False),
        ([], False),
    ],
)
def test_a_history_matches_exactly_what_fired(conditions: list[dict[str, object]], *, expected: bool) -> None:
    assert history_matches(TWO_STEPS, conditions) is expected


# The published cases and the four direct assertions


def receipt(case: dict[str, Any]) -> dict[str, Any]:
    return next(record for record in case["records"] if record["kind"] == "run.stopped")


def test_all_published_cases_are_here() -> None:
    assert [case["id"] for case in CASES] == [f"A{number:02}" for number in range(1, 12)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_published_case_fires_what_its_receipt_says(case: dict[str, Any]) -> None:
    stated = receipt(case).get("conditions", [])
    assert history_matches(case["history"], stated)
    hits = [{k: v for k, v in r._asdict().items() if v is not None} for r in fired(evaluate_history(case["history"]))]
    assert hits == stated


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_no_condition_would_have_ended_a_published_case_earlier(case: dict[str, Any]) -> None:
    history = case["history"]
    for size in range(1, len(history["steps"])):
        assert history_matches({**history, "steps": history["steps"][:size]}, [])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_a_published_history_has_the_completed_steps_of_its_receipt(case: dict[str, Any]) -> None:
    stated = receipt(case).get("steps")
    cut_off = case["id"] == "A10"  # the timeout came inside step four, so no condition ever saw that step
    assert stated is None or len(case["history"]["steps"]) == stated - cut_off


def test_the_timeout_of_the_last_allowed_step_would_else_look_like_a_step_limit() -> None:
    history = next(case["history"] for case in CASES if case["id"] == "A10")
    assert fired(evaluate_history({**history, "steps": [*history["steps"], {}]}))


@pytest.mark.parametrize("assertion", ASSERTIONS, ids=lambda assertion: assertion["id"])
def test_a_direct_assertion_of_the_sdk_holds(assertion: dict[str, Any]) -> None:
    assert assertion["checks"]
    for check in assertion["checks"]:
        assert [result.name for result in fired(evaluate_history(check["history"]))] == check["fired"]


def test_there_are_four_direct_assertions() -> None:
    assert [assertion["id"] for assertion in ASSERTIONS] == ["A1", "A2", "A3", "A4"]
