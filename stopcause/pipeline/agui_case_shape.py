"""What a case of AG-UI has to look like: looked at when it is loaded, so that a slip is named, with its file and field.

What is in `exchanges`, `input` and `asked` may be as broken as the case needs it.
"""

from __future__ import annotations

from collections.abc import Callable

from stopcause.agui.words import Mode
from stopcause.pipeline.case_fields import Fields

UNREADABLE = "unreadable"  # what may be wrong with the file of a guard
_CHOICES = ("ask_again", "refuse")  # of `on_uncovered`


def require(fields: Fields) -> None:
    """Nothing, where a case has the shape of one.

    Raises:
        InputError: It has not; names file and field.
    """
    _within(fields, "expected", _expected)
    _within(fields, "check", _check)
    _within(fields, "receive", _receive)


def _within(fields: Fields, name: str, require_shape: Callable[[Fields], None]) -> None:
    if (inner := fields.inner(name)) is not None:
        require_shape(inner)


def _expected(fields: Fields) -> None:
    for run in fields.inner_all("runs"):
        run.get("run_id", str)
    for thread in fields.inner_all("threads"):
        thread.get("thread_id", str)
        thread.find("reason", str)
        thread.texts("open")
        if thread.has("thread_verdict"):
            thread.verdict("thread_verdict")
    _findings(fields)


def _check(fields: Fields) -> None:
    fields.find("refused", bool)
    fields.find("sent", dict)
    fields.one_of("state", (UNREADABLE,))
    _findings(fields)
    if fields.has("now"):
        fields.time("now")


def _receive(fields: Fields) -> None:
    for asked in fields.inner_all("asked"):
        asked.get("id", str)
    fields.find("taken", list)
    fields.one_of("mode", tuple(Mode))
    fields.one_of("on_uncovered", _CHOICES)
    fields.get("expected", dict)
    _within(fields, "expected", _received)


def _received(fields: Fields) -> None:
    fields.find("decisions", dict)
    for name in ("may_act", "must_ask_again", "unrecognised"):
        fields.texts(name)
    _findings(fields)


def _findings(fields: Fields) -> None:
    fields.texts("findings")
    fields.texts("absent")
