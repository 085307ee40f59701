"""Google ADK: one invocation of a runner. What its events, callbacks and exceptions say.

Sub-agents are no runs of their own; a runner inside a tool is a child. Names of tools are those of tools that the
agent has: a name that a model made up is nowhere taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stopcause.receipts.causes import Rank
from stopcause.receipts.faults import chain_of, is_cancelled
from stopcause.receipts.hooks import google_adk_causes as causes
from stopcause.receipts.hooks.google_adk_waits import Asked, Call, is_a
from stopcause.receipts.identifiers import is_identifier
from stopcause.receipts.vocabulary import ABORTED, Boundary, Finish, OutputShape, StopCause

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.waiting import Waiting
    from stopcause.receipts.run import Run

_LIMIT = "max_llm_calls"
_LEFT = "adk-runner-caller-closed-early"  # `runners.py`: with this `Runner.run` cancels what nobody reads any more


def begin(
    hook: Hook, runner: Foreign, waiting: Waiting[Asked], given: Mapping[str, Any], *, is_live: bool
) -> RunnerCall | None:
    """An invocation of `run_async` or `run_live`, with the arguments that it was called with."""
    run = hook.begin()
    if run is None:
        return None
    call = RunnerCall(hook, run, runner, waiting)
    if hook.is_tested:
        with hook.guard("describe"):
            call.describe(given, is_live=is_live)
    return call.begin()


class RunnerCall(Call):
    """One invocation of a runner."""

    is_live = False  # one connection that goes on: many turns, whose answers go in beside it
    has_begun = False  # whether the framework took the input
    replaced_by: str | None = None  # the callback that answered in the place of what was to run last
    done: str | None = None  # what of its own the last event says of its end
    model_fault: BaseException | None = None
    limit: int | None = None
    _is_final = False  # whether ADK takes its last event for an answer

    def __init__(self, hook: Hook, run: Run, runner: Foreign, waiting: Waiting[Asked]) -> None:
        super().__init__(hook, run, runner, waiting)
        self._codes: dict[str | None, str] = {}  # by branch: error codes of what ran last there
        self._in_flight: set[str] = set()
        self._faults: dict[str, tuple[BaseException, str | None]] = {}
        self._unanswered: set[str] = set()
        self._escalated: set[str] = set()  # the authors

    def describe(self, given: Mapping[str, Any], *, is_live: bool) -> None:
        """What is known before it begins."""
        run, read = self.run, self.hook.read
        agent = self.runner.agent
        run.agent = run.agent or read(run, agent, "name", str)
        model = getattr(agent, "model", None) or None
        run.model = model if isinstance(model, str) else getattr(model, "model", None)
        config = given.get("run_config")
        self.metadata = getattr(config, "custom_metadata", None)
        run.labels = run.labels or self.metadata
        session = given.get("session")
        self.lives(getattr(session, "user_id", given.get("user_id")), getattr(session, "id", given.get("session_id")))
        self.is_live = is_live
        if not is_live:
            run.step_unit, run.steps = "model_call", run.steps or 0
            self._bound(config)
        self.resume(given.get("new_message"))

    def _bound(self, config: Foreign) -> None:
        """The limit that is in force: without a config of the program's, ADK makes one with its own default."""
        if config is None:
            from google.adk.agents.run_config import RunConfig

            config = RunConfig()
        limit = self.hook.read(self.run, config, _LIMIT, int)
        if limit is not None and limit > 0:
            self.limit = limit
            self.run.limit(_LIMIT, "steps", limit, unit="model_call")

    # Callbacks and counters -------------------------------------------------------------------------------------------

    def stepped(self) -> None:
        """The model is called now."""
        run = self.run
        run.steps, run.model_calls = (run.steps or 0) + 1, (run.model_calls or 0) + 1
        run.finish = run.finish_raw = None  # of the call before
        self.replaced_by = self.done = None
        if self.model_fault is not None:
            self.model_fault = None
            run.model_errors_recovered += 1

    def heard(self, name: str, owner: Foreign, given: Mapping[str, Any], answer: Foreign) -> None:
        """ADK called the callbacks of one kind."""
        if not self.is_over:
            self._listeners[name](self, owner, given, answer)

    def _before_run(self, _: Foreign, given: Mapping[str, Any], answer: Foreign) -> None:
        self.has_begun = True
        self.invocation = self.hook.read(self.run, given["invocation_context"], "invocation_id", str)
        self.taken()
        if answer is not None:
            self.replaced_by = causes.RUN_ANSWERED

    def _before_agent(self, agent: Foreign, _: Mapping[str, Any], answer: Foreign) -> None:
        """An event without content only tells of state. Where it is not the root that is skipped, the others go on."""
        if answer is not None and answer.content is not None and agent.name == self.runner.agent.name:
            self.replaced_by = causes.AGENT_ANSWERED

    def _before_model(self, _: Foreign, __: Mapping[str, Any], answer: Foreign) -> None:
        if answer and not self.is_live:
            self.replaced_by, self.run.finish, self.run.finish_raw = causes.MODEL_ANSWERED, None, None

    def _model_error(self, _: Foreign, given: Mapping[str, Any], __: Foreign) -> None:
        """Whether a callback of the agent's answers in its place is seen by what comes next."""
        self.model_fault = given["error"]

    def _before_tool(self, _: Foreign, given: Mapping[str, Any], __: Foreign) -> None:
        context, tool = given["tool_context"], given["tool"]
        call_id = context.function_call_id
        if _is_invented(tool):
            return
        self.tools[call_id] = tool.name
        self._flies(call_id, is_done=False)
        if context.tool_confirmation is not None:
            self.decided(call_id, is_confirmed=context.tool_confirmation.confirmed)

    def _after_tool(self, _: Foreign, given: Mapping[str, Any], __: Foreign) -> None:
        """It has run, or it was held back to ask, or it was denied."""
        context = given["tool_context"]
        call_id = context.function_call_id
        self._flies(call_id, is_done=True)
        if self._faults.pop(call_id, None) is not None:  # a callback answered in its place
            self.run.tool_errors_recovered += 1
            return
        confirmation, actions = context.tool_confirmation, context.actions
        is_held = call_id in actions.requested_tool_confirmations or call_id in actions.requested_auth_configs
        if not is_held and (confirmation is None or confirmation.confirmed):
            self.run.tool_calls = (self.run.tool_calls or 0) + 1
            self.executed(call_id)
            self.run.progress("tool_result")

    def _tool_error(self, _: Foreign, given: Mapping[str, Any], __: Foreign) -> None:
        """Of a tool that there is not, the model is told; the oldest versions raise. A cancelled one has not failed."""
        if is_cancelled(given["error"]):
            return
        call_id = given["tool_context"].function_call_id
        is_invented = _is_invented(given["tool"])
        self._flies(call_id, is_done=True)
        self._faults[call_id] = (given["error"], None if is_invented else given["tool"].name)
        if not is_invented:
            self.run.tool_calls = (self.run.tool_calls or 0) + 1

    def _flies(self, call_id: str, *, is_done: bool) -> None:
        (self._in_flight.discard if is_done else self._in_flight.add)(call_id)
        self.run.in_flight_tools = len(self._in_flight)

    _listeners: Mapping[str, Callable[[Any, Any, Mapping[str, Any], Any], None]] = {
        "run_before_run_callback": _before_run,
        "_handle_before_agent_callback": _before_agent,
        "_handle_before_model_callback": _before_model,
        "run_on_model_error_callback": _model_error,
        "run_before_tool_callback": _before_tool,
        "run_after_tool_callback": _after_tool,
        "run_on_tool_error_callback": _tool_error,
    }

    # Events -----------------------------------------------------------------------------------------------------------

    def item(self, item: Foreign) -> None:
        """An event, as its reader will have it. Parts of one that is still being streamed say nothing."""
        if not self.hook.is_tested or self.is_over or item.author == "user" or item.partial:
            return
        self.invocation = item.invocation_id or self.invocation
        self._read_calls(item)
        self._read_answer(item)
        self._is_final = item.is_final_response()
        self._read_progress(item)
        if item.actions.escalate:
            self._escalated.add(item.author)
            self.done = causes.ESCALATED

    def _read_calls(self, event: Foreign) -> None:
        calls, responses = event.get_function_calls(), event.get_function_responses()
        for function_call in calls:
            self._unanswered.add(function_call.id)
            if function_call.id in (event.long_running_tool_ids or ()) and not self.is_live:
                self.asks(function_call)
        for response in responses:
            self._unanswered.discard(response.id)
            if response.id in self._faults and self._faults[response.id][1] is None:
                del self._faults[response.id]
                self.run.tool_errors_recovered += 1
        if calls or responses:
            self.done, self.run.output_shape = _ends(event, responses), None

    def _read_answer(self, event: Foreign) -> None:
        """What the model's answer says of itself: its finish, its error code, whether there is anything in it."""
        code, finish, usage = _word(event.error_code), _word(event.finish_reason), event.usage_metadata
        if finish is not None:
            self.run.finish, self.run.finish_raw = causes.FINISHES.get(finish, Finish.OTHER), finish
        if usage is not None:
            self.run.add_usage(usage.prompt_token_count, usage.candidates_token_count)
        output = getattr(event, "output", None)
        if code is None and event.content is None and output is None:
            return  # state only
        if event.branch is None:
            self._codes.clear()
        self._codes.pop(event.branch, None)
        if code is not None:
            self._codes[event.branch] = code
        if _has_text(event):
            self.done, self.run.output_shape = None, OutputShape.TEXT
        elif output is not None:
            self.run.output_shape = OutputShape.TEXT if isinstance(output, str) else OutputShape.STRUCTURED

    def _read_progress(self, event: Foreign) -> None:
        """A node's output, a change of the session's state, an artifact."""
        if event.actions.artifact_delta:
            self.run.progress("artifact")
        elif event.actions.state_delta or getattr(event, "output", None) is not None:
            self.run.progress("state_change")

    # The end ----------------------------------------------------------------------------------------------------------

    def ended(self) -> None:
        """Its stream is over: that is how an invocation of ADK returns."""
        self.returned(None)

    def read_result(self, _: Foreign) -> None:
        """By what was seen last."""
        run = self.run
        if self.done is None and not self.asked:
            run.output_shape = run.output_shape or OutputShape.NONE
        run.pending_tool_calls = len(self._unanswered - self.asked.keys()) or None
        if self.model_fault is not None:
            run.model_errors_recovered += 1
        codes = list(self._codes.values())
        if "INVOCATION_ABORTED" in codes:
            self._coded("INVOCATION_ABORTED")
        elif self.asked:
            self.wait()
        elif codes:
            self._coded(codes[-1])
        elif self.replaced_by is not None:
            self._say(StopCause.GUARDRAIL, self.replaced_by)
        elif not self._looped() and self.done is not None:
            self._say(StopCause.EXPLICIT_DONE, self.done)

    def _coded(self, code: str) -> None:
        cause = causes.BY_CODE.get(code, StopCause.UNKNOWN)
        if cause is StopCause.UNKNOWN:
            self.run.find("vocabulary_new", code if is_identifier(code) else None)
        self._say(cause, None, aborted=cause in ABORTED)

    def _say(self, cause: StopCause, reason: str | None, *, aborted: bool = False) -> None:
        self.run.say(cause, Rank.SIGNAL, Boundary.CALLBACK, reason=reason, aborted=aborted)

    def _looped(self) -> bool:
        """Whether the last to run was a loop that nobody left: its iterations were used up."""
        agent = self.runner.agent
        while is_a(agent, "SequentialAgent") and agent.sub_agents:
            agent = agent.sub_agents[-1]
        if not is_a(agent, "LoopAgent") or agent.max_iterations is None:
            return False
        if any(agent.find_agent(author) is not None for author in self._escalated):
            return False
        self.run.bounded(StopCause.STEP_LIMIT, "max_iterations", "custom", limit=agent.max_iterations)
        return True

    def left(self) -> None:
        """Its reader went away. With the final answer of an agent that runs no others beside it, all was done.

        Programs take a wait in this way, too.
        """
        if not self.is_over and self._is_final and is_a(self.runner.agent, "LlmAgent"):
            self.returned(None)
            return
        if not self.is_over and self.asked:
            self.wait()
        super().left()

    def failed(self, error: BaseException) -> None:
        """An exception leaves it."""
        if self.is_over:
            return
        if is_cancelled(error) and error.args[:1] == (_LEFT,):
            self.left()
            return
        self._blame(chain_of(error))
        super().failed(error)

    def _blame(self, chain: list[BaseException]) -> None:
        """Whose error it was: the tool's, which is named where there is one, or the model's; or the limit, if ours."""
        run = self.run
        at_fault = [tool for fault, tool in self._faults.values() if fault in chain]
        if at_fault:
            run.tool_errors_terminal, self.tool = 1, at_fault[0]
        elif self.model_fault in chain:
            run.model_errors_terminal = 1
        elif any(is_a(link, "LlmCallsLimitExceededError") for link in chain) and self.limit is not None:
            run.bounded(StopCause.STEP_LIMIT, _LIMIT, "steps", limit=self.limit, observed=run.steps)

    def is_first_end(self) -> bool:
        """Whether it is over only now. An exception that is kept keeps every frame that it left."""
        is_first = super().is_first_end()
        if is_first:
            self._faults.clear()
            self.model_fault = None
        return is_first

    def cause(self, error: BaseException) -> StopCause | None:
        """By where it came from: a tool; its class; else before the input was taken, or from the model.

        An agent that is a tool and failed is a tool that failed: its own run says why.
        """
        if is_cancelled(error) or not isinstance(error, Exception):
            return None
        chain = chain_of(error)
        at_fault = [tool for fault, tool in self._faults.values() if fault in chain]
        if at_fault:
            return StopCause.MALFORMED_CALL if at_fault[0] is None else StopCause.TOOL_FAILURE
        known = causes.cause_of(error)
        if known is None and self.hook.is_tested:
            if not self.has_begun and isinstance(error, ValueError | TypeError):
                return StopCause.INPUT_REJECTED
            if self.model_fault in chain:
                return StopCause.MODEL_FAILURE
        return known


def _is_invented(tool: Foreign) -> bool:
    """Whether the model named a tool that there is not: ADK puts a bare `BaseTool` of that name in its place."""
    return type(tool).__name__ == "BaseTool"


def _ends(event: Foreign, responses: list[Any]) -> str | None:
    """Why the model is not asked again after the responses of tools; what it is asked takes this back."""
    if not responses:
        return None
    if any(response.name == causes.TASK_DONE for response in responses):
        return causes.TASK_DONE
    return causes.TOOL_IS_LAST if event.actions.skip_summarization else causes.ENDED


def _word(value: object) -> str | None:
    """The word of an enumeration, or a text that stands for one."""
    word = getattr(value, "value", value)
    return word if isinstance(word, str) else None


def _has_text(event: Foreign) -> bool:
    """Whether anything in it is for the reader; what it is is not looked at, but whether it is empty."""
    parts = (event.content.parts if event.content is not None else None) or ()
    return any(
        (part.text and not part.text.isspace() and not part.thought) or part.inline_data or part.file_data
        for part in parts
    )
