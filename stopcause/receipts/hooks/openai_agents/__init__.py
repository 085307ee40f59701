"""The OpenAI Agents SDK: `AgentRunner.run` and `run_streamed`, which `Runner` and agents as tools stand on.

Here: what its exceptions and results mean, and the two entry points, wrapped. `run_sync` goes through `run`. While a
run goes on its `RunHooks` tell (`watch`); its approvals are in `waits`. No trace processor
is added: a receipt is the same with tracing off. Not here: realtime agents, whose sessions have no end of this kind.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from typing import TYPE_CHECKING, Any

from stopcause.receipts.causes import Rank
from stopcause.receipts.faults import is_cancelled, provider_cause
from stopcause.receipts.hooks.openai_agents.waits import Waits, note_resume, note_waits
from stopcause.receipts.hooks.openai_agents.watch import (
    FAILURE,
    MAX_TURNS,
    Watch,
    current_watch,
    heard,
    listener,
    shape_of,
    told_of,
)
from stopcause.receipts.run import current
from stopcause.receipts.vocabulary import Boundary, Scope, StopCause

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stopcause.receipts.hooks.guard import Hook

# What an exception of `agents.exceptions` means when it leaves a run, and the reason beside it.
CAUSES: dict[str, tuple[StopCause, str | None]] = {
    "MaxTurnsExceeded": (StopCause.STEP_LIMIT, None),
    "InputGuardrailTripwireTriggered": (StopCause.GUARDRAIL, "input_guardrail"),
    "OutputGuardrailTripwireTriggered": (StopCause.GUARDRAIL, "output_guardrail"),
    "ToolInputGuardrailTripwireTriggered": (StopCause.GUARDRAIL, "tool_input_guardrail"),
    "ToolOutputGuardrailTripwireTriggered": (StopCause.GUARDRAIL, "tool_output_guardrail"),
    "ModelRefusalError": (StopCause.REFUSAL, None),
    "ModelTimeoutError": (StopCause.MODEL_FAILURE, "model_timeout"),
    "ToolTimeoutError": (StopCause.TOOL_FAILURE, "tool_timeout"),
    "MCPToolCancellationError": (StopCause.TOOL_FAILURE, "tool_cancelled"),
}
# What a class does not tell, the place does where the loop stood: rules in the order in which they are asked.
#   the host's own callback raised it               host_error, run_hooks
#   it left a run inside this one                   tool_failure in a tool, else host_error, nested_run
#   of the classes above                            as they say
#   ModelBehaviorError after an answer with calls   malformed_call: unknown tool, arguments that are no JSON
#   while a tool ran (UserError, what it raised)    tool_failure
#   while the model was asked                       the provider's word, else model_failure
#   ModelBehaviorError after any other answer       model_failure, invalid_output
#   anything else                                   the provider's word, else host_error
# And a run that came back by itself:
#   `interruptions`                                 approval_pending
#   `cancel("after_turn")` before a final output    caller_abort
#   a final output right after a tool               explicit_done (`tool_use_behavior`)
#   `error_handlers`: max_turns, model_refusal      step_limit with forced_wrapup, refusal

_Answer = tuple[StopCause | None, str | None]


def install(hook: Hook) -> Callable[[], None]:
    """Wraps the two entry points, and what asks for an answer to a tool's exception.

    Returns:
        What puts the SDK's own back.
    """
    from agents.lifecycle import RunHooksBase
    from agents.run import AgentRunner

    runner: Any = AgentRunner
    opened = _Opening(hook, RunHooksBase)
    undo = [
        _replace(runner, "run", _run(hook, runner.run, opened)),
        _replace(runner, "run_streamed", _run_streamed(hook, runner.run_streamed, opened)),
    ]
    if hook.is_tested:
        undo += [_replace(module, FAILURE, told_of(getattr(module, FAILURE))) for module in _failing()]

    def uninstall() -> None:
        hook.is_on = False  # somebody else may have wrapped ours, and then it stays
        for give_back in undo:
            give_back()

    return uninstall


def _failing() -> list[Any]:
    """The modules that ask what the model is told of a tool's exception (`FAILURE`), each by its own name for it."""
    from agents import tool
    from agents.run_internal import tool_execution

    return [module for module in (tool, tool_execution) if hasattr(module, FAILURE)]


def _replace(owner: Any, name: str, ours: Any) -> Callable[[], None]:  # noqa: ANN401 - a class or module of the SDK's
    theirs = getattr(owner, name)
    setattr(owner, name, ours)

    def give_back() -> None:
        if getattr(owner, name) is ours:
            setattr(owner, name, theirs)

    return give_back


def _run(hook: Hook, original: Callable[..., Any], opened: _Opening) -> Callable[..., Any]:
    @functools.wraps(original)
    async def run(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the SDK's own
        watch, kwargs = opened(args, kwargs)
        try:
            with _around(watch):
                loop = original(*args, **kwargs)
                # The SDK keeps inputs out of its tracebacks, and this frame is in them.
                args, kwargs = (), {}
                result = await loop
        except BaseException as error:
            if watch is not None:
                with hook.ending("run.raised", watch.run):
                    _raised(watch, error, asyncio.current_task())
            raise
        if watch is not None:
            with hook.ending("run.returned", watch.run):
                _returned(watch, result, opened.waits, Boundary.CALL)
        return result

    return run


def _run_streamed(hook: Hook, original: Callable[..., Any], opened: _Opening) -> Callable[..., Any]:
    @functools.wraps(original)
    def run_streamed(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the SDK's own
        watch, kwargs = opened(args, kwargs)
        try:
            with _around(watch):  # the loop's task takes the context with it
                result = original(*args, **kwargs)
        except BaseException as error:
            args, kwargs = (), {}
            if watch is not None:
                with hook.ending("run_streamed.raised", watch.run):
                    _raised(watch, error, None)
            raise
        if watch is not None:
            with hook.ending("run_streamed.follow", watch.run):
                _follow(watch, result, opened.waits)
        return result

    return run_streamed


def _follow(watch: Watch, result: object, waits: Waits) -> None:
    task = watch.hook.read(watch.run, result, "run_loop_task", asyncio.Task)
    if task is None:  # a run that nobody could ever see the end of
        watch.run.say(StopCause.UNKNOWN, Rank.SIGNAL, Boundary.CALLBACK)
        watch.run.end(boundary=Boundary.CALLBACK)
    else:
        task.add_done_callback(functools.partial(_streamed, watch, waits, result))


@contextlib.contextmanager
def _around(watch: Watch | None) -> Iterator[None]:
    """Runs inside this one find it in the context."""
    if watch is None:
        yield
        return
    tokens = current.set(watch.run), current_watch.set(watch)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # a coroutine that is closed in another context than it ran in
            current_watch.reset(tokens[1])
            current.reset(tokens[0])


# How it begins --------------------------------------------------------------------------------------------------------


class _Opening:
    """Begins runs, and puts our listener before the host's."""

    def __init__(self, hook: Hook, hooks_base: type) -> None:
        self.waits = Waits()
        self._hook = hook
        self._hooks_base = hooks_base
        self._listener = listener(hooks_base)

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Watch | None, dict[str, Any]]:
        """The run's watch, None where nothing is recorded, and the arguments to go on with."""
        watch: Watch | None = None
        with self._hook.guard("begin"):
            agent, given = _inputs(*args[1:], **kwargs)
            name = agent.name if isinstance(getattr(agent, "name", None), str) else None
            run = self._hook.begin(name)
            if run is not None:
                watch = Watch(self._hook, run, name, current_watch.get())
        if watch is None:
            return None, kwargs
        if self._hook.is_tested:
            with self._hook.guard("describe"):
                _describe(watch, agent, kwargs)
            with self._hook.guard("limits"):
                _limited(watch, given, kwargs, self.waits)
            with self._hook.guard("listen"):
                kwargs = self._listened(watch, kwargs)
        with self._hook.guard("start"):
            watch.run.start()
        return watch, kwargs

    def _listened(self, watch: Watch, kwargs: dict[str, Any]) -> dict[str, Any]:
        """With our listener. What is no RunHooks stays, so that the SDK refuses it as ever."""
        changed = dict(kwargs)
        host = kwargs.get("hooks")
        if host is None or isinstance(host, self._hooks_base):
            changed["hooks"] = self._listener(watch, host)
        if kwargs.get("error_handlers"):
            changed["error_handlers"] = heard(watch, kwargs["error_handlers"])
        return changed


def _inputs(starting_agent: Any = None, input: Any = None, **_: Any) -> tuple[Any, Any]:  # noqa: A002, ANN401 - the SDK's names
    return starting_agent, input


def _describe(watch: Watch, agent: object, kwargs: dict[str, Any]) -> None:
    """What is known before the first turn: the model, the thread, the host's own metadata of the run."""
    run, config = watch.run, kwargs.get("run_config")
    run.step_unit = "turn"
    run.steps, run.model_calls, run.tool_calls = run.steps or 0, run.model_calls or 0, run.tool_calls or 0
    run.model = run.model or _model(_setting(config, "model")) or _model(getattr(agent, "model", None))
    cap = getattr(_setting(config, "model_settings"), "max_tokens", None)
    watch.cap_of_run = cap if type(cap) is int else None
    watch.session = kwargs.get("session")
    watch.name_thread(kwargs.get("conversation_id"), _setting(config, "group_id"))
    metadata = _setting(config, "trace_metadata")
    if isinstance(metadata, dict):
        keys = run.config.label_keys
        run.labels = run.labels or {key: metadata[key] for key in keys if key in metadata} or None
        watch.metadata = {key: metadata[key] for key in run.config.approval_keys.values() if key in metadata}


def _limited(watch: Watch, given: Any, kwargs: dict[str, Any], waits: Waits) -> None:  # noqa: ANN401 - input or state
    """The turn limit. A resumed run counts on where the paused one stopped, against that one's limit."""
    from agents.run import DEFAULT_MAX_TURNS
    from agents.run_state import RunState

    hook, run = watch.hook, watch.run
    if isinstance(given, RunState):
        watch.max_turns = hook.read(run, given, "_max_turns", int)
        watch.turns_before = hook.read(run, given, "_current_turn", int) or 0
        watch.approved = note_resume(waits, run, watch.agent, given)
        if watch.outer is not None:
            watch.goes_on_inside(watch.outer)
    else:
        limit = kwargs.get(MAX_TURNS, DEFAULT_MAX_TURNS)
        watch.max_turns = limit if type(limit) is int else None
    if watch.max_turns is not None:
        scope = Scope.THREAD if watch.turns_before else Scope.ATTEMPT
        run.limit(MAX_TURNS, "steps", watch.max_turns, unit="turn", scope=scope)


def _setting(config: object, name: str) -> Any:  # noqa: ANN401 - of a RunConfig, or of a dict in its place
    return config.get(name) if isinstance(config, dict) else getattr(config, name, None)


def _model(model: object) -> str | None:
    """Its name: the host's word, or what a model object of the SDK calls itself."""
    name = model if isinstance(model, str) else getattr(model, "model", None)
    return name if isinstance(name, str) else None


# How it ends ----------------------------------------------------------------------------------------------------------


def _returned(watch: Watch, result: Any, waits: Waits, boundary: Boundary) -> None:  # noqa: ANN401 - a RunResult
    """The loop came back by itself."""
    run = watch.run
    watch.name_thread()
    watch.host_error = watch.nested_error = None
    if watch.outer is not None:
        watch.outer.in_flight.pop(watch, None)
    if note_waits(watch.hook, waits, run, watch.agent, result, watch.metadata):
        run.finish = None  # the answer asked for the tool that it waits for
    elif not watch.is_done and getattr(result, "_cancel_mode", None) == "after_turn":
        run.say(StopCause.CALLER_ABORT, Rank.SIGNAL, boundary, reason="cancel_after_turn", aborted=True)
    elif watch.is_done and watch.began_since:
        run.say(StopCause.EXPLICIT_DONE, Rank.SIGNAL, boundary)
    if watch.is_done:
        run.output_shape = shape_of(getattr(result, "final_output", None))
    run.end(boundary=boundary, result=result)


def _streamed(watch: Watch, waits: Waits, result: Any, task: asyncio.Task[Any]) -> None:  # noqa: ANN401
    """The loop of a stream is over, whether somebody reads it or not."""
    with watch.hook.ending("run_streamed.done", watch.run):
        if task.cancelled():
            error: BaseException | None = asyncio.CancelledError()
        else:
            # `exception()` would tell the event loop that somebody has seen it.
            error = getattr(task, "_exception", None) or getattr(result, "_stored_exception", None)
        if error is not None:
            reason = "cancel_immediate" if getattr(result, "_cancel_mode", None) == "immediate" else None
            _raised(watch, error, task, reason)
        elif _is_over_limit(watch, result):
            watch.reached_limit()
            watch.run.end(boundary=Boundary.CALLBACK)
        elif getattr(result, "_triggered_input_guardrail_result", None) is not None:
            watch.run.say(StopCause.GUARDRAIL, Rank.SIGNAL, Boundary.CALLBACK, reason="input_guardrail")
            watch.run.end(boundary=Boundary.CALLBACK)
        else:
            _returned(watch, result, waits, Boundary.CALLBACK)


def _is_over_limit(watch: Watch, result: object) -> bool:
    """The loop of a stream says nothing when the limit ends it; `RunResultStreaming._check_errors` finds it later."""
    turn = watch.hook.read(watch.run, result, "current_turn", int)
    limit = watch.max_turns
    return limit is not None and turn is not None and turn > limit


def _raised(watch: Watch, error: BaseException, task: asyncio.Task[Any] | None, reason: str | None = None) -> None:
    """An exception left the loop."""
    run = watch.run
    watch.name_thread()
    if watch.outer is not None:
        watch.outer.nested_error = error
    cause, told = _cause_of(watch, error, task)
    if cause is StopCause.STEP_LIMIT:
        watch.reached_limit()
    run.tool_errors_terminal += cause is StopCause.TOOL_FAILURE
    run.model_errors_terminal += cause is StopCause.MODEL_FAILURE
    run.in_flight_tools = 0 if cause is StopCause.TOOL_FAILURE else len(watch.in_flight)
    tool = _tool(watch, error) if cause is StopCause.TOOL_FAILURE else None
    watch.host_error = watch.nested_error = None  # their tracebacks hold what the SDK lets go of
    run.end(error, boundary=Boundary.EXCEPTION, cause=cause, reason=told or reason, tool=tool)


def _cause_of(watch: Watch, error: BaseException, task: asyncio.Task[Any] | None) -> _Answer:
    """The rules at the top, in their order. None: as the core has it."""
    if is_cancelled(error) or not isinstance(error, Exception):
        # A tool that raised the cancellation itself: nobody had asked for one.
        is_inner = is_cancelled(error) and bool(watch.in_flight) and task is not None and not task.cancelling()
        return (StopCause.TOOL_FAILURE, "tool_cancelled") if is_inner else (None, None)
    if error is watch.host_error:
        return StopCause.HOST_ERROR, "run_hooks"
    name = _own_name(error)
    if error is watch.nested_error or (name == "MaxTurnsExceeded" and watch.in_flight):
        return (StopCause.TOOL_FAILURE if watch.in_flight else StopCause.HOST_ERROR), "nested_run"
    if name in CAUSES:
        return CAUSES[name]
    if watch.in_flight and name != "ModelBehaviorError":
        return StopCause.TOOL_FAILURE, None
    return _by_place(watch, error, is_of_model=name == "ModelBehaviorError")


def _by_place(watch: Watch, error: BaseException, *, is_of_model: bool) -> _Answer:
    if is_of_model and watch.is_call and not watch.is_asking:
        return StopCause.MALFORMED_CALL, None
    if watch.is_asking:
        return provider_cause(error) or StopCause.MODEL_FAILURE, None
    return (StopCause.MODEL_FAILURE, "invalid_output") if is_of_model else (None, None)


def _own_name(error: BaseException) -> str:
    """The SDK's class that an exception is of, by its name."""
    names = (kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "agents.exceptions")
    return next(names, "")


def _tool(watch: Watch, error: BaseException) -> str | None:
    """The tool that failed: the SDK's own word (`ToolTimeoutError.tool_name`), else the only one that ran."""
    named = getattr(error, "tool_name", None) if _own_name(error) == "ToolTimeoutError" else None
    running = [call.tool for call in watch.in_flight.values()]
    return named if isinstance(named, str) else running[0] if len(running) == 1 else None
