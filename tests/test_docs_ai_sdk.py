"""The examples of docs/ai-sdk.md run as they stand, and the runs in them stop for the causes that they name."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.node import AI_SDK, node

PAGE = (AI_SDK.parent / "docs" / "ai-sdk.md").read_text("utf-8")
GIVEN = (Path(__file__).parent / "support" / "examples.mjs").read_text("utf-8")
EXAMPLES = [
    code for code in re.findall(r"^```js\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) if "./agent.js" not in code
]
CAUSE = re.compile(r"^// stop cause: (\w+)$", re.MULTILINE)
END = """
await flush();
await Promise.all(deliveries);
receiver.close();
console.error(JSON.stringify(causes));
"""


def test_there_are_examples_and_each_names_a_cause() -> None:
    assert len(EXAMPLES) >= 7
    assert all(CAUSE.findall(example) for example in EXAMPLES)


def stop_causes(example: str, **more: str) -> list[str]:
    """The causes of the runs that an example records, in their order."""
    program = f"{GIVEN}\n{{\n{example}\nawait flush();\n}}\n{END}"
    run = subprocess.run(
        (node(), "--input-type=module"),
        input=program, capture_output=True, text=True, check=False, cwd=AI_SDK, timeout=60, env={**os.environ, **more},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    causes: list[str] = json.loads(run.stderr.splitlines()[-1])
    return causes


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.partition("\n")[0])
def test_an_example_runs_and_stops_for_the_cause_that_it_names(example: str) -> None:
    assert stop_causes(example) == CAUSE.findall(example)


def test_switched_off_the_examples_run_and_nothing_is_recorded() -> None:
    for example in EXAMPLES:
        if "deadlineMs" not in example and "runOf" not in example:  # these need what is switched off
            assert stop_causes(example, STOPCAUSE_DISABLED="1") == []
