"""Schemas that are too much, for the time of a check or for the file."""

from __future__ import annotations

import time
from pathlib import Path

from stopcause.agui.guard import ResumeGuard
from stopcause.agui.values import Interrupt
from stopcause.receipts.vocabulary import ApprovalKind
from tests.agui.asking import NOW, asks, doubling, given, names, says


def test_many_schemas_that_explode_take_no_longer_than_one() -> None:
    guard = ResumeGuard()
    asked = [
        Interrupt(f"i-{n}", ApprovalKind.INPUT_REQUIRED, schema=doubling("allOf", 40, {"const": n})) for n in range(200)
    ]
    guard.saw(asks("t1", "r1")._replace(interrupts=tuple(asked)))
    began = time.monotonic()
    answers = [{"interruptId": each.id, "status": "resolved", "payload": 0} for each in asked]
    check = guard.check(given("t1", "r2", *answers), NOW)
    assert time.monotonic() - began < 20
    assert names(check) == {"SCHEMA_UNREADABLE"}


def test_a_thread_with_more_schemas_than_are_kept_says_so(tmp_path: Path) -> None:
    schema = {"enum": ["x" * 1_000 + str(n) for n in range(50)]}
    path = tmp_path / "guard.db"
    guard = ResumeGuard(path)
    guard.saw(asks("t1", "r1", *(f"i-{n}" for n in range(30)), schema=schema, schema_digest="sha256:0"))
    check = guard.check(given("t1", "r2", *(says(f"i-{n}") for n in range(30))), NOW)
    assert not check.refused
    assert names(check) == {"SCHEMA_UNREADABLE"}
    assert path.stat().st_size < 1_000_000
    assert guard.check(given("t1", "r2"), NOW).refused


def test_an_interrupt_whose_schema_was_too_large_to_keep_says_so() -> None:
    guard = ResumeGuard()
    guard.saw(asks("t1", "r1", "i-1", schema=None, schema_digest="sha256:0"))
    edited = {"interruptId": "i-1", "status": "resolved", "payload": {"approved": True, "editedArgs": {}}}
    assert names(guard.check(given("t1", "r2", edited), NOW)) == {"SCHEMA_UNREADABLE"}
