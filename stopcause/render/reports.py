"""What `ingest` and `policy check` found, as lines and as objects. Their values are handed in field by field."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from stopcause.classifier.policy import Policy
from stopcause.receipts.codec import LineError
from stopcause.render.pen import WIDTH, Pen, age, count
from stopcause.render.views import Fault


class Taken(NamedTuple):
    """What an ingest did."""

    files: int
    lines: int
    accepted: int
    repeated: int
    set_aside: int
    rejected_files: Sequence[Path]
    newest_at: datetime | None
    first_errors: Sequence[tuple[str, LineError]]
    empty: Sequence[str] = ()
    passed_over: Sequence[str] = ()
    unknown_kinds: int = 0
    unknown_words: int = 0
    unknown_fields: int = 0


def ingest_screen(taken: Taken, now: datetime) -> list[str]:
    """One line, and one more for each thing that is odd."""
    said = [count(taken.accepted, "new record")]
    said += [f"{taken.repeated} known already"] if taken.repeated else []
    said += [f"{taken.set_aside} set aside"]
    newest = f" Newest {age(now - taken.newest_at)} old." if taken.newest_at else ""
    lines = [f"{count(taken.files, 'file')}: {', '.join(said)}.{newest}"]
    lines += [f"{name}: empty" for name in taken.empty]
    if taken.passed_over:
        lines.append(f"{count(len(taken.passed_over), 'file')} without records passed over")
    return lines + _read_otherwise(taken)


def _read_otherwise(taken: Taken) -> list[str]:
    """What was kept, but not as it was written: most often a word or field that is misspelt."""
    said = (
        (taken.unknown_kinds, "of a kind that this version does not know: kept, not judged"),
        (taken.unknown_words, "with a word that its list does not have: read as unknown"),
        (taken.unknown_fields, "with fields that this version does not know: not looked at"),
    )
    return [f"{count(number, 'record')} {what} (stopcause schema)" for number, what in said if number]


def set_aside_lines(taken: Taken) -> list[str]:
    """The first bad lines by name, and where all of them are."""
    lines = [f"{name}: {error}" for name, error in taken.first_errors]
    more = taken.set_aside - len(taken.first_errors)
    lines += [f"... and {count(more, 'more line')}"] if more > 0 else []
    return lines + [f"set aside in {path}" for path in taken.rejected_files]


def ingest_object(taken: Taken) -> dict[str, Any]:
    """The same for a pipe; errors without the lines that have them."""
    names = "files lines accepted repeated set_aside newest_at unknown_kinds unknown_words unknown_fields"
    numbers = {name: getattr(taken, name) for name in names.split()}
    return {**numbers, "rejected_files": [str(path) for path in taken.rejected_files]}


def policy_screen(path: str, policy: Policy | None, faults: Sequence[Fault], pen: Pen) -> list[str]:
    """Each fault as FILE:LINE: place: message, then what the policy has, or how many faults keep it from use."""
    lines = [line for each in faults for line in _fault(each, pen)]
    if policy is None:
        errors = sum(not each.problem.warning for each in faults)
        return [*lines, f"{path}: {count(errors, 'fault')}; nothing is judged by it until they are mended"]
    enforced = sum(entry.stage == "enforce" for entry in policy.agents)
    agents = f"{count(len(policy.agents), 'agent entry', 'agent entries')} ({enforced} enforced)"
    rest = f"{count(len(policy.routes), 'route')}, {count(len(policy.contracts), 'contract')}"
    return [*lines, *_wrapped(f"{path}: policy {policy.id} {policy.version}, {agents}, {rest}, digest {policy.digest}")]


def _fault(found: Fault, pen: Pen) -> list[str]:
    line = f":{found.problem.line}" if found.problem.line else ""
    word = "warning: " if found.problem.warning else ""
    first, *more = _wrapped(f"{found.file}{line}: {word}{found.problem.place}: {found.problem.message}")
    return [first.replace(": warning:", f": {pen.dim('warning:')}", 1), *more]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def fault_objects(faults: Sequence[Fault]) -> list[dict[str, Any]]:
    """The same for a pipe."""
    return [{"file": str(each.file), **each.problem._asdict()} for each in faults]
