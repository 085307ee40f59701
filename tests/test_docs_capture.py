"""The examples of docs/capture.md run as they stand, and their runs stop for the causes that they name."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

import stopcause
from stopcause.receipts import capture
from stopcause.receipts.run import Run
from stopcause.receipts.testing import MemorySink

PAGE = (Path(__file__).parents[1] / "docs" / "capture.md").read_text("utf-8")
EXAMPLES: list[str] = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CAUSE = re.compile(r"^# stop cause: (\w+)$", re.MULTILINE)


def test_there_are_examples() -> None:
    assert len([example for example in EXAMPLES if CAUSE.search(example)]) >= 7


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_does_what_it_says(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = MemorySink()
    given: dict[str, Any] = {"asyncio": asyncio, "contextlib": contextlib, "stopcause": stopcause}
    with capture.configured(sink=sink):
        really = stopcause.configure
        monkeypatch.setattr(stopcause, "configure", lambda **said: really(sink=sink, **said), raising=False)
        exec(_with_agent(example), given)  # noqa: S102 - the page's own code
        stopcause.flush()
        causes = [each["stop_cause"] for line in sink.lines if "stop_cause" in (each := json.loads(line))]

    assert causes == CAUSE.findall(example)


def _with_agent(example: str) -> str:
    """The example about tests of one's own calls the function of an earlier one."""
    return example if "def answer" in example or "answer(" not in example else _definition() + example


def _definition() -> str:
    (found,) = [each for each in EXAMPLES if "def answer" in each]
    return found.partition("\n\n\n")[0] + "\n"


@pytest.mark.parametrize("method", re.findall(r"^\| `(\w+)\(", PAGE, re.MULTILINE))
def test_a_method_that_the_page_names_is_there(method: str) -> None:
    assert callable(getattr(Run, method))
