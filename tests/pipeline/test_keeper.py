"""The keeper on a real store and a real journal: what is acknowledged is kept and judged once, in whatever order."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.classifier import engine, fold
from stopcause.classifier.policy import DEFAULT_POLICY, Policy, policy_from_mapping
from stopcause.classifier.verdict import VerdictName
from stopcause.errors import NotFoundError, StoreError, StoreFullError, StoreInUseError
from stopcause.pipeline import cases, keeper_runs, rows
from stopcause.pipeline import keeper as module
from stopcause.pipeline.keeper import Keeper, journal_folder
from stopcause.receipts import codec, journal, model
from stopcause.receipts.journal import Journal
from stopcause.resources import data_folder
from stopcause.store.duckdb_store import DuckStore
from tests.support import strategies
from tests.support.laws import tried_on
from tests.support.recordings import few

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


T0 = datetime(2026, 11, 28, 8, 0, tzinfo=UTC)
NOW = T0 + timedelta(hours=1)
CONTRACT = {"match": {"agent": "*"}, "contract": "invoice"}
POLICY = policy_from_mapping({"agents": [CONTRACT], "contracts": {"invoice": {"issuers": ["destination:*"]}}})
EXAMPLES = tried_on(60)


def line(kind: str = "run.stopped", run_id: str | None = "r1", after_s: float = 0, **fields: object) -> bytes:
    at = (T0 + timedelta(seconds=after_s)).isoformat()
    more = {"stop_cause": "natural", "steps": 3} if kind == "run.stopped" and "stop_cause" not in fields else {}
    return json.dumps({"schema": "stopcause/1", "kind": kind, "run_id": run_id, "at": at, **more, **fields}).encode()


def outcome(run_id: str = "r1", after_s: float = 5, attempt: int = 1, **fields: object) -> bytes:
    said: dict[str, object] = {"outcome_id": "o1", "strength": "read_back", "polarity": "confirmed"}
    said |= {"issuer": {"type": "destination", "id": "db"}, "pre_state": "absent", **fields}
    return line("outcome.recorded", run_id, after_s, outcome=said, attempt=attempt)


def waiting(run_id: str = "r1", **fields: object) -> bytes:
    approval: dict[str, object] = {
        "approval_id": "a1",
        "owner": "team:x",
        "resume_token": "t",
        "deadline": "2026-11-28T12:00:00Z",
    }
    return line("run.stopped", run_id, stop_cause="approval_pending", approvals=[approval | fields])


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    with Keeper.open(None, DEFAULT_POLICY, NOW) as opened:
        yield opened


def current(keeper: Keeper) -> dict[tuple[str, int], tuple[str | None, str]]:
    found = keeper.store.rows(limit=None)
    return {(row.run_id, row.attempt): (row.verdict, row.reason) for row in found}


def table(keeper: Keeper) -> list[tuple[Any, ...]]:
    """Everything that there is, row by row."""
    records = keeper.store._ask("SELECT * FROM records ORDER BY ALL")
    return records + keeper.store._ask("SELECT * FROM verdicts ORDER BY ALL")


def judged(keeper: Keeper) -> dict[tuple[str, int], tuple[Any, ...]]:
    """All that the newest revisions say, but when they were judged and how many there were before."""
    ids = [run_id for (run_id,) in keeper.store._ask("SELECT DISTINCT run_id FROM verdicts")]
    live = {key: row for key, row in keeper.store.current(ids).items() if row.sign > 0}
    return {key: rows._judged(row) for key, row in live.items()}


def check_signs(keeper: Keeper) -> None:
    """Every attempt that is judged counts once, every other not at all; every revision at most once."""
    sums = keeper.store._ask("SELECT run_id, attempt, sum(sign)::INTEGER FROM verdicts GROUP BY ALL")
    assert {count for *_, count in sums} <= {0, 1}
    assert {(run_id, attempt) for run_id, attempt, count in sums if count} == judged(keeper).keys()
    twice = keeper.store._ask("SELECT 1 FROM verdicts GROUP BY run_id, attempt, revision, sign HAVING count(*) > 1")
    assert twice == []


# Taking in ------------------------------------------------------------------------------------------------------------


def test_a_batch_is_counted_and_judged(keeper: Keeper) -> None:
    taken = keeper.accept([line(), b"", line(run_id="r2", stop_cause="tool_failure"), line(), b"{"], NOW)
    assert taken[:2] == (2, 1)
    assert taken.run_ids == ("r1", "r2")
    assert [(error.line, error.field) for error in taken.errors] == [(5, "line")]
    assert current(keeper) == {("r1", 1): ("FALSE_COMPLETE", "no_contract"), ("r2", 1): ("FAILED", "tool_failure")}


def test_the_same_lines_twice_change_nothing(tmp_path: Path) -> None:
    lines = [line(), line("run.started", after_s=-5), outcome(), line("triage.updated", group="abc"), line("run.other")]
    with Keeper.open(tmp_path / "s.duckdb", POLICY, NOW) as keeper:
        keeper.accept(lines, NOW)
        before, end = table(keeper), keeper._journal.end  # type: ignore[union-attr]
        for batch in (lines, lines[::-1], lines[:1]):
            taken = keeper.accept(batch, NOW + timedelta(days=1))
            assert taken == (0, len(batch), [], ())
        assert table(keeper) == before
        assert keeper._journal.end == end  # type: ignore[union-attr]


def test_the_id_and_the_time_together_make_a_repeat(keeper: Keeper) -> None:
    name = "0190d0f4-0000-7000-8000-000000000001"
    taken = keeper.accept([line("run.progress", after_s=n % 2, record_id=name) for n in range(4)], NOW)
    assert taken[:2] == (2, 2)
    assert keeper.accept([line("run.progress", after_s=2, record_id=name)], NOW).accepted == 1
    assert keeper.accept([line("run.progress", after_s=1, record_id=name.upper())], NOW).repeated == 1


def test_triage_and_unknown_kinds_are_kept_and_not_judged(keeper: Keeper) -> None:
    taken = keeper.accept(
        [line("triage.updated", group="abc", run_id=None), line("run.other"), line("x", run_id=None)], NOW
    )
    assert taken[:2] == (3, 0)
    assert taken.run_ids == ("r1",)
    assert keeper.store.counts() == (3, 0, 0, {"run.other": 1, "triage.updated": 1, "x": 1}, {})
    keeper.accept([line(after_s=60)], NOW)  # a run that a record of unknown kind spoke of first
    assert current(keeper) == {("r1", 1): ("FALSE_COMPLETE", "no_contract")}
    assert keeper.store.rows()[0].opened_at == T0


def test_a_run_opens_with_its_first_accepted_record(keeper: Keeper) -> None:
    keeper.accept([line(after_s=60), line("run.progress", after_s=10)], NOW)
    keeper.accept([line("run.started", after_s=0)], NOW)
    assert {each.opened_at for each in keeper.store.records_of(["r1"])} == {T0 + timedelta(seconds=60)}
    assert {row.opened_at for row in keeper.store.history("r1")} == {T0 + timedelta(seconds=60)}


def test_what_names_a_person_reaches_neither_journal_nor_store(tmp_path: Path) -> None:
    with Keeper.open(tmp_path / "s.duckdb", POLICY, NOW) as keeper:
        keeper.accept([line(thread_id="someone@example.org")], NOW)
        stored = keeper.store.records_of(["r1"])[0].line
    written = b"".join(text for text, _ in journal.read(journal_folder(tmp_path / "s.duckdb")))
    assert b"someone" not in written + stored
    assert written == stored


# Revisions ------------------------------------------------------------------------------------------------------------


def test_a_late_outcome_makes_a_new_revision_and_history_keeps_the_old(keeper: Keeper) -> None:
    keeper.policy = POLICY
    stop = line(agent="agent")
    keeper.accept([line("run.started", after_s=-5, agent="agent"), stop], NOW)
    keeper.accept([outcome()], NOW + timedelta(minutes=1))
    assert current(keeper) == {("r1", 1): ("VERIFIED_COMPLETE", "receipt")}
    first, second = keeper.store.history("r1")
    assert (first.verdict, first.reason, first.revision, first.as_of) == ("FALSE_COMPLETE", "receipt_missing", 1, NOW)
    assert (second.verdict, second.revision) == ("VERIFIED_COMPLETE", 2)
    cancelled = keeper.store._verdicts("SELECT * FROM verdicts WHERE sign = -1")
    assert cancelled == [first._replace(sign=-1)]
    check_signs(keeper)


def test_news_that_change_no_verdict_make_no_revision(keeper: Keeper) -> None:
    keeper.accept([line("run.started", lease_s=1e6)], NOW)
    keeper.accept([line()], NOW)
    before = keeper.store.history("r1")
    keeper.accept([line("run.progress", after_s=-20, sign="heartbeat")], NOW + timedelta(days=1))
    assert keeper.store.history("r1") == before
    assert len(keeper.store.records_of(["r1"])) == 3


def test_an_outcome_of_one_attempt_reaches_all_of_its_run(keeper: Keeper) -> None:
    keeper.accept([line(attempt=1), line(attempt=2, after_s=60)], NOW)
    keeper.accept([outcome(attempt=2, after_s=90)], NOW)
    assert {key: row[1] for key, row in judged(keeper).items()} == {("r1", 1): 1, ("r1", 2): 2}
    assert {row.reason for row in keeper.store.current(["r1"]).values()} == {"receipt"}
    assert [row.attempt for row in keeper.store.rows()] == [2]


def test_an_attempt_that_only_outcomes_speak_of_goes_when_a_real_one_comes(keeper: Keeper) -> None:
    keeper.accept([outcome(attempt=7)], NOW)
    assert current(keeper).keys() == {("r1", 7)}
    keeper.accept([line(attempt=2)], NOW)
    assert current(keeper).keys() == {("r1", 2)}
    check_signs(keeper)
    keeper.accept([line(attempt=7, after_s=30)], NOW)  # and is there again once it lived
    assert current(keeper).keys() == {("r1", 7)}
    assert judged(keeper).keys() == {("r1", 2), ("r1", 7)}
    check_signs(keeper)


def test_a_resume_closes_the_wait_of_the_run_that_it_takes_up(keeper: Keeper) -> None:
    keeper.accept([waiting("r1")], NOW)
    assert current(keeper)["r1", 1] == ("WAITING", "confirmation")
    taken = keeper.accept([line("run.started", "r2", 600, resumes_run_id="r1", answers=["a1"], lease_s=9999)], NOW)
    assert taken.run_ids == ("r2",)
    assert current(keeper)["r1", 1] == ("WAITING", "answered")
    assert keeper.store.current(["r1"])["r1", 1].resolved_by == "r2"
    keeper.accept([line("run.stopped", "r2", 700, stop_cause="model_failure")], NOW)  # it never got there
    assert current(keeper)["r1", 1] == ("WAITING", "confirmation")
    check_signs(keeper)


def test_a_resume_that_comes_first_is_found_by_the_run_that_it_takes_up(keeper: Keeper) -> None:
    keeper.accept([line("run.started", "r2", 600, resumes_run_id="r1", lease_s=9999)], NOW)
    assert ("r1", 1) not in current(keeper)
    keeper.accept([waiting("r1")], NOW)
    assert current(keeper)["r1", 1] == ("WAITING", "answered")


# Any order ------------------------------------------------------------------------------------------------------------


@cache
def fixtures() -> Sequence[cases.Case]:
    """Not all that were recorded: what a store makes of a run does not depend on who recorded it."""
    own = [data_folder("fixtures") / name for name in ("article", "pairs", "public")]
    return tuple(cases.load_cases([*own, *few()]))


def expected(
    records: Sequence[codec.AnyRecord], policy: Policy, now: datetime
) -> dict[tuple[str, int], tuple[Any, ...]]:
    """What the classifier says of all records at once, on the attempts that are judged."""
    runs = fold.group(sorted(records, key=lambda record: (record.attempt, record.at)))
    found: dict[tuple[str, int], tuple[Any, ...]] = {}
    for run in runs.values():
        resumers = sorted(engine.resumers_of(run, runs.values()), key=keeper_runs._first_seen)
        for attempt in keeper_runs._lived(run):
            facts = fold.facts_of(run, attempt, policy, now, resumers)
            row = rows.verdict_row(facts, engine.judge(facts), now, is_latest=attempt == run.latest)
            found[run.run_id, attempt] = rows._judged(row)
    return found


def in_parts(draw: st.DataObject, lines: Sequence[bytes]) -> list[list[bytes]]:
    """The lines in any order, in any number of batches, a few of them twice."""
    again = draw.draw(st.lists(st.sampled_from(lines), max_size=2))
    mixed = draw.draw(st.permutations([*lines, *again]))
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(mixed)), max_size=3)))
    return [mixed[first:last] for first, last in zip([0, *cuts], [*cuts, len(mixed)], strict=True)]


@EXAMPLES
@given(st.data())
def test_any_order_and_any_batches_of_the_cases_give_what_the_classifier_says_of_all(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(fixtures()), min_size=1, max_size=4, unique_by=lambda case: case.id))
    records = [record for case in chosen for record in cases.records_of(case)]
    policy, now = cases.policy_of(chosen[0]), chosen[0].now
    with Keeper.open(None, policy, now) as keeper:
        for batch in in_parts(data, list(map(codec.write_line, records))):
            keeper.accept(batch, now)
        assert judged(keeper) == expected(records, policy, now)
        said = {row.run_id: (row.attempt, row.verdict, row.reason) for row in keeper.store.rows(limit=None)}
        check_signs(keeper)
    all_at_once = engine.judge_all(records, policy, now)
    assert said == {each.run_id: (each.attempt, each.verdict, each.reason) for each in all_at_once}


@st.composite
def threads(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Records of three runs in up to three attempts, some of which take others up."""
    values: list[dict[str, Any]] = []
    for run_id in ("r1", "r2", "r3"):
        for value in draw(strategies.records(run_id)):
            value["attempt"] = draw(st.sampled_from([1, 1, 1, 2, 3]))
            if value["kind"] in ("run.started", "run.stopped"):
                value["resumes_run_id"] = draw(st.sampled_from([None, None, "r1", "r2"]))
            values.append(value)
    return values


@EXAMPLES
@given(st.data(), threads(), strategies.policies, strategies.nows)
def test_any_order_and_any_batches_of_linked_runs_give_the_same(
    data: st.DataObject, values: list[dict[str, Any]], policy: Policy, now: datetime
) -> None:
    records = strategies.read(values)
    later = now + timedelta(seconds=data.draw(st.integers(0, 3000)))
    with Keeper.open(None, policy, now) as keeper:
        for batch in in_parts(data, list(map(codec.write_line, records))):
            keeper.accept(batch, now)
        assert judged(keeper) == expected(records, policy, now)
        keeper.settle(later)
        check_signs(keeper)
        assert judged(keeper) == expected(records, policy, later)
        before = table(keeper)
        assert keeper.settle(later) == 0
        assert table(keeper) == before


# Time -----------------------------------------------------------------------------------------------------------------


def test_settling_turns_pending_into_missing_and_a_lease_into_stuck(keeper: Keeper) -> None:
    keeper.policy = POLICY
    keeper.accept([line(agent="agent"), line("run.started", "r2", lease_s=30)], T0)
    assert current(keeper) == {("r1", 1): ("FALSE_COMPLETE", "receipt_pending"), ("r2", 1): (None, "running")}
    records = keeper.store._ask("SELECT * FROM records ORDER BY ALL")
    assert keeper.settle(T0 + timedelta(seconds=29)) == 0
    assert keeper.settle(T0 + timedelta(seconds=30)) == 1
    assert keeper.settle(T0 + timedelta(minutes=10)) == 1
    assert current(keeper) == {("r1", 1): ("FALSE_COMPLETE", "receipt_missing"), ("r2", 1): ("STUCK", "lease_expired")}
    before = table(keeper)
    assert keeper.settle(T0 + timedelta(minutes=10)) == 0
    assert keeper.settle(T0 + timedelta(days=10)) == 0
    assert table(keeper) == before
    assert keeper.store._ask("SELECT * FROM records ORDER BY ALL") == records
    check_signs(keeper)


def test_waits_are_those_that_nobody_answered(keeper: Keeper) -> None:
    keeper.accept([waiting("r1"), waiting("r2", owner=None), waiting("r3"), line(run_id="r4")], NOW)
    keeper.accept([line("run.started", "r5", resumes_run_id="r3", lease_s=9999)], NOW)
    found = {facts.run_id: (verdict.verdict, verdict.missing) for facts, verdict in keeper.waits(NOW)}
    assert found == {"r1": (VerdictName.WAITING, ()), "r2": (VerdictName.WAITING_UNROUTED, ("owner",))}
    later = {facts.run_id: verdict.reason for facts, verdict in keeper.waits(T0 + timedelta(hours=4))}
    assert later["r1"] == "overdue"  # judged anew, not as it was stored


# Telling --------------------------------------------------------------------------------------------------------------


def test_detail_has_the_run_its_facts_its_verdict_and_its_history(keeper: Keeper) -> None:
    keeper.accept([waiting("run-abc"), line(run_id="run-abc", attempt=2, after_s=9, stop_cause="quota")], NOW)
    keeper.accept([line("run.started", "next", resumes_run_id="run-abc")], NOW)
    found = keeper.detail("abc", NOW)
    assert (found.run.run_id, found.verdict.attempt, found.verdict.reason) == ("run-abc", 2, "quota")
    assert found.facts.stop is not None
    assert [row.attempt for row in found.history] == [1, 1, 2]
    assert [run.run_id for run in found.resumers] == ["next"]
    assert keeper.detail("run-abc", NOW, attempt=1).verdict.reason == "answered"
    with pytest.raises(NotFoundError, match="has no attempt 9; it has 1, 2"):
        keeper.detail("run-abc", NOW, attempt=9)
    with pytest.raises(NotFoundError):
        keeper.detail("nope", NOW)


# Another policy -------------------------------------------------------------------------------------------------------


def test_a_changed_policy_is_noticed_and_everything_is_judged_again_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.duckdb"
    with Keeper.open(path, DEFAULT_POLICY, NOW) as keeper:
        keeper.accept([line(run_id=f"r{i}", after_s=i * 1800, agent="agent") for i in range(20)], NOW)
        assert keeper.stale_policy() == 0
        assert keeper.rejudge(NOW) == 0
    monkeypatch.setattr(module, "_BATCH_RUNS", 3)
    with Keeper.open(path, POLICY, NOW) as keeper:
        keeper.accept([outcome("r7", 4 * 3600)], NOW)
        assert keeper.stale_policy() == 19
        broken_off = BrokenOff()
        with pytest.raises(KeyboardInterrupt):
            keeper.rejudge(NOW + timedelta(days=1), broken_off)
        left = 19 - broken_off.done
        assert 0 < left < 19
        assert keeper.stale_policy() == left
        assert keeper.rejudge(NOW + timedelta(days=1)) == left
        assert keeper.stale_policy() == 0
        assert {row.policy_digest for row in keeper.store.rows()} == {POLICY.digest}
        assert {row.reason for row in keeper.store.rows()} == {"receipt_missing", "receipt"}
        assert [row.policy_digest for row in keeper.store.history("r1")] == [DEFAULT_POLICY.digest, POLICY.digest]
        stored = keeper.store._ask("SELECT digest FROM policies ORDER BY first_used_at, digest")
        assert {digest for (digest,) in stored} == {DEFAULT_POLICY.digest, POLICY.digest}
        check_signs(keeper)


class BrokenOff:
    """Stops a job at its second batch."""

    calls = done = 0

    def __call__(self, done: int, total: int) -> None:
        assert done <= total
        self.done, self.calls = done, self.calls + 1
        if self.calls == 2:
            raise KeyboardInterrupt


# The journal ----------------------------------------------------------------------------------------------------------


def all_cases() -> list[bytes]:
    return [codec.write_line(record) for case in fixtures() for record in cases.records_of(case)]


def test_a_store_that_is_gone_is_made_again_from_its_journal(tmp_path: Path) -> None:
    path, lines = tmp_path / "s.duckdb", all_cases()
    with Keeper.open(path, POLICY, NOW) as keeper:
        for first in range(0, len(lines), 100):
            keeper.accept(lines[first : first + 100], NOW)
        before = judged(keeper), keeper.store._ask("SELECT * FROM records ORDER BY ALL"), keeper.store.position()
    path.unlink()
    with Keeper.open(path, POLICY, NOW) as keeper:
        assert (
            judged(keeper),
            keeper.store._ask("SELECT * FROM records ORDER BY ALL"),
            keeper.store.position(),
        ) == before
        check_signs(keeper)


def test_what_was_acknowledged_before_a_crash_is_in_the_store_after_it(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    with Keeper.open(path, POLICY, NOW) as keeper:
        keeper.accept([line()], NOW)
    with Journal(journal_folder(path)) as crashed:  # it had appended, and not yet committed
        lines = [line(run_id="r2"), outcome("r1"), line()]
        crashed.append(
            [codec.write_line(read) for read in codec.read_lines(lines) if not isinstance(read, codec.LineError)]
        )
        crashed.append([b'{"schema":"stopcause/2","kind":"run.stopped"}'])
    with Keeper.open(path, POLICY, NOW) as keeper:
        assert keeper.unread == 1
        assert set(current(keeper)) == {("r1", 1), ("r2", 1)}
        assert len(keeper.store.records_of(["r1"])) == 2
        assert keeper.store.position() == keeper._journal.end  # type: ignore[union-attr]
        check_signs(keeper)
    with Keeper.open(path, POLICY, NOW) as keeper:
        assert keeper.unread == 0


def test_a_commit_that_failed_is_made_up_for_by_the_next_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise StoreFullError("full")

    with Keeper.open(tmp_path / "s.duckdb", POLICY, NOW) as keeper:
        keeper.accept([line()], NOW)
        with monkeypatch.context() as patched:
            patched.setattr(DuckStore, "commit", full)
            with pytest.raises(StoreFullError):
                keeper.accept([line(run_id="r2")], NOW)
        assert keeper.accept([line(run_id="r3"), line(run_id="r2")], NOW)[:2] == (1, 1)
        assert set(current(keeper)) == {("r1", 1), ("r2", 1), ("r3", 1)}


def test_a_large_batch_is_journaled_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    groups: list[int] = []
    append = Journal.append

    def counted(self: Journal, lines: Sequence[bytes]) -> journal.Position:
        groups.append(sum(map(len, lines)))
        return append(self, lines)

    monkeypatch.setattr(Journal, "append", counted)
    monkeypatch.setattr(module, "_GROUP_BYTES", 1000)
    with Keeper.open(tmp_path / "s.duckdb", POLICY, NOW) as keeper:
        keeper.accept([line(run_id=f"r{i}") for i in range(50)], NOW)
    assert len(groups) > 5
    assert max(groups) <= 1000


def test_a_journal_that_lost_its_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    with Keeper.open(path, POLICY, NOW) as keeper:
        keeper.accept([line()], NOW)
    shutil.rmtree(journal_folder(path))
    with pytest.raises(StoreError, match="Bring it back from a copy"):
        Keeper.open(path, POLICY, NOW)
    DuckStore.open(path).close()  # the locks were let go


def test_a_journal_in_use_lets_go_of_the_store(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    with Journal(journal_folder(path)):
        with pytest.raises(StoreInUseError):
            Keeper.open(path, POLICY, NOW)
        DuckStore.open(path).close()


def test_every_kind_of_record_has_a_row() -> None:
    assert set(model.MODELS) == {
        *("run.started", "run.progress", "run.stopped", "approval.updated", "outcome.recorded", "run.died"),
        "triage.updated",
    }
