"""The Python stop conditions against the real functions, over one Node process.

Step counts, tool calls and no bound at all against the installed `ai`; budgets, which it lacks, against our package's.
5,000 histories that look for trouble, and every history of the case files. What differs is printed whole.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from stopcause.receipts.stop_conditions import (
    Condition,
    Step,
    condition_from_mapping,
    cost_budget,
    has_tool_call,
    is_loop_finished,
    is_step_count,
    steps_from_mapping,
    token_budget,
)
from stopcause.receipts.vocabulary import LimitKind
from stopcause.resources import data_folder
from tests.support.node import AI_SDK, answers

SCRIPT = AI_SDK / "test" / "support" / "conditions.mjs"
FIXTURES = data_folder("fixtures")
HISTORIES = 5_000
KINDS = (LimitKind.STEPS, LimitKind.TOOL_CALL, LimitKind.CUSTOM, LimitKind.TOKENS, LimitKind.COST)

# Alike to the eye or to a careless comparison, and what JavaScript's objects have of themselves.
NAMES: Sequence[str] = (
    *("done", "Done", "done ", "d\u043ene", "caf\u00e9", "cafe\u0301", "\U0001f4a5", "\ud83d", "", "0"),
    *("toString", "__proto__", "length", "done,search", "search"),
)
LIMITS = (0, -0.0, -1, 1.5, 20, 21, 2**53, math.nan, math.inf)


class Asked(NamedTuple):
    """A condition, and the number it was made with: the wire cannot say NaN or less than nothing."""

    condition: Condition
    limit: float | None

    @property
    def question(self) -> dict[str, object]:
        """The same for Node."""
        number = "NaN" if self.limit is None or math.isnan(self.limit) else repr(self.limit).replace("inf", "Infinity")
        return {"kind": self.condition.kind, "limit": number, "tools": self.condition.tools}


class History(NamedTuple):
    """Completed steps, and the conditions that are asked about them."""

    steps: tuple[Step, ...]
    asked: tuple[Asked, ...]

    @property
    def question(self) -> dict[str, object]:
        """The same for Node."""
        fields = ("tool_calls", "total_tokens", "cost_usd")
        steps = [{field: getattr(step, field) for field in fields} for step in self.steps]
        return {"steps": steps, "stop_when": [each.question for each in self.asked]}

    @property
    def said(self) -> list[bool]:
        """What the Python conditions say."""
        return [each.condition.over(self.steps).fired for each in self.asked]


def some_names(dice: random.Random, most: int) -> tuple[str, ...]:
    return tuple(dice.choices(NAMES, k=dice.randint(0, most)))


def some_steps(dice: random.Random) -> tuple[Step, ...]:
    count = dice.choice((0, 1, 2, 3, 19, 20, 21, dice.randint(0, 40)))
    return tuple(Step(some_names(dice, 4), dice.randint(0, 5_000), dice.randint(0, 50) / 100) for _ in range(count))


def some_condition(dice: random.Random, steps: Sequence[Step]) -> Asked:
    """One of each kind, more often than not close to firing over these steps."""
    kind, count = dice.choice(KINDS), len(steps)
    if kind is LimitKind.STEPS:
        limit = dice.choice((*LIMITS, -math.inf, count, count, count, count - 1, count + 1, count + 0.5))
        return Asked(is_step_count(limit), limit)  # type: ignore[arg-type]  # JavaScript has one kind of number
    if kind is LimitKind.TOOL_CALL:
        return Asked(has_tool_call(*some_names(dice, 3)), None)
    if kind is LimitKind.TOKENS:
        spent = sum(step.total_tokens for step in steps)
        limit = dice.choice((*LIMITS, spent, spent, spent + 1, spent - 1))
        return Asked(token_budget(limit), limit)  # type: ignore[arg-type]  # JavaScript has one kind of number
    if kind is LimitKind.COST:
        cost = round(sum(step.cost_usd for step in steps), 2)  # cents: a naive sum of them misses the budget
        limit = dice.choice((*LIMITS, cost, cost, cost + 0.25, cost - 0.25))
        return Asked(cost_budget(limit), limit)
    return Asked(is_loop_finished(), None)


def generated(dice: random.Random) -> History:
    steps = some_steps(dice)
    return History(steps, tuple(some_condition(dice, steps) for _ in range(dice.randint(1, 4))))


def written(history: dict[str, Any]) -> History:
    """A case file's history, as far as there are such conditions in JavaScript."""
    conditions = [condition_from_mapping(entry) for entry in history.get("stop_when") or ()]
    asked = tuple(Asked(each, each.limit) for each in conditions if each.kind in KINDS)
    return History(steps_from_mapping(history.get("steps") or ()), asked)


def case_histories(folder: Path) -> list[History]:
    texts = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]
    cases = [text for text in texts if isinstance(text, dict) and text.get("history")]
    checks = [check for text in texts if isinstance(text, list) for each in text for check in each["checks"]]
    return [written(each["history"]) for each in (*cases, *checks)]


def asked_by_no_loop(history: History, each: Asked) -> bool:
    """The one place where ours says less: `isStepCount(0)` before the first step, when no loop asks."""
    return each.condition.kind is LimitKind.STEPS and each.limit == 0 and not history.steps


def differences(histories: Sequence[History], said: Sequence[list[bool]]) -> Iterable[str]:
    for history, theirs in zip(histories, said, strict=True):
        for each, ours, real in zip(history.asked, history.said, theirs, strict=True):
            if ours is not real and not asked_by_no_loop(history, each):
                shown = json.dumps({**history.question, "stop_when": [each.question]})
                yield f"Python {ours}, JavaScript {real}: {shown}"


def no_difference(histories: Sequence[History]) -> None:
    found = list(differences(histories, answers(SCRIPT, (history.question for history in histories))))
    assert not found, f"{len(found)} differences, the shortest:\n{min(found, key=len)}"


def test_five_thousand_histories_get_the_answers_of_the_sdk() -> None:
    dice = random.Random(4)  # noqa: S311 - the same histories everywhere
    histories = [generated(dice) for _ in range(HISTORIES)]

    no_difference(histories)
    mix = Counter(
        (each.condition.kind, fired)
        for history in histories
        for each, fired in zip(history.asked, history.said, strict=True)
    )
    for kind in KINDS:  # both answers are there to be got wrong
        assert mix[kind, False] > HISTORIES // 20
        assert mix[kind, True] > HISTORIES // 20 or kind is LimitKind.CUSTOM


def test_the_histories_of_the_case_files_get_the_answers_of_the_sdk() -> None:
    published = case_histories(FIXTURES / "article")
    others = [case_histories(folder) for folder in FIXTURES.iterdir() if folder.is_dir() and folder.name != "article"]
    assert len(published) >= 11 + 4  # cases, and at least one check of each direct assertion

    no_difference([history for histories in (published, *others) for history in histories])


def test_a_limit_of_nothing_is_met_before_the_first_step_in_the_sdk_only() -> None:
    nothing = History((), (Asked(is_step_count(0), 0),))
    one_step = History((Step(),), (Asked(is_step_count(0), 0),))

    assert answers(SCRIPT, (nothing.question, one_step.question)) == [[True], [False]]
    assert (nothing.said, one_step.said) == ([False], [False])
