"""Marked text through everything of Pydantic AI that takes some. `tests/frameworks/test_content.py` uses it."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

from pydantic_ai import ApprovalRequired, CallDeferred, DeferredToolResults, ModelRetry, ToolDenied
from pydantic_ai.usage import UsageLimits

from tests.frameworks.marks import PROSE, WORD
from tests.frameworks.pydantic_ai.agents import Answer, agent, waiting
from tests.frameworks.pydantic_ai.models import broken_call, calls, http, text

_METADATA: dict[str, Any] = {"note": PROSE, "word": WORD}
_Tools = tuple[Callable[..., Any], ...]


async def leaks(said: str) -> str:
    """Gives back what it gets."""
    return f"{said} {PROSE} {WORD}"


async def bursts(said: str) -> str:
    """Raises what it gets."""
    raise ValueError(f"{said} {PROSE}", WORD)


async def tries(said: str) -> str:
    """Asks for another try."""
    raise ModelRetry(f"{said} {WORD}")


async def defers(said: str) -> str:
    """Leaves it to another system."""
    raise CallDeferred(metadata={**_METADATA, "said": said})


async def asks(said: str) -> str:
    """Wants a yes."""
    raise ApprovalRequired(metadata={**_METADATA, "said": said})


def _made(make: Callable[..., Any], *script: Any, tools: _Tools = (leaks,), **options: Any) -> Any:
    made = make(*script, system_prompt=PROSE, metadata=_METADATA, **options)
    for tool in tools:
        made.tool_plain(tool)
    return made


async def _failing(made: Awaitable[Any]) -> None:
    with contextlib.suppress(Exception):
        await made


async def _talks() -> None:
    made = _made(agent, calls("leaks", said=WORD), calls(WORD, said=PROSE), calls("leaks:call-3"), text(WORD))
    await made.run(PROSE, instructions=WORD)


async def _fails() -> None:
    await _failing(_made(agent, calls("bursts", said=WORD), tools=(bursts,)).run([PROSE, WORD]))


async def _tries() -> None:
    await _failing(_made(agent, calls("tries", said=WORD), calls("tries", said=PROSE), tools=(tries,)).run(PROSE))


async def _invents() -> None:
    await _failing(_made(agent, calls(WORD, said=PROSE), calls(WORD, said=PROSE)).run(PROSE))


async def _provider_fails() -> None:
    await _failing(_made(agent, http(500)).run(PROSE))


async def _model_raises() -> None:
    await _failing(_made(agent, ValueError(PROSE, WORD)).run(PROSE))


async def _is_cut_off() -> None:
    await _failing(_made(agent, *[broken_call("leaks")] * 3).run(PROSE))


async def _is_limited() -> None:
    await _failing(_made(agent, calls("leaks", said=WORD)).run(PROSE, usage_limits=UsageLimits(request_limit=1)))


async def _is_structured() -> None:
    await _made(agent, calls("final_result", order=WORD), output=Answer).run(PROSE)


async def _is_streamed() -> None:
    async with _made(agent, calls("leaks", said=WORD), text(PROSE)).run_stream(PROSE) as stream:
        async for _ in stream.stream_text(debounce_by=None):
            pass


async def _waits() -> None:
    tools: _Tools = (defers, asks)
    made = _made(waiting, calls("defers:call-1", "asks:call-2", said=WORD), text(PROSE), tools=tools)
    first = await made.run(PROSE)
    results = DeferredToolResults(calls={"call-1": PROSE}, approvals={"call-2": ToolDenied(WORD)})
    await made.run(message_history=first.all_messages(), deferred_tool_results=results)


async def _leaves() -> None:
    with contextlib.suppress(ValueError):
        async with _made(agent, calls("leaks", said=WORD), text(PROSE)).iter(PROSE) as run:
            async for _ in run:
                raise ValueError(PROSE, WORD)


async def _conversation_with_prose() -> None:
    await _made(agent, text(WORD)).run(PROSE, conversation_id=PROSE)


async def _named() -> None:
    """An agent's name is told."""
    await agent(text(), name=WORD).run("Go.")


DOORS = [
    _talks, _fails, _tries, _invents, _provider_fails, _model_raises, _is_cut_off, _is_limited, _is_structured,
    _is_streamed, _waits, _leaves, _conversation_with_prose,
]  # fmt: skip
CONTROL = _named
