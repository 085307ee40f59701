"""LlamaIndex: a run of an agent of llama-index-core: `FunctionAgent`, `ReActAgent`, `CodeActAgent`, `AgentWorkflow`.

They are workflows whose steps hand on `AgentOutput` (the model has answered), `ToolCall` and `ToolCallResult`. A step
is an iteration: one answer of the model that `parse_agent_output` takes. Names of tools are those that the agents have:
a name that a model made up is nowhere taken.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from stopcause.receipts.causes import Rank
from stopcause.receipts.hooks.llama_index import causes
from stopcause.receipts.hooks.llama_index.call import WorkflowCall
from stopcause.receipts.hooks.llama_index.causes import is_a
from stopcause.receipts.identifiers import is_identifier
from stopcause.receipts.vocabulary import Boundary, Finish, OutputShape, Sign, StopCause

if TYPE_CHECKING:
    from stopcause.receipts.hooks.call import Foreign

_HANDOFF = "handoff"  # the framework's own tool, and a name that it refuses for others
_DEFAULT_MAX = 20  # DEFAULT_MAX_ITERATIONS of both files


def is_agent(workflow: Foreign) -> bool:
    """Whether a workflow is an agent of the framework's."""
    return is_a(type(workflow), "BaseWorkflowAgent") or is_a(type(workflow), "AgentWorkflow")


class AgentCall(WorkflowCall):
    """One run of an agent, or of several that hand over to each other."""

    step_unit = "iteration"
    _pending = 0

    @property
    def name(self) -> str | None:
        """The agent's name; of several, the one that begins."""
        name = getattr(self.workflow, "root_agent", None) or getattr(self.workflow, "name", None)
        return name if isinstance(name, str) else None

    def bound(self, start_event: Foreign, *, is_continued: bool) -> None:
        """The limit of iterations. A context that was used before keeps its first one, which is not known here."""
        run = self.run
        given = start_event.get("max_iterations") if start_event is not None else None
        if not is_continued:
            run.limit("max_iterations", "steps", given or _DEFAULT_MAX, unit=self.step_unit)
        with contextlib.suppress(Exception):  # a model of the program's own may have no such metadata
            run.model = run.model or self._root().llm.metadata.model_name

    def _root(self) -> Foreign:
        agents = getattr(self.workflow, "agents", None)
        return agents[self.workflow.root_agent] if isinstance(agents, dict) else self.workflow

    # Steps ------------------------------------------------------------------------------------------------------------

    def step_begins(self, event: Foreign) -> None:
        """A tool runs."""
        if is_a(type(event), "ToolCall"):
            self.run.in_flight_tools += 1

    def step_returned(self, event: Foreign, result: Foreign) -> None:
        """The model has answered, or a tool has."""
        if is_a(type(event), "ToolCall"):
            self._ended_tool()
        if is_a(type(result), "AgentOutput"):
            self._output(result)
        elif is_a(type(result), "ToolCallResult"):
            self._tool_returned(result)
        else:
            super().step_returned(event, result)

    def made_progress(self, _event: Foreign) -> None:
        """An agent's own steps are talk until a tool returns."""

    def _output(self, output: Foreign) -> None:
        run = self.run
        run.steps = (run.steps or 0) + 1
        run.model_errors_recovered += bool(getattr(output, "retry_messages", None))  # could not be read: asked again
        self._pending = run.pending_tool_calls = len(output.tool_calls)
        self._finished(causes.finish_of(output.raw))

    def _finished(self, word: str | None) -> None:
        run = self.run
        if word is None:
            run.finish = run.finish_raw = None  # what an earlier turn said does not hold for this one
            return
        known = causes.FINISHES.get(word.lower())
        if known is None:
            run.find("vocabulary_new", word if is_identifier(word) else None)
        run.finish, run.finish_raw = known or Finish.OTHER, word

    def _tool_returned(self, result: Foreign) -> None:
        run = self.run
        self._pending = run.pending_tool_calls = max(self._pending - 1, 0)
        is_known = self._has(result.tool_name)
        run.tool_calls = (run.tool_calls or 0) + is_known
        if result.tool_output.is_error:
            run.tool_errors_recovered += 1  # the model is told; an error of a tool never ends a run
        elif result.tool_name != _HANDOFF:
            run.progress(Sign.TOOL_RESULT)

    def _ended_tool(self) -> None:
        self.run.in_flight_tools = max(self.run.in_flight_tools - 1, 0)

    def _has(self, name: object) -> bool:
        """Whether an agent has a tool of this name. Those that a retriever brings are not known by name."""
        agents = getattr(self.workflow, "agents", None)
        all_of_them = agents.values() if isinstance(agents, dict) else (self.workflow,)
        tools = [tool for agent in all_of_them for tool in agent.tools or ()]
        return name == _HANDOFF or any(getattr(tool, "metadata", tool).name == name for tool in tools)

    def tool_of(self, event: Foreign) -> tuple[str | None, str | None]:
        """The tool that asks, which has ended for now: it is called again once there is an answer."""
        if not is_a(type(event), "ToolCall"):
            return None, None
        self._ended_tool()
        return event.tool_name if self._has(event.tool_name) else None, event.tool_id

    # The end ----------------------------------------------------------------------------------------------------------

    def forced(self, limit: object) -> None:
        """It is at its limit, and the model is asked once more, for an answer (`early_stopping_method="generate"`)."""
        self.run.forced_wrapup = True
        self._at_limit(limit if type(limit) is int else None)

    def _at_limit(self, limit: int | None) -> None:
        self.run.bounded(StopCause.STEP_LIMIT, "max_iterations", "steps", limit=limit, observed=self.run.steps)

    def read_result(self, result: Foreign) -> None:
        """An answer of the model, or of a tool whose result is the answer."""
        is_direct = is_a(type(self.returned_by), "ToolCallResult")
        super().read_result(result)
        if is_direct:
            self.run.say(StopCause.EXPLICIT_DONE, Rank.SIGNAL, Boundary.CALLBACK, reason=causes.RETURN_DIRECT)
        output = getattr(result, "result", None)
        if is_a(type(output), "AgentOutput"):
            self.run.output_shape = _shape(output)

    def step_cause(self, error: BaseException) -> StopCause | None:
        """By the step that it left: the limit, the input, a model; tools' own errors do not come so far."""
        event = self.failed_event(error)
        if type(error).__name__ == "WorkflowRuntimeError" and is_a(type(event), "AgentOutput"):
            self._at_limit(None if self.waits_before else self.run.steps)  # it raises when the two are the same
            return StopCause.STEP_LIMIT
        if is_a(type(event), "AgentWorkflowStartEvent") and isinstance(error, ValueError):
            return StopCause.INPUT_REJECTED  # neither a message nor a history
        return super().step_cause(error)

    @property
    def waits_before(self) -> bool:
        """Whether the run that this one resumes has done a part of the iterations."""
        return self.run.resumes_run_id is not None


def _shape(output: Foreign) -> OutputShape:
    """What came out, by what there is of it."""
    if getattr(output, "structured_response", None) is not None:
        return OutputShape.STRUCTURED
    return OutputShape.TEXT if output.response.content else OutputShape.NONE
