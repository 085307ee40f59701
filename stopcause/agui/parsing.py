"""Bytes -> a JSON value, as tolerant as the consumers are that read the same bytes.

Fast by pydantic-core. What that refuses and JSON allows (half a surrogate pair, an integer of 5,000 digits), and bytes
that are no UTF-8, which browsers replace, go the slow way by the standard library. NaN and infinity are no JSON.
"""

from __future__ import annotations

import json
from typing import NoReturn

from pydantic_core import from_json

from stopcause.agui.ids import whole
from stopcause.agui.values import Json

DEEPEST = 200  # levels: the limit of pydantic-core, and what a recursion over a value may count on
_MOST_DIGITS = 4300  # of an integer; Python turns no longer one into text


class TooDeepError(ValueError):
    """JSON that is nested deeper than this reader follows."""


def read_json(text: bytes, *, around: int = 0) -> Json:
    """The value that stands there. Strings in it are whole Unicode, integers can be written, numbers may be infinite.

    Args:
        text: One JSON value, with white space around it at most.
        around: How many levels more than `DEEPEST` it may have, since it holds values that may have as many.

    Raises:
        TooDeepError: It is nested deeper.
        ValueError: It is no JSON. The error may hold the text: it is not to be shown or kept.
    """
    try:
        return from_json(text, allow_inf_nan=False, cache_strings="keys")
    except ValueError:
        return _read_slowly(text, DEEPEST + around)


def _read_slowly(text: bytes, deepest: int) -> Json:
    try:
        value = json.loads(text.decode("utf-8", "replace"), parse_constant=_refuse, parse_int=_integer)
        return _mended(value, deepest)
    except RecursionError:
        raise TooDeepError from None


def _mended(value: Json, room: int) -> Json:
    if isinstance(value, str):
        return whole(value)
    if not isinstance(value, dict | list):
        return value
    if room == 0:
        raise TooDeepError
    if isinstance(value, list):
        return [_mended(each, room - 1) for each in value]
    return {whole(name): _mended(each, room - 1) for name, each in value.items()}


def _refuse(_: str) -> NoReturn:
    raise ValueError


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)
