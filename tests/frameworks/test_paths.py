"""Every way in which a run ends leaves the records of its file, and gets the verdict that the plan gives it.

Run for each framework in its own environment; the ways are `paths.PATHS` in the framework's folder. What the oldest
version does not have, or has otherwise, is in `differences.json` there, each with its reason.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import pytest

import stopcause
from stopcause.receipts.hooks import SPECS
from tests.frameworks import harness

_FRAMEWORK = os.environ["STOPCAUSE_FRAMEWORK"]
_MODULE: Any = importlib.import_module(f"tests.frameworks.{_FRAMEWORK}.paths")
_PATHS: list[harness.Path_] = _MODULE.PATHS
_DIFFERENCES: dict[str, Any] = harness.differences(_FRAMEWORK)
(_PACKAGE,) = [spec.distribution for spec in SPECS if spec.name == _FRAMEWORK]


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    assert _FRAMEWORK in stopcause.instrument(_FRAMEWORK)
    yield
    stopcause.uninstrument(_FRAMEWORK)
    getattr(_MODULE, "let_go", lambda: None)()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("path", _PATHS, ids=lambda path: path.id)
def test_a_path_leaves_its_records(path: harness.Path_) -> None:
    differs = harness.differing(_FRAMEWORK, path.id)
    if differs.get("absent"):
        pytest.skip(differs["why"])
    told = harness.told(_FRAMEWORK, f"{_PACKAGE} {metadata.version(_PACKAGE)}, scripted model", path, differs)

    assert told.verdict == path.expected, json.dumps(told.case["records"], indent=1)
    assert told.case == told.stored


def test_ids_are_used_once() -> None:
    assert len({path.id for path in _PATHS}) == len(_PATHS)


def test_no_file_is_left_over() -> None:
    folder = harness.FIXTURES / _FRAMEWORK

    assert {file.stem for file in folder.glob("*.json")} == {path.id for path in _PATHS}


def test_differences_are_of_paths_that_there_are_and_have_reasons() -> None:
    assert set(_DIFFERENCES) <= {path.id for path in _PATHS}
    assert all(each["why"] for each in _DIFFERENCES.values())
