"""Whatever a service answers: each line is taken once or counted as lost, in order, and none of them twice."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from stopcause.receipts.http_wire import Answer
from stopcause.receipts.sinks import HttpSink

ADDRESS = "https://stopcause.example/v1/records"
TAKEN, BAD, GIVEN_UP, LATER = (200, 202, 204), (400, 413, 422), (301, 401, 403, 404, 409), (408, 425, 429, 500, 503)
LINES = st.integers(0, 450).map(lambda count: [b"%d" % number for number in range(count)])


class Scripted:
    """In place of the wire: answers as a list says, None for no answer; then yes to all but bad lines."""

    def __init__(self, script: Sequence[int | None], bad: frozenset[bytes] = frozenset()) -> None:
        self.script = list(script)
        self.bad = bad
        self.taken: list[bytes] = []
        self.sizes: list[int] = []

    def post(self, body: bytes) -> Answer:
        lines = body.splitlines()
        self.sizes.append(len(lines))
        status = self.script.pop(0) if self.script else (400 if self.bad.intersection(lines) else 200)
        if status is None:
            raise ConnectionResetError
        if status in TAKEN:
            self.taken += lines
        return Answer(status, None)

    def close(self) -> None:
        """Nothing is open."""


def settle(wire: Scripted, lines: Sequence[bytes]) -> int:
    sink = HttpSink(ADDRESS)
    sink._wire = wire  # type: ignore[assignment]  # the law is about answers, so nothing is sent
    while True:
        try:
            return sink.write(lines)
        except OSError:
            continue


@given(LINES, st.lists(st.sampled_from((*TAKEN, *BAD, *GIVEN_UP, *LATER, None)), max_size=40))
def test_each_line_is_taken_once_or_counted(lines: list[bytes], script: list[int | None]) -> None:
    wire = Scripted(script)
    lost = settle(wire, lines)

    assert len(wire.taken) + lost == len(lines)
    assert wire.taken == [line for line in lines if line in set(wire.taken)], "in order, and no line twice"
    assert max(wire.sizes, default=0) <= 200


@given(LINES, st.lists(st.sampled_from((*LATER, None)), max_size=20))
def test_where_nothing_is_refused_nothing_is_lost(lines: list[bytes], script: list[int | None]) -> None:
    wire = Scripted(script)

    assert settle(wire, lines) == 0
    assert wire.taken == lines


@given(LINES, st.frozensets(st.integers(0, 449), max_size=12))
def test_bad_lines_cost_themselves_alone(lines: list[bytes], bad: frozenset[int]) -> None:
    wire = Scripted((), frozenset(b"%d" % number for number in bad))
    lost = settle(wire, lines)

    assert wire.taken == [line for line in lines if line not in wire.bad]
    assert lost == len(wire.bad.intersection(lines))
