"""A session that is called like a person: its name is what resumes it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from agent_framework import AgentSession

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.agent_framework.models import agent, call


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("agent_framework")
    yield
    stopcause.uninstrument("agent_framework")


@pytest.mark.parametrize("name", ["someone@example.org", "+49 170 1234567"])
def test_a_session_that_is_called_like_a_person(name: str) -> None:
    """The name of a session is what resumes it, and is not told where it may be a person's."""
    with recorded() as receipts:
        asyncio.run(_ask(name))
        assert name.encode() not in b"\n".join(receipts.lines)
        (wait,) = receipts.stopped.approvals or ()
        assert {(name or "hmac:")[:5] for name in (wait.resume_token, receipts.stopped.thread_id)} == {"hmac:"}


async def _ask(name: str) -> None:
    await agent(call("pay")).run("Go.", session=AgentSession(session_id=name))
