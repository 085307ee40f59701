"""Several sinks at once: the first has every line, and none has a line twice because another one failed."""

from __future__ import annotations

import builtins
import logging
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import stopcause
from stopcause.classifier.policy import policy_from_mapping
from stopcause.receipts import capture
from stopcause.receipts.sinks import NullSink, Spool, Tee
from stopcause.receipts.testing import MemorySink


class Failing(MemorySink):
    """Raises so many times, then takes."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times
        self.is_closed = False

    def write(self, lines: Sequence[bytes]) -> None:
        """Raises, or takes."""
        if self.times:
            self.times -= 1
            raise ValueError("canary-7f3a")
        super().write(lines)

    def close(self) -> None:
        """Says that it is closed, and raises."""
        self.is_closed = True
        raise OSError


def test_the_first_is_asked_again_and_the_copies_get_each_line_once() -> None:
    main, copy = Failing(2), MemorySink()
    with capture.configured(sink=Tee(main, copy)):
        stopcause.run("agent").start().end()
        assert stopcause.flush()

    assert len(main.lines) == 2
    assert copy.lines == main.lines


def test_a_copy_that_fails_costs_nobody_else_anything(caplog: pytest.LogCaptureFixture) -> None:
    main, broken, copy = MemorySink(), Failing(2), MemorySink()
    tee = Tee(main, broken, copy)
    for number in range(3):
        tee.write([b"%d" % number])

    assert main.lines == copy.lines == [b"0", b"1", b"2"]
    assert broken.lines == [b"2"]
    assert [record.getMessage() for record in caplog.records] == [
        "stopcause: Failing did not take records (ValueError); it lacks them, the first sink has them"
    ]


def test_only_what_the_first_gives_up_is_lost() -> None:
    class Picky(MemorySink):
        def write(self, lines: Sequence[bytes]) -> int:  # type: ignore[override]  # a sink may say so
            super().write(lines)
            return 1

    assert Tee(Picky(), MemorySink()).write([b"a"]) == 1
    assert not Tee(MemorySink(), Picky()).write([b"a"])


def test_all_are_closed_whatever_one_of_them_does() -> None:
    sinks = [Failing(0), Failing(0)]
    Tee(*sinks).close()

    assert all(sink.is_closed for sink in sinks)


def test_a_spool_and_a_copy_hold_the_same(tmp_path: Path) -> None:
    copy = MemorySink()
    with capture.configured(sink=Tee(Spool(tmp_path), copy)):
        stopcause.run("agent").start().end()
        assert stopcause.flush()
        spooled = [line for file in tmp_path.glob("*.ndjson") for line in file.read_bytes().splitlines()]

    assert copy.lines
    assert [line for line in spooled if b'"journal"' not in line] == copy.lines


class World(dict[str, Any]):
    """What the page's examples stand on: anything that they do not make themselves."""

    def __missing__(self, name: str) -> object:
        if hasattr(builtins, name):
            raise KeyError(name)
        return "x" if name == "key" else lambda *_: stopcause.run("agent").start().end()


def test_the_page_is_true() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sinks.md").read_text("utf-8")
    examples = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    policies = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)

    with capture.configured():
        world = World()
        for example in examples:
            exec(example, world)  # noqa: S102 - the page is ours
    for policy in policies:
        assert policy_from_mapping(tomllib.loads(policy)).contracts["invoice-created"].issuers
    assert (len(examples), len(policies)) == (4, 1)


def test_past_everybody(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), capture.configured(sink=NullSink()):
        stopcause.run("agent").start().end()
        assert stopcause.flush()
    assert not caplog.records
