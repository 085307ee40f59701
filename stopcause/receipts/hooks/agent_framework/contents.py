"""Agent Framework: what the parts of messages say by their types, ids and names. What they hold is not read.

Here: what an agent's answer asks its caller for, whether it is an answer at all, and what its input answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from stopcause.receipts.hooks.agent_framework.causes import REQUESTS
from stopcause.receipts.vocabulary import ApprovalKind, OutputShape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stopcause.receipts.hooks.call import Foreign

_HOSTED_RESULT = "mcp_server_tool_result"
_ANSWERS = ("function_approval_response", "function_result", "computer_tool_result")


class Asked(NamedTuple):
    """What an agent or workflow waits for.

    Attributes:
        inner: What an agent in the workflow calls the same.
        run_id: The run that waits.
        is_local: Whether the call is on this side, and not kept by a provider.
    """

    approval_id: str
    kind: str = ApprovalKind.INPUT_REQUIRED
    tool: str | None = None
    tool_call_id: str | None = None
    inner: str | None = None
    run_id: str | None = None
    is_local: bool = True
    metadata: object = None


class Answer:
    """What has come of an agent's answer, whole or update by update."""

    def __init__(self) -> None:
        self.requests: dict[str, Foreign] = {}
        self.has_hosted_result = False  # whether the provider has run a call that it keeps
        self._open: set[str] = set()
        self._has_text = False
        self._is_call_last = False

    def add(self, content: Foreign) -> None:
        """One part of it, in its order."""
        if getattr(content, "user_input_request", None):
            request_id = content.id or content.call_id or f"request-{len(self.requests) + 1}"
            self.requests[str(request_id)] = content
        elif content.type == "function_call" and _is_the_callers(content):
            self._open.add(content.call_id)
            self._is_call_last = True
        elif content.type == "function_result":
            self._open.discard(content.call_id)
            self._has_text, self._is_call_last = False, True
        elif content.type == _HOSTED_RESULT:
            self.has_hosted_result = True
        elif content.type == "text" and content.text:
            self._has_text, self._is_call_last = True, False

    @property
    def pending(self) -> int:
        """How many calls nobody has answered. Of one that is waited for, the wait says so."""
        return 0 if self.requests else len(self._open)

    def shape(self, *, is_structured: bool) -> OutputShape | None:
        """Where a call or its result comes last, what came out is not known here."""
        if self._has_text:
            return OutputShape.STRUCTURED if is_structured else OutputShape.TEXT
        return None if self._is_call_last or self.requests else OutputShape.NONE


def contents_of(messages: Any) -> Iterator[Foreign]:  # noqa: ANN401 - all that `run` takes as input, and what it returns
    """The parts of one or many messages, in their order. Texts have none."""
    if isinstance(messages, list | tuple):
        for each in messages:
            yield from contents_of(each)
    elif isinstance(contents := getattr(messages, "contents", None), list | tuple):
        yield from contents
    elif isinstance(getattr(messages, "type", None), str):
        yield messages


def answers_in(messages: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - as `contents_of`
    """What an input answers: the id of the request or of the call, and the decision."""
    for content in contents_of(messages):
        if getattr(content, "type", None) in _ANSWERS:
            named = content.id if content.type == "function_approval_response" else content.call_id
            if named is not None:
                yield str(named), decision_of(content)


def decision_of(content: object) -> str:
    """What an answer decides: only a function approval says more than that there is one."""
    if getattr(content, "type", None) != "function_approval_response":
        return "answered"
    return "approved" if getattr(content, "approved", None) is True else "denied"


def asked_for(approval_id: str, content: Foreign, tools: frozenset[str]) -> Asked:
    """What a request is about. A tool is named where the agent has it."""
    call = getattr(content, "function_call", None) or content
    name = getattr(call, "name", None)
    return Asked(
        approval_id,
        kind=REQUESTS.get(content.type, ApprovalKind.INPUT_REQUIRED),
        tool=name if name in tools else None,
        tool_call_id=call.call_id,
        inner=content.id,
        is_local=name in tools,
        metadata=content.additional_properties,
    )


def tool_names(options: Mapping[str, Any]) -> frozenset[str]:
    """The names of the tools that an agent has, by the options of a request."""
    names = (getattr(each, "name", None) for each in options.get("tools") or ())
    return frozenset(name for name in names if isinstance(name, str))


def _is_the_callers(call: Foreign) -> bool:
    """Whether somebody on this side has to run it; a provider runs its own. Source: `_is_actionable_function_call`."""
    return not (getattr(call, "informational_only", False) or getattr(call, "hosted", False))
