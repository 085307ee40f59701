"""Every way in which a run of Pydantic AI ends leaves the receipt that its file says, and gets its verdict."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

import stopcause
from tests.frameworks import harness
from tests.frameworks.pydantic_ai import paths_bounds, paths_ends, paths_failures, paths_streams, paths_waits

PATHS = [
    *paths_ends.PATHS, *paths_failures.PATHS, *paths_bounds.PATHS, *paths_streams.PATHS, *paths_waits.PATHS,
]  # fmt: skip
_IS_OLDEST = os.environ.get("STOPCAUSE_VERSIONS") == "oldest"
_DIFFERENCES = json.loads(Path(__file__).with_name("differences.json").read_text("utf-8")) if _IS_OLDEST else {}
SOURCE = f"pydantic-ai {metadata.version('pydantic-ai-slim')}, scripted model"


@pytest.fixture(autouse=True)
def hooked() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("pydantic_ai")
    yield
    stopcause.uninstrument()


@pytest.mark.parametrize("path", PATHS, ids=[path.id for path in PATHS])
def test_a_path_leaves_its_receipt(path: harness.Path_) -> None:
    difference = _DIFFERENCES.get(path.id, {})
    if difference.get("absent"):
        pytest.skip(difference["why"])
    harness.check("pydantic_ai", SOURCE, path, difference)


def test_every_file_has_its_path() -> None:
    assert not harness.files_without_path("pydantic_ai", PATHS)


def test_ids_are_unique() -> None:
    assert len({path.id for path in PATHS}) == len(PATHS)
