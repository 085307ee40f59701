"""The law of the oracle over a few streams, and that it sees what it is for. `tests/oracle.sh` is the long run."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.agui_oracle import compare
from tests.agui_oracle.compare import FOLDER, Ours, Verdict
from tests.agui_oracle.differences import LOOSER, STRICTER, Looser, Stricter
from tests.agui_oracle.streams import Event, Stream
from tests.support.machine import lacking


@pytest.fixture(scope="module", autouse=True)
def client() -> None:
    if not (FOLDER / "node_modules" / "@ag-ui" / "client").is_dir():
        lacking("tests/agui_oracle/node_modules is not there; `make tests/agui_oracle/node_modules/ready` sets it up")


STARTED: Event = {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1", "protocolVersion": "1.0"}
FINISHED: Event = {"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1"}
STEP: Event = {"type": "STEP_STARTED", "stepName": "plan"}


def stream(*events: Event) -> Stream:
    return Stream("t1", "r1", [*events])


def test_reader_and_client_agree_but_for_what_is_known() -> None:
    tally: Counter[str] = Counter()

    assert [*compare.disagreements(1, 600, tally)] == []
    assert min(tally["both take it"], tally["both reject it"]) > 100


def test_a_stream_follows_from_its_seed() -> None:
    assert compare.stream_of(7, 3) == compare.stream_of(7, 3)
    assert compare.stream_of(7, 3) != compare.stream_of(8, 3)


def test_what_the_client_says_of_a_stream() -> None:
    fine, broken = compare.judged([stream(STARTED, FINISHED), stream(STARTED, STEP, FINISHED)])

    assert fine == Verdict(ok=True, ends=(("success", ()),))
    assert not broken.ok
    assert "plan" in broken.error


def test_a_reader_that_takes_what_the_client_rejects_would_be_found() -> None:
    broken = stream(STARTED, STEP, FINISHED)
    (said,) = compare.judged([broken])

    assert compare.unknown(broken, compare.read(broken), said) is None
    assert compare.unknown(broken, Ours({}, ()), said) == f"? the client rejects it:  {said.error}"


@pytest.mark.parametrize("row", STRICTER, ids=lambda row: row.when)
def test_a_false_alarm_of_a_known_finding_would_be_found(row: Stricter) -> None:
    fine = stream(STARTED, FINISHED)

    found = compare.unknown(fine, Ours({row.finding: ("elsewhere",)}, ()), Verdict(ok=True))

    assert found == f"? {row.finding} elsewhere: the client takes it"


def test_what_differs_is_shown_with_as_few_events_as_still_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the reader did not mind what is open at the end."""
    read = compare.read

    def lenient(of: Stream) -> Ours:
        ours = read(of)
        return ours._replace(fatal={name: ids for name, ids in ours.fatal.items() if name != "OPEN_AT_FINISH"})

    monkeypatch.setattr(compare, "read", lenient)
    noise = [{"type": "STATE_SNAPSHOT", "snapshot": {}}] * 9

    found = compare.shrunk(stream(STARTED, *noise, STEP, *noise, FINISHED))

    assert found.events == [STARTED, STEP, FINISHED]


OLD: Event = {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1"}
ASKS_AND_SUCCEEDS: Event = {"type": "success", "interrupts": [{"id": "i1", "reason": "confirmation"}]}
THOUGHT: tuple[Event, ...] = (
    {"type": "REASONING_MESSAGE_START", "messageId": "m1", "role": "assistant"},
    {"type": "REASONING_MESSAGE_END", "messageId": "m1"},
)
ROWS: tuple[Stricter | Looser, ...] = (*STRICTER, *LOOSER)
DIFFER = (  # a stream for each row of `differences`, in their order
    stream(STARTED, {"type": 5}, FINISHED),
    stream(STARTED, {**FINISHED, "runId": "r2"}),
    stream({**STARTED, "threadId": "t2"}, {**FINISHED, "threadId": "t2"}),
    stream(STARTED, {**FINISHED, "outcome": ASKS_AND_SUCCEEDS}),
    stream(STARTED, {**FINISHED, "outcome": {"type": "success", "interrupts": [{"reason": "confirmation"}]}}),
    stream(STARTED, {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m1"}, {"role": "narrator"}]}, FINISHED),
    stream(STARTED, {**FINISHED, "subagentRunId": 5}),
    stream(STARTED, {**FINISHED, "subagentRunId": None}),
    stream({**OLD, "parentRunId": None}, FINISHED),
    stream(OLD, *THOUGHT, FINISHED),
)


def _beside(row: Stricter | Looser) -> list[str]:
    """What else is found of its stream: an interrupt that is not whole is where none may be."""
    is_vain = row.when == "an interrupt of such an outcome is not whole"
    contradictions = (each for each in STRICTER if each.finding == "OUTCOME_CONTRADICTION")
    return [f"{each.finding}: {each.when}" for each in contradictions if is_vain]


@pytest.mark.parametrize(
    ("row", "of"),
    [pytest.param(row, of, id=row.when) for row, of in zip(ROWS, DIFFER, strict=True)],
)
def test_each_known_difference_is_one(row: Stricter | Looser, of: Stream) -> None:
    (said,) = compare.judged([of])
    ours = compare.read(of)

    told = f"{row.finding}: {row.when}" if isinstance(row, Stricter) else row.when
    assert bool(ours.fatal) is said.ok
    assert {*compare.kinds(of, ours, said)} == {told, *_beside(row)}
