"""Tests that need Debian packages. `.ci/run` installs those of tests/system.txt; elsewhere they are skipped by name."""

from __future__ import annotations

import shutil

import pytest

from tests.support.machine import lacking


@pytest.fixture
def tmux() -> str:
    """The program, or a skip that says what to install. In CI a missing package is a failure."""
    found = shutil.which("tmux")
    if found is None:
        lacking("needs the Debian package tmux: apt install tmux")
    return found
