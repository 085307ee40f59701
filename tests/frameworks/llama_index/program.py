"""A program that knows nothing of receipts. `opentelemetry-instrument python program.py` runs it.

A workflow without llama-index-core, whose import alone takes seconds. Annotations are no strings here: the framework
reads those of a step as it is made.
"""

import asyncio
import sys

from workflows import Workflow, step
from workflows.events import Event, StartEvent, StopEvent


class Found(Event):
    """The ticket is there."""

    ticket: int


class TicketFlow(Workflow):
    """Looks a ticket up, and closes it."""

    @step
    async def look_up(self, ev: StartEvent) -> Found:
        return Found(ticket=ev.get("ticket"))

    @step
    async def close(self, ev: Found) -> StopEvent:
        return StopEvent(result=f"Closed. It was {ev.ticket}.")


async def close_ticket(ticket: int) -> str:
    """What became of it."""
    return str(await TicketFlow().run(ticket=ticket))


if __name__ == "__main__":
    sys.stdout.write(asyncio.run(close_ticket(7)))
