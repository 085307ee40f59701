"""Google ADK: what its callbacks and its counter of model calls say of an invocation.

They are heard after all of the program's plugins have seen them. Names of tools are those of tools that the agent has:
a name that a model made up is nowhere taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from stopcause.receipts.faults import is_cancelled
from stopcause.receipts.hooks.google_adk import causes
from stopcause.receipts.hooks.google_adk.waits import Asked, Call, asked_by_node, is_a

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.waiting import Waiting
    from stopcause.receipts.run import Run


class ToolFault(NamedTuple):
    """What a tool raised, or ADK in its place where there is no such tool."""

    error: BaseException
    tool: str | None


class Replaced(NamedTuple):
    """A callback that answered in the place of what was to run: which, and whose the answer is."""

    by: str
    author: str | None = None


class Callbacks(Call):
    """One invocation, as far as callbacks tell of it."""

    is_live = False  # one connection that goes on: many turns, whose answers go in beside it
    has_begun = False  # whether the framework took the input
    done: str | None = None  # what the last event says of its end
    model_fault: BaseException | None = None

    def __init__(self, hook: Hook, run: Run, runner: Foreign, waiting: Waiting[Asked]) -> None:
        super().__init__(hook, run, runner, waiting)
        self.faults: dict[str, ToolFault] = {}  # by call
        self.skipped: set[str] = set()  # agents in whose place a callback answered
        self.replaced: dict[str | None, Replaced] = {}  # by branch: what was to run last there, and did not
        self._answered_calls: set[str] = set()  # a plugin answered in the place of their tools
        self._in_flight: set[str] = set()

    def at_fault(self, chain: Sequence[BaseException]) -> ToolFault | None:
        """The tool that raised what an exception came from."""
        return next((each for each in self.faults.values() if _is_in(each.error, chain)), None)

    def is_models(self, chain: Sequence[BaseException]) -> bool:
        """Whether an exception came from the model."""
        return self.model_fault is not None and _is_in(self.model_fault, chain)

    def stepped(self, context: Foreign) -> None:
        """The model is called now."""
        run = self.run
        run.steps, run.model_calls = (run.steps or 0) + 1, (run.model_calls or 0) + 1
        run.finish = run.finish_raw = None  # of the call before
        self.done = None
        drop_under(self.replaced, getattr(context, "branch", None))
        if self.model_fault is not None:
            self.model_fault = None
            run.model_errors_recovered += 1

    def heard(
        self, name: str, owner: Foreign, args: tuple[Any, ...], given: Mapping[str, Any], answer: Foreign
    ) -> None:
        """ADK called the callbacks of one kind: of a plugin with names, of an agent with its context first."""
        if not self.is_over:
            self._listeners[name](self, owner, args[0] if args else given, answer)

    def _before_run(self, _: Foreign, given: Mapping[str, Any], answer: Foreign) -> None:
        self.has_begun = True
        context = given["invocation_context"]
        self.invocation = self.hook.read(self.run, context, "invocation_id", str)
        self.taken()
        self.recall(context.session.events)
        if answer is not None:
            self.replaced[None] = Replaced(causes.RUN_ANSWERED)

    def _before_agent(self, agent: Foreign, _: Foreign, answer: Foreign) -> None:
        """An event without content only tells of state. Where one of several is skipped, the others go on.

        Nobody does after the root, or after an agent that another handed over to.
        """
        if answer is None or answer.content is None:
            return
        self.skipped.add(agent.name)
        if agent.name == self.runner.agent.name or is_a(agent.parent_agent, "LlmAgent"):
            self.replaced[answer.branch] = Replaced(causes.AGENT_ANSWERED, answer.author)

    def _before_model(self, _: Foreign, context: Foreign, answer: Foreign) -> None:
        if answer and not self.is_live:
            self.replaced[context.branch] = Replaced(causes.MODEL_ANSWERED, context.agent.name)
            self.run.finish = self.run.finish_raw = None

    def _model_error(self, _: Foreign, given: Mapping[str, Any], __: Foreign) -> None:
        """Whether a callback of the agent's answers in its place is seen by what comes next."""
        self.model_fault = given["error"]

    def _before_tool(self, _: Foreign, given: Mapping[str, Any], answer: Foreign) -> None:
        context, tool = given["tool_context"], given["tool"]
        call_id = context.function_call_id
        self._answered_calls.discard(call_id)  # models repeat their ids
        if answer is not None:  # what it would have begun is not waited for
            self._answered_calls.add(call_id)
            self.withdraw(call_id)
        if not _is_invented(tool):
            self._tool_begins(call_id, context, tool.name)

    def _tool_begins(self, call_id: str, context: Foreign, name: str) -> None:
        if self.faults.pop(call_id, None) is not None:  # of a node that is run again
            self.run.tool_errors_recovered += 1
        self.tools[call_id] = name
        if (asked := asked_by_node(context)) is not None:
            self.tools[asked] = name
        self._flies(call_id, is_done=False)
        if context.tool_confirmation is not None:
            self.decided(context, is_confirmed=context.tool_confirmation.confirmed)

    def _after_tool(self, _: Foreign, given: Mapping[str, Any], __: Foreign) -> None:
        """It has run, or it was held back to ask, or it was denied."""
        context = given["tool_context"]
        call_id = context.function_call_id
        self._flies(call_id, is_done=True)
        if self.faults.pop(call_id, None) is not None:  # a callback answered in its place
            self.run.tool_errors_recovered += 1
            self.withdraw(call_id)
            return
        if call_id in self._answered_calls:
            return
        confirmation, actions = context.tool_confirmation, context.actions
        is_held = call_id in actions.requested_tool_confirmations or call_id in actions.requested_auth_configs
        if not is_held and (confirmation is None or confirmation.confirmed):
            self.run.tool_calls = (self.run.tool_calls or 0) + 1
            self.executed(context)
            self.run.progress("tool_result")

    def _tool_error(self, _: Foreign, given: Mapping[str, Any], __: Foreign) -> None:
        """Of a tool that there is not, the model is told; the oldest versions raise. A cancelled one has not failed."""
        if is_cancelled(given["error"]):
            return
        call_id = given["tool_context"].function_call_id
        is_invented = _is_invented(given["tool"])
        self._flies(call_id, is_done=True)
        self.faults[call_id] = ToolFault(given["error"], None if is_invented else given["tool"].name)
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


def drop_under(by_branch: dict[str | None, Any], branch: str | None) -> None:
    """What was said of a branch and of those inside it no longer counts; what has none comes after all of them."""
    for each in [each for each in by_branch if branch is None or f"{each}.".startswith(f"{branch}.")]:
        del by_branch[each]


def _is_in(error: BaseException, chain: Sequence[BaseException]) -> bool:
    """By identity: their `==` is somebody else's."""
    return any(error is link for link in chain)


def _is_invented(tool: Foreign) -> bool:
    """Whether the model named a tool that there is not: ADK puts a bare `BaseTool` of that name in its place."""
    return type(tool).__name__ == "BaseTool"
