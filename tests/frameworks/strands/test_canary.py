"""A session that is called like a person: its name is what resumes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from strands.session.file_session_manager import FileSessionManager

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.strands.models import agent, ask_before, call


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("strands")
    yield
    stopcause.uninstrument("strands")


@pytest.mark.parametrize("name", ["someone@example.org", "+49 170 1234567"])
def test_a_session_that_is_called_like_a_person(name: str, tmp_path: Path) -> None:
    """The name of a session is what resumes it, and is not told where it may be a person's."""
    manager = FileSessionManager(name, storage_dir=str(tmp_path))
    with recorded() as receipts:
        agent(call("pay"), hooks=[ask_before("pay")], session_manager=manager)("Go.")
        assert name.encode() not in b"\n".join(receipts.lines)
        (wait,) = receipts.stopped.approvals or ()
        assert (wait.resumable, (receipts.stopped.thread_id or "")[:5]) == (True, "hmac:")
