"""Stop conditions: what ends an agent loop between two steps, as pure functions of a content-free history.

Here: conditions that mean what `isStepCount`, `hasToolCall` and `isLoopFinished` mean in the AI SDK (`ai` 7.0.15 to
7.0.173 ship one and the same `stop-condition.ts`), budgets beside them, and how a case file's `history` is read.
Not here: the loop. It asks its conditions only where it could go on: a natural finish, an open approval or a call that
nobody executed ends it before any of them is asked. It asks all of them, and one that fires is enough.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from stopcause.receipts.vocabulary import LimitKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


class Step(NamedTuple):
    """One completed step: names and numbers, nothing of what was said.

    Attributes:
        tool_calls: Names of the tools that were called, once per call. A call that failed or could not be read counts.
        total_tokens: Input and output tokens of this step.
        cost_usd: US dollars of this step.
        duration_s: Seconds that this step took.
    """

    tool_calls: tuple[str, ...] = ()
    total_tokens: int = 0
    cost_usd: float = 0.0
    duration_s: float = 0.0


class ConditionResult(NamedTuple):
    """What a condition said: the fields of an entry of `conditions` in a stop receipt, in the unit of its kind."""

    name: str
    kind: LimitKind
    fired: bool
    limit: float | None
    observed: float | None


class Condition(NamedTuple):
    """A named stop condition. Make one with a constructor below, or from a case file.

    Attributes:
        name: What the receipt calls it. Unique within a loop, so that a reader can tell which one fired.
        kind: What it counts.
        limit: The bound in the unit of its kind. Without one, a kind that needs a bound never fires.
        tools: The names that a `tool_call` condition looks for.
    """

    name: str
    kind: LimitKind
    limit: float | None = None
    tools: tuple[str, ...] = ()

    def over(self, steps: Sequence[Step]) -> ConditionResult:
        """Asks the condition about the completed steps, oldest first."""
        fired, observed = _MEASURES.get(self.kind, _never)(self, steps)
        return ConditionResult(self.name, self.kind, fired, self.limit, observed)


def is_step_count(n: int, *, name: str = "step_count") -> Condition:
    """Fires when exactly `n` steps are complete.

    The SDK compares with equality: a loop that got past `n` is not stopped by it, and `n` of zero or less never fires.
    """
    return Condition(name, LimitKind.STEPS, _bound(n))


def has_tool_call(*names: str, name: str = "tool_call") -> Condition:
    """Fires when the last completed step called one of `names`; observed is how many of its calls match.

    The SDK looks at nothing but the last step, and counts a call even where it failed. Without names it never fires.
    """
    return Condition(name, LimitKind.TOOL_CALL, tools=names)


def is_loop_finished(*, name: str = "loop_finished") -> Condition:
    """Never fires: it takes the bound away, and the loop ends when the model asks for nothing more."""
    return Condition(name, LimitKind.CUSTOM)


def token_budget(limit: int, *, name: str = "tokens") -> Condition:
    """Fires when the steps together used `limit` tokens or more. The SDK has no such condition; its users write it."""
    return Condition(name, LimitKind.TOKENS, _bound(limit))


def cost_budget(limit: float, *, name: str = "cost") -> Condition:
    """Fires when the steps together cost `limit` US dollars or more."""
    return Condition(name, LimitKind.COST, _bound(limit))


def time_budget(limit_s: float, *, name: str = "time") -> Condition:
    """Fires when the steps together took `limit_s` seconds or more. It cannot cut a step short; a deadline can."""
    return Condition(name, LimitKind.TIME, _bound(limit_s))


def evaluate(steps: Sequence[Step], conditions: Iterable[Condition]) -> tuple[ConditionResult, ...]:
    """Asks every condition, as the SDK does: several can fire together, and the receipt lists them all."""
    return tuple(condition.over(steps) for condition in conditions)


def fired(results: Iterable[ConditionResult]) -> tuple[ConditionResult, ...]:
    """The results that fired, in their order."""
    return tuple(result for result in results if result.fired)


def _bound(value: float) -> float | None:
    """A limit that the wire takes (finite, not below zero) and that means the same: what is not finite never fires."""
    return max(value, 0) if math.isfinite(value) else None


def _step_count(condition: Condition, steps: Sequence[Step]) -> tuple[bool, float | None]:
    return bool(condition.limit) and len(steps) == condition.limit, len(steps)


def _tool_call(condition: Condition, steps: Sequence[Step]) -> tuple[bool, float | None]:
    matching = sum(call in condition.tools for call in steps[-1].tool_calls) if steps else 0
    return matching > 0, matching


def _tokens(condition: Condition, steps: Sequence[Step]) -> tuple[bool, float | None]:
    return _reached(condition.limit, sum(step.total_tokens for step in steps))


def _cost(condition: Condition, steps: Sequence[Step]) -> tuple[bool, float | None]:
    # fsum: ten steps of 0.1 reach a budget of 1.0, in any order.
    return _reached(condition.limit, math.fsum(step.cost_usd for step in steps))


def _time(condition: Condition, steps: Sequence[Step]) -> tuple[bool, float | None]:
    return _reached(condition.limit, math.fsum(step.duration_s for step in steps))


def _never(_condition: Condition, _steps: Sequence[Step]) -> tuple[bool, float | None]:
    return False, None


def _reached(limit: float | None, total: float) -> tuple[bool, float | None]:
    return limit is not None and total >= limit, total


# custom, output and context are not here: no history of steps can answer for them.
_MEASURES: Final[Mapping[LimitKind, Callable[[Condition, Sequence[Step]], tuple[bool, float | None]]]] = {
    LimitKind.STEPS: _step_count,
    LimitKind.TOOL_CALL: _tool_call,
    LimitKind.TOKENS: _tokens,
    LimitKind.COST: _cost,
    LimitKind.TIME: _time,
}

# The kinds that a case file may name: the condition's name where the file gives none, and the fields of that kind.
_CASE_KINDS: Final[Mapping[LimitKind, tuple[str, tuple[str, ...]]]] = {
    LimitKind.STEPS: ("step_count", ("limit",)),
    LimitKind.TOKENS: ("tokens", ("limit",)),
    LimitKind.COST: ("cost", ("limit",)),
    LimitKind.TIME: ("time", ("limit",)),
    LimitKind.TOOL_CALL: ("tool_call", ("tools",)),
    LimitKind.CUSTOM: ("loop_finished", ()),
}


def condition_from_mapping(entry: Mapping[str, object]) -> Condition:
    """Reads one entry of a case file's `history.stop_when`.

    Args:
        entry: `kind`, and by kind `limit` (steps, tokens, cost, time) or `tools` (tool_call); `name` is optional.
            Kind `custom` stands for a condition of the application's own, which no replay can ask: it never fires.

    Raises:
        ValueError: A field is missing, unknown or of the wrong shape; the message names it.
    """
    kind = _kind(entry.get("kind"))
    default_name, fields = _CASE_KINDS[kind]
    _only(entry, ("name", "kind", *fields), "stop_when")
    name = entry.get("name")
    if name is not None and (not isinstance(name, str) or not name):
        raise _wrong("stop_when.name", "a name")
    limit = _number(entry.get("limit"), "stop_when.limit") if "limit" in fields else None
    return Condition(name or default_name, kind, limit, _names(entry.get("tools"), "stop_when.tools"))


def steps_from_mapping(entries: Sequence[Mapping[str, object]]) -> tuple[Step, ...]:
    """Reads a case file's `history.steps`, oldest first; each field may be absent.

    Raises:
        ValueError: A field is unknown or of the wrong shape; the message names it.
    """
    return tuple(_step(entry) for entry in entries)


def evaluate_history(history: Mapping[str, object]) -> tuple[ConditionResult, ...]:
    """Asks every condition of a case file's `history` about its steps, without a model.

    Args:
        history: `steps` (completed steps only) and `stop_when`, both lists; what is absent is empty.

    Raises:
        ValueError: A field is unknown or of the wrong shape, or two conditions have one name.
    """
    _only(history, ("steps", "stop_when"), "history")
    steps = steps_from_mapping(_entries(history.get("steps"), "history.steps"))
    conditions = [condition_from_mapping(entry) for entry in _entries(history.get("stop_when"), "history.stop_when")]
    if len({condition.name for condition in conditions}) < len(conditions):
        raise _wrong("stop_when.name", "different for each condition")
    return evaluate(steps, conditions)


def history_matches(history: Mapping[str, object], conditions: Sequence[Mapping[str, object]]) -> bool:
    """Whether a case's history fires exactly what its receipt says fired: the comparison that `replay` makes.

    One to one, in any order: `name` and `kind` are equal, and so are `limit` and `observed` where both sides state
    them. Conditions that did not fire are left out on both sides, because a loop that ends by itself never asks them.

    Args:
        history: `steps` and `stop_when` of the case file.
        conditions: `conditions` of its `run.stopped` record; none where the record has none.

    Raises:
        ValueError: The history cannot be read; the message names the field.
    """
    ours = {result.name: result for result in fired(evaluate_history(history))}
    theirs = {condition.get("name"): condition for condition in conditions if condition.get("fired") is True}
    once = len(theirs) == sum(condition.get("fired") is True for condition in conditions)
    return once and ours.keys() == theirs.keys() and all(_agree(ours[name], theirs[name]) for name in ours)


def _agree(ours: ConditionResult, theirs: Mapping[str, object]) -> bool:
    stated = ((ours.limit, theirs.get("limit")), (ours.observed, theirs.get("observed")))
    return ours.kind == theirs.get("kind") and all(a is None or b is None or a == b for a, b in stated)


def _step(entry: Mapping[str, object]) -> Step:
    _only(entry, Step._fields, "steps")
    given = {field: value for field, value in entry.items() if value is not None}
    tokens = _number(given.get("total_tokens", 0), "steps.total_tokens")
    if not isinstance(tokens, int):
        raise _wrong("steps.total_tokens", "a whole number")
    return Step(
        tool_calls=_names(given.get("tool_calls"), "steps.tool_calls"),
        total_tokens=tokens,
        cost_usd=_number(given.get("cost_usd", 0.0), "steps.cost_usd"),
        duration_s=_number(given.get("duration_s", 0.0), "steps.duration_s"),
    )


def _kind(value: object) -> LimitKind:
    for kind in _CASE_KINDS:
        if value == kind:
            return kind
    raise _wrong("stop_when.kind", f"one of {', '.join(_CASE_KINDS)}")


def _number(value: object, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise _wrong(field, "a finite number, not below zero")
    return value


def _names(value: object, field: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise _wrong(field, "a list of names")
    return tuple(value)


def _entries(value: object, field: str) -> Sequence[Mapping[str, object]]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(entry, dict) for entry in value):
        raise _wrong(field, "a list of objects")
    return value


def _only(entry: Mapping[str, object], fields: tuple[str, ...], where: str) -> None:
    """A field that is spelled wrong must not pass for one that is absent; null is absent."""
    for field, value in entry.items():
        if value is not None and field not in fields:
            raise _wrong(f"{where}.{field}", f"absent here; fields are {', '.join(fields)}")


def _wrong(field: str, should_be: str) -> ValueError:
    return ValueError(f"{field} must be {should_be}")
