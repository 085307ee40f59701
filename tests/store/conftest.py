"""What the tests of the store share: a store in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from stopcause.store.duckdb_store import DuckStore

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def store() -> Iterator[DuckStore]:
    with DuckStore.open(None) as opened:
        yield opened
