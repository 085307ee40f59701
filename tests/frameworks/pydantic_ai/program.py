"""A program that knows nothing of receipts."""

from __future__ import annotations

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel


def _answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """Calls the tool, then says that it is closed."""
    if len(messages) == 1:
        return ModelResponse([ToolCallPart("close", {"ticket": "T-7"}, tool_call_id="call-1")])
    return ModelResponse([TextPart("Closed.")], finish_reason="stop")


agent: Agent[None, str] = Agent(FunctionModel(_answer, model_name="scripted"), name="ticket-agent")


@agent.tool_plain
def close(ticket: str) -> str:
    """Closes a ticket."""
    return f"{ticket} is closed"


if __name__ == "__main__":
    print(agent.run_sync("Close the ticket.").output)  # noqa: T201 - what the program is for
