"""Workflows that ask for something, and wait for the answer."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from stopcause.receipts.hooks import temporal
from tests.frameworks.temporal.workflows import FUNCTIONS, SOON, call, child, look_up


@workflow.defn
class Approves:
    """Asks before a refund. What becomes of a no, or of no answer in time, is said by `strict`."""

    def __init__(self) -> None:
        self.answer: bool | None = None

    @workflow.run
    async def run(self, seconds: float, strict: bool) -> str:
        await call(look_up)
        timeout = timedelta(seconds=seconds) if seconds else None
        asked = temporal.approval("refund", tool="refuses", timeout=timeout, metadata={"who": "team:billing"})
        try:
            with asked:
                await workflow.wait_condition(lambda: self.answer is not None, timeout=asked.timeout)
                asked.decided("approved" if self.answer else "denied")
        except TimeoutError:
            if strict:
                raise
            return "expired"
        if not self.answer:
            if strict:
                raise ApplicationError("canary-7f3a denied", type="Denied")
            return "denied"
        await call(look_up)
        asked.executed()
        return "done"

    @workflow.signal
    def decide(self, answer: bool) -> None:
        self.answer = answer

    @workflow.update
    def decide_now(self, answer: bool) -> bool:
        self.answer = answer
        return answer


@workflow.defn
class Asks:
    """Asks for an input, with an owner and a time of its own; any answer will do."""

    def __init__(self) -> None:
        self.said = ""

    @workflow.run
    async def run(self) -> str:
        with temporal.approval("colour", "input_required", owner="team:design", timeout=timedelta(hours=1)) as asked:
            await workflow.wait_condition(lambda: bool(self.said), timeout=asked.timeout)
        asked.executed()
        return "done"

    @workflow.signal
    def say(self, said: str) -> None:
        self.said = said


@workflow.defn
class AsksWithinTime:
    """What it asks is part of something that has a time; what becomes of its time-out is said by `strict`."""

    @workflow.run
    async def run(self, strict: bool) -> str:
        try:
            async with asyncio.timeout(SOON.total_seconds()):
                with temporal.approval("refund", owner="team:billing"):
                    await workflow.wait_condition(lambda: False)
        except TimeoutError:
            if strict:
                raise
        return "done"


@workflow.defn
class AsksTwo:
    """Two at once."""

    def __init__(self) -> None:
        self.answers: dict[str, bool] = {}

    @workflow.run
    async def run(self) -> str:
        await asyncio.gather(self._ask("first"), self._ask("second"))
        return "done"

    async def _ask(self, what: str) -> None:
        with temporal.approval(what, owner="team:billing", timeout=timedelta(hours=1)) as asked:
            await workflow.wait_condition(lambda: what in self.answers)
            asked.decided("approved" if self.answers[what] else "denied")
        if self.answers[what]:
            await call(look_up)
            asked.executed()

    @workflow.signal
    def decide(self, what: str, answer: bool) -> None:
        self.answers[what] = answer


@workflow.defn
class AsksAside:
    """Comes back, or fails, while it still asks."""

    @workflow.run
    async def run(self, name: str) -> str:
        asks = asyncio.create_task(self._ask())
        result = str(await call(FUNCTIONS[name]))
        del asks
        return result

    async def _ask(self) -> None:
        with temporal.approval("refund", owner="team:billing", timeout=timedelta(hours=1)):
            await workflow.wait_condition(lambda: False)


@workflow.defn
class AsksThenContinues:
    """Goes on as a new execution while it asks."""

    @workflow.run
    async def run(self, is_last: bool) -> str:
        if is_last:
            return "done"
        asks = asyncio.create_task(self._ask())
        await call(look_up)
        del asks
        workflow.continue_as_new(True)
        return "never"

    async def _ask(self) -> None:
        with temporal.approval("refund"):
            await workflow.wait_condition(lambda: False)


@workflow.defn
class ParentOfAsking:
    @workflow.run
    async def run(self) -> str:
        return await child(Asks.run, id="child-7")
