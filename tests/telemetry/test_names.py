"""Names that others' dashboards rest on, and words that a scrubber would redact."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from stopcause.classifier.verdict import VerdictName
from stopcause.telemetry import names

EVERY = [names.JUDGED, names.RUNS.name, *names.Attribute, *names.Label]
BORROWED = {
    "gen_ai.agent.name",
    "gen_ai.agent.version",
    "gen_ai.conversation.id",
    "gen_ai.operation.name",
    "error.type",
    "deployment.environment.name",
}


@pytest.mark.parametrize("name", EVERY)
def test_no_name_has_a_word_that_scrubbers_redact(name: str) -> None:
    assert not any(word in name for word in names.REDACTED)


@pytest.mark.parametrize("attribute", names.Attribute)
def test_an_attribute_is_ours_or_one_that_opentelemetry_has(attribute: names.Attribute) -> None:
    assert attribute.startswith("stopcause.") or attribute in BORROWED
    assert re.fullmatch(r"[a-z]+([._][a-z]+)+", attribute)
    assert attribute.meaning


@pytest.mark.parametrize("attribute", names.Attribute)
def test_no_attribute_is_also_the_head_of_another(attribute: names.Attribute) -> None:
    assert not [other for other in names.Attribute if other.startswith(f"{attribute}.")]


def test_the_page_names_every_one_with_its_meaning() -> None:
    page = (Path(__file__).parents[2] / "docs" / "otlp.md").read_text("utf-8")

    for name in (*names.Attribute, *names.Label):
        assert f"| `{name}` | {name.meaning} |" in page


def test_the_metric_takes_no_id() -> None:
    assert [str(label) for label in names.Label] == ["verdict", "reason", "cause", "agent", "environment"]


def test_the_name_in_prometheus() -> None:
    assert (names.RUNS.name, names.RUNS.prometheus) == ("stopcause.runs", "stopcause_runs_total")


def test_every_verdict_has_a_severity() -> None:
    assert set(names.SEVERITY) == set(VerdictName)
    assert {name for name, word in names.SEVERITY.items() if word == "ERROR"} == {"STUCK", "FAILED"}


def test_the_overflow_mark_is_the_sdks_own() -> None:
    reader = InMemoryMetricReader()
    counter = MeterProvider([reader], shutdown_on_exit=False).get_meter("m").create_counter("c")
    for number in range(2100):
        counter.add(1, {"n": number})
    data = reader.get_metrics_data()
    assert data

    points = data.resource_metrics[0].scope_metrics[0].metrics[0].data.data_points
    folded = [dict(point.attributes or {}) for point in points if "n" not in (point.attributes or {})]
    assert folded == [{names.OVERFLOW: True}]
