"""CrewAI: a run of a crew, of an agent alone, of a flow. What each says of itself before it begins, and at its end.

Names: a crew and a flow have one. An agent has only a role, which is text, and often made of the program's inputs; its
run has no name but that of the host's own block.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any

from stopcause.receipts.hooks.crewai.call import Asked, Call, is_guarding
from stopcause.receipts.identifiers import is_personal
from stopcause.receipts.vocabulary import ApprovalKind, OutputShape, StopCause

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.waiting import Waiting

    Args = tuple[Any, ...]
    Kwargs = Mapping[str, Any]


def begin_crew(hook: Hook, waiting: Waiting[Asked], crew: Foreign, args: Args, kwargs: Kwargs) -> Call | None:
    """A crew begins. One that streams calls itself again in a thread, and one from a checkpoint calls another."""
    if getattr(crew, "stream", False) or _is_restored(args, kwargs):
        return None
    return _begun(CrewCall, hook, waiting, crew, {})


def begin_agent(hook: Hook, waiting: Waiting[Asked], agent: Foreign, args: Args, kwargs: Kwargs) -> Call | None:
    """An agent begins alone, from a coroutine or from a plain function; not the one that is a guardrail."""
    if is_guarding.get() or _is_restored(args, kwargs):
        return None
    return _begun(AgentCall, hook, waiting, agent, {})


def begin_agent_plainly(hook: Hook, waiting: Waiting[Asked], agent: Foreign, args: Args, kwargs: Kwargs) -> Call | None:
    """The same by `kickoff`, which inside of an event loop gives only the coroutine of `kickoff_async`."""
    return None if _is_in_loop() else begin_agent(hook, waiting, agent, args, kwargs)


def begin_flow(hook: Hook, waiting: Waiting[Asked], flow: Foreign, args: Args, kwargs: Kwargs) -> Call | None:
    """A flow begins. Agents and memories are flows inside; those are no runs."""
    if getattr(flow, "stream", False) or _is_internal(flow) or _is_restored(args, kwargs):
        return None
    inputs = args[0] if args else kwargs.get("inputs")
    return _begun(FlowCall, hook, waiting, flow, inputs if isinstance(inputs, dict) else {})


def resume_flow(hook: Hook, waiting: Waiting[Asked], flow: Foreign, _: Args, __: Kwargs) -> Call | None:
    """A flow that stopped for somebody's feedback goes on. What the feedback says is not read."""
    return None if _is_internal(flow) else _begun(FlowCall, hook, waiting, flow, {})


def _begun(
    kind: type[Call], hook: Hook, waiting: Waiting[Asked], owner: Foreign, inputs: Mapping[str, Any]
) -> Call | None:
    run = hook.begin()
    if run is None:
        return None
    call = kind(hook, run, owner, waiting)
    if hook.is_tested:
        with hook.guard("describe"):
            call.describe(inputs)
    return call.begin()


def _is_restored(args: Args, kwargs: Kwargs) -> bool:
    """Whether a checkpoint is restored: another object, made from it, is called then."""
    return any(
        type(each).__name__ == "CheckpointConfig" and each.restore_from is not None
        for each in (*args, *kwargs.values())
    )


def _is_internal(flow: Foreign) -> bool:
    """Whether a flow is machinery of CrewAI's. Its word for that is not in all versions; the module is."""
    kind = type(flow)
    module = kind.__module__
    is_own = module.startswith("crewai.") and not module.startswith("crewai.flow.")
    return is_own or getattr(kind, "is_crewai_internal", False) is True


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class CrewCall(Call):
    """One kickoff of a crew. A step is an answer of an agent's model; the tasks of its agents are no runs."""

    time_limit: float | None = None  # in seconds, where its agents have the same

    def describe(self, _: Mapping[str, Any]) -> None:
        """What is known before it begins."""
        run = self.run
        run.agent = run.agent or self.hook.read(run, self.owner, "name", str)
        run.labels = run.labels or _labels(self)
        run.step_unit, run.steps = "iteration", run.steps or 0
        agents = [*self.owner.agents, *(task.agent for task in self.owner.tasks if task.agent is not None)]
        _tell_model(self, [*agents, self.owner.manager_agent] if self.owner.manager_agent else agents)
        self._bound(agents)

    def _bound(self, agents: list[Foreign]) -> None:
        """A time limit is an agent's, for one task: of a crew with one task it bounds the run."""
        limits = {agent.max_execution_time for agent in agents} - {None}
        if len(limits) == 1:
            self.time_limit = limits.pop()
        if self.time_limit is not None and len(self.owner.tasks) == 1:
            self.run.limit("max_execution_time", "time", self.time_limit, unit="second")

    def stopped_by(self, error: BaseException, cause: StopCause) -> None:
        """And an agent's own timer, where the exception is its."""
        super().stopped_by(error, cause)
        if cause is StopCause.TIME_LIMIT:
            self.run.condition("max_execution_time", "time", fired=True, limit=self.time_limit)

    def read_result(self, result: Foreign) -> None:
        """By how its last answer came."""
        is_structured = result.pydantic is not None or getattr(result, "json_dict", None) is not None
        self.run.output_shape = _shape(result, is_structured=is_structured)
        self.say_how()


class AgentCall(Call):
    """One kickoff of an agent alone."""

    is_bounded = False

    def describe(self, _: Mapping[str, Any]) -> None:
        """What is known before it begins. `max_iter` counts anew where a guardrail or a plan lets it start again."""
        run, agent = self.run, self.owner
        run.step_unit, run.steps = "iteration", run.steps or 0
        run.labels = run.labels or _labels(self)
        _tell_model(self, [agent])
        limit = getattr(agent, "max_iter", getattr(agent, "max_iterations", None))
        is_planned = getattr(agent, "planning_config", None) is not None or getattr(agent, "planning", False)
        if type(limit) is int and agent.guardrail is None and not is_planned:
            self.is_bounded = True
            run.limit("max_iter", "steps", limit, unit="iteration")

    def say_bound(self, limit: int | None) -> None:
        """Where it holds for the whole run, steps can be held against it."""
        if self.is_bounded:
            self.run.bounded(StopCause.STEP_LIMIT, "max_iter", "steps", limit=limit, observed=limit)
        else:
            super().say_bound(limit)

    def read_result(self, result: Foreign) -> None:
        """By how its last answer came."""
        self.run.output_shape = _shape(result, is_structured=result.pydantic is not None)
        self.say_how()


class FlowCall(Call):
    """One kickoff of a flow, or its going on after somebody's feedback. A step is a method that is done."""

    _context: Foreign = None  # what it stopped for before, and takes up now
    _asked_by: Asked | None = None

    def describe(self, inputs: Mapping[str, Any]) -> None:
        """What is known before it begins."""
        run, flow = self.run, self.owner
        run.agent = run.agent or flow.name or type(flow).__name__
        run.step_unit, run.steps = "method", run.steps or 0
        run.thread_id = run.thread_id or str(inputs.get("id") or flow.flow_id)
        self._context = flow.pending_feedback
        if self._context is not None:
            approval_id = _approval_id(self._context)
            self._asked_by = self.waiting.of(self._context.flow_id, approval_id)
            run.resumed(None if self._asked_by is None else self._asked_by.run_id, [approval_id])

    def read_result(self, result: Foreign) -> None:
        """By its kind: a flow gives back what it waits for, and does not raise it."""
        self._taken()
        if type(result).__name__ == "HumanFeedbackPending":
            inner = self.child_wait
            self._wait(result.context, inner[1] if inner is not None and inner[0] is result else None)
        elif result is not None:
            self.run.output_shape = OutputShape.TEXT if isinstance(result, str) else OutputShape.STRUCTURED

    def stopped_by(self, error: BaseException, cause: StopCause) -> None:
        """And the guard against flows that go round for ever, which counts the calls of each method."""
        super().stopped_by(error, cause)
        if cause is StopCause.STEP_LIMIT:
            limit = self.hook.read(self.run, self.owner, "max_method_calls", int)
            self.run.condition("max_method_calls", "custom", fired=True, limit=limit, observed=limit)

    def cut_off(self) -> None:
        """It failed; the feedback may have been taken before that."""
        self._taken()

    def _taken(self) -> None:
        """The feedback was taken, and the flow went past the method that asked for it."""
        if self._context is not None and self.owner.pending_feedback is not self._context:
            approval_id = _approval_id(self._context)
            self.run.decided(approval_id, "answered")
            self.run.executed(approval_id)
            if self._asked_by is not None and self._asked_by.inner is not None:
                self.run.withdrawn(*self._asked_by.inner)  # the run inside is never taken up: the flow goes on without
            self.waiting.forget(self._context.flow_id, [approval_id])

    def _wait(self, context: Foreign, inner: tuple[str, str] | None) -> None:
        """It is persisted under its id, which is what `from_pending` needs, unless the store keeps no such state."""
        approval_id, is_kept = _approval_id(context), _is_kept(self.owner.persistence)
        self.run.waiting(
            approval_id, ApprovalKind.CONFIRMATION if context.emit else ApprovalKind.INPUT_REQUIRED,
            resume_token=self._resume_token(context) if is_kept else None, resumable=is_kept, metadata=context.metadata,
            raised_by=None if inner is None else inner[0],
        )  # fmt: skip
        self.waiting.add(context.flow_id, approval_id, Asked(self.run.run_id, inner))

    def _resume_token(self, context: Foreign) -> str | None:
        """What names the paused state, unless the program took a person's handle for it."""
        if not is_personal(context.flow_id):
            return str(context.flow_id)
        self.run.find("refused_value", f"{self.hook.adapter}:flow_id")
        return None


def _approval_id(context: Foreign) -> str:
    """The same in every process that has the persisted state: flow, method and moment of the request."""
    asked = f"{context.flow_id}/{context.method_name}/{context.requested_at.isoformat()}"
    return str(uuid.uuid5(uuid.NAMESPACE_URL, asked))


def _is_kept(persistence: Foreign) -> bool:
    """Whether the store keeps what is asked for; the base class's own `save_pending_feedback` drops it."""
    owner = next((kind for kind in type(persistence).__mro__ if "load_pending_feedback" in vars(kind)), None)
    return owner is not None and owner.__name__ != "FlowPersistence"


def _labels(call: Call) -> dict[str, Any] | None:
    """What the host told of a crew or an agent; of that, only the keys that it allows become labels."""
    if not hasattr(call.owner, "security_config"):
        return None
    return call.hook.read(call.run, call.owner, "security_config.fingerprint.metadata", dict) or None


def _tell_model(call: Call, agents: list[Foreign]) -> None:
    """The model and its provider, where all of its agents have the same."""
    models = {(getattr(agent.llm, "model", None), getattr(agent.llm, "provider", None)) for agent in agents}
    if len(models) == 1:
        call.run.model, call.run.provider = models.pop()


def _shape(result: Foreign, *, is_structured: bool) -> OutputShape:
    """By what there is; the text is not read, but whether it is empty."""
    if is_structured:
        return OutputShape.STRUCTURED
    return OutputShape.TEXT if result.raw else OutputShape.NONE
