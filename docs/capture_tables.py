"""The generated parts of docs/capture.md: the parameters of `configure`, from its signature and its docstring."""

from __future__ import annotations

import inspect
import re

from tables import table

from stopcause.receipts import capture

_ARGUMENT = re.compile(r"^    (\w+): (.*(?:\n        +.*)*)", re.MULTILINE)


def options() -> str:
    """Each parameter, what it says and what holds without it."""
    signature = inspect.signature(capture.configure)
    told = (inspect.getdoc(capture.configure) or "").partition("Args:")[2].partition("Raises:")[0]
    meanings = dict(_ARGUMENT.findall(told))
    if meanings.keys() != signature.parameters.keys():
        raise AssertionError("the docstring of `configure` and its parameters differ")
    rows = (
        (f"`{name}`", re.sub(r"\s+", " ", meanings[name]), _default(parameter.default))
        for name, parameter in signature.parameters.items()
    )
    return table(("parameter", "what it says", "without it"), rows)


def _default(value: object) -> str:
    return "" if value is None or value == () else f"`{value}`"
