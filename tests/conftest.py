"""What every test stands on: laws are tried on the same runs everywhere, and nothing reads this machine's own data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# `make test` gives the same answer on every machine; EXPLORE=1 looks for runs that nobody tried yet.
settings.register_profile(
    "house",
    deadline=None,
    derandomize="EXPLORE" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("house")


@pytest.fixture(autouse=True)
def own_data(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user data folder of the test's own, and none of this machine's settings."""
    for name in [name for name in os.environ if name.startswith("STOPCAUSE_")]:
        monkeypatch.delenv(name)
    data = tmp_path_factory.mktemp("data")
    monkeypatch.setenv("STOPCAUSE_DATA", str(data))
    return data
