"""Temporal: the interceptor of workers. Temporal's own listening point: nothing of a workflow or activity is replaced.

One for each worker; `instrument()` gives it to all of them. Inside a workflow it runs in the sandbox, on the workflow's
own loop: it waits for nothing, reads no clock that a workflow sees, and adds no command.
"""

from __future__ import annotations

import contextlib
from contextvars import Context
from typing import TYPE_CHECKING

from temporalio import activity, client, worker, workflow

from stopcause.receipts import capture
from stopcause.receipts.hooks import wrapping
from stopcause.receipts.hooks.temporal.workflow import Execution
from stopcause.receipts.run import current

if TYPE_CHECKING:
    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.temporal.known import Known


class Interceptor(client.Interceptor, worker.Interceptor):
    """Gives every execution of a workflow a receipt. For a worker's, or a client's, `interceptors`."""

    def __init__(self, hook: Hook, known: Known) -> None:
        self._hook = hook
        self._known = known

    def workflow_interceptor_class(self, _: Foreign) -> type[worker.WorkflowInboundInterceptor]:
        """The class that is made for each execution, with what it needs of ours."""

        class Inbound(_Inbound):
            hook = self._hook
            known = self._known

        return Inbound

    def intercept_activity(self, next: Foreign) -> worker.ActivityInboundInterceptor:  # noqa: A002 - Temporal's name
        """Around each attempt of an activity."""
        return _Activity(next, self._hook, self._known)


class _Inbound(worker.WorkflowInboundInterceptor):
    """What comes into a workflow."""

    hook: Hook
    known: Known

    def init(self, outbound: Foreign) -> None:
        self._execution: Execution | None = None
        self._is_new = True
        super().init(_Outbound(outbound, self) if self.hook.is_tested else outbound)

    async def execute_workflow(self, input: Foreign) -> Foreign:  # noqa: A002 - Temporal's name
        return await wrapping.watched(self.hook, super().execute_workflow, lambda *_: self.execution())(input)

    async def handle_signal(self, input: Foreign) -> None:  # noqa: A002 - Temporal's name
        """A failure that leaves a handler of a signal ends the workflow."""
        execution = None
        with self.hook.guard("signal"):
            execution = self.execution()
        try:
            await super().handle_signal(input)
        except BaseException as error:
            wrapping.end(execution, "failed", error)
            raise

    def execution(self) -> Execution | None:
        """The execution, which begins with its first task: with its function, or with a signal before that."""
        if self._is_new:
            self._is_new = False
            info = workflow.info()
            run = Context().run(self.hook.begin, _agent())  # nothing of the worker's own is around it
            if run is not None:
                self._execution = Execution(self.hook, run, info, self.known).begin()
        return self._execution


class _Outbound(worker.WorkflowOutboundInterceptor):
    """What a workflow starts."""

    def __init__(self, next: Foreign, inbound: _Inbound) -> None:  # noqa: A002 - Temporal's name
        super().__init__(next)
        self._inbound = inbound

    def start_activity(self, input: Foreign) -> Foreign:  # noqa: A002 - Temporal's name
        return self._started(input, super().start_activity(input))

    def start_local_activity(self, input: Foreign) -> Foreign:  # noqa: A002 - Temporal's name
        return self._started(input, super().start_local_activity(input))

    def _started(self, call: Foreign, handle: Foreign) -> Foreign:
        """Of an activity or child that is given as a function, Temporal looks up its types; by a name it cannot."""
        with self._inbound.hook.guard("activity"):
            if (execution := self._inbound.execution()) is not None:
                execution.activity(handle, call.activity, is_known=call.arg_types is not None)
        return handle

    async def start_child_workflow(self, input: Foreign) -> Foreign:  # noqa: A002 - Temporal's name
        handle = await super().start_child_workflow(input)
        with self._inbound.hook.guard("child"):
            if (execution := self._inbound.execution()) is not None:
                execution.child(handle, input.workflow if input.arg_types is not None else None)
        return handle


class _Activity(worker.ActivityInboundInterceptor):
    """An attempt of an activity. It is no run; one of a framework inside of it is a child of the workflow's."""

    def __init__(self, next: Foreign, hook: Hook, known: Known) -> None:  # noqa: A002 - Temporal's name
        super().__init__(next)
        self._hook = hook
        self._known = known

    async def execute_activity(self, input: Foreign) -> Foreign:  # noqa: A002 - Temporal's name
        token = None
        with self._hook.guard("activity"):
            token = self._inside(input.fn)
        try:
            return await super().execute_activity(input)
        finally:
            if token is not None:
                with contextlib.suppress(ValueError):  # somebody else's interceptor went on in another context
                    current.reset(token)

    def _inside(self, function: Foreign) -> Foreign:
        """The workflow's run, in name only: it may be another worker that has it. Activities without one have none."""
        info = activity.info()
        if getattr(activity._Definition.from_callable(function), "name", None) == info.activity_type:  # noqa: SLF001 - it has no other name
            self._known.activities.add(info.activity_type)
        execution = getattr(info, "workflow_run_id", None)
        if execution is None or not self._hook.is_on or capture.is_off(self._hook.name):
            return None
        run_id = self._known.attempt(info.workflow_namespace, execution).run_id
        return current.set(capture.run(run_id=run_id, thread_id=info.workflow_id))


def _agent() -> str:
    """The workflow's type. One that takes every name is called by its class: a model may have made the name up."""
    definition: Foreign = getattr(workflow._Runtime.current(), "_defn", None)  # noqa: SLF001 - it has no other name
    is_dynamic = definition is not None and not definition.name
    return str(definition.cls.__name__ if is_dynamic else workflow.info().workflow_type)
