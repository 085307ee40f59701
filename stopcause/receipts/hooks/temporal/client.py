"""Temporal: executions that end without any code of a worker's: terminated, or timed out by the server.

Two who see that: a client that waits for the result, which is listened to; and whoever asks with `closing`.
"""

from __future__ import annotations

import functools
from contextvars import ContextVar
from typing import TYPE_CHECKING

from stopcause.receipts.hooks.temporal.causes import BY_CLOSING, BY_STATUS, STATUSES_THAT_GO_ON
from stopcause.receipts.hooks.temporal.closed import Closed, write_closing
from stopcause.receipts.vocabulary import StopCause

if TYPE_CHECKING:
    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook
    from stopcause.receipts.hooks.temporal.known import Known

_followed: ContextVar[list[str | None] | None] = ContextVar("stopcause_temporal_followed", default=None)


class Closings:
    """What a client sees of closed executions. Of those that a worker has ended, nothing is said here."""

    def __init__(self, hook: Hook, executions: Known) -> None:
        self._hook = hook
        self._known = executions

    def result(self, original: Foreign) -> Foreign:
        """Around `WorkflowHandle.result`."""

        @functools.wraps(original)
        async def result(handle: Foreign, /, **options: Foreign) -> Foreign:
            followed: list[str | None] = []
            token = _followed.set(followed)
            try:
                return await original(handle, **options)
            except Exception as error:
                with self._hook.guard("result"):
                    self._failed(handle, followed, error)
                raise
            finally:
                _followed.reset(token)

        return result

    def fetch(self, original: Foreign) -> Foreign:
        """Around what `result` asks for each execution of a chain: which one it asked for last."""

        @functools.wraps(original)
        def _fetch_history_events_for_run(handle: Foreign, run_id: str | None, /, **options: Foreign) -> Foreign:
            followed = _followed.get()
            if followed is not None:
                followed.append(run_id)
            return original(handle, run_id, **options)

        return _fetch_history_events_for_run

    def _failed(self, handle: Foreign, followed: list[str | None], error: Exception) -> None:
        known = BY_CLOSING.get(type(getattr(error, "cause", None)).__name__)
        execution = followed[-1] if followed else handle.result_run_id
        if type(error).__name__ != "WorkflowFailureError" or known is None or not execution:
            return
        closed = Closed(handle._client.namespace, handle.id, execution)  # noqa: SLF001 - it has no other name
        write_closing(self._hook, self._known, closed, known)

    def is_closed(self, description: Foreign) -> bool:
        """Whether it has an end."""
        return getattr(description.status, "name", None) not in STATUSES_THAT_GO_ON

    async def ask_attempt(self, handle: Foreign, description: Foreign) -> None:
        """Which attempt of which run it was: that is in the first event of its history alone."""
        async for event in handle.fetch_history_events(page_size=1):
            began = event.workflow_execution_started_event_attributes
            self._known.run_of(
                description.namespace, description.run_id, began.attempt, began.continued_execution_run_id,
                began.first_execution_run_id,
            )  # fmt: skip
            break

    def described(self, description: Foreign) -> str | None:
        """Of a description that the server gave: writes the receipt of what is closed."""
        status = getattr(description.status, "name", None)
        known = BY_STATUS.get(status or "")
        if known is None and status not in STATUSES_THAT_GO_ON:
            known = (StopCause.UNKNOWN, str(status))
        if known is None:
            return None
        began = description.start_time
        closed = Closed(
            description.namespace, description.id, description.run_id, description.workflow_type,
            int(began.timestamp() * 1e9) if began is not None else 0,
        )  # fmt: skip
        write_closing(self._hook, self._known, closed, known)
        return str(known[0])
