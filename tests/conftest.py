"""What every test stands on: laws are tried on the same runs everywhere, and nothing reads this machine's own data."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.laws import IS_THOROUGH

# `make test` gives the same answer on every machine; EXPLORE=1 looks for runs that nobody tried yet.
settings.register_profile(
    "house",
    deadline=None,
    max_examples=100 if IS_THOROUGH else 33,
    derandomize="EXPLORE" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("house")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user reaches, to try permissions in; pytest's own are for their owner only."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)
        Path(name).chmod(0o755)


@pytest.fixture(autouse=True)
def own_data(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user data folder of the test's own, and none of this machine's settings."""
    for name in [name for name in os.environ if name.startswith("STOPCAUSE_")]:
        monkeypatch.delenv(name)
    data = tmp_path_factory.mktemp("data")
    monkeypatch.setenv("STOPCAUSE_DATA", str(data))
    return data
