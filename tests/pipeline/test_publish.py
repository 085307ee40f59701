"""Rows of the store as telemetry: what an event says, that a sum never falls, and that nothing else leaves."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from stopcause.classifier.policy import DEFAULT_POLICY, Policy, policy_from_mapping
from stopcause.pipeline import publish
from stopcause.pipeline.keeper import Keeper
from stopcause.receipts import identifiers, model
from stopcause.telemetry import names
from stopcause.telemetry.otlp_out import Sender
from stopcause.telemetry.target import target_of
from stopcause.telemetry.values import Answer, Event, Series, Signal
from tests.telemetry.receivers import grpc_receiver, http_receiver

T0 = datetime(2026, 11, 28, 8, tzinfo=UTC)
NOW = T0 + timedelta(hours=1)
CONTRACT = {"match": {"agent": "a*"}, "stage": "enforce", "contract": "invoice", "owner": "team:x"}
ENFORCED = policy_from_mapping({"agents": [CONTRACT], "contracts": {"invoice": {}}})


def line(kind: str = "run.stopped", run_id: str = "r1", after_s: float = 0, **fields: Any) -> bytes:  # noqa: ANN401
    at = (T0 + timedelta(seconds=after_s)).isoformat()
    more = {"stop_cause": "natural", "steps": 3} if kind == "run.stopped" and "stop_cause" not in fields else {}
    known = {"schema": "stopcause/1", "kind": kind, "run_id": run_id, "at": at, **more}
    return json.dumps({**known, **fields}).encode()


def confirmed(run_id: str = "r1", after_s: float = 5, **fields: str) -> bytes:
    said: dict[str, object] = {"outcome_id": "o1", "strength": "read_back", "polarity": "confirmed"}
    said |= {"issuer": {"type": "destination", "id": "db"}, "pre_state": "absent", **fields}
    return line("outcome.recorded", run_id, after_s, outcome=said)


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    with Keeper.open(None, ENFORCED, NOW) as opened:
        yield opened


def events(keeper: Keeper, since: datetime | None = None) -> list[Event]:
    return [event for batch in publish.events(keeper.store, since) for event in batch]


def only(keeper: Keeper) -> Event:
    (event,) = events(keeper)
    return event


def sums(keeper: Keeper) -> dict[tuple[tuple[str, Any], ...], int]:
    return {tuple(series.labels.items()): series.value for series in publish.counts(keeper.store)}


# Events


def test_an_event_says_what_the_verdict_says(keeper: Keeper) -> None:
    trace, span = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    said: dict[str, Any] = {
        "agent": "a1",
        "agent_version": "2",
        "environment": "prod",
        "service": "s",
        "thread_id": "t1",
    }
    ids: dict[str, Any] = {"trace_id": trace, "span_id": span, "sampled": True}
    keeper.accept([line(stop_cause="tool_failure", error={"type": "http.ReadTimeout"}, steps=3, **said, **ids)], NOW)

    event = only(keeper)

    assert (event.name, event.severity, event.body) == ("stopcause.run.judged", "ERROR", "FAILED tool_failure: a1")
    assert (event.at, event.observed_at) == (T0, NOW)
    assert (event.trace_id, event.span_id, event.sampled) == (trace, span, True)
    assert event.attributes == {
        "deployment.environment.name": "prod",
        "error.type": "http.ReadTimeout",
        "gen_ai.agent.name": "a1",
        "gen_ai.agent.version": "2",
        "gen_ai.conversation.id": "t1",
        "gen_ai.operation.name": "invoke_agent",
        "stopcause.classifier.version": event.attributes["stopcause.classifier.version"],
        "stopcause.contract": "invoice",
        "stopcause.event": "stopcause.run.judged",
        "stopcause.owner": "team:x",
        "stopcause.policy.digest": ENFORCED.digest,
        "stopcause.policy.version": "0",
        "stopcause.run.attempt": 1,
        "stopcause.run.id": "r1",
        "stopcause.run.service": "s",
        "stopcause.stage": "enforce",
        "stopcause.step.count": 3,
        "stopcause.stop.cause": "tool_failure",
        "stopcause.verdict.name": "FAILED",
        "stopcause.verdict.evidence": ("stop_cause", "error"),
        "stopcause.verdict.findings": ("unbounded",),
        "stopcause.verdict.group": event.attributes["stopcause.verdict.group"],
        "stopcause.verdict.id": "r1/1/1",
        "stopcause.verdict.reason": "tool_failure",
        "stopcause.verdict.retry": "check_first",
        "stopcause.verdict.revision": 1,
        "stopcause.verdict.rule": "failed",
        "stopcause.verdict.settled": True,
    }


def test_every_attribute_is_a_name_of_the_list(keeper: Keeper) -> None:
    waiting = line(run_id="r2", stop_cause="approval_pending", approvals=[{"approval_id": "a"}])
    keeper.accept([line(duration_s=2.5, tool_calls=1), waiting], NOW)

    assert {name for event in events(keeper) for name in event.attributes} <= set(names.Attribute)


@pytest.mark.parametrize(
    ("fields", "severity"),
    [
        ({"agent": "a1", "stop_cause": "tool_failure"}, "ERROR"),
        ({"agent": "a1", "stop_cause": "loop_guard"}, "ERROR"),
        ({"agent": "a1"}, "WARN"),
        ({"agent": "a1", "stop_cause": "unknown"}, "WARN"),
        ({"agent": "a1", "stop_cause": "user_abort"}, "INFO"),
        ({"agent": "b1", "stop_cause": "tool_failure"}, "INFO"),  # stage observe
        ({"agent": "b1"}, "INFO"),  # no contract
    ],
)
def test_the_severity_is_the_verdicts_unless_nobody_enforces_it(
    keeper: Keeper, fields: dict[str, Any], severity: str
) -> None:
    keeper.accept([line(**fields)], NOW)

    assert only(keeper).severity == severity


def test_a_finish_without_a_contract_is_quiet_even_where_it_is_enforced() -> None:
    policy = policy_from_mapping({"agents": [{"stage": "enforce"}]})
    with Keeper.open(None, policy, NOW) as keeper:
        keeper.accept([line()], NOW)

        assert (only(keeper).attributes["stopcause.verdict.reason"], only(keeper).severity) == ("no_contract", "INFO")


def test_a_verdict_that_changed_came_about_when_it_changed(keeper: Keeper) -> None:
    keeper.accept([line(agent="a1")], T0 + timedelta(minutes=1))
    later = T0 + timedelta(minutes=2)
    keeper.accept([confirmed()], later)

    event = only(keeper)

    assert (event.at, event.observed_at) == (later, later)
    assert [event.attributes[name] for name in (names.Attribute.VERDICT, names.Attribute.VERDICT_ID)] == [
        "VERIFIED_COMPLETE",
        "r1/1/2",
    ]
    assert event.attributes[names.Attribute.PREVIOUS] == "FALSE_COMPLETE"
    assert event.attributes[names.Attribute.PREVIOUS_REASON] == "receipt_pending"


def test_a_run_that_goes_on_is_not_judged_yet(keeper: Keeper) -> None:
    keeper.accept([line("run.started", lease_s=600), line("run.started", "r2", lease_s=1)], T0 + timedelta(minutes=1))

    assert [event.attributes["stopcause.run.id"] for event in events(keeper)] == ["r2"]


def test_of_several_attempts_it_is_the_latest(keeper: Keeper) -> None:
    keeper.accept([line(stop_cause="tool_failure"), line(attempt=2, after_s=9)], NOW)

    assert only(keeper).attributes["stopcause.verdict.id"] == "r1/2/1"


@pytest.mark.parametrize("kind", ["it_failed because", "Could:not", "ada@example.com", "2many", "a..b"])
def test_an_error_type_that_is_no_types_name_stays_here(keeper: Keeper, kind: str) -> None:
    keeper.accept([line(stop_cause="tool_failure", error={"type": kind.replace(" ", "/-")})], NOW)

    found = only(keeper).attributes.get("error.type")
    assert found == ("Could:not" if kind == "Could:not" else None)


def test_a_window_is_about_when_it_was_judged_not_about_when_it_opened(keeper: Keeper) -> None:
    keeper.accept([line(), line(run_id="r2", agent="a1")], T0 + timedelta(minutes=1))
    keeper.settle(NOW)  # the receipt of r2 is missing now

    found = events(keeper, NOW - timedelta(minutes=5))

    assert [event.attributes["stopcause.verdict.id"] for event in found] == ["r2/1/2"]
    assert len(events(keeper)) == 2


def test_many_are_read_and_sent_in_parts(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "EVENTS_OF_A_REQUEST", 4)
    monkeypatch.setattr(publish, "_ROWS_AT_ONCE", 3)
    keeper.accept([line(run_id=f"r{n}", after_s=n * 1800) for n in range(20)], T0 + timedelta(hours=11))

    batches = list(publish.events(keeper.store, None))

    assert [len(batch) for batch in batches] == [4] * 5
    assert [event.attributes["stopcause.run.id"] for batch in batches for event in batch] == [
        f"r{n}" for n in range(20)
    ]


# Sums


def test_a_settled_run_is_counted_with_its_labels(keeper: Keeper) -> None:
    same = [line(run_id=f"r{n}", agent="a1", environment="prod", stop_cause="loop_guard") for n in range(3)]
    keeper.accept([*same, line(run_id="r9", agent="a1")], T0 + timedelta(minutes=1))  # the last is not settled

    assert publish.counts(keeper.store) == [
        Series(
            "stopcause.runs",
            {"verdict": "STUCK", "reason": "loop_guard", "cause": "loop_guard", "agent": "a1", "environment": "prod"},
            3,
        )
    ]


def test_what_is_not_known_is_no_label(keeper: Keeper) -> None:
    keeper.accept([line("run.started", lease_s=1)], NOW)

    assert sums(keeper) == {(("verdict", "STUCK"), ("reason", "lease_expired")): 1}


def test_a_run_stays_counted_as_it_first_settled(keeper: Keeper) -> None:
    keeper.accept([line(agent="a1")], NOW)
    missing = sums(keeper)
    keeper.accept([confirmed(after_s=3700)], NOW + timedelta(minutes=5))
    keeper.accept([line(agent="a1", attempt=2, after_s=4000)], NOW + timedelta(hours=2))

    assert only(keeper).attributes["stopcause.verdict.name"] == "VERIFIED_COMPLETE"
    assert sums(keeper) == missing == {(*missing,)[0]: 1}
    assert ("reason", "receipt_missing") in (*missing,)[0]


def test_a_retry_that_is_known_from_the_start_is_counted_as_its_latest_attempt(keeper: Keeper) -> None:
    keeper.accept([line(stop_cause="tool_failure"), line(stop_cause="step_limit", attempt=2, after_s=9)], NOW)

    assert [dict(labels)["verdict"] for labels in sums(keeper)] == ["BOUNDED_STOP"]


CAUSES = ("natural", "tool_failure", "loop_guard", "step_limit", "unknown", "approval_pending")


@pytest.mark.parametrize("seed", range(4))
def test_whatever_comes_no_sum_ever_falls_and_no_run_counts_twice(tmp_path: Path, seed: int) -> None:
    """Late outcomes, retries, resumptions, other policies: a falling sum would be a reset to whoever receives it."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    before: Counter[Any] = Counter()
    policies: list[Policy] = [DEFAULT_POLICY, ENFORCED]
    now = T0
    for _ in range(6):
        now += timedelta(minutes=chance.randrange(1, 30))
        with Keeper.open(tmp_path / "s.duckdb", chance.choice(policies), now) as keeper:
            keeper.rejudge(now)
            keeper.accept([_something(chance, now) for _ in range(6)], now)
            keeper.settle(now)
            after = Counter(sums(keeper))
            assert not before - after
            assert sum(after.values()) == len(_settled(keeper))
            before = after


def _something(chance: random.Random, now: datetime) -> bytes:
    run_id, after_s = f"r{chance.randrange(8)}", (now - T0).total_seconds()
    agent = chance.choice(["a1", "b1"])
    if chance.random() < 0.3:
        return confirmed(run_id, after_s, polarity=chance.choice(["confirmed", "refuted"]))
    if chance.random() < 0.3:
        return line("run.started", run_id, after_s, agent=agent, lease_s=60, resumes_run_id=f"r{chance.randrange(8)}")
    attempt = chance.choice([1, 1, 2])
    return line(run_id=run_id, after_s=after_s, agent=agent, stop_cause=chance.choice(CAUSES), attempt=attempt)


def _settled(keeper: Keeper) -> set[str]:
    """Runs that were ever settled while the attempt was the latest."""
    rows = keeper.store.ask("SELECT DISTINCT run_id FROM verdicts WHERE settled AND is_latest").rows
    return {run_id for (run_id,) in rows}


def test_agents_above_the_limit_are_counted_together_and_stay_there(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "MOST_AGENTS", 2)
    found = []
    for number in range(4):
        at = NOW + timedelta(minutes=number)
        run = line(run_id=f"r{number}", agent=f"agent-{9 - number}", stop_cause="loop_guard")
        keeper.accept([run, line(run_id=f"q{number}", agent="agent-6", stop_cause="loop_guard")], at)
        found.append({str(dict(labels)["agent"]): value for labels, value in sums(keeper).items()})

    assert found[0] == {"agent-6": 1, "agent-9": 1}
    assert found[3] == {"agent-6": 5, "agent-9": 1, "(other)": 2}
    assert identifiers.display_name(names.OTHER_AGENTS) is None  # nobody is called so
    folded = [dict(labels) for labels in sums(keeper) if dict(labels)["agent"] == "(other)"]
    assert folded[0][names.OVERFLOW] is True


def test_series_above_the_limit_are_counted_together(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publish, "MOST_SERIES", 3)
    for number in range(6):
        run = line(run_id=f"r{number}", environment=f"e{number % 5}", stop_cause="loop_guard")
        keeper.accept([run], NOW + timedelta(minutes=number))

    found = sums(keeper)

    assert list(found.values()) == [2, 1, 1, 2]
    assert list(found)[-1] == ((names.OVERFLOW, True),)


def test_the_sender_is_the_store_however_often_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    found = []
    for _ in range(2):
        with Keeper.open(path, ENFORCED, NOW) as keeper:
            found.append(publish.source_of(keeper.store, "1"))
    path.unlink()
    with Keeper.open(path, ENFORCED, NOW) as keeper:  # made anew: its history of verdicts is another
        made_anew = publish.source_of(keeper.store, "1")

    assert found[0] == found[1]
    assert made_anew.instance_id != found[0].instance_id
    assert made_anew.since > found[0].since


# Sending


class Telling:
    """Says what it is told to, in order."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.sizes: list[int] = []

    def send_events(self, events: list[Event]) -> Answer:
        self.sizes.append(len(events))
        return self.answers.pop(0)

    def send_counts(self, series: list[Series], now: datetime) -> Answer:
        assert now == NOW
        return self.send_events(series)  # type: ignore[arg-type] # only their number counts


def published(*answers: Answer) -> tuple[tuple[int, int, int, int], list[int], list[str]]:
    sender = Telling(*answers)
    blank = Event("e", NOW, NOW, "INFO", "b", {})
    content = publish.Outgoing([[blank] * 3, [blank] * 3, [blank] * 2], [Series("m", {}, 1)] * 5)
    events, series = publish.publish(content, sender, NOW)  # type: ignore[arg-type] # it takes lists
    return (events.size, events.taken, series.size, series.taken), sender.sizes, [*events.faults, *series.faults]


def test_all_taken() -> None:
    assert published(Answer(3), Answer(3), Answer(2), Answer(5)) == ((8, 8, 5, 5), [3, 3, 2, 5], [])


def test_after_a_part_the_rest_is_sent_too() -> None:
    assert published(Answer(1, "2 rejected"), Answer(3), Answer(0, "no"), Answer(5)) == (
        (8, 4, 5, 5),
        [3, 3, 2, 5],
        ["2 rejected", "no"],
    )


def test_where_nothing_is_taken_the_rest_is_only_counted_and_the_sums_are_tried() -> None:
    assert published(Answer(0, "404"), Answer(5)) == ((8, 0, 5, 5), [3, 5], ["404"])


def test_where_nobody_is_nothing_more_is_tried() -> None:
    assert published(Answer(0, "nobody", answered=False)) == ((8, 0, 5, 0), [3], ["nobody"])


def test_a_signal_that_is_off_is_not_sent() -> None:
    sender = Telling()

    events, series = publish.publish(publish.Outgoing(None, None), sender, NOW)  # type: ignore[arg-type]

    assert (events.size, series.size, sender.sizes) == (0, 0, [])


def test_few_are_held_so_that_the_store_can_be_closed(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper.accept([line(run_id=f"r{n}") for n in range(3)], NOW)

    few = publish.outgoing(keeper.store, None)
    monkeypatch.setattr(publish, "MOST_HELD", 2)
    many = publish.outgoing(keeper.store, None)

    assert (few.held, many.held) == (True, False)
    assert [len(batch) for batch in few.events or ()] == [len(batch) for batch in many.events or ()] == [3]
    assert publish.outgoing(keeper.store, None, [Signal.LOGS, Signal.METRICS]) == (None, None, True)


# Content


MAY_LEAVE = {
    "agent",
    "agent_version",
    "contract",
    "environment",
    "error.type",
    "run_id",
    "service",
    "span_id",
    "thread_id",
    "trace_id",
}
OWN = {"schema", "kind", "record_id", "at", "attempt", "run_id", "extra"}
FREE = (identifiers.IDENTIFIER_PATTERN, identifiers.DISPLAY_NAME_PATTERN)


class Marked:
    """A value of a JSON schema with a mark of its own in every string that a writer may choose."""

    def __init__(self) -> None:
        self.marks: dict[str, str] = {}

    def of(self, schema: dict[str, Any], root: dict[str, Any], path: str) -> Any:  # noqa: ANN401, PLR0911 - a walk
        if "$ref" in schema:
            return self.of(root["$defs"][schema["$ref"].rpartition("/")[2]], root, path)
        if "anyOf" in schema:
            made = [self.of(each, root, path) for each in schema["anyOf"]]
            return next((each for each in made if each is not None), None)
        if "enum" in schema:
            return schema["enum"][0]
        if schema.get("pattern") in FREE:
            return self._mark(path)
        if "pattern" in schema and "format" not in schema:
            return {"span_id": "ab" * 8, "trace_id": "cd" * 16}.get(path)
        if schema.get("type") == "array":
            made = self.of(schema["items"], root, path)
            return None if made is None else [made]
        if "properties" in schema:
            return {
                name: self.of(each, root, f"{path}.{name}".lstrip(".")) for name, each in schema["properties"].items()
            }
        return {self._mark(f"{path}[]"): self._mark(path)} if "additionalProperties" in schema else None

    def _mark(self, path: str) -> str:
        mark = f"Mk{len(self.marks):04}z"
        self.marks[mark] = path
        return mark


def marked_lines() -> tuple[list[bytes], dict[str, str]]:
    marked, lines = Marked(), []
    for kind, made_by in model.MODELS.items():
        schema = TypeAdapter(made_by).json_schema()
        fields = {name: marked.of(each, schema, name) for name, each in schema["properties"].items() if name not in OWN}
        fields |= {"stop_cause": "tool_failure"} if kind == "run.stopped" else {}
        lines.append(line(kind, "Mk-run", **{name: value for name, value in fields.items() if value is not None}))
    return [each.replace(b'"run_id": "Mk-run", ', b"") if b"triage" in each else each for each in lines], marked.marks


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_mark_in_any_field_of_any_record_leaves_only_where_it_may(protocol: str, keeper: Keeper) -> None:
    lines, marks = marked_lines()
    taken = keeper.accept(lines, NOW)
    content = publish.outgoing(keeper.store, None)

    with (http_receiver if protocol == "http" else grpc_receiver)() as received:
        target = target_of(protocol, received.url, {})
        with Sender(target, publish.source_of(keeper.store, "1")) as sender:
            tallies = publish.publish(content, sender, NOW)

    sent = b"".join(received.bodies) + repr(received.headers).encode()
    left = {path for mark, path in marks.items() if mark.encode() in sent}
    assert (taken.accepted, taken.errors) == (len(model.MODELS), [])
    assert [tally.taken for tally in tallies] == [1, 1]
    assert len(marks) > 60
    assert left <= MAY_LEAVE
    assert {"agent", "error.type", "thread_id"} <= left  # the marks do reach the place where they are chosen
    assert b"resume" not in sent
