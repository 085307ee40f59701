"""Agent Framework: one call of an agent's model. What its answer, whole or update by update, says to the run."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from stopcause.receipts.hooks.agent_framework.agent import AgentCall, loop_call

if TYPE_CHECKING:
    from contextvars import Token

    from stopcause.receipts.hooks.call import Foreign
    from stopcause.receipts.hooks.guard import Hook


class Aside:
    """A call of a client that is not the loop's: a context provider or a middleware made it, say. Not counted."""

    is_inside = False
    is_over = False

    def __init__(self, hook: Hook) -> None:
        self._hook = hook
        self._token: Token[AgentCall | None] | None = None

    def __enter__(self) -> None:
        self.is_inside = True
        self._token = loop_call.set(None)

    def __exit__(self, *_: object) -> None:
        self.is_inside = False
        if self._token is not None:
            with contextlib.suppress(ValueError):  # a stream may be finalised in another context
                loop_call.reset(self._token)

    def ending(self, how: str) -> contextlib.AbstractContextManager[object]:
        """The guard around its end."""
        return self._hook.guard(f"model.{how}")

    def item(self, update: Foreign) -> None:
        """An update of its stream."""

    def returned(self, _: Foreign) -> None:
        """It answered at once."""
        self.is_over = True

    def ended(self) -> None:
        """Its stream is over."""
        self.is_over = True

    def failed(self, _: BaseException) -> None:
        """It raised."""
        self.is_over = True

    def left(self) -> None:
        """Its stream was closed before it was over; why, its reader will say."""
        self.is_over = True


class ModelCall(Aside):
    """One call of an agent's model. What its client calls by itself meanwhile, for a summary say, is not the loop's."""

    def __init__(self, hook: Hook, call: AgentCall) -> None:
        super().__init__(hook)
        self._call = call

    def item(self, update: Foreign) -> None:
        """An update of its stream; usage is a part of one."""
        self._call.model_said(update)
        for content in update.contents:
            if content.type == "usage":
                self._call.spent(content.usage_details)

    def returned(self, response: Foreign) -> None:
        """It answered at once."""
        self.ended()
        self._call.model_said(response)
        self._call.spent(response.usage_details)

    def ended(self) -> None:
        """Its stream is over."""
        if not self.is_over:
            self.is_over = True
            self._call.model_answered()

    def failed(self, error: BaseException) -> None:
        """It raised."""
        if not self.is_over:
            self.is_over = True
            self._call.model_failed(error)
