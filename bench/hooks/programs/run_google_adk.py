"""An agent with one model call, each in a session of its own."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

from common import main, tracer_provider
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types


class Scripted(BaseLlm):
    async def generate_content_async(self, *_: Any, **__: Any) -> AsyncIterator[LlmResponse]:
        used = types.GenerateContentResponseUsageMetadata(prompt_token_count=1, candidates_token_count=1)
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="done")]), usage_metadata=used)


def openinference() -> None:
    from openinference.instrumentation.google_adk import GoogleADKInstrumentor

    GoogleADKInstrumentor().instrument(tracer_provider=tracer_provider())


def once() -> object:
    return loop.run_until_complete(_once())


async def _once() -> list[object]:
    session_id = str(uuid.uuid4())
    await runner.session_service.create_session(app_name=runner.app_name, user_id="u", session_id=session_id)
    return [each async for each in runner.run_async(user_id="u", session_id=session_id, new_message=hello)]


loop = asyncio.new_event_loop()
hello = types.Content(role="user", parts=[types.Part(text="hello")])
runner = InMemoryRunner(LlmAgent(name="clerk", model=Scripted(model="scripted")))
main(once, {"OpenInference": openinference})
