"""What importing stopcause costs an agent, and that the door says how to get the rest."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("duckdb", "pyarrow", "rich", "typer", "click", "starlette", "opentelemetry.sdk", "langgraph", "strands")


def loaded_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import stopcause",
        "import stopcause.receipts",
        "from stopcause.receipts import codec, journal, model, stop_conditions, vocabulary",
    ],
)
def test_importing_receipts_loads_nothing_heavy(statement: str) -> None:
    loaded = loaded_after(statement)

    assert not loaded & set(HEAVY)


def test_the_front_door_loads_nothing_at_all() -> None:
    loaded = loaded_after("import stopcause")

    assert "pydantic" not in loaded


def test_the_classifier_does_without_store_and_terminal() -> None:
    loaded = loaded_after("from stopcause.classifier import engine")

    assert not loaded & set(HEAVY)
