"""Microsoft Agent Framework: where it is listened to.

An agent's `run` is wrapped in its middleware layer, which the framework's agents have around everything else. Inside,
the loop is a chat client's: its layers are wrapped where it is handed over (`FunctionInvocationLayer`), where it asks
the model (`ChatMiddlewareLayer`, above the host's own middleware) and where the model is called (`BaseChatClient`), and
so is the function that runs one call of a tool. A middleware that ends a run leaves no trace in the answer, so the
making of its `MiddlewareTermination` is noted. Of workflows the one generator of their events is wrapped, and the
making of checkpoints; of orchestrations, what they look at before they stop (`orchestrations`).

What the framework's words mean is in `causes`; what an invocation says is in `agent` and `workflow`; how an answer to
come is watched, in `streams`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import TYPE_CHECKING, Any

from stopcause.receipts import imports
from stopcause.receipts.hooks import wrapping
from stopcause.receipts.hooks.agent_framework import agent as agent_framework_agent
from stopcause.receipts.hooks.agent_framework import orchestrations, streams
from stopcause.receipts.hooks.agent_framework import workflow as agent_framework_workflow
from stopcause.receipts.hooks.agent_framework.agent import AgentCall, loop_call
from stopcause.receipts.hooks.agent_framework.call import open_call
from stopcause.receipts.hooks.agent_framework.model import Aside, ModelCall
from stopcause.receipts.hooks.agent_framework.workflow import WorkflowCall
from stopcause.receipts.hooks.waiting import Waiting
from stopcause.receipts.hooks.wrapping import replace

if TYPE_CHECKING:
    from stopcause.receipts.hooks.agent_framework.contents import Asked
    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.wrapping import Undo

_HANDED_OVER = "client_kwargs"  # agents and the layers of a client name it always, and nobody else needs it
_LOOP = "agent_framework._harness._loop"


def install(hook: Hook) -> Undo:
    """Listens."""
    from agent_framework import _agents, _middleware, _types
    from agent_framework._workflows import _workflow

    waiting: Waiting[Asked] = Waiting()
    agents = functools.partial(_agent, hook, waiting)
    workflows = functools.partial(_workflow_events, hook, waiting)
    layer = _middleware.AgentMiddlewareLayer
    bare = functools.partial(_agent, hook, waiting, unless=layer)
    undos = [
        *streams.listen(_types.ResponseStream),
        replace(layer, "run", agents),
        replace(_agents.RawAgent, "run", bare),
        replace(_workflow.Workflow, "_run_core", workflows),
    ]
    if hook.is_tested:
        undos += [*_listen_to_the_loop(hook), *_listen_to_workflows(hook, workflows)]
        undos.append(imports.when_imported(_LOOP, functools.partial(_listen_around, hook, undos)))
        orchestrations.listen(hook, undos)
    return wrapping.undo_all(hook, undos)


def _listen_to_the_loop(hook: Hook) -> list[Undo]:
    from agent_framework import _clients, _middleware, _tools

    above = _middleware.ChatMiddlewareLayer
    return [
        replace(_tools.FunctionInvocationLayer, "get_response", functools.partial(_request, hook)),
        replace(above, "get_response", functools.partial(_round_trip, hook)),
        replace(_clients.BaseChatClient, "get_response", functools.partial(_model_call, hook, above)),
        replace(_tools, "_auto_invoke_function", functools.partial(_tool, hook)),
        replace(_middleware.MiddlewareTermination, "__init__", _termination),
    ]


def _listen_around(hook: Hook, undos: list[Undo]) -> None:
    """`AgentLoopMiddleware` is imported when it is first used; 1.0 has none."""
    with hook.guard("loop"):
        module = importlib.import_module(_LOOP)
        undos.append(replace(module.AgentLoopMiddleware, "_evaluate_stop", functools.partial(_loop, hook)))


def _listen_to_workflows(hook: Hook, events: Any) -> list[Undo]:  # noqa: ANN401 - what wraps a generator of them
    """1.0 has no `FunctionalWorkflow`."""
    from agent_framework._workflows import _runner_context

    undos = [replace(_runner_context.InProcRunnerContext, "create_checkpoint", functools.partial(_checkpoint, hook))]
    try:
        from agent_framework._workflows import _functional
    except ImportError:
        return undos
    return [*undos, replace(_functional.FunctionalWorkflow, "_run_core", events)]


def _agent(hook: Hook, waiting: Waiting[Asked], original: Foreign, unless: type | None = None) -> Foreign:
    """`run` of agents; of a class that has another layer around, that one's is enough."""

    @functools.wraps(original)
    def run(agent: Foreign, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the wrapped one
        answer = original(agent, *args, **kwargs)
        if unless is not None and isinstance(agent, unless):
            return answer
        messages = args[0] if args else kwargs.get("messages")
        begin = functools.partial(agent_framework_agent.begin, hook, agent, waiting, messages, kwargs)
        return streams.watched(hook, answer, begin)

    return run


def _loop_of(hook: Hook, client: Foreign) -> AgentCall | None:
    """The invocation whose loop this client works for: another one, that a middleware asks say, is no part of it."""
    call = loop_call.get()
    if call is not None:
        with hook.guard("loop"):
            return call if client is getattr(call.owner, "client", client) else None
    return None


def _request(hook: Hook, original: Foreign) -> Foreign:
    @functools.wraps(original)
    def get_response(client: Foreign, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the wrapped one
        call = _loop_of(hook, client)
        if call is None:
            return original(client, *args, **kwargs)
        if _HANDED_OVER not in kwargs:
            aside = Aside(hook)
            with aside:
                answer = original(client, *args, **kwargs)
            return streams.watched(hook, answer, lambda: aside)
        with hook.guard("request"):
            call.requested(client, kwargs.get("options"), kwargs[_HANDED_OVER])
        return original(client, *args, **kwargs)

    return get_response


def _round_trip(hook: Hook, original: Foreign) -> Foreign:
    @functools.wraps(original)
    def get_response(client: Foreign, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the wrapped one
        call = _loop_of(hook, client)
        if call is not None and _HANDED_OVER in kwargs:
            with hook.guard("round_trip"):
                call.round_trip(kwargs.get("options"))
        return original(client, *args, **kwargs)

    return get_response


def _model_call(hook: Hook, above: type, original: Foreign) -> Foreign:
    """A client of the host's own may have no layer above for its middleware: then this is the round trip as well."""

    @functools.wraps(original)
    def get_response(client: Foreign, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the wrapped one
        call = _loop_of(hook, client)
        if call is None or _HANDED_OVER not in kwargs:
            return original(client, *args, **kwargs)
        if not isinstance(client, above):
            with hook.guard("round_trip"):
                call.round_trip(kwargs.get("options"))
        answer = original(client, *args, **kwargs)
        return streams.watched(hook, answer, functools.partial(ModelCall, hook, call))

    return get_response


def _tool(hook: Hook, original: Foreign) -> Foreign:
    """One call of a tool, its middleware included. What those call themselves is not the loop's."""
    from agent_framework._middleware import MiddlewareTermination

    parameters = list(inspect.signature(original).parameters)

    @functools.wraps(original)
    async def _auto_invoke_function(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the wrapped one
        call = loop_call.get()
        if call is None:
            return await original(*args, **kwargs)
        asked = args[0] if args else kwargs.get(parameters[0])
        with hook.guard("tool"):
            call.tool_begins(asked, kwargs.get("tool_map"))
        token = loop_call.set(None)
        try:
            result = await original(*args, **kwargs)
        except MiddlewareTermination:
            call.is_terminated = True
            raise
        finally:
            loop_call.reset(token)
            with hook.guard("tool"):
                call.tool_over()
        with hook.guard("tool"):
            call.tool_returned(asked, result)
        return result

    return _auto_invoke_function


def _termination(original: Foreign) -> Foreign:
    """Its making: it is made to be raised, and caught by the framework, which says nothing of it."""

    @functools.wraps(original)
    def __init__(error: Foreign, /, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401, N807 - as the wrapped one
        call = loop_call.get()
        if call is not None:
            call.is_terminated = True
        original(error, *args, **kwargs)

    return __init__


def _loop(hook: Hook, original: Foreign) -> Foreign:
    """Whether the loop stops. Its cap comes first, and nobody is told: the last answer is given as if it were done."""

    @functools.wraps(original)
    async def _evaluate_stop(loop: Foreign, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the wrapped one
        answer = await original(loop, *args, **kwargs)
        call = loop_call.get()
        if call is not None:
            with hook.guard("loop"):
                rounds = args[1] if len(args) > 1 else kwargs["work_iterations"]
                if loop.max_iterations is not None and rounds >= loop.max_iterations:
                    call.looped(rounds, loop.max_iterations)
        return answer

    return _evaluate_stop


def _workflow_events(hook: Hook, waiting: Waiting[Asked], original: Foreign) -> Foreign:
    def begin(workflow: Foreign, /, *_: Any, **kwargs: Any) -> WorkflowCall | None:  # noqa: ANN401 - whatever it is called with
        return agent_framework_workflow.begin(hook, workflow, waiting, kwargs)

    return wrapping.watched(hook, original, begin)


def _checkpoint(hook: Hook, original: Foreign) -> Foreign:
    @functools.wraps(original)
    async def create_checkpoint(context: Foreign, /, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the wrapped one
        kept = await original(context, *args, **kwargs)
        call = open_call.get()
        if isinstance(call, WorkflowCall):
            with hook.guard("checkpoint"):
                call.checkpoint = str(kept)
        return kept

    return create_checkpoint
