"""Cases of an agent that receives an input: what it asked, what it gets, and what it must be told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from stopcause.agui import findings, producer
from stopcause.agui.findings import Finding
from stopcause.agui.producer import Received
from stopcause.agui.words import Mode


def faults(wanted: Mapping[str, Any], now: datetime) -> Iterator[str]:
    """What falls short of what the case expects, in words."""
    received = producer.receive(
        wanted.get("asked", ()),
        wanted.get("input"),
        mode=Mode(wanted.get("mode", Mode.SPEC)),
        now=now,
        taken=producer.keys_of(wanted.get("taken") or ()),
        on_uncovered=wanted.get("on_uncovered", "ask_again"),
    )
    said = _said(received, [each["id"] for each in wanted.get("asked", ())])
    expected = wanted.get("expected", {})
    for name in [name for name in said if name in expected]:
        if said[name] != expected[name]:
            yield f"{name} is {said[name]}, not {expected[name]}"
    yield from finding_faults(expected, received.findings)


def finding_faults(expected: Mapping[str, Any], found: Iterable[Finding]) -> Iterator[str]:
    """Which findings are missing, and which ones there should not be: `findings` and `absent` of any case."""
    names = findings.names(found)
    yield from (f"{name} was not found" for name in expected.get("findings", ()) if name not in names)
    yield from (f"{name} was found" for name in expected.get("absent", ()) if name in names)


def _said(received: Received, asked: list[str]) -> dict[str, Any]:
    return {
        "error": received.error.code if received.error else None,
        "decisions": {name: str(answer.decision) for name, answer in received.answers.items()},
        "may_act": [name for name in asked if received.may_act(name)],
        "must_ask_again": list(received.must_ask_again),
        "may_succeed": received.may_succeed,
        "unrecognised": list(received.unrecognised),
    }
