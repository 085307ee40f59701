"""A few of the recorded runs of the AI SDK: enough for a small store, and as few however many more are recorded."""

from __future__ import annotations

from pathlib import Path

from stopcause.resources import data_folder

FEW = (
    "generate-approval-routed",
    "generate-approval-unrouted",
    "generate-done-with-outcome",
    "generate-done-without-outcome",
    "generate-length-truncated",
    "generate-natural-with-outcome",
    "generate-natural-without-outcome",
    "generate-step-limit",
    "generate-timeout",
    "generate-timeout-in-tool-of-limit-step",
    "generate-token-budget",
    "generate-tool-error",
    "generate-user-abort",
    "stream-s-abort",
    "stream-s-err-step2",
    "stream-s-natural",
    "stream-s-timeout",
)


def few() -> list[Path]:
    """Their case files: 17 runs, two of which wait."""
    return [data_folder("fixtures") / "ai_sdk" / f"{name}.json" for name in FEW]


def only_few(folder: str, names: list[str]) -> set[str]:
    """For `shutil.copytree`: of the recorded runs, what to leave out."""
    if Path(folder).name == "ai_sdk":
        return {name for name in names if Path(name).stem not in FEW}
    return {"frameworks"} & set(names)
