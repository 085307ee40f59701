"""A transport with a guard: asked before a byte is sent, told before it is sent, told what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any, Literal

import httpx
import pytest

from stopcause.agui.findings import found
from stopcause.agui.guard import Check, ResumeGuard
from stopcause.agui.tap_httpx import AguiTransport, AsyncAguiTransport
from stopcause.agui.values import Begun, RunSeen, Thread
from stopcause.errors import ConfigurationError, ResumeRefusedError, StopcauseError
from stopcause.receipts.testing import recorded
from tests.agui.tapped import SSE, finished, input_of, sse, started

Json = Any
BODY = sse([started(), finished()])
Send = Callable[["Sentry | Real", httpx.Request], httpx.Response]


PASSES = Check(refused=False, findings=())


class Sentry:
    """A guard that says what it is told to, and notes in which order it was asked."""

    def __init__(
        self,
        check: Check | Exception = PASSES,
        *,
        sent: Exception | None = None,
        saw: Exception | None = None,
        on_unreadable: Literal["refuse", "allow"] = "refuse",
    ) -> None:
        self.on_unreadable = on_unreadable
        self.log: list[str] = []
        self.inputs: list[Json] = []
        self._check, self._sent, self._saw = check, sent, saw

    def check(self, given: Json) -> Check:
        self.log.append("check")
        self.inputs.append(given)
        if isinstance(self._check, Exception):
            raise self._check
        return self._check

    def sent(self, given: Json) -> None:
        self.log.append("sent")
        self.inputs.append(given)
        if self._sent is not None:
            raise self._sent

    def thread(self, thread_id: str) -> Thread:
        return Thread(thread_id)

    def saw(self, run: Begun | RunSeen) -> None:
        self.log.append(type(run).__name__)
        if self._saw is not None:
            raise self._saw

    def answer(self, _: httpx.Request) -> httpx.Response:
        """The agent."""
        self.log.append("request")
        return httpx.Response(200, headers={"content-type": SSE}, content=BODY)


@pytest.fixture(autouse=True)
def _recorded() -> Iterator[None]:
    with recorded():
        yield


def _sync(guard: Sentry | Real, request: httpx.Request) -> httpx.Response:
    transport = AguiTransport(httpx.MockTransport(guard.answer), guard=guard)  # type: ignore[arg-type]  # stands for one
    with httpx.Client(transport=transport) as client:
        return client.send(request)


def _async(guard: Sentry | Real, request: httpx.Request) -> httpx.Response:
    async def sent() -> httpx.Response:
        transport = AsyncAguiTransport(httpx.MockTransport(guard.answer), guard=guard)  # type: ignore[arg-type]  # as above
        async with httpx.AsyncClient(transport=transport) as client:
            return await client.send(request)

    return asyncio.run(sent())


BOTH = pytest.mark.parametrize("send", [_sync, _async], ids=["sync", "async"])


def _post(**more: Json) -> httpx.Request:
    return httpx.Request("POST", "http://agent/", **(more or {"json": input_of()}))


@BOTH
def test_the_guard_is_asked_and_told_before_a_byte_is_sent(send: Send) -> None:
    guard = Sentry()
    assert send(guard, _post()).content == BODY
    assert guard.log == ["check", "sent", "request", "Begun", "RunSeen"]
    assert guard.inputs == [input_of()] * 2


@BOTH
def test_what_is_refused_is_not_sent_and_says_why(send: Send) -> None:
    findings = (found("UNCOVERED", "i-1"), found("UNCOVERED", "i-2"), found("NO_DEADLINE", "i-1"))
    guard = Sentry(Check(refused=True, findings=findings))
    with pytest.raises(ResumeRefusedError, match="UNCOVERED i-1") as refused:
        send(guard, _post())
    assert refused.value.findings == findings
    assert guard.log == ["check"]


@BOTH
@pytest.mark.parametrize("where", ["check", "sent"])
def test_a_guard_that_fails_refuses(send: Send, where: str) -> None:
    guard = Sentry(ValueError("canary")) if where == "check" else Sentry(sent=ValueError("canary"))
    with pytest.raises(ResumeRefusedError, match="GUARD_STATE_UNREADABLE") as refused:
        send(guard, _post())
    assert "request" not in guard.log
    assert "canary" not in str(refused.value)


@BOTH
def test_a_guard_that_fails_lets_pass_where_the_host_says_so(send: Send) -> None:
    guard = Sentry(ValueError("canary"), on_unreadable="allow")
    assert send(guard, _post()).content == BODY


@BOTH
def test_what_the_guard_says_on_purpose_is_raised(send: Send) -> None:
    error = StopcauseError("not installed")
    with pytest.raises(StopcauseError) as raised:
        send(Sentry(error), _post())
    assert raised.value is error


@BOTH
def test_a_guard_that_fails_to_look_changes_nothing(send: Send) -> None:
    assert send(Sentry(saw=ValueError("own")), _post()).content == BODY


@BOTH
@pytest.mark.parametrize(
    "request_",
    [
        httpx.Request("GET", "http://agent/"),
        httpx.Request("PUT", "http://agent/", json=input_of()),
        _post(content=b""),
        _post(content=b"no json"),
        _post(content=b"[" * 100_000),
        _post(json=[input_of()]),
        _post(json={"threadId": "t1"}),
        _post(json={"runId": "r1"}),
    ],
    ids=["get", "put", "empty", "no json", "deep", "list", "no run", "no thread"],
)
def test_what_is_no_input_is_not_the_guards(send: Send, request_: httpx.Request) -> None:
    guard = Sentry()
    send(guard, request_)
    assert not {"check", "sent"} & set(guard.log)


@BOTH
def test_a_guard_guards_where_hooks_are_off(send: Send, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPCAUSE_DISABLED", "1")
    guard = Sentry()
    send(guard, _post())
    assert guard.log == ["check", "sent", "request", "Begun", "RunSeen"]


def test_the_guard_knows_of_a_question_before_its_reader_can_answer() -> None:
    guard = Sentry()
    stream = httpx.Response(200, headers={"content-type": SSE}, content=iter([sse([started()]), sse([finished()])]))
    transport = AguiTransport(httpx.MockTransport(lambda _: stream), guard=guard)  # type: ignore[arg-type]  # as above
    with httpx.Client(transport=transport) as client, client.stream("POST", "http://agent/", json=input_of()) as got:
        chunks = got.iter_raw()
        assert (next(chunks), guard.log[2:]) == (sse([started()]), ["Begun"])
        assert (next(chunks), guard.log[2:]) == (sse([finished()]), ["Begun", "RunSeen"])


@pytest.mark.parametrize("guard", ["agui.db", 7, object()])
@pytest.mark.parametrize("transport", [AguiTransport, AsyncAguiTransport])
def test_what_is_no_guard_is_said_at_once(guard: object, transport: Callable[..., object]) -> None:
    with pytest.raises(ConfigurationError, match="ResumeGuard"):
        transport(guard=guard)


class Real(ResumeGuard):
    """A guard, and the agent that it guards: `then` is what that answers to an answer."""

    def __init__(self, then: Callable[[], httpx.Response]) -> None:
        super().__init__()
        self._then = then

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Asks in the first run, and does what it is told to in the second."""
        if json.loads(request.content)["runId"] == "r1":
            return _streamed(started(), _ASKED)
        return self._then()


def _streamed(*events: Json) -> httpx.Response:
    return httpx.Response(200, headers={"content-type": SSE}, content=sse(events))


def _raising(error: Exception) -> Callable[[], httpx.Response]:
    def raises() -> httpx.Response:
        raise error

    return raises


_ASKED = finished(outcome={"type": "interrupt", "interrupts": [{"id": "i1", "reason": "confirmation"}]})
_YES = [{"interruptId": "i1", "status": "resolved", "payload": True}]
FATES: dict[str, tuple[Callable[[], httpx.Response], str]] = {
    "nobody is there": (_raising(httpx.ConnectError("own")), "open"),
    "nobody answers the call": (_raising(httpx.ConnectTimeout("own")), "open"),
    "no connection is free": (_raising(httpx.PoolTimeout("own")), "open"),
    "refused": (lambda: httpx.Response(503), "open"),
    "lost by a gateway": (lambda: httpx.Response(504, html="<p>"), "unknown"),
    "sent elsewhere": (lambda: httpx.Response(307), "open"),
    "no answer in time": (_raising(httpx.ReadTimeout("own")), "unknown"),
    "the connection breaks": (_raising(httpx.ReadError("own")), "unknown"),
    "a page": (lambda: httpx.Response(200, html="<p>"), "unknown"),
    "broken off": (lambda: _streamed(started("r2")), "unknown"),
    "taken": (lambda: _streamed(started("r2"), finished("r2")), "closed"),
}


@BOTH
@pytest.mark.parametrize(("then", "state"), FATES.values(), ids=FATES)
def test_the_guard_knows_what_became_of_an_answer(send: Send, then: Callable[[], httpx.Response], state: str) -> None:
    guard = Real(then)
    send(guard, _post())
    with contextlib.suppress(httpx.HTTPError):
        send(guard, _post(json=input_of("r2", resume=_YES)))
    (raised,) = guard.thread("t1").raised
    assert raised.state == state


def test_findings_of_a_refusal_carry_no_answer() -> None:
    guard = Sentry(Check(refused=True, findings=(found("UNCOVERED", "who is this, canary-7f3a?"),)))
    with pytest.raises(ResumeRefusedError) as refused:
        _sync(
            guard, _post(json=input_of(resume=[{"interruptId": "i", "status": "resolved", "payload": "canary-7f3a"}]))
        )
    assert "canary" not in json.dumps([str(refused.value), refused.value.findings])
