"""What names a person, and the shapes of strings: the AI SDK hook and this package say the same of the same strings.

One list of examples (`shapes.json`) is read here and by the hook's own tests; beyond it both sides are asked about
thousands of strings made from those, over one Node process.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from stopcause.receipts import identifiers, model, pseudonyms
from tests.support.node import AI_SDK, answers

SUPPORT = AI_SDK / "test" / "support"
SHAPES: dict[str, Any] = json.loads((SUPPORT / "shapes.json").read_text(encoding="utf-8"))
KEY = SHAPES["key"]
MADE = 5_000
LETTERS = "@@@...:/+-_=~#0123456789abcdeXYZ"


@pytest.fixture(autouse=True)
def _no_key_remembered() -> None:
    pseudonyms.hmac_key.cache_clear()
    pseudonyms.pseudonym.cache_clear()


@pytest.mark.parametrize("shape", SHAPES["personal"], ids=lambda shape: shape["text"])
def test_the_list_says_what_names_a_person(shape: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPCAUSE_HMAC_KEY", KEY)

    assert identifiers.is_personal(shape["text"]) is shape["personal"]
    if shape["personal"]:
        assert pseudonyms.pseudonym(shape["text"]) == shape["pseudonym"]


def test_the_list_says_which_strings_are_identifiers_and_names() -> None:
    assert [identifiers.is_identifier(each["text"]) for each in SHAPES["identifiers"]] == [
        each["identifier"] for each in SHAPES["identifiers"]
    ]
    assert [identifiers.display_name(each["text"]) for each in SHAPES["names"]] == [
        each["name"] for each in SHAPES["names"]
    ]


def test_node_says_the_same_of_strings_that_nobody_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOPCAUSE_HMAC_KEY", KEY)
    texts = _made()

    said = answers(SUPPORT / "shapes.mjs", texts)

    expected = [
        {
            "identifier": identifiers.is_identifier(text),
            "name": identifiers.display_name(text),
            "personal": identifiers.is_personal(text),
            "owner": _owner(text),
        }
        for text in texts
    ]
    assert sum(each["personal"] for each in said) > MADE // 10
    assert [pair for pair in zip(said, expected, texts, strict=True) if pair[0] != pair[1]] == []


def test_every_name_that_the_hook_writes_is_one_that_the_reader_takes() -> None:
    reader: TypeAdapter[str] = TypeAdapter(model.DisplayName)
    texts = [f"a{chr(code)}" for code in range(0x3000) if not 0xD800 <= code < 0xE000]

    names = [each["name"] for each in answers(SUPPORT / "shapes.mjs", texts)]

    refused = [name for name in names if name is not None and not _takes(reader, name)]
    assert sum(name is not None for name in names) > 5_000
    assert refused == []


def test_both_sides_keep_one_key(own_data: Path) -> None:
    [made_by_node] = answers(SUPPORT / "shapes.mjs", ["ann@example.com"])

    assert pseudonyms.pseudonym("ann@example.com") == made_by_node["owner"]
    assert (own_data / "hmac.key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in own_data.iterdir()] == ["hmac.key"]


def test_node_reads_the_key_that_was_there() -> None:
    expected = pseudonyms.pseudonym("ann@example.com")

    assert [each["owner"] for each in answers(SUPPORT / "shapes.mjs", ["ann@example.com"])] == [expected]


def _takes(reader: TypeAdapter[str], name: str) -> bool:
    try:
        reader.validate_python(name)
    except ValidationError:
        return False
    return True


def _owner(text: str) -> str | None:
    if not identifiers.is_identifier(text):
        return None
    return pseudonyms.pseudonym(text) if identifiers.is_personal(text) else text


def _made() -> list[str]:
    """Two listed strings cut and joined, then a letter changed: near what decides, on both sides of it."""
    chance = random.Random(4)  # noqa: S311 - no secret
    listed = [each["text"] for each in SHAPES["personal"]]
    made = []
    for _ in range(MADE):
        one, other = chance.choice(listed), chance.choice(listed)
        text = one + other[chance.randrange(len(other)) :] if chance.random() < 0.5 else one
        at = chance.randrange(len(text))
        made.append(text[:at] + chance.choice(LETTERS) + text[at + chance.randrange(2) :])
    return made
