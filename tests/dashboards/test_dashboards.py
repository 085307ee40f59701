"""What a dashboard must be so that it works in anybody's Grafana: the linter's rules, PromQL that parses, known names.

The rules are those of Grafana's dashboard-linter, which is a Go program. Left out: templates and matchers for `job` and
`instance`. One sender pushes the counter, and what a receiver calls its job differs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest

from stopcause.classifier.rules import RULES
from stopcause.classifier.verdict import VerdictName
from stopcause.receipts.vocabulary import StopCause
from stopcause.resources import data_folder
from stopcause.telemetry import names

FILES = sorted(data_folder("dashboards").glob("*.json"))
UNITS = {"short", "percentunit", "s"}
VARIABLES = {"$__rate_interval": "5m", "$__range": "1d", "$environment": ".*", "$agent": ".*"}
LABELS = {str(label) for label in names.Label}
WORDS: dict[str, set[str]] = {
    "verdict": {*VerdictName},
    "reason": {reason for rule in RULES for reason in rule.reasons},
    "cause": {*StopCause},
}


def dashboard(path: Path) -> Any:  # noqa: ANN401 - any JSON
    return json.loads(path.read_text("utf-8"))


PANELS = [
    pytest.param(panel, id=f"{path.stem}-{panel['title']}") for path in FILES for panel in dashboard(path)["panels"]
]


def expressions(panel: dict[str, Any]) -> list[str]:
    return [target["expr"] for target in panel["targets"]]


def parsed(expression: str) -> Any:  # noqa: ANN401 - the parser's own tree
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression.replace("^$", "")
    return promql_parser.parse(expression)


def nodes(node: Any) -> Iterator[Any]:  # noqa: ANN401
    yield node
    for field in ("expr", "lhs", "rhs", "param", "vector_selector"):
        if (child := getattr(node, field, None)) is not None:
            yield from nodes(child)
    for child in getattr(node, "args", None) or ():
        yield from nodes(child)


def selectors(panel: dict[str, Any]) -> list[Any]:
    found = [node for expression in expressions(panel) for node in nodes(parsed(expression))]
    return [node for node in found if type(node).__name__ == "VectorSelector"]


def test_there_is_one() -> None:
    assert [path.name for path in FILES] == ["overview.json"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_dashboard_is_templated_and_not_edited_in_place(path: Path) -> None:
    it = dashboard(path)
    variables = {each["name"]: each for each in it["templating"]["list"]}

    assert (it["editable"], it["schemaVersion"]) == (False, 39)
    assert list(variables) == ["datasource", "environment", "agent"]
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    for name in ("environment", "agent"):
        assert variables[name]["refresh"] == 2  # when the time changes
        assert variables[name]["multi"]
        assert variables[name]["includeAll"]
        assert variables[name]["allValue"] == ".*"  # so that what has no such label is in "All"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_datasource_is_fixed(path: Path) -> None:
    text = path.read_text("utf-8")

    assert set(re.findall(r'"datasource": \{\s*"type": "(.*?)",\s*"uid": "(.*?)"', text)) == {
        ("prometheus", "$datasource")
    }
    assert "__inputs" not in text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_panels_have_their_own_ids_and_do_not_overlap(path: Path) -> None:
    panels = dashboard(path)["panels"]
    taken = [
        (x, y)
        for grid in (panel["gridPos"] for panel in panels)
        for x in range(grid["x"], grid["x"] + grid["w"])
        for y in range(grid["y"], grid["y"] + grid["h"])
    ]

    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_variables_ask_for_names_that_exist(path: Path) -> None:
    for variable in dashboard(path)["templating"]["list"][1:]:
        found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
        assert found
        assert parsed(found[1]).name == names.RUNS.prometheus
        assert found[2] in LABELS


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_says_what_it_shows_and_in_which_unit(panel: dict[str, Any]) -> None:
    assert panel["title"].strip()
    assert len(panel["description"]) > 40
    assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
    assert panel["targets"]
    assert {target["refId"] for target in panel["targets"]} == {"A"}


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_asks_for_a_metric_and_labels_that_exist(panel: dict[str, Any]) -> None:
    found = selectors(panel)

    assert {each.name for each in found} == {names.RUNS.prometheus}
    for selector in found:
        assert {matcher.name for matcher in selector.matchers.matchers} <= LABELS
    for expression in expressions(panel):
        for by in re.findall(r"by \(([^)]*)\)", expression):
            assert set(by.split(", ")) <= LABELS
    for legend in re.findall(r"\{\{(\w+)\}\}", panel["targets"][0]["legendFormat"]):
        assert legend in LABELS


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_asks_for_words_that_exist(panel: dict[str, Any]) -> None:
    """A word that no list has would be an empty panel."""
    for selector in selectors(panel):
        for matcher in selector.matchers.matchers:
            if matcher.name in WORDS:
                assert set(matcher.value.split("|")) <= WORDS[matcher.name]


@pytest.mark.parametrize("panel", PANELS)
def test_every_selector_is_within_the_chosen_environment_and_agent(panel: dict[str, Any]) -> None:
    for expression in expressions(panel):
        selected = expression.count(names.RUNS.prometheus)
        assert expression.count('environment=~"$environment",agent=~"$agent"') == selected


@pytest.mark.parametrize("panel", PANELS)
def test_a_counter_is_read_as_an_increase_over_the_right_time(panel: dict[str, Any]) -> None:
    """A line asks for each interval, with at least two samples in it; a number asks for all of the chosen time."""
    drawn = panel["type"] == "timeseries"
    span = "$__rate_interval" if drawn else "$__range"

    for target in panel["targets"]:
        assert target["expr"].count("increase(") == target["expr"].count(f"[{span}]") > 0
        assert target["instant"] is not drawn
    assert panel.get("interval") == ("5m" if drawn else None)


def test_a_broken_expression_would_be_found() -> None:
    with pytest.raises(ValueError, match="unclosed"):
        parsed("sum(increase(stopcause_runs_total[5m])")


def test_every_verdict_that_can_settle_has_a_colour_of_its_own() -> None:
    overrides = dashboard(FILES[0])["panels"][4]["fieldConfig"]["overrides"]

    coloured = {each["matcher"]["options"] for each in overrides}
    assert coloured == set(VerdictName) - {VerdictName.WAITING_UNROUTED}
