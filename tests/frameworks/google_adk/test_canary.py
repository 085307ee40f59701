"""A session that is called like a person: its name is part of what resumes it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.google_adk.models import Desk, agent, call, kept


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("google_adk")
    yield
    stopcause.uninstrument("google_adk")


@pytest.mark.parametrize("name", ["someone@example.org", "+49 170 1234567"])
def test_a_session_that_is_called_like_a_person(name: str) -> None:
    """The name of a session is part of what resumes it, and is not told where it may be a person's."""

    async def waits() -> None:
        desk = Desk(agent(call("pay")), service=kept())
        await desk.opened(name)
        async for _ in desk.stream(session=name):
            pass

    with recorded() as receipts:
        asyncio.run(waits())
        assert name.encode() not in b"\n".join(receipts.lines)
        (wait,) = receipts.stopped.approvals or ()
        assert (wait.resumable, wait.resume_token) == (True, None)
        assert (receipts.stopped.thread_id or "")[:5] == "hmac:"
