"""What stands between an agent and AG-UI: as the host says, as what is loaded says, or nobody."""

from __future__ import annotations

import sys
from importlib import metadata
from types import ModuleType

import pytest

from stopcause.agui import integration as home
from stopcause.agui.integration import integration

STARLETTE = metadata.version("starlette")


@pytest.fixture(autouse=True)
def _nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in home._KNOWN:
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize(
    ("said", "version"),
    [("ag-ui-none@0.0.47", "0.0.47"), ("ag-ui-none", None), ("starlette", STARLETTE), ("starlette@9", "9")],
)
def test_what_the_host_says_counts_and_an_installed_package_knows_its_version(said: str, version: str | None) -> None:
    assert integration(said, is_here=True) == {"framework": said.partition("@")[0], "framework_version": version}


def test_the_one_that_is_loaded_is_meant_and_none_where_there_are_several(monkeypatch: pytest.MonkeyPatch) -> None:
    assert integration(None, is_here=True) == {}
    monkeypatch.setitem(sys.modules, "ag_ui_langgraph", ModuleType("ag_ui_langgraph"))
    assert integration(None, is_here=True)["framework"] == "ag-ui-langgraph"
    assert integration(None, is_here=False) == {}  # a client's process says nothing about its server
    monkeypatch.setitem(sys.modules, "ag_ui_strands", ModuleType("ag_ui_strands"))
    assert integration(None, is_here=True) == {}


def test_a_package_that_breaks_when_it_is_asked_breaks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_name: str) -> str:
        raise OSError

    monkeypatch.setattr(metadata, "version", broken)
    assert integration("starlette", is_here=True) == {"framework": "starlette", "framework_version": None}


@pytest.mark.parametrize("said", [5, b"ag-ui-langgraph", [], True])
def test_what_is_no_text_says_nothing(said: object) -> None:
    assert integration(said, is_here=False) == {}  # type: ignore[arg-type]
