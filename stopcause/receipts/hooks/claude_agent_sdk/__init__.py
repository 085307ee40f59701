"""Claude Agent SDK: where it is listened to.

`query()` goes through the internal client's `process_query`, under whatever name a program has imported it; a client
is watched where it connects, sends, reads, interrupts and disconnects. All of these see the SDK's own messages. Two
points are inside: the control protocol's handler, in whose task the program's callbacks and tools run, and the callback
that decides on permissions, whose answer no message tells.

What the words mean is in `causes`, what a turn says in `turn`, and which turn is open
in `link`. The `claude` command without the SDK is `claude_code`'s.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

from stopcause.receipts.hooks import wrapping
from stopcause.receipts.hooks.claude_agent_sdk.link import ClientLink, Inside, Link, Reader, open_link
from stopcause.receipts.hooks.waiting import Waiting
from stopcause.receipts.hooks.wrapping import replace

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.claude_agent_sdk.turn import Asked
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.wrapping import Undo

    Links = MutableMapping[Foreign, ClientLink]


def install(hook: Hook) -> Undo:
    """Listens."""
    from claude_agent_sdk import ClaudeSDKClient
    from claude_agent_sdk._internal.client import InternalClient
    from claude_agent_sdk._internal.query import Query

    waiting: Waiting[Asked] = Waiting()
    links: Links = weakref.WeakKeyDictionary()
    undos = [
        replace(InternalClient, "process_query", functools.partial(_queries, hook, waiting)),
        replace(ClaudeSDKClient, "connect", functools.partial(_connects, hook, waiting, links)),
        replace(ClaudeSDKClient, "query", functools.partial(_sends, hook, links)),
        replace(ClaudeSDKClient, "receive_messages", functools.partial(_reads, hook, links)),
        replace(ClaudeSDKClient, "interrupt", functools.partial(_interrupts, hook, links)),
        replace(ClaudeSDKClient, "disconnect", functools.partial(_disconnects, hook, links)),
    ]
    if hook.is_tested:
        undos.append(replace(Query, "_handle_control_request", _handles))
        undos.append(replace(Query, "__init__", functools.partial(_permits, hook)))
    return wrapping.undo_all(hook, undos)


def _queries(hook: Hook, waiting: Waiting[Asked], original: Foreign) -> Foreign:
    def opened(_: Foreign, /, prompt: Foreign, options: Foreign, transport: Foreign = None) -> Any:  # noqa: ANN401, ARG001 - called as the wrapped one; what it gives ends as a call does
        link = Link(hook, options, waiting, is_bound=transport is None)
        link.begin()
        return Reader(link) if link.has_turn else None

    return wrapping.watched(hook, original, opened)


def _connects(hook: Hook, waiting: Waiting[Asked], links: Links, original: Foreign) -> Foreign:
    """A prompt that is given here begins a turn; one that is a stream does so with its first message."""

    @functools.wraps(original)
    async def connect(client: Foreign, /, *args: Any, **kwargs: Any) -> Foreign:  # noqa: ANN401 - as the wrapped one
        link = None
        with hook.guard("connect"):
            is_bound = getattr(client, "_custom_transport", None) is None
            link = links[client] = ClientLink(hook, client.options, waiting, is_bound=is_bound)
            if isinstance(args[0] if args else kwargs.get("prompt"), str):
                link.begin()
        return await _inside(link, original(client, *args, **kwargs))

    return connect


def _sends(hook: Hook, links: Links, original: Foreign) -> Foreign:
    @functools.wraps(original)
    async def query(client: Foreign, /, *args: Any, **kwargs: Any) -> Foreign:  # noqa: ANN401 - as the wrapped one
        link = _link(hook, links, client)
        if link is not None:
            with hook.guard("begin"):
                link.begin()
        return await _inside(link, original(client, *args, **kwargs))

    return query


def _link(hook: Hook, links: Links, client: Foreign) -> ClientLink | None:
    """That of a client. A program's own class of clients may be one that has no hash: its clients are not watched."""
    with hook.guard("link"):
        return links.get(client)
    return None


async def _inside(link: ClientLink | None, work: Foreign) -> Foreign:
    """Work of a connection. What it raises ends the turn that is open."""
    if link is None:
        return await work
    try:
        with Inside(link):
            return await work
    except BaseException as error:
        with link.hook.guard("failed"):
            link.failed(error)
        raise


def _reads(hook: Hook, links: Links, original: Foreign) -> Foreign:
    def opened(client: Foreign, /) -> Any:  # noqa: ANN401 - what it gives ends as a call does
        link = _link(hook, links, client)
        return None if link is None else Reader(link)

    return wrapping.watched(hook, original, opened)


def _interrupts(hook: Hook, links: Links, original: Foreign) -> Foreign:
    @functools.wraps(original)
    async def interrupt(client: Foreign, /) -> Foreign:
        link = _link(hook, links, client)
        if link is not None:
            with hook.guard("interrupt"):
                link.interrupted()
        return await original(client)

    return interrupt


def _disconnects(hook: Hook, links: Links, original: Foreign) -> Foreign:
    """Also what a client's block does when it is left."""

    @functools.wraps(original)
    async def disconnect(client: Foreign, /) -> Foreign:
        try:
            return await original(client)
        finally:
            link = _link(hook, links, client)
            if link is not None:
                with hook.guard("disconnect"):
                    link.closed()

    return disconnect


def _handles(original: Foreign) -> Foreign:
    """The control protocol's handler: agents that the program's tools and callbacks start are children of the turn."""

    @functools.wraps(original)
    async def handle(query: Foreign, /, request: Foreign) -> Foreign:
        link = open_link.get()
        if link is None:
            return await original(query, request)
        with Inside(link):
            return await original(query, request)

    return handle


def _permits(hook: Hook, original: Foreign) -> Foreign:
    """The callback that decides on permissions, where the program gave one."""

    @functools.wraps(original)
    def made(query: Foreign, /, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as the wrapped one
        original(query, *args, **kwargs)
        link = open_link.get()
        with hook.guard("permissions"):
            if link is not None and query.can_use_tool is not None:
                query.can_use_tool = _asked(hook, link, query.can_use_tool)

    return made


def _asked(hook: Hook, link: Link, original: Foreign) -> Foreign:
    async def can_use_tool(name: Foreign, given: Foreign, context: Foreign, /) -> Foreign:
        call_id = getattr(context, "tool_use_id", None)
        with hook.guard("asks"):
            link.asks(name, call_id)
        answer = None
        try:
            answer = await original(name, given, context)
        finally:
            with hook.guard("answers"):
                link.answers(call_id, answer)
        return answer

    return can_use_tool
