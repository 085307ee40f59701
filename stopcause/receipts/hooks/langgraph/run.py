"""One run of a graph while it goes on: what its callbacks say of supersteps, models and tools.

Here: the counts, and how it ends. Not here: which callback belongs to which run (`listener`), which exception
means what (`langgraph`), waits (`pause`). Tools run side by side, so what counts is under a lock; it is held
for an addition and never while anything of the framework's runs.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from stopcause.receipts.causes import Rank
from stopcause.receipts.faults import chain_of, is_cancelled
from stopcause.receipts.hooks.langgraph import words
from stopcause.receipts.hooks.langgraph.pause import Pause
from stopcause.receipts.vocabulary import Boundary, Finish, LimitKind, Scope, Sign, StopCause

if TYPE_CHECKING:
    from uuid import UUID

    from stopcause.receipts.hooks.langgraph.call import Call
    from stopcause.receipts.hooks.langgraph.shape import Bound, Shape
    from stopcause.receipts.run import Run


class Place(NamedTuple):
    """Where a callback is: the run, the node of its graph (not of one inside), and the tool if it is in or is one."""

    graph: GraphRun
    node: str | None = None
    in_tool: bool = False
    tool: str | None = None


class Why(NamedTuple):
    """What an exception that left a graph means; without a cause the common map is asked."""

    cause: StopCause | None = None
    tool: str | None = None


class _Failure(NamedTuple):
    """A failed call of a tool (with its name) or of a model, until it is known whether the run survives it."""

    tool: str | None = None
    is_tool: bool = False


class GraphRun:
    """A graph's run, from its first callback to its last.

    Args:
        run: What is recorded.
        run_id: The framework's id of it.
        call: Of the graph.
        shape: The graph's.
        outer: The run of the graph that this one is inside of.
    """

    def __init__(self, run: Run, run_id: UUID, call: Call, shape: Shape, outer: GraphRun | None) -> None:
        self.run = run
        self.id = run_id
        self.call = call
        self.shape = shape
        self.pause: Pause = Pause(run, call, shape.tools, None if outer is None else outer.pause)
        self.inside: set[UUID] = set()  # callbacks that began and have not ended
        self._lock = threading.RLock()  # a finalizer may call back on the thread that holds it
        self._nodes = 0  # that run now
        self._step: int | None = None
        self._own_calls = 0  # of the agent's model; those of a model that a tool asks are not counted by limits
        self._failures: dict[int, _Failure] = {}  # by the exception's identity, in this superstep
        self._called: set[object] = set()  # ids of calls that a tool was run for, in this superstep
        self._sent: tuple[Bound | None, int] | None = None  # to its end, by a middleware, after so many calls
        self._left_node: int | None = None  # the exception that left a node last, by its identity

    def say_limits(self) -> None:
        """The bounds that are in force."""
        if self.call.limit is not None:
            self.run.limit("recursion_limit", LimitKind.STEPS, self.call.limit, unit="superstep")
        if self.shape.step_timeout is not None:
            self.run.limit("step_timeout", LimitKind.TIME, self.shape.step_timeout, unit="second")
        for bound in self.shape.bounds:
            for limit, scope in ((bound.run_limit, Scope.ATTEMPT), (bound.thread_limit, Scope.THREAD)):
                if limit is not None:
                    self.run.limit(f"{bound.name}.{scope}", LimitKind.STEPS, limit, unit=bound.unit, scope=scope)

    # While it runs ----------------------------------------------------------------------------------------------------

    def node_started(self, step: object) -> None:
        """A node of the graph begins, in a superstep."""
        with self._lock:
            self._drive(1)
            if step == self._step or type(step) is not int:
                return
            is_first, self._step = self._step is None, step
            self.run.steps = (self.run.steps or 0) + 1
            self.pause.went_on()
            self._survived()
        if is_first:
            self.pause.begun()

    def node_ended(self, node: str, outputs: object) -> None:
        """A node is done. One of a middleware's may have sent the graph to its end."""
        with self._lock:
            self._drive(-1)
        if node in self.shape.tool_nodes:
            self._count_unrun(outputs)
        elif not self.shape.tools and self.call.keeps:
            self.run.progress(Sign.STATE_CHANGE)  # an agent's own steps are talk until a tool returns
        if isinstance(outputs, dict) and outputs.get("jump_to") == "end":
            self._sent_to_end(node, outputs)

    def node_failed(self, error: BaseException) -> None:
        """An exception left a node of the graph."""
        with self._lock:
            self._drive(-1)
            self._left_node = id(error)

    def _drive(self, change: int) -> None:
        """Only nodes move a graph on: between them it may be a stream that nobody reads any more."""
        self._nodes += change
        self.run.is_driven = self._nodes > 0

    def came_through_node(self, error: BaseException) -> bool:
        """Whether an exception that left the graph had left one of its nodes."""
        return self._left_node == id(error)

    def model_called(self, metadata: dict[str, Any], parameters: dict[str, Any], *, is_own: bool) -> None:
        """A model is asked."""
        run = self.run
        with self._lock:
            run.model_calls = (run.model_calls or 0) + 1
            self._own_calls += is_own
        if is_own:
            self._sent = None
            name, provider = metadata.get("ls_model_name"), metadata.get("ls_provider")
            run.model = run.model or (name if isinstance(name, str) else None)
            run.provider = run.provider or (provider if isinstance(provider, str) else None)
            cap = parameters.get("max_tokens")
            run.output_cap = cap if type(cap) is int else run.output_cap

    def model_answered(self, response: Any, *, is_own: bool) -> None:  # noqa: ANN401 - an LLMResult
        """A model answered."""
        with self._lock:
            words.note_answer(self.run, words.message_of(response), is_own=is_own)

    def model_failed(self, error: BaseException) -> None:
        """A call of a model raised."""
        if not is_cancelled(error):
            with self._lock:
                self._failures[id(error)] = _Failure()

    def tool_started(self, tool: str | None, call: object) -> None:
        """A tool runs. If an answer let it, the approval has been carried out."""
        run = self.run
        with self._lock:
            run.tool_calls = (run.tool_calls or 0) + 1
            run.in_flight_tools += 1
            self._called.add(call)
            approval = self.pause.let_run(tool)
        if approval is not None:
            run.executed(approval)

    def tool_ended(self, result: object) -> None:
        """A tool returned: well, or with a result that tells the model of a failure."""
        with self._lock:
            self.run.in_flight_tools -= 1
            if words.is_failed(result):
                self.run.tool_errors_recovered += 1
                return
        self.run.progress(Sign.TOOL_RESULT)

    def tool_failed(self, tool: str | None, error: BaseException) -> None:
        """A tool raised. One that was cut off stays in flight: nobody knows how far it got."""
        if not is_cancelled(error):
            with self._lock:
                self.run.in_flight_tools -= 1
                self._failures[id(error)] = _Failure(tool, is_tool=True)

    def tool_asked(self, tool: str | None, interrupts: Any) -> None:  # noqa: ANN401 - the argument of a GraphInterrupt
        """A tool stopped to wait."""
        with self._lock:
            self.run.in_flight_tools -= 1
            self.run.tool_calls = (self.run.tool_calls or 1) - 1  # it is run again when there is an answer
        if tool is not None:
            self.pause.asked_by_tool(tool, interrupts)

    def _count_unrun(self, outputs: object) -> None:
        """Failed results of calls that no tool was run for: the model asked for one that there is not."""
        if None in self._called:  # an older LangChain does not say which call a tool runs for
            return
        with self._lock:
            failed = [each for each in words.failed_results(outputs) if each not in self._called]
            self.run.tool_errors_recovered += len(failed)

    def _survived(self) -> None:
        """A new superstep: what failed in the last one did not end the run."""
        for failure in self._failures.values():
            if failure.is_tool:
                self.run.tool_errors_recovered += 1
            else:
                self.run.model_errors_recovered += 1
        self._failures = {}
        self._called = set()

    def _sent_to_end(self, node: str, outputs: dict[str, Any]) -> None:
        """A middleware sends the graph to its end. Whether it went there is known when it ends: it may not be heard."""
        bound = self.shape.bound_of(node)
        counts = outputs.get("run_tool_call_count")
        told = counts.get((bound and bound.tool) or "__all__") if isinstance(counts, dict) else None
        self._sent = (bound, told if type(told) is int else self._own_calls)

    def _say_sent(self) -> None:
        """The graph ended where a middleware had sent it: its limit fired, or its guard."""
        if self._sent is None:
            return
        bound, observed = self._sent
        if bound is None:
            self.run.say(StopCause.GUARDRAIL, Rank.SIGNAL, Boundary.CALLBACK, reason="jump_to_end")
            return
        self.run.forced_wrapup = True
        self.bound_fired(bound, observed)
        self.run.say(StopCause.STEP_LIMIT, Rank.SIGNAL, Boundary.CALLBACK)

    def bound_fired(self, bound: Bound, observed: int) -> None:
        """A limit of calls ended it. The steps are counted in its unit: a condition on steps has the run's unit.

        Args:
            bound: The middleware's.
            observed: How many calls there were in this run. Below the run's limit it was the thread's.
        """
        run = self.run
        run.step_unit, run.steps = bound.unit, self._own_calls if bound.unit == "model_call" else run.tool_calls or 0
        if bound.run_limit is not None and observed >= bound.run_limit:
            name, limit, count = f"{bound.name}.{Scope.ATTEMPT}", bound.run_limit, observed
        else:
            limit = bound.thread_limit if bound.thread_limit is not None else observed
            name, count = f"{bound.name}.{Scope.THREAD}", limit
        run.condition(name, LimitKind.STEPS, fired=True, limit=limit, observed=count)

    # How it ends ------------------------------------------------------------------------------------------------------

    def failure_behind(self, error: BaseException) -> _Failure | None:
        """The failed call that an exception came from; what failed beside it was not recovered either."""
        links = chain_of(error)
        found = next((self._failures[id(each)] for each in links if id(each) in self._failures), None)
        if found is not None:
            self.run.tool_errors_terminal += sum(each.is_tool for each in self._failures.values())
            self.run.model_errors_terminal += sum(not each.is_tool for each in self._failures.values())
            self._failures = {}
        return found

    def look_at_result(self, outputs: object) -> None:
        """The graph came back: it waits, or what it returned says how it is done."""
        ending = words.ending_of(outputs)
        run = self.run
        run.pending_tool_calls = ending.pending or None
        if self.pause.is_on:
            return
        self._survived()
        self._say_sent()
        run.output_shape = ending.shape
        if ending.tool_is_last:
            run.say(StopCause.EXPLICIT_DONE, Rank.SIGNAL, Boundary.CALLBACK)
        elif run.finish is Finish.TOOL_CALLS and not ending.pending and not run.forced_wrapup:
            run.finish = run.finish_raw = None  # the graph took the calls and went on: not the run's last word

    def let_go(self) -> None:
        """It is over: nothing of the framework's is held any longer."""
        self.call.let_go()
        self.pause.went_on()
        self.run.is_driven = True
