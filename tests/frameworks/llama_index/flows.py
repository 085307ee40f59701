"""The workflows of the paths. Annotations are no strings here: the framework reads those of a step as it is made."""

# ruff: noqa: ARG002 - a step's event decides when it is called, used or not

import asyncio
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from workflows import Context, Workflow, step
from workflows.events import Event, HumanResponseEvent, InputRequiredEvent, StartEvent, StopEvent
from workflows.retry_policy import ConstantDelayRetryPolicy

from tests.frameworks.harness import Scripted as Planned


class Halfway(Event):
    """Between two steps."""


class Report(StopEvent):
    """A result with fields of its own."""

    total: int


class Two(Workflow):
    """Two steps, one after the other; the second may take its time."""

    @step
    async def first(self, ctx: Context, ev: StartEvent) -> Halfway:
        return Halfway(pause=ev.get("pause", 0))

    @step
    async def second(self, ev: Halfway) -> StopEvent:
        await asyncio.sleep(ev.pause)
        return StopEvent(result="Done.")


class OneSlow(Workflow):
    """One step that takes longer than anybody waits."""

    @step
    async def only(self, ev: StartEvent) -> StopEvent:
        await asyncio.sleep(5)
        return StopEvent(result="late")


class InThread(Workflow):
    """A step that is a plain function runs in a thread."""

    @step
    def only(self, ev: StartEvent) -> StopEvent:
        return StopEvent(result="Done.")


class Reports(Workflow):
    """Ends with an event of its own."""

    @step
    async def only(self, ev: StartEvent) -> Report:
        return Report(total=3)


class Nothing(Workflow):
    """Ends with nothing."""

    @step
    async def only(self, ev: StartEvent) -> StopEvent:
        return StopEvent()


class Gathers(Workflow):
    """Three pieces beside each other, collected."""

    @step
    async def deal(self, ctx: Context, ev: StartEvent) -> Halfway | None:
        for number in range(3):
            ctx.send_event(Halfway(number=number))
        return None

    @step(num_workers=3)
    async def gather(self, ctx: Context, ev: Halfway) -> StopEvent | None:
        done = ctx.collect_events(ev, [Halfway] * 3)
        return None if done is None else StopEvent(result="Done.")


class Fails(Workflow):
    """Its second step raises."""

    @step
    async def first(self, ev: StartEvent) -> Halfway:
        return Halfway()

    @step
    async def second(self, ev: Halfway) -> StopEvent:
        raise Planned("canary-7f3a in a step")


class Retries(Workflow):
    """Its step raises a number of times, and is tried three times."""

    failures = 9

    @step(retry_policy=ConstantDelayRetryPolicy(maximum_attempts=3, delay=0.01))
    async def only(self, ev: StartEvent) -> StopEvent:
        self.failures -= 1
        if self.failures >= 0:
            raise Planned("canary-7f3a in a step")
        return StopEvent(result="Done.")


class Asks(Workflow):
    """Calls a model in a step, tried twice."""

    model: Any = None

    @step(retry_policy=ConstantDelayRetryPolicy(maximum_attempts=2, delay=0.01))
    async def only(self, ev: StartEvent) -> StopEvent:
        answer = await self.model.achat([ChatMessage(role="user", content="canary-7f3a")])
        return StopEvent(result=answer.message.content)


class NoEvent(Workflow):
    """Its step gives back what is no event."""

    @step
    async def only(self, ev: StartEvent) -> StopEvent:
        return "canary-7f3a"  # that is the point


class Unmade(Workflow):
    """A step wants an event that nobody makes."""

    @step
    async def first(self, ev: StartEvent) -> StopEvent:
        return StopEvent()

    @step
    async def second(self, ev: Halfway) -> StopEvent:
        return StopEvent()


class Needs(StartEvent):
    """What has to be given at the start."""

    amount: int


class Wants(Workflow):
    """Cannot start without."""

    @step
    async def only(self, ev: Needs) -> StopEvent:
        return StopEvent(result="Done.")


class Outer(Workflow):
    """Runs another workflow, or an agent, in a step."""

    inner: Any = None

    @step
    async def only(self, ev: StartEvent) -> StopEvent:
        return StopEvent(result=str(await self.inner()))


class Question(InputRequiredEvent):
    """What somebody is asked."""

    note: str = "canary-7f3a"
    who: str = "finance"
    token: str = "ticket-7"  # noqa: S105 - it names the paused state


class Required(Workflow):
    """A step returns a question; another takes the answer."""

    @step
    async def ask(self, ev: StartEvent) -> Question:
        return Question()

    @step
    async def take(self, ev: HumanResponseEvent) -> StopEvent:
        await asyncio.sleep(ev.get("pause", 0))
        if ev.get("fails"):
            raise Planned("canary-7f3a")
        return StopEvent(result="Done.")


class Written(Workflow):
    """A step writes its question to the stream only."""

    @step
    async def ask(self, ctx: Context, ev: StartEvent) -> Question | None:
        ctx.write_event_to_stream(Question())
        return None

    @step
    async def take(self, ev: HumanResponseEvent) -> StopEvent:
        return StopEvent(result="Done.")


class WaitsFor(Workflow):
    """A step waits in its middle, for a person."""

    seconds: float | None = None

    @step
    async def only(self, ctx: Context, ev: StartEvent) -> StopEvent:
        await ctx.wait_for_event(
            HumanResponseEvent, waiter_event=Question(), waiter_id="canary-7f3a", timeout=self.seconds
        )
        return StopEvent(result="Done.")


class GivesUp(Workflow):
    """Waits for a person, and goes on without an answer."""

    @step
    async def only(self, ctx: Context, ev: StartEvent) -> StopEvent:
        try:
            await ctx.wait_for_event(HumanResponseEvent, waiter_event=Question(), timeout=0.05)
        except TimeoutError:
            return StopEvent(result="Without.")
        return StopEvent(result="Done.")


class Arrived(Event):
    """What another system sends."""


class WaitsForSystem(Workflow):
    """A step waits for another system."""

    @step
    async def only(self, ctx: Context, ev: StartEvent) -> StopEvent:
        await ctx.wait_for_event(Arrived, requirements={"job": "canary-7f3a"}, timeout=None)
        return StopEvent(result="Done.")


class WaitsTwice(Workflow):
    """Two steps wait at once."""

    @step
    async def deal(self, ctx: Context, ev: StartEvent) -> Halfway | None:
        ctx.send_event(Halfway(number=1))
        ctx.send_event(Halfway(number=2))
        return None

    @step(num_workers=2)
    async def wait(self, ctx: Context, ev: Halfway) -> Report | None:
        await ctx.wait_for_event(
            HumanResponseEvent, waiter_event=Question(), waiter_id=f"w{ev.number}", requirements={"n": ev.number},
            timeout=None,
        )  # fmt: skip
        done = ctx.collect_events(ev, [Halfway] * 2)
        return None if done is None else Report(total=2)
