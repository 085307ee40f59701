"""The fields of a case file, asked one by one, so that a message names file, line and field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from stopcause.classifier.verdict import VerdictName
from stopcause.errors import InputError
from stopcause.receipts import model

_WANTED: Mapping[type, str] = {
    str: "a string",
    int: "a whole number",
    list: "a list",
    dict: "an object",
    bool: "true or false",
}


class Fields:
    """The fields of a JSON object, asked one by one; a message names file, line and field."""

    def __init__(self, value: object, path: Path, place: str) -> None:
        self._path, self._place = path, place
        if not isinstance(value, dict):
            raise InputError(f"{path}: {place}is no JSON object; fixtures/README.md shows what a case file has")
        self._value = value

    def wrong(self, name: str, wanted: str) -> InputError:
        """The error to raise; it says whether the field is missing or has another shape."""
        fault = "is missing" if self._value.get(name) is None else "has the wrong shape"
        return InputError(f"{self._path}: {self._place}{name}: {fault}; give {wanted}")

    def find(self, name: str, kind: type) -> Any:  # noqa: ANN401 - a JSON value of that kind
        """The field, or None where it is absent or null."""
        value = self._value.get(name)
        if value is not None and (not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)):
            raise self.wrong(name, _WANTED[kind])
        return value

    def get(self, name: str, kind: type) -> Any:  # noqa: ANN401 - a JSON value of that kind
        """The field, which has to be there."""
        value = self.find(name, kind)
        if value is None:
            raise self.wrong(name, _WANTED[kind])
        return value

    def has(self, name: str) -> bool:
        """Whether it is there, be it null."""
        return name in self._value

    def texts(self, name: str) -> list[str]:
        """A list of strings; empty where it is absent."""
        values = self._value.get(name, [])
        if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
            raise self.wrong(name, "a list of strings")
        return values

    def one_of(self, name: str, words: Sequence[str]) -> None:
        """One of these words, or absent."""
        if self.has(name) and self._value[name] not in words:
            raise self.wrong(name, f"one of {', '.join(words)}")

    def inner(self, name: str) -> Fields | None:
        """The fields of an object in it; None where it is absent or null."""
        value = self.find(name, dict)
        return None if value is None else Fields(value, self._path, f"{self._place}{name}.")

    def inner_all(self, name: str) -> list[Fields]:
        """The same of a list of objects; none where it is absent."""
        values = self._value.get(name, [])
        if not isinstance(values, list) or not all(isinstance(each, dict) for each in values):
            raise self.wrong(name, "a list of objects")
        return [Fields(each, self._path, f"{self._place}{name}.{at}.") for at, each in enumerate(values)]

    def time(self, name: str) -> datetime:
        """A time with its offset, in UTC."""
        try:
            return model.parse_time(self._value.get(name))
        except ValueError:
            raise self.wrong(name, "a time with offset, as 2026-11-28T08:00:00Z") from None

    def verdict(self, name: str) -> VerdictName | None:
        """A verdict; null says that the run goes on."""
        value = self._value.get(name)
        if value is None and name in self._value:
            return None
        try:
            return VerdictName(str(value))
        except ValueError:
            raise self.wrong(name, f"one of {', '.join(VerdictName)}, or null while it runs") from None
