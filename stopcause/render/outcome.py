"""What a person said of a run, and what became of its verdict, as lines and as an object."""

from __future__ import annotations

from typing import Any, NamedTuple

from stopcause.render.pen import Pen, paragraph, pasted
from stopcause.render.views import Revision

_INDENT = 10
_SAYS = {"confirmed": "confirms", "refuted": "refutes"}


class Told(NamedTuple):
    """An outcome by hand. `why`: why it did not do what it says, None where it did. `notes`: what does not fit."""

    run_id: str
    attempt: int
    agent: str | None
    outcome_id: str
    polarity: str
    contract: str
    check: str | None
    issuer: str
    before: Revision
    after: Revision
    why: str | None
    notes: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether the verdict or its reason is another now."""
        return self.before[1:] != self.after[1:]


def told_screen(told: Told, pen: Pen) -> list[str]:
    """Who says what, the verdict before and after, and why it is the same where it is."""
    check = f", check {told.check}" if told.check else ""
    who = f"{told.issuer} {_SAYS[told.polarity]} contract {told.contract}{check}"
    of = f"run {pasted(told.run_id)}, attempt {told.attempt}{f', {told.agent}' if told.agent else ''}"
    lines = [
        *paragraph("Recorded", who, _INDENT),
        *paragraph("of", of, _INDENT),
        f"{'before':<{_INDENT}}{_line(told.before, pen)}",
        f"{'after':<{_INDENT}}{_line(told.after, pen)}{'' if told.changed else ', unchanged'}",
    ]
    return lines + (paragraph("Why", told.why, _INDENT) if told.why else [])


def _line(revision: Revision, pen: Pen) -> str:
    return f"{pen.verdict(revision.verdict, 20)} {revision.reason}"


def told_object(told: Told) -> dict[str, Any]:
    """The same for a pipe."""
    said = {name: getattr(told, name) for name in ("run_id", "attempt", "outcome_id", "polarity", "contract", "check")}
    before, after = ({"verdict": each.verdict, "reason": each.reason} for each in (told.before, told.after))
    return {
        **said,
        "issuer": told.issuer,
        "before": before,
        "after": after,
        "changed": told.changed,
        "why": told.why,
        "notes": list(told.notes),
    }
