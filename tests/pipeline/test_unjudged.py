"""Runs that the classifier fails on: their records are kept, they are named, and no other run is worse off."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from stopcause.classifier import fold, rules
from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.pipeline.keeper import Keeper
from tests.pipeline.test_keeper import NOW, T0, check_signs, current, line, outcome, waiting


def break_rules(monkeypatch: pytest.MonkeyPatch, *run_ids: str) -> None:
    """A first rule that raises on these runs."""

    def match(facts: fold.Facts, _gone: object) -> None:
        if facts.run_id in run_ids:
            raise ZeroDivisionError("with words of the run in it")

    monkeypatch.setattr(rules, "RULES", (rules.RULES[0]._replace(match=match), *rules.RULES))


def test_a_run_that_the_classifier_fails_on_is_kept_and_named_and_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.duckdb"
    with monkeypatch.context() as broken, Keeper.open(path, DEFAULT_POLICY, NOW) as keeper:
        break_rules(broken, "r2")
        taken = keeper.accept([line(), line(run_id="r2"), line(run_id="r3")], NOW)
        assert taken == (3, 0, [], ("r1", "r2", "r3"))
        assert set(current(keeper)) == {("r1", 1), ("r3", 1)}
        assert keeper.unjudged == [("r2", "ZeroDivisionError")]
        assert [stored.run_id for stored in keeper.store.records_of(["r2"])] == ["r2"]
        keeper.accept([outcome("r2")], NOW)
        assert keeper.unjudged == [("r2", "ZeroDivisionError")]
        path.unlink()
    with monkeypatch.context() as broken:  # made again from the journal, with the rule still broken
        break_rules(broken, "r2")
        with Keeper.open(path, DEFAULT_POLICY, NOW) as keeper:
            assert keeper.unjudged == [("r2", "ZeroDivisionError")]
    with Keeper.open(path, DEFAULT_POLICY, NOW) as keeper:  # the next record finds it mended
        assert keeper.unjudged == []
        keeper.accept([line("run.progress", "r2", after_s=-5)], NOW)
        assert set(current(keeper)) == {("r1", 1), ("r2", 1), ("r3", 1)}


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    with Keeper.open(None, DEFAULT_POLICY, T0) as opened:
        yield opened


def test_a_run_that_can_no_longer_be_judged_keeps_its_verdict_and_stays_due(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeper.accept([line("run.started", lease_s=30), waiting("r2"), waiting("r3")], T0)
    before = keeper.store.history("r1")
    with monkeypatch.context() as broken:
        break_rules(broken, "r1", "r2")
        broken.setattr(rules, "is_running", lambda _: False)
        assert keeper.settle(T0 + timedelta(minutes=1)) == 0
        assert keeper.unjudged == [("r1", "ZeroDivisionError")]
        assert [facts.run_id for facts, _ in keeper.waits(NOW)] == ["r3"]
        assert keeper.unjudged == [("r1", "ZeroDivisionError"), ("r2", "ZeroDivisionError")]
    assert keeper.store.history("r1") == before
    assert keeper.settle(T0 + timedelta(minutes=1)) == 1
    assert keeper.unjudged == [("r2", "ZeroDivisionError")]
    check_signs(keeper)
