"""A person's word: what is recorded, what it changes, and why it changes nothing where it does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stopcause.classifier.policy import policy_from_mapping
from stopcause.errors import NotFoundError
from stopcause.pipeline.keeper import Keeper
from stopcause.pipeline.outcomes_by_hand import Saying, record_by_hand
from stopcause.receipts.vocabulary import Polarity
from stopcause.render.outcome import Told

T0 = datetime(2026, 11, 28, 8, tzinfo=UTC)
NOW = T0 + timedelta(hours=1)
POLICY = policy_from_mapping(
    {
        "agents": [
            {"match": {"agent": "open-*"}, "contract": "invoice"},
            {"match": {"agent": "listed-*"}, "contract": "listed"},
            {"match": {"agent": "checked-*"}, "contract": "checked"},
        ],
        "contracts": {
            "invoice": {},
            "listed": {"issuers": ["destination:db", "human:user:ada"]},
            "checked": {"checks": [{"kind": "record"}, {"kind": "record", "name": "mail"}]},
        },
    }
)
CONFIRMED, REFUTED = Polarity.CONFIRMED, Polarity.REFUTED


def line(run_id: str = "run-1", **fields: Any) -> bytes:  # noqa: ANN401 - any field
    known = {"schema": "stopcause/1", "kind": "run.stopped", "run_id": run_id, "at": T0.isoformat()}
    return json.dumps({**known, "stop_cause": "natural", **fields}).encode()


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    with Keeper.open(None, POLICY, NOW) as opened:
        yield opened


def say(keeper: Keeper, polarity: Polarity = CONFIRMED, name: str = "run-1", after_s: int = 0, **said: str) -> Told:
    words = {"contract": "invoice", "reason": "invoice_seen", "actor": "user:ada", **said}
    return record_by_hand(keeper, name, Saying(polarity, **words), NOW + timedelta(seconds=after_s))


def words(told: Told) -> tuple[str, str]:
    return tuple(f"{each.verdict} {each.reason}" for each in (told.before, told.after))  # type: ignore[return-value]


def outcomes(keeper: Keeper) -> list[dict[str, Any]]:
    rows = keeper.store.ask("SELECT line FROM records WHERE kind = 'outcome.recorded' ORDER BY event_at").rows
    return [json.loads(text) for (text,) in rows]


def test_a_word_is_a_record_by_an_operator(keeper: Keeper) -> None:
    keeper.accept([line(agent="open-1"), line(agent="open-1", attempt=2)], NOW)

    told = say(keeper, check="record", subject="sha256:1", ticket="OPS-1")

    (record,) = outcomes(keeper)
    assert record.pop("record_id") == told.outcome_id
    assert record == {
        "schema": "stopcause/1",
        "kind": "outcome.recorded",
        "run_id": "run-1",
        "attempt": 2,
        "at": "2026-11-28T09:00:00Z",
        "boundary": "operator",
        "outcome": {
            "outcome_id": told.outcome_id,
            "contract": "invoice",
            "check": "record",
            "strength": "human",
            "polarity": "confirmed",
            "issuer": {"type": "human", "id": "user:ada"},
            "subject": "sha256:1",
            "observed_at": "2026-11-28T09:00:00Z",
            "evidence": {"reason": "invoice_seen", "ticket": "OPS-1"},
        },
    }


@pytest.mark.parametrize("name", ["run-1", "run", "n-1"])
def test_a_confirmation_verifies_and_a_refutation_takes_it_back(keeper: Keeper, name: str) -> None:
    keeper.accept([line(agent="open-1")], NOW)

    first = say(keeper, name=name)
    second = say(keeper, REFUTED, name, after_s=60)
    third = say(keeper, name=name, after_s=120)

    assert words(first) == ("FALSE_COMPLETE receipt_missing", "VERIFIED_COMPLETE receipt")
    assert words(second) == ("VERIFIED_COMPLETE receipt", "FALSE_COMPLETE receipt_refuted")
    assert words(third) == ("FALSE_COMPLETE receipt_refuted", "VERIFIED_COMPLETE receipt")
    assert [first.why, second.why, third.why, first.notes] == [None, None, None, ()]


def test_the_same_word_twice_is_two_looks_and_not_two_effects(keeper: Keeper) -> None:
    keeper.accept([line(agent="open-1", subject="sha256:1")], NOW)
    say(keeper)

    told = say(keeper)

    assert words(told) == ("VERIFIED_COMPLETE receipt", "VERIFIED_COMPLETE receipt")
    assert told.why == "It was confirmed before. Now one more look says so."
    assert len(outcomes(keeper)) == 2


def test_a_run_that_is_not_there(keeper: Keeper) -> None:
    keeper.accept([line("run-1"), line("run-2")], NOW)

    for name, said in (("nothing", "No run is called"), ("run", "is not one run")):
        with pytest.raises(NotFoundError, match=said):
            say(keeper, name=name)
    assert outcomes(keeper) == []


# Why it stays as it is


def test_a_contract_that_lists_others(keeper: Keeper) -> None:
    keeper.accept([line(agent="listed-1")], NOW)

    told = say(keeper, contract="listed", actor="user:bob")

    assert words(told)[1] == "FALSE_COMPLETE receipt_missing"
    assert told.why == (
        "Contract listed takes the word of destination:db, human:user:ada only. "
        "Add human:user:bob to its issuers where that person's word counts."
    )
    assert say(keeper, contract="listed").why is None
    again = say(keeper, contract="listed", actor="user:bob", after_s=9)
    assert again.why == told.why  # that it is verified is not his doing


def test_a_refutation_by_somebody_who_is_not_listed(keeper: Keeper) -> None:
    keeper.accept([line(agent="listed-1")], NOW)
    say(keeper, contract="listed")

    told = say(keeper, REFUTED, contract="listed", actor="user:bob", after_s=9)

    assert words(told)[1] == "VERIFIED_COMPLETE receipt"
    assert told.why
    assert "takes the word of" in told.why


def test_another_contract_than_the_runs(keeper: Keeper) -> None:
    keeper.accept([line(agent="open-1")], NOW)

    told = say(keeper, contract="invioce")

    assert told.notes == ("run run-1 is under contract invoice, not invioce",)
    assert told.why == "A word on another contract proves nothing here; say --contract invoice."


def test_a_run_under_no_contract_is_verified_by_the_word_alone(keeper: Keeper) -> None:
    keeper.accept([line()], NOW)

    told = say(keeper, contract="anything")

    assert told.notes == ("run run-1 is under no contract; what you say counts by itself",)
    assert words(told) == ("FALSE_COMPLETE no_contract", "VERIFIED_COMPLETE receipt")


def test_a_check_that_is_missing_and_one_that_is_not_there(keeper: Keeper) -> None:
    keeper.accept([line(agent="checked-1")], NOW)

    unknown = say(keeper, contract="checked", check="recrod")
    first = say(keeper, contract="checked", check="record", after_s=9)
    second = say(keeper, contract="checked", check="mail", after_s=18)

    assert unknown.notes == ("contract checked has no check recrod; it has record, mail",)
    assert unknown.why == "Contract checked wants every check, and nobody confirms record, mail."
    assert first.why == "Contract checked wants every check, and nobody confirms mail."
    assert words(second)[1] == "VERIFIED_COMPLETE receipt"


def test_a_word_without_a_check_vouches_for_all_of_them(keeper: Keeper) -> None:
    keeper.accept([line(agent="checked-1")], NOW)

    assert words(say(keeper, contract="checked"))[1] == "VERIFIED_COMPLETE receipt"


def test_a_refuted_check_stands_until_that_check_is_confirmed(keeper: Keeper) -> None:
    keeper.accept([line(agent="checked-1")], NOW)
    refuted = say(keeper, REFUTED, contract="checked", check="mail")

    told = say(keeper, contract="checked", after_s=9)

    assert told.why == (
        f"Outcome {refuted.outcome_id} of check mail refutes it, and stands. To overrule it, say --check mail."
    )
    assert words(say(keeper, contract="checked", check="mail", after_s=18))[1] == "VERIFIED_COMPLETE receipt"


def test_another_target(keeper: Keeper) -> None:
    keeper.accept([line(agent="open-1", subject="sha256:1")], NOW)

    told = say(keeper, subject="sha256:2")

    assert told.notes == ("the target of run run-1 is sha256:1, not sha256:2",)
    assert told.why == "A look at another target proves nothing here; say --subject sha256:1."


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"stop_cause": "tool_failure"},
            "A tool failed, nothing recovered it, and that ended the loop. Rule 1, failed",
        ),
        ({"stop_cause": "step_limit"}, "Rule 5, bounded_stop, decides it; an outcome decides only about a run that"),
        ({"finish_reason": {"normalized": "length"}}, "The model's finish reason is not that of a finish. Rule 8"),
        ({"children": {"open": 1}}, "It says that it is done, and runs that it started are still open."),
    ],
)
def test_a_rule_that_comes_before_it(keeper: Keeper, fields: dict[str, Any], said: str) -> None:
    keeper.accept([line(agent="open-1", **fields)], NOW)

    told = say(keeper)

    assert told.before[1:] == told.after[1:]
    assert told.why
    assert said in told.why


def test_a_run_that_still_runs(keeper: Keeper) -> None:
    keeper.accept([line(agent="open-1", kind="run.started", stop_cause=None, lease_s=7200)], NOW)

    told = say(keeper)

    assert told.after.verdict is None
    assert told.why == "It still runs. What you say counts once it has finished."


def test_a_clock_behind_the_runs(keeper: Keeper) -> None:
    start = (NOW + timedelta(minutes=5)).isoformat()
    keeper.accept([line(agent="open-1", at=start, started_at=start)], NOW)

    told = say(keeper)

    assert words(told) == ("FALSE_COMPLETE receipt_pending", "FALSE_COMPLETE receipt_stale")
    assert told.why
    assert told.why.startswith("The receipt is older than the run")


def test_the_latest_word_counts_though_the_clock_was_set_back(keeper: Keeper) -> None:
    keeper.accept([line(agent="open-1")], NOW)

    for after_s, polarity, reason in (
        (0, CONFIRMED, "receipt"),
        (-9, REFUTED, "receipt_refuted"),
        (0, CONFIRMED, "receipt"),
    ):
        assert say(keeper, polarity, after_s=after_s).after.reason == reason


def test_a_later_look_by_somebody_else_stands(keeper: Keeper) -> None:
    issuer = {"type": "destination", "id": "db"}
    look = {"outcome_id": "o-7", "strength": "read_back", "polarity": "confirmed", "issuer": issuer}
    seen = line(kind="outcome.recorded", stop_cause=None, at=(NOW + timedelta(seconds=2)).isoformat(), outcome=look)
    keeper.accept([line(agent="open-1"), seen], NOW)

    told = say(keeper, REFUTED)

    assert told.after.reason == "receipt"
    assert told.why == "Outcome o-7 is a later look than yours, by its own clock, and the latest look counts."


def test_a_persons_address_is_kept_as_a_hash(keeper: Keeper) -> None:
    keeper.accept([line(agent="open-1")], NOW)

    told = say(keeper, actor="user:ada@example.com")

    assert told.issuer.startswith("human:user:hmac:")
    assert "example.com" not in json.dumps(outcomes(keeper))
