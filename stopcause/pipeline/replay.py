"""Replay: every case held against the verdict that it must get, offline and without a model.

Three things can fall short: a verdict or reason, the stop conditions that a case's history must fire, and an assertion
about stop conditions. Here they become values; `render` makes the screen. Not here: how a case is read (`cases`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

from stopcause.classifier import engine
from stopcause.classifier.policy import Policy
from stopcause.classifier.verdict import Verdict, VerdictName
from stopcause.errors import InputError
from stopcause.pipeline import cases
from stopcause.receipts import model, stop_conditions
from stopcause.render.views import AssertionResult, CaseResult, Replay, Score


def replay_files(paths: Iterable[Path], policy: Policy | None = None) -> Replay:
    """Judge every case of files and folders, and check every assertion. A file that cannot be read hides no other.

    Args:
        paths: Case files, assertion files, and folders of both.
        policy: The policy to use in place of each case's own.

    Raises:
        InputError: Nothing of it can be read; the message is the first file's.
    """
    parts: list[Replay] = []
    unreadable: list[str] = []
    for file in cases.case_files(paths):
        try:
            parts.append(replay(cases.load_cases([file]), cases.load_assertions([file]), policy))
            parts.append(_replay_threads(file, policy))
        except InputError as error:
            unreadable.append(str(error))
    if unreadable and not parts:
        raise InputError(unreadable[0])
    results = tuple(case for part in parts for case in part.cases)
    assertions = tuple(each for part in parts for each in part.assertions)
    return Replay(results, assertions, scores(results), tuple(unreadable))


def replay(
    found: Iterable[cases.Case], assertions: Iterable[cases.Assertion] = (), policy: Policy | None = None
) -> Replay:
    """Hold cases and assertions against what they must get.

    Raises:
        InputError: A record or policy of a case that cannot be read.
    """
    results = tuple(check_case(case, policy) for case in found)
    return Replay(results, tuple(map(check_assertion, assertions)), scores(results))


def _replay_threads(file: Path, policy: Policy | None) -> Replay:
    """The cases of AG-UI in a file. Reading these takes a room that the published cases need not wait for."""
    if not any(cases.is_thread_case(value) for _place, value in cases.values_of(file)):
        return Replay((), (), ())
    from stopcause.pipeline import agui_cases  # noqa: PLC0415 - see above

    found = list(agui_cases.load_thread_cases([file]))
    judged = tuple(agui_cases.check_thread_case(each, policy) for each in found if each.exchanges)
    return Replay(judged, tuple(agui_cases.check_received(each) for each in found if each.receive), (), ())


def check_case(case: cases.Case, policy: Policy | None = None) -> CaseResult:
    """The verdict on a case, beside the one that it must get."""
    situation = cases.situation_of(case, policy)
    verdict = engine.judge(situation.facts)
    return CaseResult(
        id=case.id,
        name=case.path.stem if case.path.suffix == ".json" else case.id,
        path=case.path,
        why=case.why,
        run_id=verdict.run_id,
        expected_verdict=case.expected_verdict,
        expected_reason=case.expected_reason,
        verdict=verdict.verdict,
        reason=verdict.reason,
        rule=verdict.rule,
        stop_cause=verdict.stop_cause,
        fault=_verdict_fault(case, verdict) or _history_fault(case, situation.facts.stop),
    )


def _verdict_fault(case: cases.Case, verdict: Verdict) -> str | None:
    if verdict.verdict is not case.expected_verdict:
        return "verdict"
    return "reason" if case.expected_reason not in (None, verdict.reason) else None


def _history_fault(case: cases.Case, stop: model.RunStopped | None) -> str | None:
    """What is wrong with the stop conditions of a case that brings a history; None where nothing is."""
    if case.history is None:
        return None
    stated = [dataclasses.asdict(each) for each in (stop.conditions if stop else None) or ()]
    try:
        same = stop_conditions.history_matches(case.history, stated)
    except ValueError as error:
        return f"history: {error}"
    return None if same else "history: it does not fire the conditions that the receipt says fired"


def check_assertion(assertion: cases.Assertion) -> AssertionResult:
    """Whether every check of an assertion fires exactly the conditions that it names."""
    try:
        failed = [n for n, check in enumerate(assertion.checks) if _fired(check) != check.fired]
    except ValueError as error:
        return AssertionResult(assertion.id, assertion.why, str(error))
    return AssertionResult(assertion.id, assertion.why, f"checks[{failed[0]}] fires otherwise" if failed else None)


def _fired(check: cases.Check) -> tuple[str, ...]:
    results = stop_conditions.evaluate_history(check.history)
    return tuple(result.name for result in stop_conditions.fired(results))


def scores(results: Sequence[CaseResult]) -> tuple[Score, ...]:
    """Precision and recall of each verdict that was expected or given, in the order of the rules."""
    found = (_score(name, results) for name in VerdictName)
    return tuple(score for score in found if score.expected or score.given)


def _score(name: VerdictName, results: Sequence[CaseResult]) -> Score:
    expected = [each for each in results if each.expected_verdict is name]
    given = [each for each in results if each.verdict is name]
    both = sum(each.verdict is name for each in expected)
    return Score(
        verdict=name,
        expected=len(expected),
        given=len(given),
        precision=both / len(given) if given else None,
        recall=both / len(expected) if expected else None,
    )
