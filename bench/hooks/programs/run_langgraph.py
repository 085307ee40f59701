"""A `create_agent` with one model call."""

from __future__ import annotations

from common import main, tracer_provider
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage


def openinference() -> None:
    from openinference.instrumentation.langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=tracer_provider())


def once() -> object:
    return agent.invoke({"messages": [("user", "hello")]})


def answers() -> object:
    while True:
        yield AIMessage("done")


agent = create_agent(GenericFakeChatModel(messages=answers()), tools=[])
main(once, {"OpenInference": openinference})
