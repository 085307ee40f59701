"""Which of LangChain's callbacks belongs to which run.

Here: what has begun and not ended, and what is a run: a graph that no other is around; and inside one an agent that
`create_agent` made, what a tool calls, and what a block of the program's or another framework's run is between. Other
graphs inside are a part of the run. Not here: what the callbacks make of a run (`run`), and what an exception
means (`langgraph`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from stopcause.receipts import capture
from stopcause.receipts.causes import Rank
from stopcause.receipts.hooks.langgraph import shape as shapes
from stopcause.receipts.hooks.langgraph.call import Call, starter
from stopcause.receipts.hooks.langgraph.run import GraphRun, Place, Why
from stopcause.receipts.hooks.langgraph.waits import Memory, interrupts_of
from stopcause.receipts.vocabulary import Boundary, StopCause

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from uuid import UUID

    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.run import Run

# Control flow that leaves a graph inside another as an exception: it waits, or hands over to the one around it.
INTERRUPT = "GraphInterrupt"
HANDOVER = "ParentCommand"
_PACKAGES = ("langgraph", "langchain", "langchain_core")


class Listener:
    """What is open. `inside` has what has begun and not ended; the end of a run empties it of what was the run's.

    Args:
        hook: Ours.
        codes: Of the functions that run a graph.
        command: The framework's `Command`.
        cause_of: What an exception that left a run means.
    """

    def __init__(
        self,
        hook: Hook,
        codes: frozenset[CodeType],
        command: type,
        cause_of: Callable[[GraphRun, BaseException], Why],
    ) -> None:
        self.hook = hook
        self.inside: dict[UUID, Place] = {}
        self._codes = codes
        self._command = command
        self._cause_of = cause_of
        self._memory = Memory()

    def run_of(self, config: Any) -> Run | None:  # noqa: ANN401 - a RunnableConfig
        """The run that a configuration is inside of: LangChain scopes it rightly, in threads and tasks too."""
        manager = (config or {}).get("callbacks")
        place = self.inside.get(getattr(manager, "parent_run_id", None))  # type: ignore[arg-type]  # None is not there
        return None if place is None else place.graph.run

    # Chains: graphs, nodes, and what is inside nodes ------------------------------------------------------------------

    def chain_started(self, given: object, run_id: UUID, around: Place | None, about: dict[str, Any]) -> None:
        """Something begins that is no model and no tool."""
        frame = starter(self._codes)
        if frame is not None and (around is None or _is_run(frame.f_locals.get("self"), around)):
            self._begin(frame, given, run_id, around, about.get("metadata") or {})
        elif around is not None:
            metadata = about.get("metadata") or {}
            is_node = about.get("parent_run_id") == around.graph.id and _is_step(about.get("tags"))
            node = metadata.get("langgraph_node") if is_node else None
            self._add(run_id, Place(around.graph, node, around.in_tool))
            if node is not None:
                around.graph.node_started(metadata.get("langgraph_step"))

    def _begin(
        self, frame: FrameType, given: object, run_id: UUID, around: Place | None, metadata: dict[str, Any]
    ) -> None:
        outer = None if around is None else around.graph
        run = self.hook.begin(parent=None if around is None or _is_apart(around) else around.graph.run)
        if run is None:
            return
        call, shape = Call(self.hook, run, frame), shapes.Shape()
        if self.hook.is_tested:
            with self.hook.guard("describe"):  # what cannot be read costs no run
                call.read()
                shape = shapes.shape_of(self.hook, run, call.graph)
        graph = GraphRun(run, run_id, call, shape, outer)
        with self.hook.guard("describe"):
            self._describe(graph, given, metadata)
        self._add(run_id, Place(graph))
        run.start()

    def _describe(self, graph: GraphRun, given: object, metadata: dict[str, Any]) -> None:
        run = graph.run
        run.agent = run.agent or graph.shape.name
        run.thread_id = run.thread_id or graph.call.thread
        run.step_unit = "superstep"
        run.labels = run.labels or {key: metadata[key] for key in run.config.label_keys if key in metadata}
        graph.say_limits()
        if self.hook.is_tested:
            graph.pause.take_up(self._memory, given, is_command=isinstance(given, self._command))

    def chain_ended(self, outputs: object, run_id: UUID) -> None:
        """It came back."""
        place = self.drop(run_id)
        if place is None:
            return
        if place.graph.id == run_id:
            with self.hook.ending("result", place.graph.run):
                self._returned(place.graph, outputs)
            self._forget(place.graph)
        elif place.node is not None:
            place.graph.node_ended(place.node, outputs)

    def chain_failed(self, error: BaseException, run_id: UUID) -> None:
        """An exception left it."""
        place = self.drop(run_id)
        if place is None:
            return
        if place.graph.id == run_id:
            with self.hook.ending("cause", place.graph.run):
                self._failed(place.graph, error)
            self._forget(place.graph)
        elif place.node is not None:
            if INTERRUPT in names_of(error):
                place.graph.pause.interrupted(error)
            place.graph.node_failed(error)

    # How a run ends ---------------------------------------------------------------------------------------------------

    def _returned(self, graph: GraphRun, outputs: object) -> None:
        if self.hook.is_tested:
            graph.look_at_result(outputs)
        graph.pause.say(self._memory)
        graph.run.end(boundary=Boundary.CALLBACK, result=outputs)

    def _failed(self, graph: GraphRun, error: BaseException) -> None:
        """By an exception, or by one that is control flow: it waits, or hands over to the graph around it."""
        names = names_of(error)
        if INTERRUPT in names:
            graph.pause.interrupted(error)
        if INTERRUPT in names or isinstance(error, GeneratorExit):  # leaving the stream is how many take a wait
            graph.pause.say(self._memory)
        if HANDOVER in names:
            graph.run.say(StopCause.EXPLICIT_DONE, Rank.SIGNAL, Boundary.CALLBACK, reason="handover")
        if INTERRUPT in names or HANDOVER in names:
            graph.run.end(boundary=Boundary.CALLBACK)
            return
        graph.pause.give_back(self._memory)
        why = self._cause_of(graph, error)
        graph.run.end(error, boundary=Boundary.EXCEPTION, cause=why.cause, tool=why.tool)

    def _forget(self, graph: GraphRun) -> None:
        graph.let_go()
        for each in list(graph.inside):  # what a thread goes on with after a time limit, say
            self.inside.pop(each, None)

    # Tools and models -------------------------------------------------------------------------------------------------

    def tool_started(self, tool: str | None, run_id: UUID, around: Place | None, call: object) -> None:
        """A tool runs. Its name is the tool's own: a tool that there is not is never run."""
        if around is not None and self.hook.is_tested:
            self._add(run_id, Place(around.graph, None, in_tool=True, tool=tool))
            around.graph.tool_started(tool, call)

    def tool_ended(self, output: object, run_id: UUID) -> None:
        """It returned."""
        place = self.drop(run_id)
        if place is not None:
            place.graph.tool_ended(output)

    def tool_failed(self, error: BaseException, run_id: UUID) -> None:
        """It raised, or stopped to wait, or handed over."""
        place = self.drop(run_id)
        if place is None:
            return
        names = names_of(error)
        if INTERRUPT in names:
            place.graph.tool_asked(place.tool, interrupts_of(error))
        elif HANDOVER in names:
            place.graph.tool_ended(None)
        else:
            place.graph.tool_failed(place.tool, error)

    def model_called(self, around: Place | None, about: dict[str, Any]) -> None:
        """A model is asked."""
        if around is not None and self.hook.is_tested:
            metadata, parameters = about.get("metadata") or {}, about.get("invocation_params") or {}
            around.graph.model_called(metadata, parameters, is_own=not around.in_tool)

    def model_answered(self, response: object, around: Place | None) -> None:
        """It answered."""
        if around is not None and self.hook.is_tested:
            around.graph.model_answered(response, is_own=not around.in_tool)

    def model_failed(self, error: BaseException, around: Place | None) -> None:
        """It raised."""
        if around is not None and self.hook.is_tested:
            around.graph.model_failed(error)

    def _add(self, run_id: UUID, place: Place) -> None:
        self.inside[run_id] = place
        place.graph.inside.add(run_id)

    def drop(self, run_id: UUID) -> Place | None:
        """What has ended is no longer inside."""
        place = self.inside.pop(run_id, None)
        if place is not None:
            place.graph.inside.discard(run_id)
        return place


class Handler:
    """What LangChain calls; mixed with its `BaseCallbackHandler`, whose defaults are methods that do nothing.

    `run_inline`: an async manager would else run it in a thread, after the fact. Nothing here raises or awaits. A
    program that copies or pickles a configuration finds it there: a copy is the same one, and another process has none.
    """

    run_inline = True
    raise_error = False
    ignore_retriever = True
    ignore_custom_event = True
    ignore_retry = True

    def __init__(self, listener: Listener) -> None:
        self._to = listener

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return type(self).__bases__[-1], ()  # LangChain's own, which does nothing

    def on_chain_start(self, _serialized: Any, inputs: Any, *, run_id: UUID, **about: Any) -> None:  # noqa: ANN401
        """A graph, a node, or something inside a node begins."""
        with self._to.hook.guard("on_chain_start"):
            self._to.chain_started(inputs, run_id, self._around(about), about)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_about: Any) -> None:  # noqa: ANN401
        """It came back."""
        with self._to.hook.guard("on_chain_end"):
            self._to.chain_ended(outputs, run_id)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_about: Any) -> None:  # noqa: ANN401
        """An exception left it."""
        with self._to.hook.guard("on_chain_error"):
            self._to.chain_failed(error, run_id)

    def on_tool_start(self, serialized: Any, _text: str, *, run_id: UUID, **about: Any) -> None:  # noqa: ANN401
        """A tool runs."""
        with self._to.hook.guard("on_tool_start"):
            self._to.tool_started(
                (serialized or {}).get("name"), run_id, self._around(about), about.get("tool_call_id")
            )

    def on_tool_end(self, output: Any, *, run_id: UUID, **_about: Any) -> None:  # noqa: ANN401
        """It returned."""
        with self._to.hook.guard("on_tool_end"):
            self._to.tool_ended(output, run_id)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_about: Any) -> None:  # noqa: ANN401
        """It raised."""
        with self._to.hook.guard("on_tool_error"):
            self._to.tool_failed(error, run_id)

    def on_chat_model_start(self, _serialized: Any, _messages: Any, **about: Any) -> None:  # noqa: ANN401
        """A chat model is asked."""
        with self._to.hook.guard("on_chat_model_start"):
            self._to.model_called(self._around(about), about)

    def on_llm_start(self, _serialized: Any, _prompts: Any, **about: Any) -> None:  # noqa: ANN401
        """A model that completes text is asked."""
        with self._to.hook.guard("on_llm_start"):
            self._to.model_called(self._around(about), about)

    def on_llm_end(self, response: Any, **about: Any) -> None:  # noqa: ANN401
        """A model answered."""
        with self._to.hook.guard("on_llm_end"):
            self._to.model_answered(response, self._around(about))

    def on_llm_error(self, error: BaseException, **about: Any) -> None:  # noqa: ANN401
        """A model's call raised."""
        with self._to.hook.guard("on_llm_error"):
            self._to.model_failed(error, self._around(about))

    def _around(self, about: dict[str, Any]) -> Place | None:
        return self._to.inside.get(about.get("parent_run_id"))  # type: ignore[arg-type]  # None is not there


def names_of(error: BaseException) -> list[str]:
    """The classes of an exception that are the framework's, the narrowest first."""
    return [kind.__name__ for kind in type(error).__mro__ if kind.__module__.partition(".")[0] in _PACKAGES]


def _is_run(graph: Any, around: Place) -> bool:  # noqa: ANN401 - a Pregel
    return around.in_tool or shapes.is_agent(graph) or _is_apart(around)


def _is_apart(around: Place) -> bool:
    """Whether a block of the program's, or another framework's run, is between a graph and the one around it."""
    return capture.current_run() not in (None, around.graph.run)


def _is_step(tags: object) -> bool:
    return isinstance(tags, list) and any(str(tag).startswith("graph:step:") for tag in tags)
