"""What a policy would say otherwise: the values that `pipeline.policy_diff` fills, as a screen, as lines, as a comment.

The comment is for a pull request: it has no colour, no hint and no path of this machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from stopcause.classifier.verdict import VerdictName
from stopcause.render.pen import RUNNING, WIDTH, Pen, cells, count, cut, paragraph

_AGENTS = 5
_NAMES_AT_MOST = 4
_NAME = 36  # of a run


class Said(NamedTuple):
    """A verdict as two policies are compared by it. `verdict` None: it runs."""

    verdict: VerdictName | None
    reason: str

    def __str__(self) -> str:
        return f"{self.verdict or RUNNING} {self.reason}"


class Example(NamedTuple):
    """A run that changes. `gone`, `came` and `kept`: evidence of the old verdict only, of the new one only, of both."""

    name: str
    agent: str | None
    sections: tuple[str, ...]
    gone: tuple[str, ...]
    came: tuple[str, ...]
    kept: tuple[str, ...] = ()


class Change(NamedTuple):
    """Runs that go from one verdict to another, with the changed sections that can have done it."""

    before: Said
    after: Said
    runs: int
    sections: tuple[tuple[str, int], ...]
    examples: tuple[Example, ...]


class PolicyName(NamedTuple):
    """A policy, as a reader knows it."""

    id: str
    version: str
    digest: str

    def __str__(self) -> str:
        return f"{self.id} {self.version} ({self.digest[:6]})"


class Diff(NamedTuple):
    """All that two policies make different.

    Attributes:
        old: What runs are judged by; None where each case brought its own.
        new: What was tried.
        now: As of when runs were judged; None where each case brought its own time.
        span: How far back it looked, as it was asked for; empty is everything.
        looked, touched, changed: Runs that were looked at, that a changed section can touch, that get another verdict.
        changes: The most runs first.
        agents: Of the changed runs, the most first; None is a run that does not say.
        agents_in_all: How many there are.
        keeps: Of runs that keep their verdict, what else is different, and for how many.
        sections: What the two policies say otherwise.
        unmatched: The new policy's `[[agents]]` entries that match no run that was looked at.
        entries: How many it has.
        unjudged: Runs that could not be judged.
        set_aside: Lines that are no records.
    """

    old: PolicyName | None
    new: PolicyName
    now: datetime | None
    span: str
    looked: int
    touched: int
    changed: int
    changes: tuple[Change, ...]
    agents: tuple[tuple[str | None, int], ...]
    agents_in_all: int
    keeps: tuple[tuple[str, int], ...]
    sections: tuple[str, ...]
    unmatched: tuple[int, ...]
    entries: int
    unjudged: int = 0
    set_aside: int = 0


# The screen -----------------------------------------------------------------------------------------------------------


def diff_screen(found: Diff, pen: Pen) -> list[str]:
    """What was compared, how much it touches, then each change with a few of its runs."""
    lines = [*_head(found, pen), ""]
    if not found.changes:
        return lines + _nothing_changes(found) + _beside(found)
    for each in found.changes:
        lines += [*change_lines(each, pen), ""]
    return lines + _agents(found) + _beside(found)


def _head(found: Diff, pen: Pen) -> list[str]:
    against = str(found.old) if found.old else "each case's own"
    last = f", last {found.span}" if found.span else ""
    moment = pen.time(found.now) if found.now else "each case's own time"
    counted = f"{count(found.looked, 'run')} looked at, {found.touched} touched, {found.changed} changed."
    both = f"{counted} As of {moment}"
    lines = [both] if cells(both) <= WIDTH else [counted, f"As of {moment}"]
    return [cut(f"{found.new} against {against}{last}", WIDTH), *lines]


def _agents(found: Diff) -> list[str]:
    """Whose runs change the most."""
    said = _counted([(name or "-", number) for name, number in found.agents[:_AGENTS]])
    more = found.agents_in_all - _AGENTS
    return paragraph("Agents  ", f"{said} and {more} more" if more > 0 else said, 8)


def _nothing_changes(found: Diff) -> list[str]:
    if not found.sections and found.old is not None:
        return ["The two policies say the same: nothing changes."]
    if not found.looked:
        return ["There is no run to look at, so nothing is known of what would change."]
    said = "No verdict changes: "
    if found.touched:
        return [f"{said}{count(found.touched, 'run')} judged by both, with the same verdicts."]
    return [f"{said}what is different touches none of these runs."]


def _beside(found: Diff) -> list[str]:
    """What keeps its verdict and is still different, and what the policy does not reach."""
    lines: list[str] = []
    if found.keeps:
        lines += paragraph("Same verdict, but ", _counted(found.keeps), 18)
    if found.sections:
        lines += paragraph("Sections ", ", ".join(found.sections), 9)
    if found.looked and found.entries and len(found.unmatched) == found.entries:
        lines.append("The new policy matches nothing: no [[agents]] entry fits any of these runs.")
    elif found.looked and found.unmatched:
        named = ", ".join(f"agents[{number}]" for number in found.unmatched[:_NAMES_AT_MOST])
        more = len(found.unmatched) - _NAMES_AT_MOST
        lines.append(f"Matches none of these runs: {named}{f' and {more} more' if more > 0 else ''}")
    if found.set_aside:
        lines.append(f"{count(found.set_aside, 'line')} could not be read and are not counted.")
    if found.unjudged:
        lines.append(f"{count(found.unjudged, 'run')} could not be judged and are not counted.")
    return lines


def change_lines(change: Change, pen: Pen) -> list[str]:
    """From what to what, and for how many; then which section does it, and a few runs, where those are known."""
    plain = f"{change.runs:>6}  {_plain(change.before)} -> {_plain(change.after)}"
    dyed = f"{change.runs:>6}  {_dyed(change.before, pen)} -> {_dyed(change.after, pen)}"
    lines = [dyed if cells(plain) <= WIDTH else cut(plain, WIDTH)]
    if change.sections:
        lines.append(cut(f"        by {_counted(change.sections, change.runs)}", WIDTH))
    return lines + [cut(f"        {_example(each)}", WIDTH) for each in change.examples]


def _plain(said: Said) -> str:
    return f"{Pen().verdict(said.verdict)} {said.reason}"


def _dyed(said: Said, pen: Pen) -> str:
    return f"{pen.verdict(said.verdict)} {said.reason}"


def _counted(pairs: Sequence[tuple[str, int]], of: int | None = None) -> str:
    """`name 3, other 1`; a number that says nothing new is left out."""
    return ", ".join(name if number == of else f"{name} {number}" for name, number in pairs)


def _example(each: Example) -> str:
    came, gone = ", ".join(each.came), ", ".join(each.gone)
    if came and gone:
        evidence = f"rests on {came} in place of {gone}"
    elif came or gone:
        evidence = f"rests on {came} too" if came else f"without {gone}"
    else:
        evidence = f"still on {', '.join(each.kept)}"
    return f"{_cut_head(each.name)}  {each.agent or '-'}  {evidence}"


def _cut_head(name: str) -> str:
    """The end of a run's name: it tells more than the beginning."""
    return name if len(name) <= _NAME else f"\N{HORIZONTAL ELLIPSIS}{name[1 - _NAME :]}"


# For programs ---------------------------------------------------------------------------------------------------------


def diff_objects(found: Diff) -> Iterator[dict[str, Any]]:
    """A line with the counts, then one for each change."""
    names = ("span", "looked", "touched", "changed", "sections", "unmatched", "entries", "unjudged", "set_aside")
    yield {
        "type": "summary",
        "new": found.new._asdict(),
        "old": found.old._asdict() if found.old else None,
        "now": found.now,
        **{name: getattr(found, name) for name in names},
        "agents": [{"agent": agent, "runs": runs} for agent, runs in found.agents],
        "agents_in_all": found.agents_in_all,
        "keeps": dict(found.keeps),
    }
    for each in found.changes:
        yield {"type": "change", **change_objects(each)}


def change_objects(change: Change) -> dict[str, Any]:
    """One change, for a program."""
    return {
        "from": change.before._asdict(),
        "to": change.after._asdict(),
        "runs": change.runs,
        "sections": dict(change.sections),
        "examples": [example._asdict() for example in change.examples],
    }


# For a pull request ---------------------------------------------------------------------------------------------------


def diff_comment(found: Diff) -> list[str]:
    """Markdown: the counts in a sentence, a table of changes, and a fold with the examples."""
    against = f"`{found.old}`" if found.old else "each case's own policy"
    last = f" of the last {found.span}" if found.span else ""
    counted = f"{count(found.looked, 'run')}{last} looked at, {found.touched} touched"
    changed = f"**{count(found.changed, 'verdict')} changed**"
    lines = [f"**Policy `{found.new}` against {against}**", "", f"{counted}, {changed}.", ""]
    lines += _comment_table(found.changes) if found.changes else [*_nothing_changes(found), ""]
    return lines + [f"- {line}" for line in _beside_words(found)]


def _beside_words(found: Diff) -> list[str]:
    """The same remarks as on the screen, each on one line."""
    keeps = [f"Same verdict, but {_counted(found.keeps)}"] if found.keeps else []
    sections = ["Sections " + ", ".join(f"`{name}`" for name in found.sections)] if found.sections else []
    return keeps + sections + _beside(found._replace(keeps=(), sections=()))


def _comment_table(changes: Sequence[Change]) -> list[str]:
    lines = ["| from | to | runs | by |", "|---|---|---:|---|"]
    for each in changes:
        by = ", ".join(f"`{name}`" for name, _runs in each.sections)
        lines.append(f"| {each.before} | {each.after} | {each.runs} | {by} |")
    lines += ["", "<details><summary>Examples</summary>", ""]
    for each in changes:
        lines += [f"- {each.before} -> {each.after}", *(f"  - `{_example(one)}`" for one in each.examples)]
    return [*lines, "", "</details>", ""]
