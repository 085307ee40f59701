"""An agent with one model call."""

from __future__ import annotations

import asyncio
from typing import Any

from common import main, tracer_provider
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.callbacks import llm_chat_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM


class Scripted(FunctionCallingLLM):
    @property
    def metadata(self) -> Any:
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True)

    @llm_chat_callback()
    async def achat(self, messages: Any, **_: Any) -> Any:  # noqa: ARG002 - the decorator asks for it by name
        return ChatResponse(message=ChatMessage(role="assistant", content="done"))

    def get_tool_calls_from_response(self, *_: Any, **__: Any) -> Any:
        return []

    def _prepare_chat_with_tools(self, chat_history: Any = None, **_: Any) -> Any:
        return {"messages": chat_history}

    def chat(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("nothing here asks for anything else")

    astream_chat = stream_chat = complete = acomplete = stream_complete = astream_complete = chat


def openinference() -> None:
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

    LlamaIndexInstrumentor().instrument(tracer_provider=tracer_provider())


async def run() -> object:
    return await FunctionAgent(llm=Scripted(), streaming=False).run(user_msg="hello")


loop = asyncio.new_event_loop()


def once() -> object:
    return loop.run_until_complete(run())


main(once, {"OpenInference": openinference})
