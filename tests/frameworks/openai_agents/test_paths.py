"""Every way in which a run of the SDK ends, and the verdict that its receipt gives."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

import stopcause
from tests.frameworks import harness
from tests.frameworks.openai_agents import paths_approvals, paths_ends, paths_outside, paths_streams

PATHS = [*paths_ends.PATHS, *paths_streams.PATHS, *paths_outside.PATHS, *paths_approvals.PATHS]
SOURCE = f"openai-agents {metadata.version('openai-agents')}, scripted model"
OLDEST = os.environ.get("STOPCAUSE_VERSIONS") == "oldest"
DIFFERENCES = json.loads(Path(__file__).with_name("differences.json").read_text("utf-8")) if OLDEST else {}


@pytest.fixture(autouse=True, scope="module")
def hooked() -> Iterator[None]:
    """The hook, on."""
    assert "openai_agents" in stopcause.instrument("openai_agents")
    yield
    stopcause.uninstrument("openai_agents")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.id)
def test_path(path: harness.Path_) -> None:
    difference = DIFFERENCES.get(path.id, {})
    if difference.get("absent"):
        pytest.skip(difference["why"])
    harness.check("openai_agents", SOURCE, path, difference)


def test_every_file_has_a_path() -> None:
    assert not harness.files_without_path("openai_agents", PATHS)


def test_every_difference_has_a_path_and_a_reason() -> None:
    known = {path.id for path in PATHS}
    assert all(name in known and each["why"] for name, each in DIFFERENCES.items())
