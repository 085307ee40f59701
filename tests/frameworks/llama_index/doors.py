"""Marked text through everything of LlamaIndex that takes some. `tests/frameworks/test_content.py` uses it.

Annotations are no strings here: the framework looks at those of a tool for its context.
"""

import contextlib

from llama_index.core.agent.workflow import AgentWorkflow
from workflows import Context
from workflows.events import HumanResponseEvent, InputRequiredEvent

from tests.frameworks.llama_index import flows
from tests.frameworks.llama_index.models import Turn, agent, asked_of, call, failing, say, settles
from tests.frameworks.marks import PROSE, WORD


def leaks(text: str = WORD) -> str:
    """Gives back canary-7f3a."""
    return f"{text} {PROSE} {WORD}"


def bursts(text: str = PROSE) -> str:
    """Raises canary-7f3a."""
    raise ValueError(f"{text} {PROSE}")


async def asks(ctx: Context) -> str:
    """Asks a person."""
    question = InputRequiredEvent(note=PROSE, owner=WORD, **{WORD: WORD})
    needs = {"job": WORD}
    answer = await ctx.wait_for_event(
        HumanResponseEvent, waiter_event=question, waiter_id=WORD, requirements=needs, timeout=None
    )
    return str(answer.response)


TOOLS = (leaks, bursts, asks)


async def _talks() -> None:
    made = agent(
        call("leaks", text=WORD), call("bursts", "call-2", text=PROSE), call(WORD, "call-3", text=WORD), say(WORD),
        tools=TOOLS, system_prompt=PROSE, initial_state={"note": WORD},
    )  # fmt: skip
    await made.run(user_msg=PROSE)


async def _fails() -> None:
    await failing(agent(Turn(error=RuntimeError(f"{PROSE} {WORD}"))).run(user_msg=WORD))


async def _flow_fails() -> None:
    await failing(flows.Fails(timeout=5).run(note=WORD, text=PROSE))


async def _waits() -> None:
    await failing(flows.Required(timeout=0.1).run(note=WORD))


async def _is_answered() -> None:
    handler = agent(call("asks"), say(WORD), tools=TOOLS).run(user_msg=PROSE)
    with contextlib.suppress(AssertionError):  # the oldest agents fail at a tool that asks
        await asked_of(handler)
        handler.ctx.send_event(HumanResponseEvent(response=PROSE, job=WORD))
    await handler


async def _is_kept() -> None:
    made = flows.WaitsFor(timeout=5)
    handler = made.run(note=WORD)
    await asked_of(handler)
    state = handler.ctx.to_dict()
    await handler.cancel_run()
    handler = made.run(ctx=Context.from_dict(made, state))
    await settles()
    handler.ctx.send_event(HumanResponseEvent(response=WORD))
    await handler


async def _desk() -> None:
    hand = call("handoff", "call-9", to_agent="writer", reason=PROSE)
    reader = agent(hand, name="reader", can_handoff_to=["writer"])
    desk = AgentWorkflow(agents=[reader, agent(say(WORD), name="writer")], root_agent="reader")
    await desk.run(user_msg=PROSE)


async def _finishes() -> None:
    await agent(say(WORD, finish=PROSE)).run(user_msg=PROSE)


async def _named() -> None:
    """A name that the program gave is taken, whatever it is."""
    await agent(say(), name=WORD).run(user_msg="Go.")


DOORS = [_talks, _fails, _flow_fails, _waits, _is_answered, _is_kept, _desk, _finishes]
CONTROL = _named
