"""What a program of the Claude Agent SDK has of its own that the hook must leave alone, and what it must understand."""

from __future__ import annotations

import asyncio
import gc
import inspect
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, PermissionResultAllow
from claude_agent_sdk._internal.client import InternalClient

import stopcause
from stopcause.receipts.hooks.claude_agent_sdk.turn import Turn
from stopcause.receipts.testing import recorded
from tests.frameworks.claude_agent_sdk import ways
from tests.frameworks.claude_agent_sdk.models import ANSWERED, Wire, asks, came, init, result, said
from tests.frameworks.claude_agent_sdk.ways import CALL, NOISE, Seen
from tests.frameworks.sinks import broken

pytestmark = [pytest.mark.filterwarnings(each) for each in NOISE]


@pytest.fixture(autouse=True)
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument("claude_agent_sdk")
    yield
    stopcause.uninstrument("claude_agent_sdk")


def test_what_is_wrapped_looks_as_before() -> None:
    assert inspect.isasyncgenfunction(InternalClient.process_query)
    assert inspect.isasyncgenfunction(ClaudeSDKClient.receive_messages)
    assert inspect.iscoroutinefunction(ClaudeSDKClient.connect)
    assert list(inspect.signature(ClaudeSDKClient.query).parameters) == ["self", "prompt", "session_id"]


def test_a_callback_stays_in_the_options_as_it_was() -> None:
    seen = Seen()
    given = ClaudeAgentOptions(can_use_tool=seen.can_use_tool)

    async def connects() -> None:
        async with ClaudeSDKClient(given, Wire(stays=True)):
            pass

    asyncio.run(connects())
    assert given.can_use_tool == seen.can_use_tool


def test_a_client_is_let_go() -> None:
    """Also where a callback in its options holds on to it."""

    class Application:
        client: Any = None

        async def can_use_tool(self, *_: Any) -> Any:
            return self.client

    async def connects() -> weakref.ref[Any]:
        application = Application()
        application.client = ClaudeSDKClient(
            ClaudeAgentOptions(can_use_tool=application.can_use_tool), Wire(stays=True)
        )
        async with application.client:
            return weakref.ref(application.client)

    with recorded():
        client = asyncio.run(connects())
        gc.collect()
        assert client() is None


def test_a_client_without_a_hash_works_as_before() -> None:
    class Client(ClaudeSDKClient):
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            return self is other

    async def program() -> list[str]:
        async with Client(transport=Wire([init(), said("Yes."), result()])) as client:
            await client.query("Go.")
            return [type(each).__name__ async for each in client.receive_response()]

    with recorded():
        assert asyncio.run(program()) == ["SystemMessage", "AssistantMessage", "ResultMessage"]


@pytest.mark.parametrize("denials", ["canary-7f3a", [None], 7])
def test_refusals_that_cannot_be_read_are_found_and_cost_nothing_else(denials: Any) -> None:
    with recorded() as receipts:
        asyncio.run(Seen().reads([init(), said("Yes."), result(permission_denials=denials)]))
        (stop,) = receipts.receipts
    assert stop.stop_cause == "natural"
    assert [(each.code, each.where) for each in stop.findings or ()] == [
        ("shape_changed", "stopcause.claude_agent_sdk:permission_denials")
    ]


def test_a_result_that_cannot_be_read_is_no_natural_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Turn, "_say_why", broken)
    with recorded() as receipts:
        ways.seen_by(ways._answers)
        (stop,) = [each for each in receipts.receipts if each.agent == "claude"]
        assert (stop.stop_cause, stop.reason_code) == ("unknown", "result_unreadable")
        assert "hook_failed" in [finding.code for each in receipts.records for finding in each.findings or ()]


def test_an_agent_in_a_callback_is_a_child() -> None:
    """The program's callbacks run in tasks of the SDK's, which know the turn all the same."""

    async def can_use_tool(*_: Any) -> Any:
        with stopcause.run("inner"):
            return PermissionResultAllow()

    async def program() -> None:
        script = [*CALL, asks(), ANSWERED, came(), said("Yes."), result()]
        async with ClaudeSDKClient(ClaudeAgentOptions(can_use_tool=can_use_tool), Wire(script)) as client:
            await client.query("Go.")
            async for _ in client.receive_response():
                assert stopcause.current_run() is None

    with recorded() as receipts:
        asyncio.run(program())
        inner, outer = receipts.receipts
    assert (inner.agent, inner.parent_run_id) == ("inner", outer.run_id)
