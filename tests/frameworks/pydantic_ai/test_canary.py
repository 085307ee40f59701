"""What the host allows to come out does."""

from __future__ import annotations

import asyncio

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.pydantic_ai import doors


def test_what_the_host_allows_comes_out() -> None:
    with recorded(label_keys=["word"], approval_keys={"owner": "word"}) as receipts:
        stopcause.instrument("pydantic_ai")
        asyncio.run(doors._waits())
        stopcause.uninstrument()
        assert any(b'"owner":"canary7f3a"' in line for line in receipts.lines)
        assert any(b'"labels":{"word":"canary7f3a"}' in line for line in receipts.lines)
