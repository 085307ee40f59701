"""Tests that need Debian packages. `.ci/run` installs those of tests/system.txt; elsewhere they are skipped by name."""

from __future__ import annotations

import os
import shutil

import pytest


@pytest.fixture
def tmux() -> str:
    """The program, or a skip that says what to install. In CI a missing package is a failure."""
    found = shutil.which("tmux")
    if found is None:
        missing = "needs the Debian package tmux: apt install tmux"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return found
