"""CHUNK events become the START and END that they stand for (spec 1.0, basic/patterns/streaming: the chunked form).

A lane is whoever produces: the parent agent, or one subagent. Each assembles one item at a time out of chunks. What
stands between the START and the END is not made: a chunk that goes on opens and closes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from stopcause.agui.ids import key_of
from stopcause.agui.items import CALL, MESSAGE, REASONING, ROOT, Blame, Family

Made = dict[str, Any]
_MOST_LANES = 1000


class Form(NamedTuple):
    """How one kind of item is chunked: its family, its START and END, and what the first chunk says for all."""

    family: Family
    start: str
    end: str
    told: tuple[str, ...]  # fields that a later chunk may repeat, and not change
    required: tuple[str, ...]
    fixed: Mapping[str, str] = {}


FORMS: Mapping[str, Form] = {
    "TEXT_MESSAGE_CHUNK": Form(
        MESSAGE, "TEXT_MESSAGE_START", "TEXT_MESSAGE_END", ("role", "name"), ("messageId",)
    ),
    "TOOL_CALL_CHUNK": Form(
        CALL, "TOOL_CALL_START", "TOOL_CALL_END", ("toolCallName", "parentMessageId"), ("toolCallId", "toolCallName")
    ),
    "REASONING_MESSAGE_CHUNK": Form(
        REASONING, "REASONING_MESSAGE_START", "REASONING_MESSAGE_END", (), ("messageId",), {"role": "reasoning"}
    ),
}  # fmt: skip
_DEFAULTS = {"role": "assistant"}  # said by saying nothing

# Events that stand aside: whatever is being assembled goes on after them.
_ASIDE = frozenset(
    {"RAW", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "REASONING_ENCRYPTED_VALUE", "SUBAGENT_STARTED", *FORMS}
)
_OF_ALL = frozenset({"RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "MESSAGES_SNAPSHOT"})


class Lane(NamedTuple):
    """What one producer assembles."""

    form: Form
    id: str
    told: Mapping[str, str | None]


class Chunks:
    """The lanes of one run.

    Args:
        blame: Is told what breaks a rule.
    """

    def __init__(self, blame: Blame) -> None:
        self._blame = blame
        self.lanes: dict[str | None, Lane] = {}

    def before(self, kind: str, event: Mapping[str, Any]) -> list[Made]:
        """The ENDs that an event brings, which is no chunk itself."""
        if kind in _ASIDE:
            return []
        if kind in _OF_ALL:
            return self.finish()
        return self._close(event.get("subagentRunId"))

    def finish(self) -> list[Made]:
        """The ENDs of all lanes, in the order in which they opened."""
        return [made for owner in list(self.lanes) for made in self._close(owner)]

    def take(self, kind: str, event: Mapping[str, Any]) -> list[Made]:
        """What a chunk opens, after what that closes. Nothing for one that goes on."""
        form = FORMS[kind]
        name = event.get(form.family.field)
        if self._is_ambiguous(form, name, event.get("subagentRunId")):
            self._blame("UNBALANCED", form.family.name)
            return []
        owner = self._lane_of(form, name, event.get("subagentRunId"))
        lane = self.lanes.get(owner)
        if lane is not None and lane.form is form and name in (None, lane.id):
            self._goes_on(lane, owner, event)
            return []
        return self._begins(form, owner, event)

    def _goes_on(self, lane: Lane, owner: str | None, event: Mapping[str, Any]) -> None:
        tag = event.get("subagentRunId")
        if tag is not None and tag != owner:
            self._blame("ATTRIBUTION_MISMATCH", lane.id)
        for field, said in lane.told.items():
            if event.get(field) is not None and key_of(event[field]) != said:
                self._blame("MALFORMED", f"{lane.form.family.name}.{field}")

    def _begins(self, form: Form, owner: str | None, event: Mapping[str, Any]) -> list[Made]:
        ended = self._close(owner)
        if any(event.get(field) is None for field in form.required):
            self._blame("UNBALANCED", event.get(form.family.field) or form.family.name)
            return ended
        if len(self.lanes) >= _MOST_LANES:
            self._blame("TOO_MANY")
            return ended
        name = event[form.family.field]
        self.lanes[owner] = Lane(form, name, _said(form, event))
        kept = {field: event[field] for field in (*form.told, "subagentRunId") if event.get(field) is not None}
        return [*ended, {"type": form.start, form.family.field: name, **form.fixed, **kept}]

    def _close(self, owner: str | None) -> list[Made]:
        lane = self.lanes.pop(owner, None)
        if lane is None:
            return []
        tag = {} if owner is ROOT else {"subagentRunId": owner}
        return [{"type": lane.form.end, lane.form.family.field: lane.id, **tag}]

    def _lane_of(self, form: Form, name: str | None, tag: str | None) -> str | None:
        """An id goes on where it is open; without one a tag says where, else the parent's lane, else the only one."""
        holding = self._holding(form)
        if name is not None:
            return next((owner for owner in holding if self.lanes[owner].id == name), tag)
        if tag is not None or ROOT in holding or not holding:
            return tag
        return holding[0]

    def _is_ambiguous(self, form: Form, name: str | None, tag: str | None) -> bool:
        """Several subagents assemble such an item, the parent does not, and the chunk does not say whose it is."""
        if name is not None or tag is not None:
            return False
        holding = self._holding(form)
        return ROOT not in holding and len(holding) > 1

    def _holding(self, form: Form) -> list[str | None]:
        return [owner for owner, lane in self.lanes.items() if lane.form is form]


def _said(form: Form, event: Mapping[str, Any]) -> Mapping[str, str | None]:
    told = {field: event.get(field) or _DEFAULTS.get(field) for field in form.told}
    return {field: key_of(said) if said is not None else None for field, said in told.items()}
