"""The examples of docs/frameworks/smolagents.md run as they stand: the first run waits, the second takes it up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from smolagents import AgentError

import stopcause
from stopcause.receipts.testing import recorded
from tests.frameworks.smolagents.models import Scripted, call, done

PAGE = (Path(__file__).parents[3] / "docs" / "frameworks" / "smolagents.md").read_text("utf-8")
_, ASKS, GOES_ON = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("smolagents")
    yield
    stopcause.uninstrument("smolagents")


def test_it_waits_and_is_taken_up(tmp_path: Path) -> None:
    given: dict[str, Any] = {"model": Scripted([call("refund", order="order-7"), done()]), "conversation": "c-1"}
    program = tmp_path / "program.py"  # smolagents reads the source of a tool
    program.write_text(ASKS, "utf-8")
    exec(compile(ASKS, str(program), "exec"), given)  # noqa: S102 - the page's own code
    with recorded() as receipts:
        with pytest.raises(AgentError):
            given["agent"].run("Refund it.")
        given |= {"run_id": receipts.stopped.run_id, "order": "order-7"}
        exec(GOES_ON, given)  # noqa: S102 - the page's own code
        waited, resumed = receipts.receipts

    assert (waited.stop_cause, resumed.stop_cause) == ("approval_pending", "explicit_done")
    (wait,) = waited.approvals or ()
    assert (wait.approval_id, wait.resume_token) == ("order-7", "c-1")
    assert (resumed.resumes_run_id, resumed.answers) == (waited.run_id, ("order-7",))
