"""A replay as a screen: each case beside what it must get, how well each verdict was met, and the total.

A few cases are shown whole. Of many only those that fall short: what is as expected is a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stopcause.classifier import rules
from stopcause.render.pen import RUNNING, WIDTH, Pen, cells, count, cut, fit, paragraph
from stopcause.render.views import AssertionResult, CaseResult, Replay

_FEW = 30
_VERDICT = 20
_RULES = {rule.id: number for number, rule in enumerate(rules.RULES, 1)}


def replay_screen(result: Replay, pen: Pen, *, published: bool = False, everything: bool = False) -> list[str]:
    """The whole answer of `replay`.

    Args:
        result: What was found.
        pen: How to write.
        published: Whether these are the published cases, as they are.
        everything: Whether many cases are all shown too.
    """
    shown = result.cases if everything or len(result.cases) <= _FEW else [case for case in result.cases if not case.ok]
    lines = [*_cases(shown, pen), *(line for each in result.assertions if not each.ok for line in _assertion(each))]
    if hidden := len(result.cases) - len(shown):
        lines.append(pen.dim(f"Not shown: {count(hidden, 'case')} as expected (--all)"))
    return [*lines, "", *_scores(result, pen), "", replay_total(result, "published" if published else "expected")]


def _cases(shown: Sequence[CaseResult], pen: Pen) -> Iterator[str]:
    """A line a case, and below one that falls short what was expected and why."""
    if not shown:
        return
    told = [_rule(case) for case in shown]
    room = WIDTH - 2 * _VERDICT - max(map(cells, ("RULE, REASON", *told)))
    name = min(max(cells("CASE"), *(cells(case.name) for case in shown)) + 1, room)
    yield f"{'CASE':<{name}}{'EXPECTED':<{_VERDICT}}{'GOT':<{_VERDICT}}RULE, REASON"
    for case, rule in zip(shown, told, strict=True):
        both = f"{pen.verdict(case.expected_verdict, _VERDICT)}{pen.verdict(case.verdict, _VERDICT)}"
        yield f"{fit(cut(case.name, name - 1), name)}{both}{rule}"
        yield from () if case.ok else _miss(case, pen)


def _rule(case: CaseResult) -> str:
    """The rule that matched, by its number, and the reason that it gave; none is tried while a run goes on."""
    return f"{_RULES.get(case.rule, '-')} {case.reason}"


_MISS = "   MISS  "


def _miss(case: CaseResult, pen: Pen) -> list[str]:
    first, *more = paragraph(_MISS, f"{_fault(case)} {case.why}".rstrip(), len(_MISS))
    return [first.replace("MISS", pen.bold("MISS"), 1), *more]


def _fault(case: CaseResult) -> str:
    if case.fault not in ("verdict", "reason"):
        return f"{case.fault}."
    wanted = f"{case.expected_verdict or RUNNING} {case.expected_reason or ''}".rstrip()
    return f"expected {wanted}, got {case.verdict or RUNNING} {case.reason}."


def _assertion(each: AssertionResult) -> list[str]:
    return paragraph(_MISS, f"{each.id}: {each.fault}. {each.why}", len(_MISS))


def _scores(result: Replay, pen: Pen) -> list[str]:
    lines = [f"{'VERDICT':<{_VERDICT}}{'CASES':>6}{'PRECISION':>11}{'RECALL':>8}"]
    for score in result.scores:
        precision, recall = (f"{each:.2f}" if each is not None else "-" for each in (score.precision, score.recall))
        lines.append(f"{pen.verdict(score.verdict, _VERDICT)}{score.expected:>6}{precision:>11}{recall:>8}")
    return lines


def replay_total(result: Replay, word: str) -> str:
    """The last line: how many of how many."""
    good = sum(case.ok for case in result.cases)
    kinds = dict.fromkeys(each.about for each in result.assertions)
    return ", ".join([f"{good} of {len(result.cases)} as {word}", *(_held(result.assertions, kind) for kind in kinds)])


def _held(assertions: Sequence[AssertionResult], about: str) -> str:
    holding = [each.ok for each in assertions if each.about == about]
    return f"{sum(holding)} of {len(holding)} {about}"
