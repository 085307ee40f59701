"""A draft as a line that every reader takes: what the wire refuses of it is left out, and found.

The models of `model` say what is refused, so this knows no field. An id that is no identifier (a thread called by a
sentence, say) becomes a keyed hash: the run can still be found by it, and nothing of it can be read.
"""

from __future__ import annotations

import contextlib
import json
import math
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

from stopcause.errors import InputError
from stopcause.receipts import codec, model
from stopcause.receipts.identifiers import is_identifier, is_personal
from stopcause.receipts.pseudonyms import pseudonym

if TYPE_CHECKING:
    from stopcause.receipts.records import Draft

_ROUNDS = 4
_DEEPEST = 6  # a record has three levels
_MOST = 2**64
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_HASHED = frozenset(
    {
        "run_id", "thread_id", "parent_run_id", "resumes_run_id", "subject", "answers",
        "approval_id", "tool_call_id", "raised_by", "owner", "resume_token", "outcome_id", "effect_key", "labels",
    }
)  # fmt: skip
_PERSONAL = ("thread_id", "owner", "actor")
_ADAPTERS: dict[str, TypeAdapter[Any]] = {}


def line_of(draft: Draft) -> bytes | None:
    """The line, or None where nothing of it can be kept. Never raises for a value that somebody else made."""
    kept = kept_of(draft)
    return None if kept is None else kept.line


def kept_of(draft: Draft) -> codec.Kept | None:
    """The line, and the record that it reads back as."""
    return _mended(draft) or _mended(_bare(draft))


def _mended(draft: Draft) -> codec.Kept | None:
    for _ in range(_ROUNDS):
        try:
            text = _encode(draft)
            kept = codec.keep_line(text.encode())
        except (TypeError, ValueError, RecursionError):
            draft = _plain(draft)
        except InputError:
            _without_persons(draft, draft)
        else:
            if not isinstance(kept, codec.LineError) and kept.record.extra is None:
                return kept
            if not _mend(draft, text):
                draft = _plain(draft)
    return None


def _bare(draft: Draft) -> Draft:
    """What is left of one that is beyond mending, because it is too long, say: the plain facts at its top."""
    kept = {name: value for name, value in draft.items() if isinstance(value, str | int | float)}
    return kept | {"findings": [{"code": "receipt_incomplete"}]}


def _without_persons(value: Any, draft: Draft, path: tuple[str, ...] = ()) -> None:  # noqa: ANN401 - any of the draft
    """There is no key to hash what names a person, and nowhere to keep one: that is left out."""
    places = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    for step, inner in places:
        place = (*path, str(step))
        if not isinstance(inner, str):
            _without_persons(inner, draft, place)
        elif (step in _PERSONAL or path[-1:] == ("labels",)) and is_personal(inner):
            del value[step]
            _find(draft, "refused_value", ".".join(place))


def _mend(draft: Draft, text: str) -> bool:
    """Takes out what the model refuses, the innermost place that can go without. Whether there was any."""
    kind = draft["kind"]
    adapter = _ADAPTERS.get(kind) or _ADAPTERS.setdefault(kind, TypeAdapter(model.MODELS[kind]))
    try:
        adapter.validate_json(text)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False, include_context=False)
        places = {place for problem in problems if (place := _place(draft, problem["loc"]))}
        for place in sorted(places, key=_from_the_end, reverse=True):
            _take_out(draft, place)
        return bool(places)
    return False


def _from_the_end(place: tuple[str | int, ...]) -> tuple[tuple[bool, str | int], ...]:
    """Later places of a list go first: those before them stay where they are."""
    return tuple((isinstance(step, int), step) for step in place)


def _place(draft: Draft, loc: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """As far as `loc` leads into the draft. A missing field leads to what lacks it."""
    place: list[str | int] = []
    owner: Any = draft
    for step in loc:
        try:
            owner = owner[step]
        except (KeyError, IndexError, TypeError):
            break
        place.append(step)
    return tuple(place)


def _take_out(draft: Draft, place: tuple[str | int, ...]) -> None:
    *path, last = place
    owner: Any = draft
    for step in path:
        owner = owner[step]
    value = owner[last]
    name = next((step for step in reversed(place) if isinstance(step, str)), "")
    hashed = name in _HASHED or (len(place) > 1 and place[0] == "labels")
    if hashed and isinstance(value, str) and value and not is_identifier(value):
        with contextlib.suppress(InputError):  # there is no key, and nowhere to keep one
            owner[last] = pseudonym_of(value)
            return
    del owner[last]
    _find(draft, "refused_value", ".".join(str(step) for step in place))


def pseudonym_of(value: str) -> str:
    """A keyed hash of the whole value: unlike a person's handle, nothing of it may stay."""
    return pseudonym(f" {value}").strip()


def _plain(value: Any) -> Any:  # noqa: ANN401 - any value of the draft
    """Only what JSON has; the rest is left out and found, at the top."""
    refused: list[str] = []
    plain = _only_json(value, "", refused)
    for place in refused:
        _find(plain, "refused_value", place)
    return plain


def _only_json(value: Any, place: str, refused: list[str]) -> Any:  # noqa: ANN401
    if place.count(".") >= _DEEPEST or (isinstance(value, int) and abs(value) > _MOST):
        value = object()  # a value that holds itself, or a number that takes its time to be printed
    if isinstance(value, dict):
        inner = {str(key): _only_json(item, f"{place}.{key}".strip("."), refused) for key, item in value.items()}
        return {key: item for key, item in inner.items() if item is not None}
    if isinstance(value, list | tuple):
        items = [_only_json(each, f"{place}.{number}", refused) for number, each in enumerate(value)]
        return [item for item in items if item is not None]
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()  # half a character is no text
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    refused.append(place)
    return None


def _find(draft: Draft, code: str, where: str) -> None:
    place = f"{draft.get('adapter', 'stopcause')}:{where}"
    found = draft.setdefault("findings", [])
    entry = {"code": code, "where": place} if is_identifier(place) else {"code": code}
    if isinstance(found, list) and entry not in found:
        found.append(entry)
