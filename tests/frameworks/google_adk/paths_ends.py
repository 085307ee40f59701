"""Ends of one agent: natural, bounded, empty, filtered, answered by a callback, left by its reader, cut off."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import errors, types

import stopcause
from tests.frameworks.google_adk.models import NOTHING, Desk, Turn, agent, call, failing, say, text, when_busy
from tests.frameworks.harness import Path_

UNPROVEN = ("FALSE_COMPLETE", "no_contract")
ABORTED = ("BOUNDED_STOP", "caller_abort")
GUARDED = ("BOUNDED_STOP", "guardrail")
FILTERED = ("FAILED", "content_filter")
CAPPED = ("BOUNDED_STOP", "output_cap")
BROKEN = ("FAILED", "model_failure")
GARBLED = ("FAILED", "malformed_call")
STREAMED = RunConfig(streaming_mode=StreamingMode.SSE)


def content(words: str = "canary-7f3a") -> types.Content:
    """What a callback answers."""
    return types.Content(role="model", parts=[types.Part(text=words)])


def answer(words: str = "canary-7f3a") -> LlmResponse:
    """What a callback answers in the model's place."""
    return LlmResponse(content=content(words))


def playing(*turns: Turn, config: RunConfig | None = None, **more: Any) -> Callable[[], Any]:
    """An agent that plays these turns, run to its end."""

    async def run() -> None:
        await Desk(agent(*turns, **more)).run(config=config)

    return run


class Plugin(BasePlugin):
    """A plugin with one callback."""

    def __init__(self, callback: str, answers: Callable[[], Any]) -> None:
        super().__init__(name="guard")

        async def called(**_: Any) -> Any:
            return answers()

        setattr(self, callback, called)


def guarded(callback: str, answers: Callable[[], Any], *turns: Turn, **more: Any) -> Callable[[], Any]:
    """An agent that plays these turns beside a plugin."""

    async def run() -> None:
        await Desk(agent(*turns, **more), plugins=[Plugin(callback, answers)]).run()

    return run


# Ways of running ------------------------------------------------------------------------------------------------------


async def _opened(*turns: Turn) -> Desk:
    desk = Desk(agent(*turns))
    await desk.opened()
    return desk


def _sync() -> None:
    desk = asyncio.run(_opened(call(), say()))
    list(desk.runner.run(user_id="u-1", session_id="s-1", new_message=text("Go.")))


def _sync_left() -> None:
    desk = asyncio.run(_opened(call(), say(pause=5)))
    stream = desk.runner.run(user_id="u-1", session_id="s-1", new_message=text("Go."))
    next(stream)
    next(stream)
    asyncio.run(when_busy(lambda: None))  # the model is asked again, whether anybody reads or not
    stream.close()


async def _debug() -> None:
    await Desk(agent(call(), say())).runner.run_debug("Go.", user_id="u-1", session_id="s-1", quiet=True)


async def _left() -> None:
    desk = await _opened(call(), say())
    stream = desk.stream()
    await anext(stream)
    await stream.aclose()


async def _left_with_answer() -> None:
    desk = await _opened(call(), say())
    stream = desk.stream()
    async for event in stream:
        if event.is_final_response():
            break
    await stream.aclose()


async def _forgotten() -> None:
    desk = await _opened(call(), say())
    stream = desk.stream()
    await anext(stream)
    del stream
    gc.collect()
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def _in_a_block() -> None:
    async with stopcause.run("desk-agent"):
        await Desk(agent(call(), say())).run()


async def _twice_in_one_session() -> None:
    desk = Desk(agent(say(), call(), say()))
    await desk.run()
    await desk.run("And now?")


async def _side_by_side() -> None:
    async def later() -> None:
        await when_busy(lambda: None)
        await failing(Desk(agent(Turn(error=RuntimeError("canary-7f3a")))).run())

    await asyncio.gather(Desk(agent(say(pause=0.4))).run(), later())


async def _live(*turns: Turn) -> None:
    desk, queue = await _opened(*turns), LiveRequestQueue()
    queue.send_content(text("Go."))
    stream = desk.runner.run_live(user_id="u-1", session_id="s-1", live_request_queue=queue)
    async for event in stream:
        if event.turn_complete:
            queue.close()


# Cut off --------------------------------------------------------------------------------------------------------------


async def _cancelled(*turns: Turn) -> None:
    task = asyncio.create_task(Desk(agent(*turns)).run())
    await when_busy(task.cancel)
    await failing(task, asyncio.CancelledError)


async def _timed_out(*turns: Turn) -> None:
    async def limited() -> None:
        async with stopcause.run("clerk"), asyncio.timeout(None) as timer:
            ringing = asyncio.create_task(when_busy(lambda: timer.reschedule(0)))
            await Desk(agent(*turns)).run()
            await ringing

    await failing(limited(), TimeoutError)


async def _aborted(*turns: Turn) -> None:
    signal = asyncio.Event()
    await asyncio.gather(Desk(agent(*turns)).run(abort_signal=signal), when_busy(signal.set))


async def _too_many_calls() -> None:
    await failing(Desk(agent(call(), call("look_up", "call-2"), say())).run(config=RunConfig(max_llm_calls=2)))


PATHS = [
    Path_("natural", "The model asked for nothing more; nobody looked at the destination.", UNPROVEN,
          playing(call(), say())),
    Path_("one-call", "Answered at once.", UNPROVEN, playing(say())),
    Path_("streamed", "A stream with a tool call, read to its end; parts of an answer are not counted.", UNPROVEN,
          playing(call(), say(chunks=2), config=STREAMED)),
    Path_("sync", "`Runner.run`, which works in a thread of its own.", UNPROVEN, _sync),
    Path_("debug", "`run_debug` is one run.", UNPROVEN, _debug),
    Path_("in-a-block", "The host's own block and the agent in it are one run.", UNPROVEN, _in_a_block),
    Path_("twice", "Two runs in one session; the second is judged.", UNPROVEN, _twice_in_one_session, judged=1),
    Path_("side-by-side", "Two runs at once; the other one failed.", UNPROVEN, _side_by_side),
    Path_("labelled", "Labels are taken from the run's metadata, by the keys that are allowed.", UNPROVEN,
          playing(say(), config=RunConfig(custom_metadata={"team": "refunds", "note": "canary-7f3a"})),
          {"label_keys": ["team"]}),
    Path_("skip-summarization", "A tool said that what it gave is the answer.", UNPROVEN,
          playing(call("is_enough"), say())),
    Path_("ended-by-tool", "A tool ended the invocation: the model was not asked again.", UNPROVEN,
          playing(call("ends_it"), say())),
    Path_("live", "A live connection of one turn, closed by the program; there are no steps to count.", UNPROVEN,
          lambda: _live(say())),
    Path_("live-fails", "The provider broke a live connection off.", BROKEN,
          lambda: failing(_live(Turn(error=errors.ServerError(503, {}))))),
    # Its reader, and who started it
    Path_("reader-leaves", "Whoever read the stream closed it.", ABORTED, _left),
    Path_("reader-leaves-with-answer", "The reader closed it once it had the final answer: it was over.", UNPROVEN,
          _left_with_answer),
    Path_("reader-forgets", "Nobody reads the stream any more; it is collected.", ABORTED, _forgotten),
    Path_("sync-reader-leaves", "The reader of `Runner.run` left; the runner cancelled what was under way.", ABORTED,
          _sync_left),
    Path_("cancelled", "Its task was cancelled while the model answered; ADK calls no callback.", ABORTED,
          lambda: _cancelled(call(), say(pause=5))),
    Path_("tool-cut-off", "Its task was cancelled while a tool ran: one was in flight.", ABORTED,
          lambda: _cancelled(call("slow"), say())),
    Path_("timed-out", "The host's time limit fired and nothing had been reached.", ("STUCK", "time_limit"),
          lambda: _timed_out(say(pause=5))),
    Path_("timed-out-with-progress", "The host's time limit fired; a tool had answered before.",
          ("BOUNDED_STOP", "time_limit"), lambda: _timed_out(call(), say(pause=5))),
    Path_("aborted", "The program set its abort signal; the run ends as if all were well.", ABORTED,
          lambda: _aborted(call(), say(pause=5))),
    Path_("aborted-in-tool", "The abort signal came while a tool ran.", ABORTED, lambda: _aborted(call("slow"), say())),
    # Limits
    Path_("call-limit", "As many model calls as allowed, and the model wanted more.", ("BOUNDED_STOP", "step_limit"),
          _too_many_calls),
    Path_("call-limit-reached", "Done on the last model call that is allowed.", UNPROVEN,
          playing(call(), say(), config=RunConfig(max_llm_calls=2))),
    Path_("call-limit-off", "No limit is set; none is recorded.", UNPROVEN,
          playing(say(), config=RunConfig(max_llm_calls=0))),
    # What the model's answer says of itself
    Path_("empty", "The model gave nothing: no event at all, and the callback for success.",
          ("FALSE_COMPLETE", "empty_output"), playing(NOTHING)),
    Path_("no-content", "The model stopped with nothing in its answer; ADK calls that an error.", BROKEN,
          playing(Turn())),
    Path_("max-tokens", "One answer was cut off.", CAPPED, playing(say(finish="MAX_TOKENS"))),
    Path_("max-tokens-empty", "Cut off before there was any text.", CAPPED,
          playing(Turn(finish="MAX_TOKENS", code="MAX_TOKENS"))),
    Path_("safety", "The provider's filter withheld the answer.", FILTERED,
          playing(Turn(finish="SAFETY", code="SAFETY"))),
    Path_("safety-midway", "The provider's filter cut an answer off.", FILTERED, playing(say(finish="SAFETY"))),
    Path_("recitation", "The provider's filter found a recitation.", FILTERED,
          playing(Turn(finish="RECITATION", code="RECITATION"))),
    Path_("prompt-blocked", "The prompt was blocked; there is no finish reason.", FILTERED,
          playing(Turn(finish=None, code="JAILBREAK"))),
    Path_("malformed-call", "The model's call could not be read; the run ends as if all were well.", GARBLED,
          playing(Turn(finish="MALFORMED_FUNCTION_CALL", code="MALFORMED_FUNCTION_CALL"))),
    Path_("unexpected-call", "The model called where it was to have no tools.", GARBLED,
          playing(Turn(finish="UNEXPECTED_TOOL_CALL", code="UNEXPECTED_TOOL_CALL"))),
    Path_("other-code", "The provider says that something else went wrong.", BROKEN,
          playing(Turn(finish="OTHER", code="OTHER"))),
    Path_("other-finish", "There is an answer, but nobody knows why it ended.", ("UNCERTAIN", "finish_unknown"),
          playing(say(finish="OTHER"))),
    Path_("new-finish", "There is an answer, and a finish reason that the hook does not know.",
          ("UNCERTAIN", "finish_unknown"), playing(say(finish="SOMETHING_NEW"))),
    Path_("new-code", "An error code that the hook does not know: no proof of anything.",
          ("UNCERTAIN", "cause_missing"), playing(Turn(finish=None, code="SOMETHING_NEW"))),
    # Callbacks that answer in the place of what was to run
    Path_("run-answered", "A plugin answered in the place of the whole run.", GUARDED,
          guarded("before_run_callback", content, say())),
    Path_("agent-answered", "A callback answered in the place of the agent.", GUARDED,
          playing(say(), before_agent_callback=lambda **_: content())),
    Path_("model-answered", "A callback answered in the place of the model.", GUARDED,
          playing(say(), before_model_callback=lambda **_: answer())),
    Path_("model-answered-by-plugin", "A plugin answered in the place of the model.", GUARDED,
          guarded("before_model_callback", answer, say())),
    Path_("answer-replaced", "A callback put another text in the place of the answer: it was the model's turn.",
          UNPROVEN, playing(say(), after_model_callback=lambda **_: answer())),
]  # fmt: skip
