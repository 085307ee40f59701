"""LlamaIndex workflows, and the agents that are made of them: where they are listened to.

`Workflow.run` only makes a task and gives back its handler, which may be awaited, streamed, or forgotten: what ends a
run is seen in the task alone. So a run begins where `Workflow.run` is called, in the program's context, and goes on in
the control loop, the one class through which every runtime runs its steps. That loop is private, and its four methods
are the same from 2.10 to 2.26: `run`, `process_command`, and `_process_tick` or `wait_for_tick`.

`Context.to_dict` and `Context.from_dict` are watched too: a program that takes the paused state out can resume it. Of
models the framework's own instrumentation tells. What its words mean is in `causes`; what a run says is in
`call` and `agent`, what it waits for in `waits`.
"""

from __future__ import annotations

import functools
import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

from stopcause.receipts import imports
from stopcause.receipts.hooks import wrapping
from stopcause.receipts.hooks.llama_index.agent import AgentCall, is_agent
from stopcause.receipts.hooks.llama_index.call import WorkflowCall, open_call
from stopcause.receipts.hooks.waiting import Waiting
from stopcause.receipts.hooks.wrapping import replace

if TYPE_CHECKING:
    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.llama_index.waits import Kept
    from stopcause.receipts.hooks.wrapping import Undo

_opening: ContextVar[WorkflowCall | None] = ContextVar("stopcause_llama_index_opening", default=None)
_AGENTS = (
    ("llama_index.core.agent.workflow.base_agent", "BaseWorkflowAgent"),
    ("llama_index.core.agent.workflow.multi_agent_workflow", "AgentWorkflow"),
)
_STATE = "state"  # a kept state has one entry in `Waiting`


class _Contexts(NamedTuple):
    """Which run a context of the program's belongs to, which paused states the program has, and of which contexts."""

    runs: weakref.WeakKeyDictionary[Any, WorkflowCall]
    kept: Waiting[Kept]
    restored: weakref.WeakKeyDictionary[Any, Kept]


def install(hook: Hook) -> Undo:
    """Listens. Agents and models are listened to when the program imports llama-index-core."""
    from workflows import Context, Workflow

    contexts = _Contexts(weakref.WeakKeyDictionary(), Waiting(), weakref.WeakKeyDictionary())
    runner = _runner()
    undos = [
        replace(Workflow, "run", functools.partial(_run, hook, contexts)),
        replace(runner, "run", functools.partial(_loop, hook)),
    ]
    if hook.is_tested:
        undos += [
            _ticks(hook, runner),
            replace(runner, "process_command", functools.partial(_commands, hook)),
            replace(Context, "to_dict", functools.partial(_kept, hook, contexts)),
            replace(Context, "from_dict", functools.partial(_restored, hook, contexts)),
            _models(hook),
        ]
        undos += [_when_there(hook, module, name, undos) for module, name in _AGENTS]
    return wrapping.undo_all(hook, undos)


def _runner() -> type:
    """The control loop: in a module of its own since it grew (2.26), in the package's only one before (2.10)."""
    try:
        from workflows.runtime.control_loop import runner as module
    except ImportError:
        from workflows.runtime import control_loop as module
    found: type = module._ControlLoopRunner  # noqa: SLF001 - the one point that every run passes
    return found


# The run --------------------------------------------------------------------------------------------------------------


def _begun(hook: Hook, workflow: Foreign, start_event: Foreign, kept: Kept | None, *, is_continued: bool) -> Any:  # noqa: ANN401 - a call, or None
    run = hook.begin()
    if run is None:
        return None
    made = (AgentCall if is_agent(workflow) else WorkflowCall)(hook, run, workflow, kept)
    if hook.is_tested:
        with hook.guard("describe"):
            made.describe(start_event, is_continued=is_continued)
    return made.begin()


def _run(hook: Hook, contexts: _Contexts, original: Foreign) -> Foreign:
    """`Workflow.run`. In 2.10 it has a decorator that asks whose method it is, so it is called as one."""

    def begun(workflow: Foreign, /, ctx: Foreign = None, start_event: Foreign = None, **_: object) -> Any:  # noqa: ANN401 - a call, or None
        kept = None if ctx is None else contexts.restored.pop(ctx, None)
        return _begun(hook, workflow, start_event, kept, is_continued=ctx is not None)

    @functools.wraps(original)
    def run(self: Foreign, /, *args: Any, **kwargs: Any) -> Foreign:  # noqa: ANN401 - as the wrapped one
        call = None
        with hook.guard("begin"):
            call = begun(self, *args, **kwargs)
        token = _opening.set(call)
        try:
            handler = original.__get__(self, type(self))(*args, **kwargs)
        except BaseException as error:
            wrapping.end(call, "failed", error)
            raise
        finally:
            _opening.reset(token)
        if call is not None:
            with hook.guard("handler"):
                contexts.runs[handler.ctx] = call
        return handler

    return run


def _loop(hook: Hook, original: Foreign) -> Foreign:
    """The control loop's own run: that of `Workflow.run`, in whose context its task was made; of a server, another."""

    def begun(runner: Foreign, start_event: Foreign = None, *_: object, **__: object) -> WorkflowCall | None:
        made = _opening.get()
        if made is None or not made.is_for(runner):
            made = _begun(hook, runner.workflow, start_event, None, is_continued=start_event is None)
        if made is not None:
            with hook.ending("takes", made.run):
                made.takes(runner, start_event)
                return made
        return None

    return wrapping.watched(hook, original, begun)


def _commands(hook: Hook, original: Foreign) -> Foreign:
    @functools.wraps(original)
    async def process_command(self: Foreign, /, command: Foreign) -> Foreign:
        call = open_call.get()
        if call is not None:
            with hook.guard("command"):
                if call.is_of(self):
                    call.command(command)
        return await original(self, command)

    return process_command


def _ticks(hook: Hook, runner: Any) -> Undo:  # noqa: ANN401 - a class of the framework's
    """A tick, before the loop takes it: as an argument (2.26), or as what the loop has waited for (2.10)."""
    if hasattr(runner, "_process_tick"):
        return replace(runner, "_process_tick", functools.partial(_tick_given, hook))
    return replace(runner, "wait_for_tick", functools.partial(_tick_awaited, hook))


def _tick_given(hook: Hook, original: Foreign) -> Foreign:
    @functools.wraps(original)
    async def process_tick(self: Foreign, /, tick: Foreign) -> Foreign:
        call = open_call.get()
        if call is not None:
            with hook.guard("tick"):
                if call.is_of(self):
                    call.tick(tick)
        return await original(self, tick)

    return process_tick


def _tick_awaited(hook: Hook, original: Foreign) -> Foreign:
    @functools.wraps(original)
    async def wait_for_tick(self: Foreign, /) -> Foreign:
        call = open_call.get()
        if call is not None:
            with hook.guard("idle"):
                if call.is_of(self) and call.is_idle():
                    call.waits.idle(accepts_human=False)
        tick = await original(self)
        if call is not None:
            with hook.guard("tick"):
                if call.is_of(self):
                    call.tick(tick)
        return tick

    return wait_for_tick


# Kept and restored ----------------------------------------------------------------------------------------------------


def _kept(hook: Hook, contexts: _Contexts, original: Foreign) -> Foreign:
    @functools.wraps(original)
    def to_dict(self: Foreign, /, *args: Any, **kwargs: Any) -> Foreign:  # noqa: ANN401 - as the wrapped one
        state = original(self, *args, **kwargs)
        with hook.guard("kept"):
            call = contexts.runs.get(self)
            found = None if call is None or call.is_over else call.waits.keep(state)
            if found is not None:
                contexts.kept.add(found[0], _STATE, found[1])
        return state

    return to_dict


def _restored(hook: Hook, contexts: _Contexts, original: Foreign) -> Foreign:
    """A class method: what a class has in its place is the descriptor, and so is what we put there."""
    from stopcause.receipts.hooks.llama_index.waits import digest

    @functools.wraps(original.__func__)
    def from_dict(cls: Foreign, /, *args: Any, **kwargs: Any) -> Foreign:  # noqa: ANN401 - as the wrapped one
        context = original.__get__(None, cls)(*args, **kwargs)
        with hook.guard("restored"):
            state = kwargs["data"] if "data" in kwargs else args[1]
            kept = contexts.kept.of(digest(state), _STATE)
            if kept is not None:
                contexts.restored[context] = kept
        return context

    return classmethod(from_dict)


# Agents and models ----------------------------------------------------------------------------------------------------


def _when_there(hook: Hook, module: str, name: str, undos: list[Undo]) -> Undo:
    def wrap() -> None:
        with hook.guard(name):
            owner = getattr(__import__(module, fromlist=[name]), name)
            if hasattr(owner, "_generate_early_stopping_response"):  # not in 0.14.0
                undos.append(replace(owner, "_generate_early_stopping_response", functools.partial(_forced, hook)))

    return imports.when_imported(module, wrap)


def _forced(hook: Hook, original: Foreign) -> Foreign:
    """An agent's last turn, which looks like any other answer. Its limit is the last parameter, by position."""

    @functools.wraps(original)
    async def generate_early_stopping_response(self: Foreign, /, *args: Any, **kwargs: Any) -> Foreign:  # noqa: ANN401 - as the wrapped one
        call = open_call.get()
        if isinstance(call, AgentCall):
            with hook.guard("forced"):
                call.forced(kwargs["max_iterations"] if "max_iterations" in kwargs else args[-1])
        return await original(self, *args, **kwargs)

    return generate_early_stopping_response


def _models(hook: Hook) -> Undo:
    """A handler of the framework's instrumentation, beside those of the program."""
    from llama_index_instrumentation import root_dispatcher
    from llama_index_instrumentation.event_handlers import BaseEventHandler

    class Models(BaseEventHandler):
        """What models say."""

        def handle(self, event: Foreign, **_: Any) -> None:  # noqa: ANN401 - as the base class has it
            call = open_call.get()
            if call is not None and not call.is_over:
                with hook.guard("model"):
                    call.model_event(event)

    handler = Models()
    root_dispatcher.add_event_handler(handler)

    def undo() -> None:
        root_dispatcher.event_handlers = [each for each in root_dispatcher.event_handlers if each is not handler]

    return undo
