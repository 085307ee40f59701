"""A program with an agent of the OpenAI Agents SDK. It knows nothing of anything else; started, it runs the agent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage, function_tool
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

_CALL = ResponseFunctionToolCall(name="close", call_id="call-1", arguments='{"number": 7}', type="function_call")
_TEXT = ResponseOutputText(text="Closed.", type="output_text", annotations=[], logprobs=[])
_SAYS = ResponseOutputMessage(id="msg-1", type="message", role="assistant", status="completed", content=[_TEXT])


class Fixed(Model):
    """Closes the ticket, then says so."""

    def __init__(self) -> None:
        self._left: list[Any] = [_CALL, _SAYS]

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        """The next of the two."""
        usage = Usage(requests=1, input_tokens=10, output_tokens=5, total_tokens=15)
        return ModelResponse(output=[self._left.pop(0)], usage=usage, response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """Never asked for."""
        raise AssertionError("nothing here streams")


@function_tool
def close(number: int) -> str:
    """Closes a ticket.

    Args:
        number: which one.
    """
    return f"{number} is closed"


agent = Agent(name="ticket-agent", instructions="Close tickets.", model=Fixed(), tools=[close])


def answer(question: str) -> str:
    """What the agent answers."""
    done = Runner.run_sync(agent, question, run_config=RunConfig(tracing_disabled=True))
    return str(done.final_output)


if __name__ == "__main__":
    print(answer("Close the ticket."))  # noqa: T201 - what the program is for
