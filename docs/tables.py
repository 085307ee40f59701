"""The generated parts of README and docs. cog runs these; `make docs` writes them, `make check` compares.

Each function returns Markdown. What they print comes from the code (cards, vocabulary, settings, the program itself),
so a document cannot say something else than the program does.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from stopcause import settings
from stopcause.classifier import contradictions, verdict
from stopcause.classifier.rules import RULES
from stopcause.receipts import vocabulary
from stopcause.receipts.vocabulary import Word

ROOT = Path(__file__).parents[1]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


def precedence() -> str:
    """The eight rules, short: for the README."""
    rows = ((str(number), f"`{rule.verdict}`", rule.matches_when, rule.action) for number, rule in enumerate(RULES, 1))
    return table(("", "verdict", "matches when", "what to do"), rows)


def cards() -> str:
    """Every rule with its whole card."""
    parts = [
        "\n".join(
            (
                f"### {number}. {rule.verdict}",
                "",
                f"{rule.stands_here}",
                "",
                f"- **Matches when** {rule.matches_when}.",
                f"- **Reads** {', '.join(f'`{field}`' for field in rule.reads)}.",
                f"- **Reasons, in order** {', '.join(f'`{each}`' for each in rule.reasons)}.",
                f"- **What to do** {rule.action}",
                f"- **Retry** {rule.retry}.",
                f"- **Cases** {', '.join(rule.cases)}.",
            )
        )
        for number, rule in enumerate(RULES, 1)
    ]
    return "\n\n".join(parts)


def contradiction_table() -> str:
    """What voids evidence, in the order in which it is named."""
    first = (f"`{contradictions.TWO_TERMINALS}`", "two terminals of one rank disagree")
    rows = ((f"`{card.code}`", card.seen_when) for card in contradictions.CONTRADICTIONS)
    return table(("code", "seen when"), (first, *rows))


def words(*lists: type[Word]) -> str:
    """Closed lists, one table each."""
    return "\n\n".join(
        f"**{_spaced(each.__name__)}**\n\n" + table(("word", "meaning"), ((f"`{word}`", word.meaning) for word in each))
        for each in lists
    )


def _spaced(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()


def vocabulary_lists() -> str:
    """All closed lists of the wire format, and the words of verdicts."""
    found = [each for each in vars(vocabulary).values() if isinstance(each, type) and issubclass(each, Word)]
    return words(*(each for each in found if each is not Word), verdict.VerdictName, verdict.Missing, verdict.Retry)


def case_folders(sources: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """The folders of cases: how many each holds, and where they come from."""
    folders = {path.name: path for path in (ROOT / "fixtures").iterdir() if path.is_dir()}
    if sources.keys() != folders.keys():
        raise ValueError(f"say where these cases come from: {sorted(folders.keys() ^ sources.keys())}")
    for name, source in sources.items():
        cases = [path for path in folders[name].rglob("*.json") if path.name != "assertions.json"]
        yield f"`{name}/`", str(len(cases)), source


def settings_table() -> str:
    """Every environment variable that is read."""
    rows = ((f"`{row.env}`", row.meaning, row.default or "not set") for row in settings.SETTINGS)
    return table(("variable", "what it is for", "without it"), rows)


# Under its bare name: help and hints name the program as it was started, and that must not be a path of this machine.
_PROGRAM = "import sys; sys.argv[0] = 'stopcause'; from stopcause.__main__ import main; main()"


def run(*arguments: str, code: int = 0) -> str:
    """What the program prints, as a code block. Its own data folder, no colour, 80 columns, UTC.

    Args:
        arguments: The command.
        code: What it has to end with.
    """
    with tempfile.TemporaryDirectory() as data:
        env = {
            "PATH": os.environ["PATH"],
            "STOPCAUSE_DATA": data,
            "NO_COLOR": "1",
            "COLUMNS": "80",
            "TZ": "UTC",
            "LANG": "C.UTF-8",
        }
        done = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-c", _PROGRAM, *arguments],
            cwd=ROOT,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != code:
        raise ValueError(f"{arguments} ends with {done.returncode}: {done.stderr}")
    return f"```\n$ stopcause {' '.join(arguments)}\n{done.stdout.rstrip()}\n```"


def commands() -> str:
    """The help of every command, and of every command of a group."""
    return "\n\n".join(_helps())


def _helps(*path: str) -> Iterator[str]:
    said = run(*path, "--help")
    yield said
    for name in re.findall(r"^  ([a-z]+)  ", said, re.MULTILINE):
        yield from _helps(*path, name)
