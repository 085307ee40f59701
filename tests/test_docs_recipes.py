"""The examples of docs/recipes.md and docs/a2a.md run as they stand, and their runs stop for the causes that they name.

One page's examples run one after the other, as a reader takes them: a later one may use what an earlier one made.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import re
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import stopcause
from stopcause.receipts import capture
from stopcause.receipts.testing import MemorySink

DOCS = Path(__file__).parents[1] / "docs"
EXAMPLE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
CAUSE = re.compile(r"^# stop cause: (\w+)$", re.MULTILINE)


def _model() -> Any:  # noqa: ANN401 - whatever a model answers
    return SimpleNamespace(calls=(), input_tokens=300, output_tokens=40, finish="stop", gave_up=True)


def _look_up() -> None:
    raise LookupError


class Client:
    """A client of A2A, whose task asks for something."""

    async def send_message(self, _: object) -> AsyncIterator[dict[str, Any]]:
        for state in ("TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED"):
            yield {"statusUpdate": {"taskId": "task-7", "contextId": "context-7", "status": {"state": state}}}


class Library:
    """A framework that nobody knows."""

    def run(self, _: str, on_round: Any) -> Any:  # noqa: ANN401 - its own
        on_round()
        return SimpleNamespace(status="budget")


def given() -> dict[str, Any]:
    """What a reader has: the modules, and things of their own."""
    return {
        "asyncio": asyncio, "contextlib": contextlib, "threading": threading, "stopcause": stopcause, "model": _model,
        "tools": {"look_up": _look_up, "refund": lambda: None}, "library": Library(), "client": Client(),
        "request": None, "AgentExecutor": object,
    }  # fmt: skip


@pytest.mark.parametrize("page", ["recipes.md", "a2a.md"])
def test_the_examples_of_a_page_do_what_they_say(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = EXAMPLE.findall((DOCS / page).read_text("utf-8"))
    assert len(examples) >= 3
    names = given()
    for example in examples:
        assert _causes(example, names, monkeypatch) == CAUSE.findall(example), example


def _causes(example: str, names: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs an example, and gives the causes of its runs."""
    sink = MemorySink()
    with capture.configured(sink=sink), monkeypatch.context() as patched:
        configure = functools.partial(stopcause.configure, sink=sink)
        patched.setattr(stopcause, "configure", configure, raising=False)
        exec(example, names)  # noqa: S102 - the page's own code
        stopcause.flush()
        return [each["stop_cause"] for line in sink.lines if "stop_cause" in (each := json.loads(line))]
