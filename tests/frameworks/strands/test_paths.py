"""Every way in which a run of Strands ends leaves the records of its file, and the verdict that the plan gives it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import stopcause
from tests.frameworks import harness
from tests.frameworks.strands import paths_ends, paths_faults, paths_multiagent, paths_waits

PATHS = [*paths_ends.PATHS, *paths_faults.PATHS, *paths_waits.PATHS, *paths_multiagent.PATHS]
DIFFERENCES: dict[str, Any] = json.loads((Path(__file__).parent / "differences.json").read_text("utf-8"))
SOURCE = f"strands-agents {metadata.version('strands-agents')}, scripted model"
_IS_OLDEST = os.environ.get("STOPCAUSE_VERSIONS") == "oldest"


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("strands")
    yield
    stopcause.uninstrument("strands")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.id)
def test_a_path_leaves_its_records(path: harness.Path_) -> None:
    differs = DIFFERENCES.get(path.id, {}) if _IS_OLDEST else {}
    if differs.get("absent"):
        pytest.skip(differs["why"])
    harness.check("strands", SOURCE, path, differs)


def test_ids_are_used_once() -> None:
    assert len({path.id for path in PATHS}) == len(PATHS)


def test_no_file_is_left_over() -> None:
    assert harness.files_without_path("strands", PATHS) == set()


def test_differences_are_of_paths_that_there_are() -> None:
    assert set(DIFFERENCES) <= {path.id for path in PATHS}
