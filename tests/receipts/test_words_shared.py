"""The closed lists that the AI SDK hook chooses words from are the wire format's."""

from __future__ import annotations

import re
from pathlib import Path

from stopcause.receipts import vocabulary

WORDS = (Path(__file__).parents[2] / "ai-sdk" / "src" / "words.js").read_text("utf-8")


def listed(name: str) -> set[str]:
    found = re.search(rf"const {name} = new Set\(\[(.*?)\]\)", WORDS, re.DOTALL)
    assert found is not None
    own = set(re.findall(r"'([a-z_]+)'", found[1]))
    return own.union(*(listed(other) for other in re.findall(r"\.\.\.([A-Z]+)", found[1])))


def test_the_lists_are_the_same() -> None:
    assert listed("LIMIT_KINDS") == set(vocabulary.LimitKind)
    assert listed("ABORTED") == vocabulary.ABORTED
    assert listed("WAITING") == vocabulary.WAITING
    assert listed("FAILED") == vocabulary.FAILED
    assert listed("STOP_CAUSES") == set(vocabulary.StopCause)
