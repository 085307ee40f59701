"""The shapes of strings, and the key that replaces what names a person."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stopcause.errors import InputError
from stopcause.receipts import identifiers, pseudonyms


@pytest.fixture(autouse=True)
def _no_key_remembered() -> None:
    pseudonyms.hmac_key.cache_clear()
    pseudonyms.pseudonym.cache_clear()


@given(st.text())
def test_a_display_name_is_a_name_or_nothing(text: str) -> None:
    name = identifiers.display_name(text)

    assert name is None or (1 <= len(name) <= 64 and " " not in name and "\n" not in name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("invoice agent", "invoice_agent"),
        ("  invoice   agent ", "invoice_agent"),
        ("Rechnungsprüfer", "Rechnungsprüfer"),
        ("m-large-2:latest", "m-large-2:latest"),
        ("m²", None),
        ("", None),
        ("a" * 65, None),
        ("what (is) this?", None),
    ],
)
def test_spaces_of_a_display_name_become_underscores(text: str, name: str | None) -> None:
    assert identifiers.display_name(text) == name


def test_a_key_is_made_once_and_only_its_owner_can_read_it(own_data: Path) -> None:
    first = pseudonyms.hmac_key()
    pseudonyms.hmac_key.cache_clear()

    path = own_data / "hmac.key"
    assert pseudonyms.hmac_key() == first == path.read_bytes()
    assert len(first) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(own_data.iterdir()) == [path]


def test_processes_that_start_at_once_end_up_with_one_key() -> None:
    code = "from stopcause.receipts.pseudonyms import pseudonym; print(pseudonym('bob@example.com'))"
    started = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(4)]

    said = {process.communicate()[0] for process in started}

    assert len(said) == 1


def test_the_key_of_the_settings_decides(monkeypatch: pytest.MonkeyPatch, own_data: Path) -> None:
    monkeypatch.setenv("STOPCAUSE_HMAC_KEY", "one")
    one = pseudonyms.pseudonym("bob@example.com")
    pseudonyms.hmac_key.cache_clear()
    pseudonyms.pseudonym.cache_clear()
    monkeypatch.setenv("STOPCAUSE_HMAC_KEY", "two")

    assert pseudonyms.pseudonym("bob@example.com") != one
    assert not list(own_data.iterdir())


def test_an_empty_key_is_refused_and_never_used(own_data: Path) -> None:
    (own_data / "hmac.key").touch()

    with pytest.raises(InputError, match="is empty: remove it"):
        pseudonyms.pseudonym("bob@example.com")


def test_a_key_that_cannot_be_kept_says_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("STOPCAUSE_DATA", str(blocked))

    with pytest.raises(InputError, match="STOPCAUSE_HMAC_KEY"):
        pseudonyms.pseudonym("bob@example.com")
