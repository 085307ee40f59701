"""The generated parts of docs/ag-ui.md, docs/ag-ui-client.md and docs/ag-ui-rules.md: endings, codes, rules."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tables import ROOT, run, table

from stopcause.agui import cards
from stopcause.agui.endings import CAUSE_OF_CODE
from stopcause.agui.words import Effect, Ending, Level, Mode, Section, Side, State
from stopcause.pipeline import agui_rules
from stopcause.render.agui_rules import RuleLine

CONNECT = ROOT / "docs" / "connect"
_SPECIFICATION = "https://docs.ag-ui.com/spec/1.0"
_NO_PAGES = frozenset({Section.BEFORE, Section.OURS})


def lines(name: str) -> str:
    """The lines of a file of docs/connect."""
    return f"```python\n{(CONNECT / f'{name}.py').read_text('utf-8').rstrip()}\n```"


def words(kind: type[Effect | Ending | Mode | State | Level | Section | Side]) -> str:
    """A closed list."""
    return table(("word", "meaning"), ((f"`{word}`", word.meaning) for word in kind))


def rules(heading: str) -> str:
    """The rules of one moment, with the text that each is of and its two cases."""
    group = next(each for each in agui_rules.groups() if each.heading == heading)
    rows = (
        (each.rule, f"`{each.finding}`", each.side, _level(each), each.meaning, *_more(each)) for each in group.lines
    )
    return table(("rule", "finding", "whose", "how much", "what it is", "stands in", "verdict", "cases"), rows)


def _level(line: RuleLine) -> str:
    newest, before, _ = line.levels.values()
    return newest if before == newest else f"{newest}; before 1.0 {before}"


def _more(line: RuleLine) -> tuple[str, str, str]:
    cases = " ".join(
        f"[{word}](../fixtures/agui/rules/{name}.json)"
        for word, name in (("found", line.failing), ("not", line.passing))
    )
    return _page(line.section), line.effect, cases


def _page(section: str) -> str:
    return section if section in _NO_PAGES else f"[{section}]({_SPECIFICATION}/{section})"


def broken_rules() -> str:
    """Those that weigh something in one of the contracts, as the rows of a report's own table."""
    rows = (
        (
            card.name.lower(),
            card.rule,
            card.name,
            card.side,
            card.level_in(Mode.SPEC),
            card.level_in(Mode.LEGACY_OUTCOME),
        )
        for card in cards.CARDS
        if {card.level_in(mode) for mode in Mode} != {Level.NOTE}
    )
    return ",\n".join(f"    ({', '.join(map(repr, map(str, row)))})" for row in rows)


def elsewhere() -> str:
    """The rules that no finding stands for."""
    return table(("rule", "where it is kept"), cards.ELSEWHERE.items())


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
