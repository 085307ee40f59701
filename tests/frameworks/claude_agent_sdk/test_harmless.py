"""A program sees the same with and without the hook, whatever becomes of the hook and of the sink."""

from __future__ import annotations

import asyncio
import gc
import inspect
import re
import traceback
import weakref
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    ProcessError,
    query,
)
from claude_agent_sdk._internal.client import InternalClient
from claude_agent_sdk._internal.query import Query

import stopcause
from stopcause.receipts import model
from stopcause.receipts.hooks.claude_agent_sdk import turn as claude_agent_sdk_turn
from stopcause.receipts.hooks.claude_agent_sdk.link import Link
from stopcause.receipts.hooks.guard import Hook
from stopcause.receipts.run import Run
from stopcause.receipts.testing import recorded
from tests.frameworks.claude_agent_sdk.models import (
    ANSWERED,
    INTERRUPTED,
    Wire,
    asks,
    came,
    failed,
    init,
    result,
    said,
    task,
    used,
)
from tests.frameworks.harness import Scripted
from tests.frameworks.sinks import Blocks, Raises, broken

POINTS = [
    (InternalClient, "process_query"), (ClaudeSDKClient, "connect"), (ClaudeSDKClient, "query"),
    (ClaudeSDKClient, "receive_messages"), (ClaudeSDKClient, "interrupt"), (ClaudeSDKClient, "disconnect"),
    (Query, "_handle_control_request"), (Query, "__init__"),
]  # fmt: skip
_NAME = "claude_agent_sdk"
# A stream of messages that is left early is not closed by the SDK, with and without the hook.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
_CALL = (init("Bash", "Task"), said(used()))


class Seen:
    """What a program sees: messages, calls of its callbacks and hooks, exceptions, the run that is open for it."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def tell(self, value: Any) -> None:
        """A value by what stays the same from run to run."""
        if isinstance(value, BaseException):
            self.told.append((type(value), value.args, bool(traceback.extract_tb(value.__traceback__))))
            self.told.append((type(value.__cause__), type(value.__context__)))
        else:
            self.told.append((re.sub(r"msg_\d+", "msg", repr(value)), stopcause.current_run()))

    async def can_use_tool(self, name: str, given: Any, context: Any) -> Any:
        self.told.append(("asked", name, given, type(context)))
        return PermissionResultAllow(updated_input={"command": "else"})

    async def reads(self, script: Any, **more: Any) -> None:
        """One query, read to its end."""
        try:
            async for message in query(prompt="Go.", options=ClaudeAgentOptions(**more), transport=Wire(script)):
                self.tell(message)
        except Exception as error:  # noqa: BLE001 - it is compared
            self.tell(error)


async def _answers(seen: Seen) -> None:
    await seen.reads([*_CALL, came(), task("task_started"), said("Yes."), result()])


async def _fails(seen: Seen) -> None:
    await seen.reads([*_CALL, failed("max_turns", "error_max_turns"), ProcessError("as it is", exit_code=1)])


async def _breaks(seen: Seen) -> None:
    await seen.reads([init(), Scripted("as it is")])


async def _no_message(seen: Seen) -> None:
    await seen.reads([init(), {"type": "result"}])


async def _refused(seen: Seen) -> None:
    """What the SDK refuses before it connects."""
    given = ClaudeAgentOptions(can_use_tool=seen.can_use_tool, permission_prompt_tool_name="theirs")
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the text is compared, with and without
        await anext(aiter(query(prompt="Go.", options=given)))
    seen.tell(raised.value)


async def _leaves(seen: Seen) -> None:
    stream: Any = query(prompt="Go.", transport=Wire([*_CALL, 5.0]))
    seen.tell(await anext(stream))
    await stream.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def _throws(seen: Seen) -> None:
    stream: Any = query(prompt="Go.", transport=Wire([*_CALL, 5.0]))
    seen.tell(await anext(stream))
    with pytest.raises(Scripted) as raised:
        await stream.athrow(Scripted("thrown in"))
    seen.tell(raised.value)


async def _cancels(seen: Seen) -> None:
    running = asyncio.create_task(seen.reads([*_CALL, 5.0]))
    await asyncio.sleep(0.05)
    running.cancel("why")
    with pytest.raises(asyncio.CancelledError) as raised:
        await running
    seen.tell(raised.value)


async def _client(seen: Seen) -> None:
    scripts = [*_CALL, asks(), ANSWERED, came(), said("Yes."), result()], [init(), INTERRUPTED, failed("aborted_tools")]
    given = ClaudeAgentOptions(can_use_tool=seen.can_use_tool, hooks={"Stop": [HookMatcher(hooks=[])]})
    async with ClaudeSDKClient(given, Wire(*scripts, stays=True)) as client:
        for _ in scripts:
            seen.tell(await client.query("Go."))
            if _ is scripts[1]:
                seen.tell(await client.interrupt())
            async for message in client.receive_response():
                seen.tell(message)
    seen.tell(client._query)


async def _not_connected(seen: Seen) -> None:
    client = ClaudeSDKClient()
    for work in (client.query("Go."), client.interrupt(), anext(aiter(client.receive_messages()))):
        with pytest.raises(Exception, match="Not connected") as raised:
            await work
        seen.tell(raised.value)
    seen.tell(await client.disconnect())


Way = Callable[[Seen], Coroutine[Any, Any, None]]
NO_RUN = [_not_connected]  # there is no turn, so there is no run
WAYS: list[Way] = [_answers, _fails, _breaks, _no_message, _refused, _leaves, _throws, _cancels, _client]


def seen_by(way: Way) -> list[Any]:
    """All that a program sees on one of these ways."""
    seen = Seen()
    asyncio.run(way(seen))
    return seen.told


@pytest.fixture
def hook() -> Iterator[None]:
    """The hook is on."""
    stopcause.instrument(_NAME)
    yield
    stopcause.uninstrument(_NAME)


ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_"))


@pytest.mark.parametrize("way", [*WAYS, *NO_RUN], ids=lambda way: way.__name__.strip("_"))
def test_all_is_the_same_with_the_hook(way: Way) -> None:
    bare = seen_by(way)
    stopcause.instrument(_NAME)
    try:
        with recorded() as receipts:
            assert seen_by(way) == bare
            assert bool(receipts.receipts) is (way not in NO_RUN)
    finally:
        stopcause.uninstrument(_NAME)
    assert seen_by(way) == bare


def test_the_framework_is_given_back_as_it_was() -> None:
    before = [vars(owner)[name] for owner, name in POINTS]
    stopcause.instrument(_NAME)
    during = [vars(owner)[name] for owner, name in POINTS]
    stopcause.uninstrument(_NAME)
    assert all(ours is not original for ours, original in zip(during, before, strict=True))
    assert [vars(owner)[name] for owner, name in POINTS] == before


@pytest.mark.usefixtures("hook")
def test_what_is_wrapped_looks_as_before() -> None:
    assert inspect.isasyncgenfunction(InternalClient.process_query)
    assert inspect.isasyncgenfunction(ClaudeSDKClient.receive_messages)
    assert inspect.iscoroutinefunction(ClaudeSDKClient.connect)
    assert list(inspect.signature(ClaudeSDKClient.query).parameters) == ["self", "prompt", "session_id"]


@pytest.mark.usefixtures("hook")
def test_a_callback_stays_in_the_options_as_it_was() -> None:
    seen = Seen()
    given = ClaudeAgentOptions(can_use_tool=seen.can_use_tool)

    async def connects() -> None:
        async with ClaudeSDKClient(given, Wire(stays=True)):
            pass

    asyncio.run(connects())
    assert given.can_use_tool == seen.can_use_tool


@pytest.mark.usefixtures("hook")
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


@pytest.mark.usefixtures("hook")
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


@pytest.mark.usefixtures("hook")
@pytest.mark.parametrize("denials", ["canary-7f3a", [None], 7])
def test_refusals_that_cannot_be_read_are_found_and_cost_nothing_else(denials: Any) -> None:
    with recorded() as receipts:
        asyncio.run(Seen().reads([init(), said("Yes."), result(permission_denials=denials)]))
        (stop,) = receipts.receipts
    assert stop.stop_cause == "natural"
    assert [(each.code, each.where) for each in stop.findings or ()] == [
        ("shape_changed", f"stopcause.{_NAME}:permission_denials")
    ]


@pytest.mark.usefixtures("hook")
@pytest.mark.parametrize("word", ["1", _NAME])
def test_it_is_off_by_the_environment(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPCAUSE_DISABLED", word)
    with recorded() as receipts:
        assert seen_by(_client)
        assert receipts.lines == []


@ways
def test_a_sink_that_raises_or_blocks_changes_nothing(way: Way) -> None:
    bare = seen_by(way)
    stopcause.instrument(_NAME)
    blocks = Blocks()
    try:
        for sink in (Raises(), blocks):
            stopcause.configure(sink=sink)
            assert seen_by(way) == bare
    finally:
        blocks.go.set()
        stopcause.uninstrument(_NAME)
        stopcause.configure()


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Run, "say"), (Run, "end"), (Run, "start"), (Run, "waiting"), (Hook, "begin"), (Hook, "read"), (Link, "begin"),
        (Link, "item"), (Link, "asks"), (Link, "answers"), (claude_agent_sdk_turn.Turn, "describe"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)  # fmt: skip
@pytest.mark.parametrize("way", [_answers, _client], ids=lambda way: way.__name__.strip("_"))
def test_a_fault_of_the_hooks_changes_nothing(
    way: Way, owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = seen_by(way)
    stopcause.instrument(_NAME)
    try:
        with recorded():
            monkeypatch.setattr(owner, name, broken)
            assert seen_by(way) == bare
    finally:
        monkeypatch.undo()
        stopcause.uninstrument(_NAME)


@pytest.mark.parametrize("name", ["cause", "is_first_end", "came_back", "failed", "ended", "left", "answered"])
@ways
def test_whatever_fails_a_run_that_began_has_an_end(way: Way, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = seen_by(way)
    stopcause.instrument(_NAME)
    try:
        with recorded() as receipts:
            monkeypatch.setattr(claude_agent_sdk_turn.Loop, name, broken)
            assert seen_by(way) == bare
            began = {each.run_id for each in receipts.records if isinstance(each, model.RunStarted)}
            assert began == {each.run_id for each in receipts.receipts}
    finally:
        monkeypatch.undo()
        stopcause.uninstrument(_NAME)


@pytest.mark.usefixtures("hook")
def test_a_result_that_cannot_be_read_is_no_natural_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claude_agent_sdk_turn.Turn, "_say_why", broken)
    with recorded() as receipts:
        seen_by(_answers)
        (stop,) = [each for each in receipts.receipts if each.agent == "claude"]
        assert (stop.stop_cause, stop.reason_code) == ("unknown", "result_unreadable")
        assert "hook_failed" in [finding.code for each in receipts.records for finding in each.findings or ()]


@pytest.mark.usefixtures("hook")
def test_an_agent_in_a_callback_is_a_child() -> None:
    """The program's callbacks run in tasks of the SDK's, which know the turn all the same."""

    async def can_use_tool(*_: Any) -> Any:
        with stopcause.run("inner"):
            return PermissionResultAllow()

    async def program() -> None:
        script = [*_CALL, asks(), ANSWERED, came(), said("Yes."), result()]
        async with ClaudeSDKClient(ClaudeAgentOptions(can_use_tool=can_use_tool), Wire(script)) as client:
            await client.query("Go.")
            async for _ in client.receive_response():
                assert stopcause.current_run() is None

    with recorded() as receipts:
        asyncio.run(program())
        inner, outer = receipts.receipts
    assert (inner.agent, inner.parent_run_id) == ("inner", outer.run_id)
