"""Temporal: where it is listened to, and what a program may use of it by name.

Workers are given an interceptor, which is Temporal's own listening point. A client that waits for a workflow's result
is wrapped, because an execution that is terminated or timed out by the server runs no code of a worker's. Workflows run
in a sandbox that imports everything anew; this package is passed through, so that it is the same one inside.

    from stopcause.receipts.hooks import temporal

    temporal.approval(...)    a wait, inside a workflow
    temporal.closing(...)     the receipt of an execution that no worker could end
    temporal.interceptor()    for a worker or client by hand; `instrument()` gives it to every worker
"""

from __future__ import annotations

import functools
from importlib import metadata
from typing import TYPE_CHECKING, Any

from stopcause.receipts import imports
from stopcause.receipts.hooks import SPECS, wrapping
from stopcause.receipts.hooks.guard import Hook
from stopcause.receipts.hooks.temporal.client import Closings
from stopcause.receipts.hooks.temporal.known import Known
from stopcause.receipts.hooks.wrapping import replace

if TYPE_CHECKING:
    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.wrapping import Undo

_OURS = "stopcause"
_known = Known()
_hooks: list[Hook] = []


def install(hook: Hook) -> Undo:
    """Listens. Workers and clients are wrapped when the program imports them."""
    _hooks.append(hook)
    undos: list[Undo] = [lambda: _hooks.remove(hook)]
    undos.append(imports.when_imported("temporalio.worker", lambda: _listen_to_workers(hook, undos)))
    undos.append(imports.when_imported("temporalio.client", lambda: _listen_to_clients(hook, undos)))
    return wrapping.undo_all(hook, undos)


def _listen_to_workers(hook: Hook, undos: list[Undo]) -> None:
    with hook.guard("worker"):
        from temporalio.worker import Worker, workflow_sandbox

        passed: set[str] = workflow_sandbox.SandboxRestrictions.passthrough_modules_default
        if _OURS not in passed:
            passed.add(_OURS)
            undos.append(lambda: passed.discard(_OURS))
        undos.append(replace(Worker, "__init__", functools.partial(_worker, hook)))


def _listen_to_clients(hook: Hook, undos: list[Undo]) -> None:
    with hook.guard("client"):
        from temporalio.client import WorkflowHandle

        closings = Closings(hook, _known)
        undos.append(replace(WorkflowHandle, "result", closings.result))
        undos.append(replace(WorkflowHandle, "_fetch_history_events_for_run", closings.fetch))


def _worker(hook: Hook, original: Foreign) -> Foreign:
    """A worker that has the interceptor, unless the program gave it one. It is the outermost of the worker's own."""

    @functools.wraps(original)
    def __init__(worker: Foreign, /, *args: Any, **kwargs: Any) -> None:  # noqa: N807, ANN401 - as the wrapped one
        with hook.guard("worker"):
            from stopcause.receipts.hooks.temporal.interceptors import Interceptor

            given = [*kwargs.get("interceptors", ())]
            client = args[0] if args else kwargs["client"]
            if not any(isinstance(each, Interceptor) for each in [*given, *client.config()["interceptors"]]):
                kwargs["interceptors"] = [Interceptor(hook, _known), *given]
        original(worker, *args, **kwargs)

    return __init__


def interceptor() -> Foreign:
    """The interceptor, for `Worker(interceptors=[...])` or `Client.connect(interceptors=[...])`."""
    from stopcause.receipts.hooks.temporal.interceptors import Interceptor

    return Interceptor(_hook(), _known)


async def closing(client: Foreign, workflow_id: str, run_id: str | None = None) -> str | None:
    """Asks the server how an execution closed, and writes its receipt: for one that no worker could see the end of.

    Of one that did, the worker's own receipt counts before this one.

    Returns:
        The stop cause; None where it is still open, or goes on as a new one.
    """
    description = await client.get_workflow_handle(workflow_id, run_id=run_id).describe()
    closings = Closings(hook := _hook(), _known)
    with hook.guard("closing"):
        if closings.is_closed(description):
            await closings.ask_attempt(client.get_workflow_handle(workflow_id, run_id=description.run_id), description)
        return closings.described(description)
    return None


def __getattr__(name: str) -> Foreign:
    """`approval`, which needs Temporal; this module is also read where that is not yet imported."""
    if name != "approval":
        raise AttributeError(name)
    from temporalio.workflow import unsafe

    with unsafe.imports_passed_through():  # a program may have restrictions of its own
        from stopcause.receipts.hooks.temporal.waits import approval

    return approval


def _hook() -> Hook:
    """The one that is installed, or one for a program that does without `instrument`."""
    if not _hooks:
        (spec,) = [each for each in SPECS if each.name == "temporal"]
        _hooks.append(Hook(spec, metadata.version(spec.distribution), is_tested=True))
    return _hooks[-1]
