"""What `policy explain` and `policy apply` print. Their values are filled by `pipeline.policy_explain` and the command.

Not here: what another policy would say (`render.policy_diff`), and faults (`render.reports`).
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from stopcause.render.pen import WIDTH, Pen, count, cut, paragraph
from stopcause.render.policy_diff import Change, PolicyName, change_lines, change_objects

_COLUMN = 10
_EARLIER = 12  # entries that did not match, on the screen


class Tried(NamedTuple):
    """An entry that was asked. `asked`: key, pattern, and what the run or approval says; `fits` for each of them."""

    place: str  # agents[1]
    where: str  # FILE:LINE
    asked: tuple[tuple[str, str, str | None], ...]
    fits: tuple[bool, ...]

    @property
    def matched(self) -> bool:
        """Whether all of it fits."""
        return all(self.fits)


class ContractSaid(NamedTuple):
    """A contract as it is judged by. `defined` False: only its name is known, and the defaults hold."""

    name: str
    where: str
    defined: bool
    min_strength: str
    issuers: tuple[str, ...]
    settle: str
    checks: tuple[tuple[str, str], ...]  # name, kind


class Explanation(NamedTuple):
    """What a policy says of a run, and of an approval of it where one was asked about."""

    policy: PolicyName
    path: str
    subject: tuple[tuple[str, str], ...]
    entries: tuple[Tried, ...]  # up to the one that matched
    stage: str
    owner: str | None
    on_bound: str | None
    contract: ContractSaid | None
    asked: bool  # whether an approval was asked about
    routes: tuple[Tried, ...]
    route: tuple[tuple[str, str | None], ...]  # owner, due, escalate, on_expiry, deliver


# Explain --------------------------------------------------------------------------------------------------------------


def explain_screen(it: Explanation, pen: Pen) -> list[str]:
    """Which entry holds and what it says, then why the ones before it do not."""
    who = ", ".join(f"{key} {value}" for key, value in it.subject) or "a run that says nothing of itself"
    lines = [cut(f"policy {it.policy}, {it.path}", WIDTH), *paragraph("For", who, _COLUMN), ""]
    lines += _found("Entry", it.entries, "no [[agents]] entry matches: stage observe, no owner, no contract", pen)
    lines += _row("stage", _STAGES[it.stage]) + _row("owner", it.owner or "-") + _row("on_bound", it.on_bound or "-")
    lines += _contract(it.contract)
    if it.asked:
        lines += ["", *_found("Route", it.routes, "no [[routes]] entry matches: nothing is filled in", pen)]
        for name, value in it.route:
            lines += _row(name, value or "-")
    return lines + _missed(it)


_STAGES = {
    "enforce": "enforce: a finish without proof needs somebody",
    "observe": "observe: a finish without proof is counted as not proven yet, and asks for nobody",
}


def _row(name: str, value: str) -> list[str]:
    return paragraph(f"  {name}", value, _COLUMN + 2)


def _found(head: str, tried: Sequence[Tried], nothing: str, pen: Pen) -> list[str]:
    if not tried or not tried[-1].matched:
        return paragraph(head, nothing, _COLUMN)
    last = tried[-1]
    why = ", ".join(f"{key} {value or '-'} fits {pattern}" for key, pattern, value in last.asked)
    where = f", {last.where}" if last.where else ""
    return [f"{head:<{_COLUMN}}{pen.bold(last.place)}{where}", *_row("because", why or "its match is empty")]


def _contract(contract: ContractSaid | None) -> list[str]:
    if contract is None:
        return _row("contract", "none here; one that the run declares itself still counts")
    where = f", {contract.where}" if contract.where else ""
    name = f"{contract.name}{where}" if contract.defined else f"{contract.name}: not defined, so the defaults hold"
    issuers = ", ".join(contract.issuers) or "anybody but the run"
    lines = _row("contract", name)
    lines += _row("", f"{contract.min_strength} or stronger, from {issuers}, within {contract.settle}")
    checks = ", ".join(name if name == kind else f"{name} ({kind})" for name, kind in contract.checks)
    return lines + _row("", f"every one of: {checks}" if checks else "one receipt that counts is enough")


def _missed(it: Explanation) -> list[str]:
    """The entries that come first and do not match, each with the keys that failed."""
    missed = [each for each in (*it.entries, *it.routes) if not each.matched]
    lines = [""] if missed else []
    for number, each in enumerate(missed[:_EARLIER]):
        wrong = [said for said, fits in zip(each.asked, each.fits, strict=True) if not fits]
        why = ", ".join(f"{key} {value or 'not said'} is not {pattern}" for key, pattern, value in wrong)
        where = f", {each.where}" if each.where else ""
        lines += paragraph("" if number else "Not", f"{each.place}{where}: {why}", _COLUMN)
    more = len(missed) - _EARLIER
    return lines + ([f"{'':<{_COLUMN}}and {more} more"] if more > 0 else [])


def explain_object(it: Explanation) -> dict[str, Any]:
    """The same for a program."""
    entry, route = _matched(it.entries), _matched(it.routes)
    return {
        "policy": it.policy._asdict(),
        "subject": dict(it.subject),
        "entry": entry,
        "stage": it.stage,
        "owner": it.owner,
        "on_bound": it.on_bound,
        "contract": it.contract._asdict() if it.contract else None,
        "route": {**route, **dict(it.route)} if route else None,
        "missed": [_tried(each) for each in (*it.entries, *it.routes) if not each.matched],
    }


def _matched(tried: Sequence[Tried]) -> dict[str, Any] | None:
    return _tried(tried[-1]) if tried and tried[-1].matched else None


def _tried(each: Tried) -> dict[str, Any]:
    keys = [
        {"key": key, "pattern": pattern, "value": value, "fits": fits}
        for (key, pattern, value), fits in zip(each.asked, each.fits, strict=True)
    ]
    return {"place": each.place, "where": each.where, "match": keys}


# Apply ----------------------------------------------------------------------------------------------------------------


class Applied(NamedTuple):
    """A policy that is in force. `judged`: verdicts that are new; `changes`: those that say something else."""

    policy: PolicyName
    path: str
    judged: int
    changes: tuple[Change, ...]

    @property
    def changed(self) -> int:
        """How many verdicts say something else than before."""
        return sum(change.runs for change in self.changes)


def applied_screen(it: Applied, pen: Pen) -> list[str]:
    """That it holds, and what that changed."""
    head = paragraph("", f"Policy {it.policy} is in force: {it.path}", 0)
    counted = f"{count(it.judged, 'verdict')} judged anew. Under it, {it.changed} say something else than before."
    return [*head, counted, *(line for change in it.changes for line in change_lines(change, pen))]


def applied_object(it: Applied) -> dict[str, Any]:
    """The same for a program."""
    counted = {"path": it.path, "judged": it.judged, "changed": it.changed}
    return {"policy": it.policy._asdict(), **counted, "changes": [change_objects(each) for each in it.changes]}


@contextlib.contextmanager
def counting(what: str) -> Iterator[Callable[[int], None] | None]:
    """How far it is, in runs, on a terminal's stderr; taken away at the end."""
    if not sys.stderr.isatty():
        yield None
        return

    def report(done: int) -> None:
        sys.stderr.write(f"\r{what} {done:,} runs\x1b[K")
        sys.stderr.flush()

    try:
        yield report
    finally:
        sys.stderr.write("\r\x1b[K")
