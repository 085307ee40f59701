"""The flows of the paths, and a store of paused flows that a path can leave out."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from crewai.core.providers.human_input import reset_provider, set_provider
from crewai.flow.async_feedback.types import HumanFeedbackPending, PendingFeedbackContext
from crewai.flow.flow import Flow, listen, router, start
from crewai.flow.human_feedback import human_feedback
from crewai.flow.persistence.base import FlowPersistence
from crewai.flow.persistence.sqlite import SQLiteFlowPersistence

from tests.frameworks.crewai.models import Scripted, agent, call, crew, say
from tests.frameworks.harness import Scripted as Raised


class Desk:
    """Asks elsewhere, and lets the flow stop meanwhile."""

    def request_feedback(self, context: PendingFeedbackContext, flow: Any) -> str:  # noqa: ARG002 - so it is called
        raise HumanFeedbackPending(context=context, callback_info={"note": "canary-7f3a"})


class Quick(Flow[Any]):
    """Makes no memory of its own, which would load a database first."""

    _skip_auto_memory: bool = True


class Plain(Quick):
    """Two methods."""

    @start()
    def first(self) -> str:
        return "canary-7f3a"

    @listen(first)
    def second(self, _: str) -> str:
        return "canary-7f3a"


class Mixed(Quick):
    """A crew, an agent alone, and a model that is asked directly."""

    @start()
    def by_crew(self) -> str:
        return str(crew(call(), say()).kickoff())

    @listen(by_crew)
    async def by_agent(self) -> str:
        made: Any = agent(say()).kickoff("canary-7f3a: go")
        return str(await made)

    @listen(by_agent)
    def by_model(self) -> str:
        return str(Scripted([say("canary-7f3a")]).call("canary-7f3a"))


class Failing(Quick):
    """Its crew's model fails; `is_handled` says whether it goes on then."""

    is_handled: bool = False

    @start()
    def by_crew(self) -> str:
        try:
            return str(crew(*self._turns(), of={"max_retry_limit": 0}).kickoff())
        except RuntimeError:
            if not self.is_handled:
                raise
            return "handled"

    def _turns(self) -> list[Any]:
        return [say()._replace(error=RuntimeError("canary-7f3a"))]


class Waits(Quick):
    """A crew inside takes its time."""

    @start()
    async def first(self) -> None:
        await crew(say(pause=0.3)).akickoff()


class Raising(Quick):
    """A method of the program's own raises."""

    @start()
    def first(self) -> None:
        raise Raised("canary-7f3a")


class Looping(Quick):
    """Goes round for ever."""

    @start()
    def first(self) -> str:
        return "once"

    @router(first)
    def around(self) -> str:
        return "again"

    @listen("again")
    def repeat(self) -> str:
        return "on"

    @router(repeat)
    def back(self) -> str:
        return "again"


class Review(Quick):
    """Asks somebody to look at what it made, then goes on; `then` says how that goes."""

    then: str = "well"

    @start()
    @human_feedback(message="canary-7f3a: well?", provider=Desk(), metadata={"who": "finance", "note": "canary-7f3a"})
    def draft(self) -> str:
        return "canary-7f3a"

    @listen(draft)
    def publish(self, _: Any) -> str:
        if self.then != "well":
            raise Raised("canary-7f3a")
        return "published"


class Rounds(Quick):
    """Asks for a yes or no, and after a no asks again. The words are the model's to find in the answer."""

    @start()
    @human_feedback(
        message="canary-7f3a: yes?", emit=["yes", "no"], llm="scripted-1", default_outcome="no", provider=Desk()
    )
    def draft(self) -> str:
        return "canary-7f3a"

    @listen("no")
    @human_feedback(
        message="canary-7f3a: yes?", emit=["yes", "no"], llm="scripted-1", default_outcome="yes", provider=Desk()
    )
    def redraft(self) -> str:
        return "canary-7f3a"

    @listen("yes")
    def publish(self) -> str:
        return "published"


class Elsewhere:
    """A task's answer is looked at elsewhere; `context` says by which flow."""

    def __init__(self, flow_id: str) -> None:
        self._flow_id = flow_id

    def setup_messages(self, _: Any) -> bool:
        return False

    def post_setup_messages(self, _: Any) -> None:
        pass

    def handle_feedback(self, *_: Any) -> Any:
        context = PendingFeedbackContext(self._flow_id, "canary-7f3a", "by_crew", "canary-7f3a", "canary-7f3a")
        raise HumanFeedbackPending(context=context)


class Reviewed(Quick):
    """The task of a crew inside is looked at elsewhere."""

    @start()
    def by_crew(self) -> str:
        token = set_provider(Elsewhere(self.flow_id))
        try:
            return str(crew(say(), of={"max_retry_limit": 0}, doing={"human_input": True}).kickoff())
        finally:
            reset_provider(token)


class Console(Quick):
    """Asks on the terminal, and blocks."""

    @start()
    @human_feedback(message="canary-7f3a: well?")
    def draft(self) -> str:
        return "canary-7f3a"


class Asking(Quick):
    """Asks in the middle of a method."""

    timeout: float | None = None

    @start()
    def first(self) -> str:
        return str(self.ask("canary-7f3a?", timeout=self.timeout))


class Forgets(FlowPersistence):
    """A store that keeps states, and nothing of what is asked."""

    persistence_type: str = "Forgets"

    def init_db(self) -> None:
        pass

    def save_state(self, flow_uuid: str, method_name: str, state_data: Any) -> None:
        pass

    def load_state(self, flow_uuid: str) -> dict[str, Any] | None:  # noqa: ARG002 - so it is called
        return None


def store() -> SQLiteFlowPersistence:
    """One that keeps all, in a file of its own."""
    return SQLiteFlowPersistence(str(Path(tempfile.mkdtemp()) / "flows.db"))
