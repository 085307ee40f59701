"""What people say about groups: how long it hides them, what brings them back, and that no verdict changes by it."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stopcause.errors import InputError
from stopcause.pipeline import attention, groups, triage
from stopcause.pipeline.attention import attention_of
from stopcause.pipeline.keeper import Keeper
from stopcause.pipeline.triage import Order, Pace, Told, why_over
from stopcause.receipts import codec
from stopcause.receipts.model import TriageUpdated
from stopcause.receipts.vocabulary import TriageAction
from stopcause.render.views import Group, Regressed, Said
from tests.support.laws import tried_on
from tests.support.stops import DAY, HOUR, NOW, filled, group_of, scope, stop, stops, text, wait

ACK, SNOOZE, RESOLVE, ASSIGN, REOPEN = (
    TriageAction.ACKNOWLEDGED,
    TriageAction.SNOOZED,
    TriageAction.RESOLVED,
    TriageAction.ASSIGNED,
    TriageAction.REOPENED,
)
MINUTE = timedelta(minutes=1)


def say(keeper: Keeper, run_id: str, action: TriageAction, at: datetime = NOW, **order: Any) -> Told:  # noqa: ANN401
    about = list(groups.facts_of(keeper, [group_of(keeper, run_id)], at).values())
    (told,) = triage.tell(keeper, about, Order(action, "user:x", **order), at)
    return told


def seen(keeper: Keeper, now: datetime) -> Group:
    """The only group of the last 30 days, as it stands at a time. The store is settled as of then."""
    keeper.settle(now)
    found = attention_of(keeper, scope(30 * DAY, now))
    (group,) = (*found.groups, *found.hidden)
    return group


def over(keeper: Keeper, now: datetime) -> str:
    """Why what was said no longer hides the only group; empty where it does."""
    group = seen(keeper, now)
    assert group.said is not None
    assert group.hidden is not bool(group.said.over)
    return group.said.over


def verdicts(keeper: Keeper) -> list[tuple[Any, ...]]:
    return keeper.store._ask("SELECT * FROM verdicts ORDER BY ALL")


# The record -----------------------------------------------------------------------------------------------------------


def test_a_word_is_a_line_of_the_journal_that_reads_back() -> None:
    with filled(stop("r")) as keeper:
        told = say(keeper, "r", RESOLVE, in_version="2.0", reason="rollback", ticket="OPS-1")
        ((kept,),) = keeper.store._ask("SELECT line FROM records WHERE kind = 'triage.updated'")
        fingerprint = group_of(keeper, "r")

    record = codec.read_line(kept.encode())
    assert record == told.record
    assert json.loads(kept) == {
        "schema": "stopcause/1",
        "kind": "triage.updated",
        "record_id": told.record.record_id,
        "attempt": 1,
        "at": "2026-11-30T08:00:00Z",
        "boundary": "operator",
        "group": fingerprint,
        "action": "resolved",
        "in_version": "2.0",
        "actor": "user:x",
        "reason_code": "rollback",
        "ticket": "OPS-1",
    }
    assert (told.record.record_id or "")[14] == "7"
    assert int((told.record.record_id or "").replace("-", "")[:12], 16) == int(NOW.timestamp() * 1000)


def test_what_no_record_can_hold_is_refused_and_nothing_of_it_is_kept() -> None:
    with filled(stop("r")) as keeper:
        orders: tuple[dict[str, Any], ...] = ({"reason": "two words"}, {"ticket": "a b"}, {"owner": "x\n"})
        for order in orders:
            with pytest.raises(InputError, match=r"does not have the shape .* expected 1 to 200 of"):
                say(keeper, "r", ACK, **order)
        assert keeper.store.counts().kinds == {"run.stopped": 1}


def test_a_word_about_a_person_names_no_address() -> None:
    with filled(stop("r")) as keeper:
        told = say(keeper, "r", ASSIGN, owner="kim@example.com")
        assert (seen(keeper, NOW).owner or "").startswith("hmac:")
    assert "example.com" not in str(told.record)


def test_words_at_one_moment_count_in_the_order_in_which_they_were_said() -> None:
    with filled(stop("r")) as keeper:
        for action in (ACK, REOPEN) * 6:
            say(keeper, "r", action)
            assert seen(keeper, NOW).hidden is (action is ACK)


# Acknowledged ---------------------------------------------------------------------------------------------------------


def test_an_acknowledgement_holds_for_seven_days() -> None:
    with filled(stop("r")) as keeper:
        say(keeper, "r", ACK)
        assert over(keeper, NOW) == over(keeper, NOW + 7 * DAY - MINUTE) == ""
        assert over(keeper, NOW + 7 * DAY) == "its time is over"


def test_an_acknowledgement_ends_when_the_group_escalates_after_it() -> None:
    later = NOW + DAY
    for more, said in ((29, ""), (30, "escalated since")):
        with filled(stops(10)) as keeper:
            say(keeper, "r-3600-0", ACK)
            keeper.accept(stops(more, -12 * HOUR, name="later"), later)
            assert over(keeper, later) == said


def test_a_group_that_escalates_when_it_is_acknowledged_stays_away() -> None:
    history = [line for day in range(1, 8) for line in stops(2, day * DAY + 2 * HOUR)]
    with filled(stop("old", 9 * DAY), history, stops(20)) as keeper:
        say(keeper, "r-3600-0", ACK)
        found = attention_of(keeper, scope())
        assert [group.marks.escalating for group in found.hidden] == [10.0]


def test_an_acknowledgement_of_a_regression_ends_with_the_next_one() -> None:
    with filled(stop("r", agent_version="1.0")) as keeper:
        say(keeper, "r", RESOLVE, NOW, in_version="1.1")
        keeper.accept([stop("r2", -2 * HOUR, agent_version="1.1")], NOW + 3 * HOUR)
        assert over(keeper, NOW + 3 * HOUR) == "regressed"
        say(keeper, "r", ACK, NOW + 3 * HOUR)
        keeper.accept([stop("r3", -4 * HOUR, agent_version="1.1")], NOW + 5 * HOUR)
        assert over(keeper, NOW + 5 * HOUR) == ""
        keeper.accept([stop("r4", -6 * HOUR, agent_version="1.2")], NOW + 7 * HOUR)
        assert over(keeper, NOW + 7 * HOUR) == "regressed since"
        assert seen(keeper, NOW + 7 * HOUR).marks.regressed == Regressed("1.2", "1.1", NOW)


# Snoozed --------------------------------------------------------------------------------------------------------------


def test_a_snooze_holds_to_its_end() -> None:
    with filled(stop("r")) as keeper:
        say(keeper, "r", SNOOZE, until=NOW + 4 * HOUR)
        assert over(keeper, NOW + 4 * HOUR - MINUTE) == ""
        assert over(keeper, NOW + 4 * HOUR) == "its time is over"


def test_a_snooze_by_count_holds_until_so_many_more_runs() -> None:
    later = NOW + DAY
    with filled(stops(9)) as keeper:
        say(keeper, "r-3600-0", SNOOZE, runs=3)
        keeper.accept(stops(2, -2 * HOUR), later)
        assert over(keeper, later) == ""
        keeper.accept(stops(1, -20 * DAY, name="ahead"), later)
        assert over(keeper, later) == ""
        keeper.accept(stops(1, -3 * HOUR), later)
        assert over(keeper, later) == "its count is reached"


def test_a_snooze_by_count_ends_after_thirty_days() -> None:
    with filled(stop("r")) as keeper:
        say(keeper, "r", SNOOZE, runs=1000)
        keeper.accept([stop("r2", -20 * DAY)], NOW + 30 * DAY)
        assert over(keeper, NOW + 30 * DAY - MINUTE) == ""
        assert over(keeper, NOW + 30 * DAY) == "its time is over"


def test_whatever_a_record_says_nothing_is_for_ever() -> None:
    for action, days in ((ACK, 7), (SNOOZE, 30), (RESOLVE, 30)):
        with filled(stop("r"), stop("other", 20 * DAY, agent="b", cause="step_limit")) as keeper:
            record = {
                "schema": "stopcause/1",
                "kind": "triage.updated",
                "at": text(NOW),
                "group": group_of(keeper, "r"),
            }
            record |= {"action": action, "until": "2999-01-01T00:00:00Z", "in_version": "2.0"}
            assert not keeper.accept([codec.value_line(record)], NOW).errors
            end = NOW + timedelta(days=days)
            words = triage.words_of(keeper, NOW)
            dues = dict.fromkeys(words)
            before, after = (triage.standings(keeper, dues, at)[group_of(keeper, "r")] for at in (end - MINUTE, end))
        assert before.said
        assert after.said
        assert (before.said.over, after.said.over) == ("", "its time is over")


# Waits ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["deadline", "expires_at"])
def test_nothing_hides_a_wait_past_the_moment_at_which_it_is_due(field: str) -> None:
    due = NOW + 2 * HOUR
    asked: dict[str, Any] = {field: text(due)}
    orders: tuple[dict[str, Any], ...] = ({}, {"until": NOW + 9 * HOUR}, {"runs": 5})
    for action, order in zip((ACK, SNOOZE, SNOOZE), orders, strict=True):
        with filled(wait("r", **asked)) as keeper:
            told = say(keeper, "r", action, **order)
            assert told.due == told.record.until == due
            group = seen(keeper, due - MINUTE)
            assert group.hidden
            if field == "deadline":  # at its hard expiry the run is no longer of this group
                assert over(keeper, due) == "a wait of it is due"


def test_a_snooze_that_ends_before_a_wait_is_due_is_as_it_was_asked_for() -> None:
    with filled(wait("r", deadline=text(NOW + 2 * HOUR))) as keeper:
        told = say(keeper, "r", SNOOZE, until=NOW + HOUR)
    assert (told.due, told.record.until) == (None, NOW + HOUR)


def test_what_is_due_is_in_sight_whatever_was_said() -> None:
    with filled(wait("r", deadline=text(NOW - MINUTE))) as keeper:
        with pytest.raises(InputError, match="a wait of it is due, and nothing hides that"):
            say(keeper, "r", SNOOZE, until=NOW + HOUR)
        told = say(keeper, "r", ACK)
        assert told.due == NOW - MINUTE
        assert over(keeper, NOW) == "a wait of it is due"
        say(keeper, "r", RESOLVE)
        assert over(keeper, NOW) == "a wait of it is due"


def test_a_wait_that_comes_later_and_is_due_sooner_brings_its_group_back() -> None:
    with filled(wait("r")) as keeper:
        assert say(keeper, "r", SNOOZE, until=NOW + DAY).due is None
        keeper.accept([wait("r2", -HOUR, deadline=text(NOW + 2 * HOUR))], NOW + HOUR)
        assert over(keeper, NOW + 2 * HOUR - MINUTE) == ""
        assert over(keeper, NOW + 2 * HOUR) == "a wait of it is due"


# Resolved, and back again ---------------------------------------------------------------------------------------------


def after_resolution(*lines: bytes, **order: Any) -> tuple[str, Regressed | None]:  # noqa: ANN401
    """A group of versions 1.0 and 1.1, resolved, then these runs: why it is back, and whether it regressed."""
    with filled(stop("r"), stop("r2", agent_version="1.1")) as keeper:
        say(keeper, "r", RESOLVE, **order)
        keeper.accept(list(lines), NOW + 3 * HOUR)
        group = seen(keeper, NOW + 3 * HOUR)
        assert group.said
        return group.said.over, group.marks.regressed


def later(run_id: str = "later", **fields: Any) -> bytes:  # noqa: ANN401
    return stop(run_id, -2 * HOUR, **fields)


def test_a_resolution_hides_what_was_there() -> None:
    assert after_resolution(in_version="1.1") == ("", None)
    assert after_resolution() == ("", None)


def test_a_version_that_is_new_since_the_resolution_is_a_regression() -> None:
    back = Regressed("1.2", "1.1", NOW)
    assert after_resolution(later(agent_version="1.2"), in_version="1.1") == ("regressed", back)


def test_the_version_that_was_to_mend_it_is_a_regression() -> None:
    back = Regressed("1.1", "1.1", NOW)
    assert after_resolution(later(agent_version="1.1"), in_version="1.1") == ("regressed", back)


def test_a_run_without_a_version_is_a_regression() -> None:
    back = Regressed(None, "1.1", NOW)
    assert after_resolution(later(agent_version=None), in_version="1.1") == ("regressed", back)


def test_a_version_that_was_there_before_is_none_and_stays_hidden_where_another_was_to_mend_it() -> None:
    assert after_resolution(later(agent_version="1.0"), in_version="1.1") == ("", None)


def test_without_a_version_any_later_run_brings_the_group_back() -> None:
    assert after_resolution(later(agent_version="1.0")) == ("goes on", None)
    assert after_resolution(later(agent_version="1.2")) == ("regressed", Regressed("1.2", None, NOW))


def test_a_run_that_started_before_the_resolution_is_none_however_late_it_ends() -> None:
    tail = later(agent_version="1.2", started_at=text(NOW - MINUTE))
    assert after_resolution(tail, in_version="1.1") == after_resolution(tail) == ("", None)


def test_a_run_that_started_ahead_of_time_is_none_until_then() -> None:
    assert after_resolution(stop("ahead", -20 * DAY, agent_version="1.2")) == ("", None)


def test_a_version_that_another_group_of_the_agent_had_before_was_seen() -> None:
    other = stop("other", cause="tool_failure", agent_version="1.5")
    elsewhere = stop("test", cause="tool_failure", agent_version="1.6", environment="test")
    with filled(stop("r"), other, elsewhere) as keeper:
        say(keeper, "r", RESOLVE, in_version="1.1")
        fingerprint = group_of(keeper, "r")
        for version, back in (("1.5", None), ("1.6", Regressed("1.6", "1.1", NOW))):
            keeper.accept([later(version, agent_version=version)], NOW + 3 * HOUR)
            stands = triage.standings(keeper, {fingerprint: None}, NOW + 3 * HOUR)[fingerprint]
            assert stands.regressed == back


def test_a_resolution_ends_after_thirty_days_of_old_versions() -> None:
    with filled(stop("r")) as keeper:
        say(keeper, "r", RESOLVE, in_version="1.1")
        keeper.accept([stop("r2", -20 * DAY)], NOW + 30 * DAY)
        assert over(keeper, NOW + 30 * DAY - MINUTE) == ""
        assert over(keeper, NOW + 30 * DAY) == "its time is over"


def test_only_versions_that_runs_had_can_be_named() -> None:
    with filled(*(stop(f"r{i}", HOUR * (9 - i), agent_version=f"1.{i}") for i in range(7))) as keeper:
        about = list(groups.facts_of(keeper, [group_of(keeper, "r0")], NOW).values())
        triage.check_version(keeper, about, "1.0")
        with pytest.raises(InputError) as caught:
            triage.check_version(keeper, about, "2.0")
    assert str(caught.value) == (
        "No run of a had version 2.0; the newest are 1.6, 1.5, 1.4, 1.3, 1.2. "
        "Say --unreleased where it is still to come."
    )


# Assigned, reopened ---------------------------------------------------------------------------------------------------


def test_an_owner_replaces_the_policys_and_hides_nothing() -> None:
    with filled(stop("r")) as keeper:
        assert seen(keeper, NOW).owner == "team:x"
        say(keeper, "r", ASSIGN, owner="team:y")
        group = seen(keeper, NOW)
        assert (group.owner, group.hidden, group.said) == ("team:y", False, None)
        say(keeper, "r", ACK, NOW + MINUTE)
        say(keeper, "r", REOPEN, NOW + 2 * MINUTE)
        assert seen(keeper, NOW + HOUR).owner == "team:y"


def test_what_was_taken_back_hides_nothing_and_resolves_nothing() -> None:
    with filled(stop("r")) as keeper:
        say(keeper, "r", RESOLVE, in_version="1.1")
        say(keeper, "r", REOPEN, NOW + MINUTE)
        keeper.accept([later(agent_version="1.1")], NOW + 3 * HOUR)
        group = seen(keeper, NOW + 3 * HOUR)
        assert (group.said, group.marks.regressed) == (None, None)


def test_the_newest_word_counts() -> None:
    with filled(stop("r")) as keeper:
        say(keeper, "r", ACK)
        say(keeper, "r", SNOOZE, NOW + MINUTE, until=NOW + HOUR)
        assert over(keeper, NOW + HOUR) == "its time is over"


def test_a_word_that_is_dated_ahead_does_not_count_yet() -> None:
    with filled(stop("r")) as keeper:
        say(keeper, "r", ACK, NOW + DAY)
        assert seen(keeper, NOW).said is None
        assert seen(keeper, NOW + DAY).hidden


# Laws -----------------------------------------------------------------------------------------------------------------

WORDS = st.lists(
    st.tuples(st.sampled_from(["s", "f", "w", "b", "u"]), st.sampled_from(list(TriageAction)), st.integers(0, 2000)),
    max_size=8,
)


@given(WORDS, st.integers(0, 60 * 24 * 40))
@settings(max_examples=25)
def test_triage_changes_no_verdict_and_loses_no_group(said: list[tuple[str, TriageAction, int]], minutes: int) -> None:
    lines: list[list[bytes] | bytes] = [
        stops(2, name="s"),
        stop("f", cause="tool_failure"),
        wait("w", deadline=text(NOW + 10 * HOUR)),
        stop("u", cause="unknown"),
        [stop("b", cause="step_limit"), stop("old", 40 * DAY, "tool_failure", agent="b")],
    ]
    runs = {"s": "s-3600-0", "f": "f", "w": "w", "u": "u", "b": "b"}
    with filled(*lines) as keeper:
        before, every = verdicts(keeper), {group.fingerprint for group in attention_of(keeper, scope()).groups}
        assert len(every) == 5
        for name, action, after in sorted(said, key=lambda each: each[2]):
            at = NOW + timedelta(minutes=after) / 10
            say(keeper, runs[name], action, at, until=at + 5 * HOUR, owner="team:z", in_version="1.0")
        assert verdicts(keeper) == before
        now = NOW + timedelta(minutes=minutes)
        found = attention_of(keeper, attention.Scope(attention.window(now, now - NOW + DAY, "", now)))

    shown, hidden = ({group.fingerprint for group in each} for each in (found.groups, found.hidden))
    assert shown | hidden == every
    assert not shown & hidden
    assert all(group.said and not group.said.over for group in found.hidden)
    assert all(group.due is None or group.due > now for group in found.hidden)


moments = st.integers(-5000, 60 * 24 * 60).map(lambda minutes: NOW + timedelta(minutes=minutes))


@given(moments, st.none() | moments, st.sampled_from([ACK, SNOOZE]), st.none() | moments, st.none() | st.integers(1, 9))
@tried_on(300)
def test_nothing_outlives_what_is_due_or_its_longest_time(
    now: datetime, due: datetime | None, action: TriageAction, until: datetime | None, count: int | None
) -> None:
    facts = groups.Facts("0" * 12, "WAITING_UNROUTED", "owner", "a", None, None, None, "r", 1, NOW, NOW, due)
    told = triage._told(facts, Order(action, "user:x", until, count), NOW, NOW)
    said = triage.fold([told.record])["0" * 12].said

    assert said is not None
    assert said.until is not None
    assert said.until <= NOW + triage.LONGEST
    assert due is None or said.until <= max(due, NOW)
    if not why_over(said, now, due, Pace()):
        assert now < said.until
        assert due is None or now < due


@given(st.permutations([(ACK, 1), (ASSIGN, 2), (RESOLVE, 3), (REOPEN, 4), (SNOOZE, 5)]))
def test_the_order_in_which_records_come_does_not_matter(order: list[tuple[TriageAction, int]]) -> None:
    records = [
        TriageUpdated(
            schema="stopcause/1", record_id=triage.new_id(NOW), at=NOW + n * MINUTE, group="g", action=action, owner="o"
        )
        for action, n in order
    ]
    words = triage.fold(records)["g"]

    assert (words.said and words.said.action, words.resolved, words.owner) == (SNOOZE, None, "o")
    assert words.at == NOW + 5 * MINUTE


def test_an_empty_word_hides_nothing() -> None:
    record = TriageUpdated(schema="stopcause/1", record_id=triage.new_id(NOW), at=NOW, group="g")
    assert triage.fold([record])["g"].said is None


def test_a_word_without_an_end_is_over() -> None:
    assert why_over(Said(ACK, NOW, None), NOW, None, Pace()) == "its time is over"
