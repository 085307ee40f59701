"""RunAgentInput -> Input: its ids, answers, tools and calls. Nothing of what people or models wrote is kept."""

from __future__ import annotations

from stopcause.agui.values import Input, Json


def read_input(value: Json) -> Input | None:
    """What is known of an input, or None where it is none: no object, or without `threadId` or `runId`."""
    raise NotImplementedError


def digest_of(payload: Json, *, is_absent: bool) -> str:
    """32 hex digits of a payload's canonical JSON. One that is absent has another than null, false, "" or 0."""
    raise NotImplementedError
