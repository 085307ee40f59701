"""What workflows had not in 2.10. Annotations are no strings here: the framework reads those of a step."""

# ruff: noqa: ARG002 - a step's event decides when it is called, used or not

from workflows import Workflow, catch_error, step
from workflows.events import StartEvent, StepFailedEvent, StopEvent

from tests.frameworks.harness import Scripted


class Catches(Workflow):
    """A step takes the failure of another, and ends the run."""

    @step
    async def only(self, ev: StartEvent) -> StopEvent:
        raise Scripted("canary-7f3a in a step")

    @catch_error
    async def recover(self, ev: StepFailedEvent) -> StopEvent:
        return StopEvent(result="Without.")
