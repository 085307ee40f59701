"""Tests with real frameworks: each in an environment of its own, which `tests/frameworks/run.sh` makes.

Elsewhere they are not collected: their frameworks are not there, and cannot be there together.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.agui.stories")  # it asserts, and is no test

_HERE = Path(__file__).parent
_CHOSEN = os.environ.get("STOPCAUSE_FRAMEWORK")

collect_ignore = [str(folder) for folder in _HERE.iterdir() if folder.is_dir() and folder.name != _CHOSEN]
if _CHOSEN is None:
    collect_ignore += [str(file) for file in _HERE.glob("test_*.py")]


@pytest.fixture(autouse=True)
def own_spool(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of this machine's settings, and a data folder of the test's own."""
    for name in [name for name in os.environ if name.startswith("STOPCAUSE_") and name != "STOPCAUSE_FRAMEWORK"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("STOPCAUSE_DATA", str(tmp_path_factory.mktemp("data")))
