"""The consumer's side: httpx transports that watch the streams of an AG-UI agent as they arrive, and write receipts.

    client = httpx.AsyncClient(transport=AsyncAguiTransport(httpx.AsyncHTTPTransport(), agent="invoice-agent"))

With a guard no input leaves that the thread does not allow: `ResumeRefusedError` is raised, and nothing is sent.
A request whose body is an iterator is not read: then the input is not known, and no guard looks at it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from stopcause.agui.findings import found
from stopcause.agui.guard import Check, ResumeGuard, refusal
from stopcause.agui.inputs import read_input
from stopcause.agui.tap import Tap
from stopcause.agui.tap_faults import failed
from stopcause.agui.tap_passage import MOST_ASKED, Passage, json_of
from stopcause.errors import ConfigurationError, MissingExtraError, StopcauseError

try:
    import httpx
except ModuleNotFoundError:
    raise MissingExtraError("httpx", "agui") from None

if TYPE_CHECKING:
    from stopcause.agui.values import Input

_NEVER_LEFT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
)


class AguiTransport(httpx.BaseTransport):
    """Receipts for the runs of an AG-UI agent, around any transport.

    Args:
        inner: What sends; `httpx.HTTPTransport()` without it.
        agent: What the agent is called in the receipts.
        guard: What has to agree before an input is sent.
        integration: The package that speaks AG-UI for the agent, with its version: `ag-ui-langgraph@0.0.47`.

    Raises:
        ConfigurationError: That is no guard.
    """

    def __init__(
        self,
        inner: httpx.BaseTransport | None = None,
        *,
        agent: str | None = None,
        guard: ResumeGuard | None = None,
        integration: str | None = None,
    ) -> None:
        self._inner = inner or httpx.HTTPTransport()
        self._tap = Tap(agent, guard=_checked(guard), integration=integration)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """As the inner one's.

        Raises:
            ResumeRefusedError: The guard does not let this input pass; nothing was sent.
        """
        passage = _passage(self._tap, request)
        with _Sending(passage):
            response = self._inner.handle_request(request)
        if passage is not None and _is_watched(passage, response):
            response.stream = _Stream(response.stream, passage, reads_first=self._tap.guard is not None)
        return response

    def close(self) -> None:
        """Closes the inner one."""
        self._inner.close()

    def __enter__(self) -> Self:
        self._inner.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self._inner.__exit__(kind, error, traceback)


class AsyncAguiTransport(httpx.AsyncBaseTransport):
    """The same for `httpx.AsyncClient`; `httpx.AsyncHTTPTransport()` is its inner one unless there is another."""

    def __init__(
        self,
        inner: httpx.AsyncBaseTransport | None = None,
        *,
        agent: str | None = None,
        guard: ResumeGuard | None = None,
        integration: str | None = None,
    ) -> None:
        self._inner = inner or httpx.AsyncHTTPTransport()
        self._tap = Tap(agent, guard=_checked(guard), integration=integration)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """As the inner one's.

        Raises:
            ResumeRefusedError: The guard does not let this input pass; nothing was sent.
        """
        passage = _passage(self._tap, request)
        with _Sending(passage):
            response = await self._inner.handle_async_request(request)
        if passage is not None and _is_watched(passage, response):
            response.stream = _AsyncStream(response.stream, passage, reads_first=self._tap.guard is not None)
        return response

    async def aclose(self) -> None:
        """Closes the inner one."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self._inner.__aexit__(exc_type, exc_value, traceback)


# Before it is sent ----------------------------------------------------------------------------------------------------


def _checked(guard: ResumeGuard | None) -> ResumeGuard | None:
    if guard is not None and not all(callable(getattr(guard, name, None)) for name in ("check", "sent", "saw")):
        raise ConfigurationError("guard must be a ResumeGuard, as in guard=ResumeGuard(FILE)")
    return guard


def _passage(tap: Tap, request: httpx.Request) -> Passage | None:
    """What watches a request; the guard has agreed to it."""
    body = _body_of(request) if request.method == "POST" else None
    if body is None:
        return None
    given = _agreed(tap.guard, body) if tap.guard is not None else None
    passage = tap.passage()
    if passage is not None:
        passage.given = given
        passage.asked(body)
    return passage


def _body_of(request: httpx.Request) -> bytes | None:
    try:
        return request.content
    except httpx.RequestNotRead:  # an iterator: whoever reads it first has it
        return None


def _agreed(guard: ResumeGuard, body: bytes) -> Input | None:
    """The input, where the body is one and the guard lets it pass. It remembers that before a byte is sent."""
    try:
        value = json_of(body) if len(body) <= MOST_ASKED else None
        given = read_input(value)
        if given is None:
            return None
        check = guard.check(value)
        if not check.refused:
            guard.sent(value)
            return given
    except StopcauseError:
        raise
    except Exception as error:  # noqa: BLE001 - a fault of ours
        failed("guard", error)
        if guard.on_unreadable == "allow":
            return None
        check = Check(refused=True, findings=(found("GUARD_STATE_UNREADABLE"),))
    raise refusal(check)


class _Sending:
    """While it is sent: what keeps it from being answered is told to the guard, and raised."""

    def __init__(self, passage: Passage | None) -> None:
        self._passage = passage

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, _: object, __: object) -> None:
        if kind is not None and self._passage is not None:
            self._passage.unanswered(has_left=not issubclass(kind, _NEVER_LEFT))


# As it arrives --------------------------------------------------------------------------------------------------------


def _is_watched(passage: Passage, response: httpx.Response) -> bool:
    """Whether the response is a stream that is still to be read; one that is whole already is looked at here."""
    try:
        headers, is_whole = response.headers, response.is_stream_consumed
        encoding = "" if is_whole else headers.get("content-encoding", "")
        passage.answered(response.status_code, headers.get("content-type", ""), encoding)
        if is_whole and passage.is_stream:
            passage.passed(response.content)
            passage.ended()
    except Exception as error:  # noqa: BLE001 - a transport of anybody's, whose response is like no other
        failed("response", error)
        return False
    return passage.is_stream


class _Watched:
    """A stream and who watches it. What is due is read when the next chunk is asked for, or the stream is closed.

    `reads_first`: before the chunk is handed over. A guard has to know of a question before the reader can answer it.
    """

    def __init__(self, inner: Any, passage: Passage, *, reads_first: bool) -> None:  # noqa: ANN401 - of either kind
        self._passage = passage
        self._inner, self._reads_first = inner, reads_first

    def __del__(self) -> None:
        self._passage.ended(left_by_reader=True)  # dropped, and never closed


class _Stream(_Watched, httpx.SyncByteStream):
    def __iter__(self) -> Iterator[bytes]:
        keep = self._passage.keep
        try:
            for chunk in self._inner:
                is_due = keep(chunk)
                if is_due and self._reads_first:
                    self._passage.read()
                yield chunk
                if is_due and not self._reads_first:
                    self._passage.read()
        except Exception:
            self._passage.ended()  # the connection broke
            raise
        self._passage.ended()

    def close(self) -> None:
        try:
            self._inner.close()
        finally:
            self._passage.ended(left_by_reader=True)


class _AsyncStream(_Watched, httpx.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        keep = self._passage.keep
        try:
            async for chunk in self._inner:
                is_due = keep(chunk)
                if is_due and self._reads_first:
                    self._passage.read()
                yield chunk
                if is_due and not self._reads_first:
                    self._passage.read()
        except Exception:
            self._passage.ended()
            raise
        self._passage.ended()

    async def aclose(self) -> None:
        try:
            await self._inner.aclose()
        finally:
            self._passage.ended(left_by_reader=True)
