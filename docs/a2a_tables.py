"""The generated part of docs/a2a.md: what each state of a task means."""

from __future__ import annotations

from tables import table

from stopcause.receipts.a2a import STATES, State


def states() -> str:
    """Every state, in the order of the enum."""
    return table(("state", "number", "the run"), (_row(*each) for each in STATES.items()))


def _row(word: str, state: State) -> tuple[str, ...]:
    number = "only in 0.3" if state.number is None else str(state.number)
    return f"`{word}`", number, f"stopped: `{state.cause}`" if state.wait is None else f"waits: `{state.wait}`"
