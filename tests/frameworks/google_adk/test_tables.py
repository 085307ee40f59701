"""The tables of the hook have every word that the framework has, and outside the tested versions only classes count."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.agents.run_config import RunConfig
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.errors.tool_execution_error import ToolExecutionError
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.adk.workflow import NodeTimeoutError
from google.genai import types

import stopcause
from stopcause.receipts import instrumentation
from stopcause.receipts.hooks.google_adk.causes import BY_CODE, BY_ERROR, FINISHES
from stopcause.receipts.testing import recorded
from tests.frameworks.google_adk.models import Desk, Turn, agent, call, failing, say

_WHOLE = {"STOP"}  # an answer, and no error


def test_every_finish_reason_of_the_model_has_a_word() -> None:
    assert {each.value for each in types.FinishReason} <= set(FINISHES)


def test_every_finish_reason_and_block_reason_has_a_cause_where_there_is_no_answer() -> None:
    words = {each.value for kind in (types.FinishReason, types.BlockedReason) for each in kind}
    assert words - _WHOLE <= set(BY_CODE)


def test_exceptions_are_the_frameworks_own() -> None:
    kinds = (LlmCallsLimitExceededError, SessionNotFoundError, ToolExecutionError, NodeTimeoutError)
    assert {kind.__name__ for kind in kinds} <= set(BY_ERROR)
    assert all(kind.__module__.startswith("google.adk.") for kind in kinds)


@pytest.mark.parametrize(
    ("driver", "database", "is_kept"),
    [
        ("postgresql+asyncpg", "desk", True), ("sqlite+aiosqlite", "desk.db", True),
        ("sqlite+aiosqlite", ":memory:", None), ("sqlite+aiosqlite", None, None),
    ],
)  # fmt: skip
def test_a_database_in_memory_keeps_nothing(
    driver: str, database: str | None, is_kept: bool | None, tmp_path: Path
) -> None:
    kind: Any = type("DatabaseSessionService", (SqliteSessionService,), {"__module__": "google.adk.sessions"})
    service = kind(str(tmp_path / "sessions.db"))  # SQLAlchemy is not installed here; of its engine the address is read
    service.db_engine = SimpleNamespace(url=SimpleNamespace(drivername=driver, database=database))
    stopcause.instrument("google_adk")
    with recorded() as receipts:
        asyncio.run(Desk(agent(call("pay")), service=service).run())
        (approval,) = receipts.stopped.approvals or ()
    stopcause.uninstrument("google_adk")
    assert approval.resumable is is_kept
    assert (approval.resume_token is not None) is bool(is_kept)


@pytest.fixture
def _other_version(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(instrumentation, "_is_between", lambda *_: False)
    stopcause.instrument("google_adk")
    yield
    stopcause.uninstrument("google_adk")


@pytest.mark.usefixtures("_other_version")
def test_of_another_version_the_end_and_exception_classes_are_seen() -> None:
    async def program() -> None:
        await Desk(agent(call("pay"))).run()
        await failing(Desk(agent(call(), say())).run(config=RunConfig(max_llm_calls=1)))
        await failing(Desk(agent(Turn(error=RuntimeError("x")))).run())

    with recorded() as receipts:
        asyncio.run(program())
        stops = receipts.receipts
    assert [stop.stop_cause for stop in stops] == ["unknown", "step_limit", "host_error"]
    assert all("untested_version" in [finding.code for finding in stop.findings or ()] for stop in stops)
    assert all(stop.steps is None for stop in stops)


@pytest.mark.usefixtures("_other_version")
def test_of_another_version_a_reader_who_leaves_is_seen() -> None:
    async def leaves() -> None:
        desk = Desk(agent(call(), say()))
        await desk.opened()
        stream = desk.stream()
        await anext(stream)
        await stream.aclose()

    with recorded() as receipts:
        asyncio.run(leaves())
        assert receipts.stopped.reason_code == "reader_left"
