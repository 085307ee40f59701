"""The id of a flow, which is what resumes it, and may be a person's."""

from __future__ import annotations

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.crewai.doors import Reviewed
from tests.frameworks.crewai.flows import store


def test_a_flow_whose_id_is_a_person() -> None:
    """It is not told then."""
    stopcause.instrument("crewai")
    try:
        with recorded() as receipts:
            Reviewed(persistence=store()).kickoff(inputs={"id": "someone@example.org"})
            assert b"someone@example.org" not in b"\n".join(receipts.lines)
            (wait,) = receipts.stopped.approvals or ()
            assert (wait.resumable, wait.resume_token, (receipts.stopped.thread_id or "")[:5]) == (True, None, "hmac:")
    finally:
        stopcause.uninstrument("crewai")
