"""A program sees the same with and without the hook, whatever becomes of the hook and of the sink.

Run for each framework in its own environment. What a program can do with it is `ways` in the framework's folder:

    WAYS      functions that use the framework and note what a program sees; `seen_by(way)` gives it
    POINTS    (owner, name) of all that the hook replaces; none where the framework has a listening point
    FAULTS    (owner, name) of functions of the hook's that may fail, beside those that all hooks stand on
    ENDS      (owner, name) of those by which a run ends: whatever fails in them, it is over
    CHEAP     of WAYS those that are tried with each fault, where one takes long
    UNSEEN    of WAYS those that are no run
    NOISE     filters for what the framework itself warns of on these ways, with and without the hook
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import stopcause
from stopcause.receipts.hooks.guard import Hook
from stopcause.receipts.model import RunStarted
from stopcause.receipts.run import Run
from stopcause.receipts.testing import recorded
from tests.frameworks.sinks import Blocks, Raises, broken

_FRAMEWORK = os.environ["STOPCAUSE_FRAMEWORK"]
if not (Path(__file__).parent / _FRAMEWORK / "ways.py").exists():  # one that is there and cannot be imported fails
    pytest.skip("its own test_harmless has them", allow_module_level=True)
_MODULE: Any = importlib.import_module(f"tests.frameworks.{_FRAMEWORK}.ways")

Way = Callable[..., Any]

_SHARED = [(Run, "say"), (Run, "end"), (Run, "start"), (Run, "waiting"), (Hook, "begin"), (Hook, "read")]
_UNSEEN = getattr(_MODULE, "UNSEEN", ())

ways = pytest.mark.parametrize("way", _MODULE.WAYS, ids=lambda way: way.__name__.strip("_"))
cheap = pytest.mark.parametrize("way", getattr(_MODULE, "CHEAP", _MODULE.WAYS), ids=lambda way: way.__name__.strip("_"))
pytestmark = [
    pytest.mark.filterwarnings(each)
    for each in ("ignore::UserWarning", "ignore::DeprecationWarning", *getattr(_MODULE, "NOISE", ()))
]


def _named(each: Any) -> str:
    return each if isinstance(each, str) else each.__name__.rpartition(".")[2]


@cache
def bare(way: Way) -> Any:
    """What a program sees without the hook."""
    return _MODULE.seen_by(way)


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    """The hook is on. What is seen without it is looked at before."""
    if "way" in request.fixturenames:
        bare(request.getfixturevalue("way"))
    assert _FRAMEWORK in stopcause.instrument(_FRAMEWORK)
    yield
    monkeypatch.undo()
    stopcause.uninstrument(_FRAMEWORK)


@ways
def test_all_is_the_same_with_the_hook_and_after_it(way: Way) -> None:
    before = bare(way)
    stopcause.instrument(_FRAMEWORK)
    try:
        with recorded() as receipts:
            assert _MODULE.seen_by(way) == before
            assert bool(receipts.receipts) is bool(receipts.lines) is (way not in _UNSEEN)
    finally:
        stopcause.uninstrument(_FRAMEWORK)
    assert _MODULE.seen_by(way) == before


def test_the_framework_is_given_back_as_it_was() -> None:
    """A method that a class has from another is not in it before, and not after."""
    before = [vars(owner).get(name) for owner, name in _MODULE.POINTS]
    stopcause.instrument(_FRAMEWORK)
    during = [vars(owner).get(name) for owner, name in _MODULE.POINTS]
    stopcause.uninstrument(_FRAMEWORK)

    assert all(ours is not theirs for ours, theirs in zip(during, before, strict=True))
    assert [vars(owner).get(name) for owner, name in _MODULE.POINTS] == before


@pytest.mark.parametrize("word", ["1", _FRAMEWORK])
@pytest.mark.usefixtures("hook")
def test_nothing_is_recorded_where_it_is_turned_off(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPCAUSE_DISABLED", word)
    with recorded() as receipts:
        assert _MODULE.seen_by(_MODULE.WAYS[0]) == bare(_MODULE.WAYS[0])
        assert receipts.lines == []


@ways
@pytest.mark.usefixtures("hook")
def test_a_sink_that_raises_or_blocks_changes_nothing(way: Way) -> None:
    blocks, began = Blocks(), time.monotonic()
    try:
        for sink in (Raises(), blocks):
            stopcause.configure(sink=sink)
            assert _MODULE.seen_by(way) == bare(way)
        assert time.monotonic() - began < blocks.holds_s
    finally:
        blocks.go.set()
        stopcause.configure()


@cheap
@pytest.mark.parametrize(("owner", "name"), [*_SHARED, *_MODULE.FAULTS], ids=_named)
@pytest.mark.usefixtures("hook")
def test_a_fault_of_the_hooks_changes_nothing(way: Way, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with recorded():
        monkeypatch.setattr(owner, name, broken)
        assert _MODULE.seen_by(way) == bare(way)


@cheap
@pytest.mark.parametrize(("owner", "name"), _MODULE.ENDS, ids=_named)
@pytest.mark.usefixtures("hook")
def test_whatever_fails_a_run_that_began_has_an_end(
    way: Way, owner: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with recorded() as receipts:
        monkeypatch.setattr(owner, name, broken)
        assert _MODULE.seen_by(way) == bare(way)
        began = {each.run_id for each in receipts.records if isinstance(each, RunStarted)}
        assert began == {each.run_id for each in receipts.receipts}


@pytest.mark.usefixtures("hook")
def test_the_context_is_left_as_it_was() -> None:
    with recorded():
        _MODULE.seen_by(_MODULE.WAYS[0])
    assert stopcause.current_run() is None
