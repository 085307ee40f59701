"""The generated parts of docs/frameworks.md, its pages and the README: lines to add, versions, paths that were run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tables import ROOT, table

from stopcause.receipts.hooks import SPECS, Spec

RECORDED = ROOT / "fixtures" / "frameworks"
CONNECT = ROOT / "docs" / "connect"

TITLES = {
    "agent_framework": "Microsoft Agent Framework",
    "claude_agent_sdk": "Claude Agent SDK",
    "crewai": "CrewAI",
    "google_adk": "Google ADK",
    "langgraph": "LangGraph, LangChain `create_agent`",
    "llama_index": "LlamaIndex workflows",
    "openai_agents": "OpenAI Agents SDK",
    "pydantic_ai": "Pydantic AI",
    "smolagents": "smolagents",
    "strands": "Strands Agents",
    "temporal": "Temporal",
}
# How sure a cause is, by where it was seen.
SURE = {
    "call": "what the call gave back",
    "callback": "the framework's own event or field",
    "exception": "the class of what it raised",
    "event_stream": "the stream's end, or its reader's leaving",
    "platform": "what its engine says of it",
}


def lines(framework: str) -> str:
    """The lines that add a hook."""
    return f"```python\n{(CONNECT / f'{_dashed(framework)}.py').read_text('utf-8').rstrip()}\n```"


def all_lines() -> str:
    """Those of every framework, under its title, which leads to its page."""
    return "\n\n".join(f"[{TITLES[spec.name]}]({_page(spec)}):\n\n{lines(spec.name)}" for spec in SPECS)


def _page(spec: Spec) -> str:
    return f"docs/frameworks/{_dashed(spec.name)}.md"


def versions() -> str:
    """What each hook is tested with."""
    rows = (
        (
            f"[{TITLES[spec.name]}](frameworks/{_dashed(spec.name)}.md)",
            f"`{spec.name}`",
            f"`{spec.distribution}`",
            f"{spec.lowest} up to, not with, {spec.below}",
            *_tried(spec),
        )
        for spec in SPECS
    )
    return table(("framework", "hook", "package", "range", "oldest run", "newest run", "paths"), rows)


def _tried(spec: Spec) -> tuple[str, str, str]:
    oldest, newest = (_pinned(spec, which) for which in ("oldest", "newest"))
    return oldest, newest, str(len(_cases(spec.name)))


def _pinned(spec: Spec, which: str) -> str:
    pins = (ROOT / "requirements" / "frameworks" / f"{_dashed(spec.name)}-{which}.txt").read_text("utf-8")
    return next(line.partition("==")[2] for line in pins.splitlines() if line.startswith(f"{spec.distribution}=="))


def paths(framework: str) -> str:
    """Every path: what happens, what the receipt says, how sure that is, and the verdict."""
    return table(("path", "what happens", "cause", "how sure", "verdict"), map(_row, _cases(framework)))


def _row(case: dict[str, Any]) -> tuple[str, ...]:
    stop = _receipt(case)
    name = case["id"].partition("-")[2] if case["id"].count("-") else case["id"]
    cause = f"`{stop['stop_cause']}`" if stop else "none: it is open"
    sure = SURE[stop.get("boundary", "call")] if stop else "nothing was seen yet"
    expected = case["expected"]
    verdict = f"`{expected['verdict']}` {expected['reason']}" if expected["verdict"] else expected["reason"]
    return f"`{name}`", case["why"], cause, sure, verdict


def _receipt(case: dict[str, Any]) -> dict[str, Any] | None:
    """The receipt of the run that the case is about, of its last attempt."""
    run_id = case.get("run_id") or case["records"][0]["run_id"]
    stops = [each for each in case["records"] if each["kind"] == "run.stopped" and each["run_id"] == run_id]
    return max(stops, key=lambda each: each.get("attempt", 1), default=None)


def _cases(framework: str) -> list[dict[str, Any]]:
    return list(_read(RECORDED / framework))


def _read(folder: Path) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob("*.json")):
        yield json.loads(path.read_text("utf-8"))


def _dashed(framework: str) -> str:
    return framework.replace("_", "-")
