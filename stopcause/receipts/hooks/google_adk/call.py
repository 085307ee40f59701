"""Google ADK: one invocation of a runner. What its arguments, events and exceptions say, and why it ended.

Sub-agents are no runs of their own; a runner inside a tool is a child. What ADK's callbacks say is in
`callbacks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stopcause.receipts.causes import Rank
from stopcause.receipts.faults import chain_of, is_cancelled
from stopcause.receipts.hooks.google_adk import causes
from stopcause.receipts.hooks.google_adk.callbacks import Callbacks, drop_under
from stopcause.receipts.hooks.google_adk.waits import Asked, is_a
from stopcause.receipts.identifiers import is_identifier
from stopcause.receipts.vocabulary import ABORTED, ApprovalKind, Boundary, Finish, OutputShape, StopCause

if TYPE_CHECKING:
    from collections.abc import Mapping

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


class RunnerCall(Callbacks):
    """One invocation of a runner."""

    limit: int | None = None
    _is_final = False  # whether ADK takes its last event for an answer
    _author: str | None = None  # whose model has finished last

    def __init__(self, hook: Hook, run: Run, runner: Foreign, waiting: Waiting[Asked]) -> None:
        super().__init__(hook, run, runner, waiting)
        self._codes: dict[str | None, str] = {}  # by branch: error codes of what ran last there
        self._unanswered: dict[str, str] = {}  # calls, and whose model made them
        self._escalated: set[str] = set()  # the authors

    def describe(self, given: Mapping[str, Any], *, is_live: bool) -> None:
        """What is known before it begins."""
        run, read = self.run, self.hook.read
        agent = self.runner.agent
        run.agent = run.agent or read(run, agent, "name", str)
        run.model = _model(agent)
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

    def stepped(self, context: Foreign) -> None:
        """The model is called now. What it called before and has no answer to, its node gave up, and begins anew."""
        super().stepped(context)
        name = getattr(getattr(context, "agent", None), "name", None)
        self._unanswered = {each: author for each, author in self._unanswered.items() if author != name}

    def _read_calls(self, event: Foreign) -> None:
        calls, responses = event.get_function_calls(), event.get_function_responses()
        for function_call in calls:
            self._unanswered[function_call.id] = event.author
            if function_call.id in (event.long_running_tool_ids or ()) and not self.is_live:
                self.asks(function_call)
        for response in responses:
            self._unanswered.pop(response.id, None)
            if response.id in self.faults and self.faults[response.id].tool is None:
                del self.faults[response.id]
                self.run.tool_errors_recovered += 1
        if calls or responses:
            self.done, self.run.output_shape = _ends(event, responses), None

    def _read_answer(self, event: Foreign) -> None:
        """What the model's answer says of itself: its finish, its error code, whether there is anything in it."""
        code, finish, usage = _word(event.error_code), _word(event.finish_reason), event.usage_metadata
        if finish is not None:
            self.run.finish, self.run.finish_raw = causes.FINISHES.get(finish, Finish.OTHER), finish
            if finish not in causes.FINISHES:
                self._new_word(finish)
        if usage is not None:
            self.run.add_usage(usage.prompt_token_count, usage.candidates_token_count)
        output = getattr(event, "output", None)
        if code is None and event.content is None and output is None:
            return  # state only
        self._supersede(event)
        if code is not None:
            self._codes[event.branch] = code
        if _has_text(event):
            self.done, self.run.output_shape = None, OutputShape.TEXT
        elif output is not None:
            self.run.output_shape = OutputShape.TEXT if isinstance(output, str) else OutputShape.STRUCTURED

    def _supersede(self, event: Foreign) -> None:
        """Something came of a branch after what went wrong there, or was answered by a callback."""
        drop_under(self._codes, event.branch)
        if all(each.author not in (None, event.author) for each in self.replaced.values()):
            drop_under(self.replaced, event.branch)
        if event.finish_reason is not None:
            self._author = event.author
        elif event.author != self._author and getattr(event, "output", None) is not None:
            self.run.finish = self.run.finish_raw = None  # of a model that is not the last to have a say

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
        run.pending_tool_calls = len(self._unanswered.keys() - self.asked.keys()) or None
        run.tool_errors_recovered += len(self.faults)  # a workflow has run their node again
        if self.model_fault is not None:
            run.model_errors_recovered += 1
        codes = list(self._codes.values())
        if "INVOCATION_ABORTED" in codes:
            self._coded("INVOCATION_ABORTED")
        elif self.asked:
            self.wait()
        elif codes:
            self._coded(codes[-1])
        elif self.replaced:
            self._say(StopCause.GUARDRAIL, list(self.replaced.values())[-1].by)
        elif not self._looped() and self.done is not None:
            self._say(StopCause.EXPLICIT_DONE, self.done)

    def _coded(self, code: str) -> None:
        cause = causes.BY_CODE.get(code, StopCause.UNKNOWN)
        if cause is StopCause.UNKNOWN:
            self._new_word(code)
        self._say(cause, None, aborted=cause in ABORTED)

    def _new_word(self, word: str) -> None:
        self.run.find("vocabulary_new", word if is_identifier(word) else None)

    def _say(self, cause: StopCause, reason: str | None, *, aborted: bool = False) -> None:
        self.run.say(cause, Rank.SIGNAL, Boundary.CALLBACK, reason=reason, aborted=aborted)

    def _looped(self) -> bool:
        """Whether the last to run was a loop that nobody left: its iterations were used up."""
        agent = self.runner.agent
        while is_a(agent, "SequentialAgent") and agent.sub_agents:
            agent = agent.sub_agents[-1]
        if not is_a(agent, "LoopAgent") or not agent.max_iterations or agent.name in self.skipped:
            return False
        if any(agent.find_agent(author) is not None for author in self._escalated):
            return False
        self.run.bounded(StopCause.STEP_LIMIT, "max_iterations", "custom", limit=agent.max_iterations)
        return True

    def left(self) -> None:
        """Its reader went away. With the final answer of an agent that runs no others beside it, all was done.

        Programs take a wait in this way, too.
        """
        if not self.is_over:
            is_begun = self._begun()
            if is_begun and self._is_final and is_a(self.runner.agent, "LlmAgent"):
                self.returned(None)
            elif self.asked:
                self.wait()
        super().left()

    def _begun(self) -> bool:
        """Whether all of its long-running calls had begun: what did not get so far, or failed, is not waited for."""
        left = [
            each
            for each, asked in self.asked.items()
            if asked.kind == ApprovalKind.EXTERNAL and (each not in self.tools or each in self.faults)
        ]
        for each in left:
            del self.asked[each]
        return not left

    def failed(self, error: BaseException) -> None:
        """An exception leaves it. What it had asked by then is in its session, and can be answered."""
        if self.is_over:
            return
        if is_cancelled(error) and error.args[:1] == (_LEFT,):
            self.left()
            return
        self._blame(chain_of(error))
        self._begun()
        self.wait()
        super().failed(error)

    def _blame(self, chain: list[BaseException]) -> None:
        """Whose error it was: the tool's, which is named where there is one, or the model's; or the limit, if ours."""
        run = self.run
        at_fault = self.at_fault(chain)
        if at_fault is not None:
            run.tool_errors_terminal, self.tool = 1, at_fault.tool
        elif self.is_models(chain):
            run.model_errors_terminal = 1
        elif self.limit is not None and any(is_a(link, "LlmCallsLimitExceededError") for link in chain):
            run.bounded(StopCause.STEP_LIMIT, _LIMIT, "steps", limit=self.limit, observed=run.steps)

    def is_first_end(self) -> bool:
        """Whether it is over only now. An exception that is kept keeps every frame that it left."""
        is_first = super().is_first_end()
        if is_first:
            self.faults.clear()
            self.model_fault = None
        return is_first

    def cause(self, error: BaseException) -> StopCause | None:
        """By where it came from: a tool; its class; else before the input was taken, or from the model.

        An agent that is a tool and failed is a tool that failed: its own run says why.
        """
        if is_cancelled(error) or not isinstance(error, Exception):
            return None
        chain = chain_of(error)
        at_fault = self.at_fault(chain)
        if at_fault is not None:
            return StopCause.MALFORMED_CALL if at_fault.tool is None else StopCause.TOOL_FAILURE
        known = causes.cause_of(error)
        if known is None and self.hook.is_tested:
            if not self.has_begun and isinstance(error, ValueError | TypeError):
                return StopCause.INPUT_REJECTED
            if self.is_models(chain):
                return StopCause.MODEL_FAILURE
        return known


def _model(agent: Foreign) -> str | None:
    """An agent has the name of its model, or the model, which has one. Empty: its parent's, which is not looked up."""
    model = getattr(agent, "model", None)
    name = model if isinstance(model, str) else getattr(model, "model", None)
    return name if isinstance(name, str) and name else None


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
