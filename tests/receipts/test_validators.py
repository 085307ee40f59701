"""Validators in the agent's process: their word alone is kept, nobody waits for them, and a policy says its worth."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import stopcause
from stopcause.classifier import engine, fold
from stopcause.classifier.policy import DEFAULT_POLICY, Policy, policy_from_mapping
from stopcause.classifier.verdict import Verdict
from stopcause.receipts import capture, codec, model, validators
from stopcause.receipts.configuration import Finished
from stopcause.receipts.testing import MemorySink, Recorded, recorded
from stopcause.receipts.vocabulary import IssuerType

ROOT = Path(__file__).parents[2]
LISTED = policy_from_mapping({"contracts": {"invoice": {"issuers": ["validator:invoice"]}}})
OTHERS = policy_from_mapping({"contracts": {"invoice": {"issuers": ["destination:billing"]}}})
ANYBODY = policy_from_mapping({"contracts": {"invoice": {}}})


def outcomes(receipts: Recorded) -> list[model.OutcomeRecorded]:
    return [record for record in receipts.records if isinstance(record, model.OutcomeRecorded)]


def judged(receipts: Recorded, policy: Policy) -> Verdict:
    runs = fold.group(receipts.records)
    (run,) = runs.values()
    return engine.judge(fold.facts_of(run, run.latest, policy, datetime.now(UTC) + timedelta(hours=1), ()))


def finished_run(contract: str | None = "invoice", **ids: Any) -> None:  # noqa: ANN401 - as `run` takes them
    with stopcause.run("agent", contract=contract, **ids) as run:
        run.limit("steps", "steps", 8)
        run.step()


def test_what_it_is_given_and_what_is_kept() -> None:
    given: list[Finished] = []

    def validate(run: Finished) -> bool:
        given.append(run)
        return True

    @stopcause.tracked(agent="agent", contract="invoice", thread_id="t-1", subject="s-1", run_id="r-1", attempt=2)
    def agent() -> str:
        return "canary-7f3a result"

    with recorded(validators={"invoice": validate}) as receipts:
        agent()
        (record,) = outcomes(receipts)
        lines = receipts.lines

    assert given == [Finished("r-1", 2, "agent", "t-1", "s-1", "natural", "canary-7f3a result")]
    outcome = record.outcome
    assert (outcome.outcome_id, outcome.contract, outcome.polarity) == ("invoice/2", "invoice", "confirmed")
    assert (outcome.strength, outcome.issuer) == ("read_back", model.Issuer(type=IssuerType.VALIDATOR, id="invoice"))
    assert (record.run_id, record.attempt, record.boundary, record.findings) == ("r-1", 2, "call", None)
    assert record.seq == len(lines)
    assert b"canary" not in b"".join(lines)


class Odd(NamedTuple):
    """A validator that tells nothing."""

    answers: Callable[[], Any]
    code: str | None


def raising() -> bool:
    raise ValueError("canary-7f3a is a text")


async def coroutine() -> bool:
    return True


ODD = {
    "none": Odd(lambda: None, None),
    "raises": Odd(raising, "validator_raised"),
    "exits": Odd(sys.exit, "validator_raised"),
    "text": Odd(lambda: "canary-7f3a yes", "validator_unreadable"),
    "one": Odd(lambda: 1, "validator_unreadable"),
    "coroutine": Odd(coroutine, "validator_unreadable"),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_only_true_and_false_say_anything(odd: Odd, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), recorded(validators={"invoice": lambda _: odd.answers()}) as receipts:
        finished_run()
        (record,) = outcomes(receipts)
        finished_run()
        assert len(outcomes(receipts)) == 2, "the next one is looked at all the same"

    assert record.outcome.polarity == "unknown"
    assert record.findings == (odd.code and (model.Finding(code=odd.code, where="invoice"),))
    assert b"canary" not in b"".join(receipts.lines)
    assert "canary" not in caplog.text


def fails() -> None:
    with pytest.raises(ValueError, match="x"), stopcause.run("agent"):
        raise ValueError("x")


def waits() -> None:
    with stopcause.run("agent") as run:
        run.waiting("a-1")


def is_bounded() -> None:
    with stopcause.run("agent") as run:
        run.stop("step_limit")


@pytest.mark.parametrize("ends", [fails, waits, is_bounded])
def test_only_what_ended_as_if_done_is_looked_at(ends: Callable[[], None]) -> None:
    with recorded(validators={"invoice": lambda _: True}) as receipts:
        ends()
        assert not outcomes(receipts)


@pytest.mark.parametrize(
    ("contract", "looked"), [(None, ["invoice", "mail"]), ("mail", ["mail"]), ("other", [])], ids=str
)
def test_a_validator_looks_for_its_contract(contract: str | None, looked: list[str]) -> None:
    with recorded(validators={"invoice": lambda _: True, "mail": lambda _: False}) as receipts:
        finished_run(contract)

        assert [record.outcome.contract for record in outcomes(receipts)] == looked


# What the classifier makes of it --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "policy", "verdict", "reason", "finding"),
    [
        (True, LISTED, "VERIFIED_COMPLETE", "receipt", "in_process"),
        (False, LISTED, "FALSE_COMPLETE", "receipt_refuted", "in_process"),
        (None, LISTED, "FALSE_COMPLETE", "receipt_missing", None),
        (True, OTHERS, "FALSE_COMPLETE", "receipt_missing", "issuer_unlisted"),
        (False, OTHERS, "FALSE_COMPLETE", "receipt_missing", "refuted_unlisted"),
        (True, ANYBODY, "FALSE_COMPLETE", "receipt_missing", "issuer_unlisted"),
        (True, DEFAULT_POLICY, "FALSE_COMPLETE", "receipt_missing", "issuer_unlisted"),
    ],
)
def test_it_counts_where_the_contract_lists_it(
    answer: bool | None, policy: Policy, verdict: str, reason: str, finding: str | None
) -> None:
    with recorded(validators={"invoice": lambda _: answer}) as receipts:
        finished_run()
        found = judged(receipts, policy)

    assert (found.verdict, found.reason) == (verdict, reason)
    assert [each.code for each in found.findings] == ([finding] if finding else [])


def test_without_any_contract_it_verifies_nothing() -> None:
    with recorded(validators={"invoice": lambda _: True}) as receipts:
        finished_run(None)
        found = judged(receipts, DEFAULT_POLICY)

    assert (found.verdict, found.reason) == ("FALSE_COMPLETE", "no_contract")


# Nobody waits but who asks --------------------------------------------------------------------------------------------


class Gate:
    """A validator that takes as long as a test wants."""

    def __init__(self) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()

    def __call__(self, _: Finished) -> bool:
        self.entered.set()
        return self.opened.wait(10)


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.opened.set()


def test_neither_the_agent_nor_the_writer_waits(gate: Gate) -> None:
    sink = MemorySink()
    with capture.configured(sink=sink, validators={"invoice": gate}):
        begun = time.monotonic()
        for _ in range(50):
            finished_run()
        assert time.monotonic() - begun < 1
        assert gate.entered.wait(5)
        while len(sink.lines) < 100:
            assert time.monotonic() - begun < 5
            time.sleep(0.01)

        assert not stopcause.flush(0.05), "a flush waits for what validators say"
        gate.opened.set()
        assert stopcause.flush(10)
        assert len(sink.lines) == 150


def test_a_flush_without_validators_begins_no_thread_for_them() -> None:
    def looking() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name == "stopcause-validators"}

    before = looking()  # one of another test's may just be ending
    with recorded() as receipts:
        finished_run()
        assert stopcause.flush(1)
        assert len(receipts.lines) == 2
    assert looking() <= before


def test_a_validator_that_flushes_does_not_wait_for_itself() -> None:
    with recorded(validators={"invoice": lambda _: stopcause.flush(5)}) as receipts:
        begun = time.monotonic()
        finished_run()
        assert [record.outcome.polarity for record in outcomes(receipts)] == ["confirmed"]
        assert time.monotonic() - begun < 2


class Result:
    """Something large that an agent returned."""


def test_a_result_is_held_until_they_have_looked_and_no_longer(gate: Gate) -> None:
    @stopcause.tracked(contract="invoice")
    def agent() -> Result:
        return Result()

    with recorded(validators={"invoice": gate}):
        seen = weakref.ref(agent())
        assert gate.entered.wait(5)
        gc.collect()
        assert seen() is not None
        gate.opened.set()
        assert stopcause.flush(5)
        gc.collect()

        assert seen() is None


@pytest.mark.parametrize("contract", ["invoice", "other"])
def test_a_result_that_nobody_looks_at_is_let_go(contract: str) -> None:
    @stopcause.tracked(contract=contract)
    def agent() -> Result:
        made.append(weakref.ref(result := Result()))
        if contract == "invoice":
            stopcause.current_run().stop("guardrail")  # type: ignore[union-attr] # there is one
        return result

    made: list[weakref.ref[Result]] = []
    with recorded(validators={"invoice": lambda _: True}):
        agent()
        assert stopcause.flush(5)
        gc.collect()

        assert made[0]() is None


def test_more_than_can_be_held_are_not_looked_at_and_say_so(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validators, "_MOST_WAITING", 2)
    with recorded(validators={"invoice": gate}) as receipts:
        for _ in range(4):
            finished_run()
        while sum(b"run.stopped" in line for line in receipts._sink.lines) < 4:
            time.sleep(0.01)  # until then the writer may not have met the last ones
        gate.opened.set()

        findings = [each.code for stop in receipts.receipts for each in stop.findings or ()]
        assert findings == ["validators_behind"] * 2
        assert len(outcomes(receipts)) == 2


def test_without_a_thread_for_them_the_receipt_is_there_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def starts(thread: threading.Thread) -> None:
        if thread.name == "stopcause-validators":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starts)
    with recorded(validators={"invoice": lambda _: True}) as receipts:
        finished_run()
        assert (receipts.stopped.stop_cause, receipts.stopped.findings) == (
            "natural",
            (model.Finding(code="validators_behind"),),
        )
        monkeypatch.undo()
        finished_run()
        assert len(outcomes(receipts)) == 1, "the next one tries again"


def judge(_: Finished) -> bool:
    """Runs an agent to look, with a child of its own, in a loop of its own."""

    async def looks() -> None:
        async with stopcause.run("judge") as run:
            with run.child("helper"):
                await asyncio.sleep(0)

    asyncio.run(looks())
    return True


def test_a_judge_that_is_an_agent_is_not_looked_at() -> None:
    with recorded(validators={"invoice": judge}) as receipts:
        finished_run(None)

        assert sorted(stop.agent or "" for stop in receipts.receipts) == ["agent", "helper", "judge"]
        assert len(outcomes(receipts)) == 1


def test_their_thread_ends_with_their_configuration(gate: Gate) -> None:
    with recorded(validators={"invoice": gate}):
        finished_run()
        assert gate.entered.wait(5)
        gate.opened.set()
    until = time.monotonic() + 5
    while {"stopcause", "stopcause-validators"} & {thread.name for thread in threading.enumerate()}:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_configuration_that_is_replaced_ends_after_their_word(gate: Gate) -> None:
    sink = MemorySink()
    with recorded():
        stopcause.configure(sink=sink, validators={"invoice": gate})
        finished_run()
        assert gate.entered.wait(5)
        stopcause.configure()
        gate.opened.set()
        until = time.monotonic() + 5
        while len(sink.lines) < 3:
            assert time.monotonic() < until
            time.sleep(0.01)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_does_not_look_at_its_parents_runs(gate: Gate) -> None:
    sink = MemorySink()
    with capture.configured(sink=sink, validators={"invoice": gate}):
        for _ in range(3):
            finished_run()
        assert gate.entered.wait(5)
        if (child := os.fork()) == 0:
            sink.lines.clear()
            gate.opened.set()
            finished_run()
            os._exit(0 if stopcause.flush(5) and len(sink.lines) == 3 else 1)
        assert os.waitpid(child, 0)[1] == 0
        gate.opened.set()


# The end of the process -----------------------------------------------------------------------------------------------


def run_program(validator: str, spool: Path) -> tuple[float, list[model.Record]]:
    """Runs a program that ends at once; how long it took, and what it left."""
    program = f"""
        import time, stopcause
        stopcause.configure(validators={{"invoice": lambda run: {validator}}})
        with stopcause.run("agent", contract="invoice"):
            pass
    """
    environment = {**os.environ, "STOPCAUSE_SPOOL": str(spool)}
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert not done.stderr
    lines = [line for file in sorted(spool.glob("*.ndjson")) for line in file.read_bytes().splitlines()]
    read: list[Any] = [codec.read_line(line) for line in lines if b'"journal"' not in line]
    return time.monotonic() - begun, read


def test_a_program_that_just_ends_waits_for_them(tmp_path: Path) -> None:
    _, read = run_program("time.sleep(0.3) or True", tmp_path)

    assert [str(record.kind) for record in read] == ["run.started", "run.stopped", "outcome.recorded"]


def test_but_not_without_end(tmp_path: Path) -> None:
    took, read = run_program("time.sleep(30) or True", tmp_path)

    assert [str(record.kind) for record in read] == ["run.started", "run.stopped"]
    assert took < 8
