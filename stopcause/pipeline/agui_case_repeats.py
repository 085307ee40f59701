"""Cases that need many of something: in a list, `{"repeat": 900, "id": "i-{n}"}` stands for 900 objects, i-1 to i-900.

Only in case files, and one within another is not repeated. What is no such object is as broken as its case needs it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = Any  # what a JSON document holds

MOST = 10_000  # of one object
_NUMBER = "{n}"


def repeated(value: Json) -> Json:
    """The value, written out. One that is nested deeper than Python goes has no repeats."""
    try:
        return _written_out(value)
    except RecursionError:
        return value


def _written_out(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _written_out(each) for name, each in value.items()}
    return [each for item in value for each in _all_of(item)] if isinstance(value, list) else value


def _all_of(item: Json) -> Iterator[Json]:
    number = item.get("repeat") if isinstance(item, dict) else None
    if type(number) is not int or not 0 < number <= MOST:
        yield _written_out(item)
        return
    pattern = {name: value for name, value in item.items() if name != "repeat"}
    yield from (_numbered(pattern, str(place)) for place in range(1, number + 1))


def _numbered(value: Json, number: str) -> Json:
    if isinstance(value, dict):
        return {name: _numbered(each, number) for name, each in value.items()}
    if isinstance(value, list):
        return [_numbered(each, number) for each in value]
    return value.replace(_NUMBER, number) if isinstance(value, str) else value
