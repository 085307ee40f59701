"""Every error that stopcause raises on purpose, named for the situation of the person who meets it.

    StopcauseError
    +-- MissingExtraError     a part that is not installed; the message is the install command
    +-- InputError            input that cannot be read at all (bad lines are not errors: they are set aside)
    +-- ConfigurationError    `configure` was told something that it cannot use; names the parameter
    +-- PolicyError           a policy that cannot be used; `problems` name place, fault and way out
    +-- ResumeRefusedError    answers to a paused AG-UI thread that may not be sent; `findings` say why
    +-- StoreError
    |   +-- StoreInUseError   another process owns the store; says who, and what to do
    |   +-- StoreVersionError a store that a newer stopcause wrote
    |   +-- StoreFullError    the disk took no more; nothing acknowledged is lost
    +-- NotFoundError         no run, group or file by that name; says what was looked for
    +-- ReportError           a report's parameter that is unknown, missing or not what it has to be
    +-- QueryError            free SQL that the engine does not take; says where, and what is near
        +-- QueryStoppedError free SQL that was cut off: it took too long, or too much

A message says what happened, then what to do next. Nothing here ever carries a line of input; a `QueryError` quotes
the query, to the person who wrote it.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class StopcauseError(Exception):
    """The base of them all; `exit_code` is what the command line ends with."""

    exit_code = 2


class MissingExtraError(StopcauseError):
    """A part of stopcause was asked for that this environment does not have."""

    def __init__(self, part: str, extra: str) -> None:
        super().__init__(f'{part} is not installed here. Install it with: pip install "stopcause[{extra}]"')


class InputError(StopcauseError):
    """Input that cannot be read at all: no such file, not a file, no UTF-8, not a case."""


class ConfigurationError(StopcauseError, ValueError):
    """A hook was configured with a value that it cannot use. Raised while the program starts, never in a run."""


class Problem(NamedTuple):
    """One fault in a policy: a dotted place, what is wrong there, and the way out. `line` 0 is not known."""

    place: str
    message: str
    line: int = 0
    warning: bool = False


class PolicyError(StopcauseError):
    """A policy that cannot be used."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("; ".join(f"{p.place}: {p.message}" for p in problems))
        self.problems = problems


class ResumeRefusedError(StopcauseError):
    """Answers that were not sent. `findings` are values of `stopcause.agui.findings`; no answer is in them."""

    def __init__(self, message: str, findings: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.findings = findings


class StoreError(StopcauseError):
    """The store cannot do what was asked."""


class StoreInUseError(StoreError):
    """Another process owns the store."""


class StoreVersionError(StoreError):
    """The store was written by a newer stopcause. `step` is the first change of its shape that this one lacks."""

    def __init__(self, message: str, step: str = "") -> None:
        super().__init__(message)
        self.step = step


class StoreFullError(StoreError):
    """The disk took no more."""


class NotFoundError(StopcauseError):
    """Nothing has that name."""


class ReportError(StopcauseError):
    """A parameter that a report does not take as it is; the message says its name, and the shape of what was given."""


class QueryError(StopcauseError):
    """Free SQL that cannot be run: it is not a reading statement, or the engine does not take it."""


class QueryStoppedError(QueryError):
    """Free SQL that was cut off."""

    exit_code = 1
