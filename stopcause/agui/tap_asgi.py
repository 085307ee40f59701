"""The agent's side: ASGI middleware that watches the streams of an AG-UI agent as they leave, and writes receipts.

    app = AguiMiddleware(app, agent="invoice-agent")
    app.add_middleware(AguiMiddleware, agent="invoice-agent")  # Starlette, FastAPI

It is a plain ASGI application around another: nothing is imported, buffered or changed. Compression belongs outside of
it (`GZipMiddleware` added after it): a stream that is compressed already is passed on and not read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from stopcause.agui.tap import Tap
from stopcause.agui.tap_faults import failed
from stopcause.agui.tap_passage import Passage

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_DESCRIBING = frozenset({b"content-type", b"content-encoding"})
_SILENT = frozenset({"2.0", "2.1", "2.2", "2.3"})  # of ASGI for HTTP: `send` never raises, whether anybody reads or not
_BROKEN = 500  # what a server answers where its application raises before it does


class AguiMiddleware:
    """Receipts for the runs of an AG-UI agent, from the streams that it sends.

    Args:
        app: Any ASGI application. What is not a POST answered by a stream of events passes at no cost.
        agent: What the agent is called in the receipts.
        paths: Patterns of the paths to watch, as `/agents/*`; without them all are.
        threads: A file for what the threads of this agent wait for, so that a restart, or another worker, knows which
            run an answer takes up. One for each agent: two may have threads of one name.
        integration: The package that speaks AG-UI for the agent, as `ag-ui-langgraph` or `ag-ui-langgraph@0.0.47`;
            without it the one that is loaded, where only one known is.
    """

    def __init__(
        self,
        app: App,
        agent: str | None = None,
        *,
        paths: Iterable[str] = (),
        threads: str | Path | None = None,
        integration: str | None = None,
    ) -> None:
        self.app = app
        self._paths = (paths,) if isinstance(paths, str) else tuple(paths)
        self._tap = Tap(agent, threads=threads, integration=integration, is_home=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection."""
        passage = self._passage(scope)
        if passage is None:
            await self.app(scope, receive, send)
        else:
            may_raise = scope.get("asgi", {}).get("spec_version", "2.0") not in _SILENT
            await _Wires(passage, receive, send, may_raise=may_raise).run(self.app, scope)

    def _passage(self, scope: Scope) -> Passage | None:
        if scope["type"] != "http" or scope["method"] != "POST":
            return None
        path = scope["path"]
        if self._paths and not any(fnmatchcase(path, each) for each in self._paths):
            return None
        return self._tap.passage()


class _Wires:
    """Between the server and the application, for one request: every message goes on as it is, then it is looked at."""

    def __init__(self, passage: Passage, receive: Receive, send: Send, *, may_raise: bool) -> None:
        self._passage, self._receive, self._send = passage, receive, send
        self._may_raise = may_raise
        self._is_answered = self._is_left = False

    async def run(self, app: App, scope: Scope) -> None:
        """The application, to its end: only then is it known that it sends no more."""
        try:
            await app(scope, self.receive, self.send)
        except Exception as error:
            if not self._is_answered:
                self._passage.answered(_BROKEN, "", "")
            elif not self._is_left:
                self._passage.ended(error=error)
            raise
        except BaseException:  # cancelled, by the server or by whoever waits no more
            self._is_left = True
            raise
        finally:
            self._passage.ended(left_by_reader=self._is_left)

    async def receive(self) -> Message:
        """As the server's."""
        message = await self._receive()
        kind = message.get("type")
        if kind == "http.request":
            self._passage.asked(message.get("body", b""))
        elif kind == "http.disconnect":
            self._is_left = True  # the application may still go on, and finish: its own end counts
        return message

    def send(self, message: Message) -> Awaitable[None]:
        """As the server's. Of most parts of a stream nothing is to be done: then its own awaitable is handed back."""
        if message.get("type") != "http.response.body":
            return self._send_start(message)
        is_due = self._passage.keep(message.get("body", b""))
        if is_due or self._may_raise or not message.get("more_body", False):
            return self._send_body(message, is_due=is_due)
        return self._send(message)

    async def _send_body(self, message: Message, *, is_due: bool) -> None:
        await self._sent(message)
        if is_due:
            self._passage.read()
        if not message.get("more_body", False):
            self._passage.ended()

    async def _send_start(self, message: Message) -> None:
        await self._sent(message)
        if message.get("type") == "http.response.start":
            self._is_answered = True
            _answered(self._passage, message)

    async def _sent(self, message: Message) -> None:
        try:
            await self._send(message)
        except BaseException:
            self._is_left = True
            raise


def _answered(passage: Passage, message: Message) -> None:
    """What the response is, by its status and headers; frameworks write the names of headers in any case."""
    try:
        headers = message.get("headers", ())
        found = {name.lower(): value.decode("latin-1") for name, value in headers if name.lower() in _DESCRIBING}
        status = message["status"]
    except Exception as error:  # noqa: BLE001 - a message of anybody's, which a server may well take
        failed("response", error)
    else:
        passage.answered(status, found.get(b"content-type", ""), found.get(b"content-encoding", ""))
