"""The generated parts of docs/ag-ui.md and docs/ag-ui-client.md: endings, codes, findings."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tables import ROOT, run, table

from stopcause.agui.cards import CARDS, Card
from stopcause.agui.endings import CAUSE_OF_CODE
from stopcause.agui.words import Ending, Level, Mode, Side, State

CONNECT = ROOT / "docs" / "connect"
_BEFORE_SENDING = range(50, 66)


def lines(name: str) -> str:
    """The lines of a file of docs/connect."""
    return f"```python\n{(CONNECT / f'{name}.py').read_text('utf-8').rstrip()}\n```"


def words(kind: type[Ending | Mode | State | Level | Side]) -> str:
    """A closed list."""
    return table(("word", "meaning"), ((f"`{word}`", word.meaning) for word in kind))


def refused() -> str:
    """What the guard looks for before an input is sent."""
    return _cards(card for card in CARDS if _number(card) in _BEFORE_SENDING)


def found() -> str:
    """What is found in streams and threads."""
    return _cards(card for card in CARDS if _number(card) not in _BEFORE_SENDING)


def _number(card: Card) -> int:
    return int(card.rule[1:])


def _cards(cards: Iterable[Card]) -> str:
    rows = ((card.rule, f"`{card.name}`", card.side, _level(card), card.meaning) for card in cards)
    return table(("rule", "finding", "whose", "how much", "what it is"), rows)


def _level(card: Card) -> str:
    before = f"; before 1.0 {card.before}" if card.before else ""
    return f"{card.level}{', fatal' if card.is_fatal else ''}{before}"


def codes() -> str:
    """What a code of RUN_ERROR means."""
    by_cause: dict[str, list[str]] = {}
    for code, cause in CAUSE_OF_CODE.items():
        by_cause.setdefault(cause, []).append(f"`{code}`")
    return table(("stop cause", "codes"), ((f"`{cause}`", ", ".join(names)) for cause, names in by_cause.items()))


def checked() -> str:
    """What `agui check` prints of an input that answers one of two."""
    history = "fixtures/agui/recordings/st-partial.json"
    exchanges = json.loads((ROOT / history).read_text("utf-8"))["exchanges"]
    given = next(each["input"] for each in exchanges if each["input"].get("resume"))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "INPUT.json"
        file.write_text(json.dumps({**given, "runId": "r4"}), "utf-8")
        said = run("agui", "check", history, "--input", str(file), "--format", "table", code=1)
    return said.replace(str(file), file.name)
