"""Which runs are open where a file of the spool ends, as its lines say: what the next file begins with."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.receipts import spool as module
from stopcause.receipts.spool import OpenRun, OpenRuns
from tests.support.spooled import line, started


@pytest.mark.parametrize(
    "said",
    [
        b'{"run_id":"r1","schema":"stopcause/1","kind":"run.started","at":"2026-11-28T08:00:00Z","attempt":3}',
        b'{"schema":"stopcause/1","kind":"run.started","record_id":"x","run_id":"r1","attempt":3}',
        b'{"schema":"stopcause/1","kind":"run.started","record_id":"x","run_id":"r1","attempt":3,"agent":"a"}',
    ],
)
def test_a_start_is_seen_in_whatever_order_its_keys_are(said: bytes) -> None:
    runs = OpenRuns()
    runs.see(said)

    assert (runs.runs, runs.starts) == ([OpenRun("r1", 3)], [said])


@pytest.mark.parametrize("said", [b"", b"{", b'{"kind":"run.started"}', b'["kind":"run.started"]', b'"kind":"run.st"'])
def test_what_is_no_record_says_nothing(said: bytes) -> None:
    runs = OpenRuns()
    runs.see(said)

    assert runs.runs == []


def test_of_very_many_open_runs_the_oldest_are_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_OPEN", 2)
    runs = OpenRuns()
    for run_id in "abc":
        runs.see(started(run_id))

    assert [run.run_id for run in runs.runs] == ["b", "c"]


@given(
    st.lists(st.tuples(st.sampled_from(["run.started", "run.stopped", "run.progress"]), st.integers(0, 3))), st.data()
)
def test_wherever_a_file_is_followed_the_last_one_knows_what_is_open(
    deeds: Sequence[tuple[str, int]], data: st.DataObject
) -> None:
    opened: dict[str, None] = {}
    last = OpenRuns()
    for kind, number in deeds:
        run_id = f"r{number}"
        if kind != "run.progress":
            opened.pop(run_id, None)
        if kind == "run.started":
            opened[run_id] = None
        last.see(line(kind, run_id))
        if data.draw(st.booleans()):
            following = OpenRuns()
            for start in last.starts:
                following.see(start)
            last = following
        assert [run.run_id for run in last.runs] == list(opened)
