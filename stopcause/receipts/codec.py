"""NDJSON in and out: one record a line, and a bad line never costs its neighbours.

A line first meets the strict models of `model` (the fast way; almost every line ends there). Where they refuse it,
`_mend` follows their errors once: unknown keys go to `extra` where they are identifiers, numbers or booleans; unknown
words of lists that have `unknown` become that, with finding `vocabulary_new`. What they still refuse is a `LineError`.

What is kept of a line holds no content either way: the line itself where it is plain (`Kept`), else what the record
gives. So the journal's bytes may differ from `write_line` in the order of keys, in nulls and in offsets of times.
"""

from __future__ import annotations

import codecs
import copy
import json
import math
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, NamedTuple, TypeVar

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from stopcause.receipts import identifiers, model, vocabulary
from stopcause.receipts.pseudonyms import pseudonym

AnyRecord = model.Record | model.UnknownRecord
T = TypeVar("T", bound=model.Value)
MAX_LINE_BYTES = 1 << 20  # a full receipt is about 1 kB
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, model.SCHEMA)
_ANY: TypeAdapter[model.Record] = TypeAdapter(Annotated[model.Record, Field(discriminator="kind")])
# The adapter's own method only adds arguments to this one.
_read_any: Callable[[bytes], model.Record] = _ANY.validator.validate_json
_PERSONAL_FIELDS = ("thread_id", "owner", "actor")
_DROPPED = "dropped_keys"
_SURE_DIGITS = 600  # Python may be told to refuse integers above 640 digits


def _test(pattern: str) -> Callable[[str], bool]:
    """Whether a text has this pattern somewhere in it, by pydantic-core's engine of regular expressions."""
    adapter: TypeAdapter[str] = TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)])
    return adapter.validator.isinstance_python


_is_plain = _test(identifiers.PLAIN_LINE_PATTERN)
_may_be_personal = _test(identifiers.PERSONAL_IN_LINE_PATTERN)


class LineError(NamedTuple):
    """A line that is no record: which line, which field, what is wrong there, and what was expected. No content."""

    line: int
    field: str
    reason: str
    expected: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.field}: {self.reason}; expected {self.expected}"


class Kept(NamedTuple):
    """A record, and the line that is kept of it: no newline, no content, and it reads back as the same record."""

    record: AnyRecord
    line: bytes


def read_lines(lines: Iterable[bytes]) -> Iterator[AnyRecord | LineError]:
    """Read NDJSON. Blank lines are skipped; line numbers count from 1 and count them."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield read_line(line, number)


def read_line(line: bytes, number: int = 1) -> AnyRecord | LineError:
    """Read one line: a record with its `record_id`, or the first thing that is wrong with it."""
    record = _read_strictly(line)
    return _read_slowly(line, number) if record is None else _finished(record, line)


def read_value(value: object, number: int = 1) -> AnyRecord | LineError:
    """The same for a record that is already a Python value, as in a case file."""
    return read_line(value_line(value), number)


def keep_line(line: bytes, number: int = 1) -> Kept | LineError:
    """Read one line of which a journal is to keep something."""
    record = _read_strictly(line)
    if record is not None and record.record_id is not None and (plain := _plain(line)):
        return Kept(record, plain)
    read = _read_slowly(line, number) if record is None else _finished(record, line)
    return read if isinstance(read, LineError) else Kept(read, write_line(read))


def keep_lines(lines: Iterable[bytes]) -> Iterator[Kept | LineError]:
    """The same for NDJSON, counted as `read_lines` does."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield keep_line(line, number)


def value_line(value: object) -> bytes:
    """A Python value as a line to be read."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


def write_line(record: AnyRecord) -> bytes:
    """The canonical line, without newline: nulls left out, times in UTC."""
    return _adapter(type(record)).dump_json(record, exclude_none=True)


def record_id(value: dict[str, Any]) -> str:
    """The id of a record that came without one: the same content gives the same id, so re-reading never duplicates."""
    content = _without_nulls({key: item for key, item in value.items() if key != "record_id"})
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return str(uuid.uuid5(_NAMESPACE, canonical))


def _read_strictly(line: bytes) -> model.Record | None:
    """The fast way: a record as a writer may write it."""
    if len(line) > MAX_LINE_BYTES:
        return None
    try:
        return _read_any(line)
    except ValidationError:
        return None


def _plain(line: bytes) -> bytes | None:
    """The line without spaces, where nothing in it can be prose or personal, not even under a key that came twice.

    This asks less than `is_personal` and sees more of the line, so it may find a doubt where there is none.
    """
    text = line.decode()
    if not _is_plain(text) or _may_be_personal(text):
        return None
    return line.replace(b" ", b"")


def _adapter(kind: type[AnyRecord]) -> TypeAdapter[AnyRecord]:
    """Made when it is first needed: making one costs about as much as a thousand lines."""
    known = _ADAPTERS.get(kind)
    if known is None:
        known = _ADAPTERS[kind] = TypeAdapter(kind)
    return known


_ADAPTERS: dict[type[AnyRecord], TypeAdapter[AnyRecord]] = {}


def _with(value: T, changes: dict[str, Any]) -> T:
    """A copy with some fields replaced by values that need no second validation."""
    twin = copy.copy(value)
    twin.__dict__.update(changes)
    return twin


def _without_nulls(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _finished(record: AnyRecord, line: bytes) -> AnyRecord:
    """With an id, and without what names a person. The id is taken from the line as it was written."""
    changes: dict[str, Any] = {}
    if record.record_id is None:
        changes["record_id"] = record_id(json.loads(line, parse_int=_integer))
    if replaced := _depersonalised(record):
        changes |= replaced
        changes["findings"] = (*(record.findings or ()), model.Finding(code="personal_value_replaced"))
    return _with(record, changes) if changes else record


def _depersonalised(record: AnyRecord) -> dict[str, Any]:
    changes = _personal_fields(record)
    if isinstance(record, model.ApprovalUpdated) and (found := _personal_fields(record.approval)):
        changes["approval"] = _with(record.approval, found)
    if isinstance(record, model.RunStopped):
        changes |= _personal_in_receipt(record)
    return changes


def _personal_in_receipt(record: model.RunStopped) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if record.approvals and any(map(_personal_fields, record.approvals)):
        changes["approvals"] = tuple(_with(each, _personal_fields(each)) for each in record.approvals)
    if record.abort and (found := _personal_fields(record.abort)):
        changes["abort"] = _with(record.abort, found)
    return changes


def _personal_fields(value: model.Value) -> dict[str, Any]:
    held = value.__dict__
    changes: dict[str, Any] = {
        name: pseudonym(text)
        for name in _PERSONAL_FIELDS
        if (text := held.get(name)) is not None and identifiers.is_personal(text)
    }
    labels = held.get("labels")
    if labels and any(map(identifiers.is_personal, labels.values())):
        changes["labels"] = {
            name: pseudonym(text) if identifiers.is_personal(text) else text for name, text in labels.items()
        }
    return changes


# The slow way: only for lines that the strict models refused.


def _read_slowly(line: bytes, number: int) -> AnyRecord | LineError:
    if line.startswith(codecs.BOM_UTF8):  # some shells put it before the first line
        return read_line(line.removeprefix(codecs.BOM_UTF8), number)
    if len(line) > MAX_LINE_BYTES:
        return LineError(number, "line", f"is {len(line)} bytes long", f"at most {MAX_LINE_BYTES} bytes")
    parsed = _parse(line, number)
    if isinstance(parsed, LineError):
        return parsed
    chosen = _model_for(parsed, number)
    if isinstance(chosen, LineError):
        return chosen
    mended = _validated(_flat_evidence(parsed), chosen, number)
    return mended if isinstance(mended, LineError) else _finished(mended, line)


def _model_for(parsed: dict[str, Any], number: int) -> type[AnyRecord] | LineError:
    kind, schema = parsed.get("kind"), parsed.get("schema")
    if schema is None:
        return LineError(number, "schema", "is missing", model.SCHEMA)
    if isinstance(schema, str) and schema.startswith("stopcause/") and schema != model.SCHEMA:
        return LineError(number, "schema", "was written by a newer stopcause", f"{model.SCHEMA}; upgrade stopcause")
    if isinstance(kind, str) and kind in model.MODELS:
        return model.MODELS[kind]
    if isinstance(kind, str) and identifiers.is_identifier(kind):
        return model.UnknownRecord
    reason = "is missing" if kind is None else "is no identifier"
    return LineError(number, "kind", reason, f"one of {', '.join(vocabulary.Kind)}")


def _refuse_constant(_name: str) -> float:
    raise ValueError("not a finite number")


def _integer(digits: str) -> float:
    """An integer; one that no field can hold is infinite, so that the field refuses it and the line can go on."""
    return int(digits) if len(digits) <= _SURE_DIGITS else math.inf


def _parse(line: bytes, number: int) -> dict[str, Any] | LineError:
    """The line's object without its nulls: null equals absent, at any depth."""
    try:
        text = line.decode("utf-8")
        parsed = _without_nulls(json.loads(text, parse_constant=_refuse_constant, parse_int=_integer))
    except UnicodeDecodeError as error:
        return LineError(number, "line", f"has invalid UTF-8 at byte {error.start + 1}", "UTF-8")
    except json.JSONDecodeError as error:
        return LineError(number, "line", f"is broken JSON at column {error.colno}", "one whole JSON object on a line")
    except (ValueError, RecursionError):
        return LineError(number, "line", "has a number that is not finite, or is nested too deep", "plain JSON")
    if not isinstance(parsed, dict):
        return LineError(number, "line", "is JSON, but no object", "one JSON object on a line")
    return parsed


def _flat_evidence(parsed: dict[str, Any]) -> dict[str, Any]:
    """Evidence that is nested once (`versions: {expected, observed}`) gets dotted names: same facts, flat values."""
    outcomes = parsed.get("outcomes")
    for outcome in [parsed.get("outcome"), *(outcomes if isinstance(outcomes, list) else [])]:
        evidence = outcome.get("evidence") if isinstance(outcome, dict) else None
        if isinstance(evidence, dict):
            for name in [name for name, item in evidence.items() if isinstance(item, dict)]:
                _flatten(evidence, name)
    return parsed


def _flatten(evidence: dict[str, Any], name: str) -> None:
    """Where a dotted name is taken, the nested value stays, and is refused: one of the two would be lost."""
    dotted = {f"{name}.{inner}": item for inner, item in evidence[name].items()}
    if evidence.keys().isdisjoint(dotted):
        del evidence[name]
        evidence |= dotted


def _validated(parsed: dict[str, Any], chosen: type[AnyRecord], number: int) -> AnyRecord | LineError:
    """Validate, follow the errors once, validate again."""
    adapter = _adapter(chosen)
    for last in (False, True):
        try:
            return adapter.validate_json(json.dumps(parsed))
        except ValidationError as error:
            problems = error.errors(include_url=False, include_input=False)
            worst = next((problem for problem in problems if last or not _mendable(problem)), None)
            if worst is not None:
                return _line_error(number, worst)
            for place, problem in {_place(problem): problem for problem in problems}.items():
                _mend(parsed, place, problem)
    raise AssertionError("unreachable")


def _place(problem: Any) -> tuple[str | int, ...]:  # noqa: ANN401 - pydantic's own untyped detail
    """The field itself. Pydantic goes on to say which member of a union it tried, or that it means the name."""
    steps: tuple[str | int, ...] = problem["loc"]
    for i, step in enumerate(steps[:-1]):
        if step in _SCALARS:
            return steps[: i + 2]
    return steps[:-1] if steps[-1:] == ("[key]",) else steps


_SCALARS = ("evidence", "extra")  # the maps whose values are unions


def _mendable(problem: Any) -> bool:  # noqa: ANN401
    return problem["type"] == "unexpected_keyword_argument" or _is_unknown_word(problem) or _is_in_extra(problem)


def _is_unknown_word(problem: Any) -> bool:  # noqa: ANN401
    return problem["type"] == "enum" and "'unknown'" in problem["ctx"]["expected"]


def _is_in_extra(problem: Any) -> bool:  # noqa: ANN401
    return problem["loc"][:1] == ("extra",) and len(problem["loc"]) > 1


def _mend(parsed: dict[str, Any], steps: tuple[str | int, ...], problem: Any) -> None:  # noqa: ANN401
    """Mend what the plan lets a reader mend: an unknown key, an unknown word, an extra that is none."""
    *path, key = steps
    place = ".".join(map(str, steps))
    owner: Any = parsed
    for step in path:
        owner = owner[step]
    if problem["type"] == "unexpected_keyword_argument":
        _keep_extra(parsed, place, owner.pop(key))
    elif _is_in_extra(problem):
        del owner[key]
        _count_dropped(owner)
    else:
        owner[key] = "unknown"
        where = place if identifiers.is_identifier(place) else None
        parsed["findings"] = [*(parsed.get("findings") or []), {"code": "vocabulary_new", "where": where}]


def _keep_extra(parsed: dict[str, Any], place: str, value: object) -> None:
    """Keep an unknown key under `extra` where it can hold no prose; otherwise only count it."""
    extra = parsed.setdefault("extra", {})
    if place in extra or not identifiers.is_identifier(place) or not _is_scalar(value):
        _count_dropped(extra)
    else:
        extra[place] = pseudonym(value) if isinstance(value, str) and identifiers.is_personal(value) else value


def _count_dropped(extra: dict[str, Any]) -> None:
    """One more. Whatever else a writer put under that name gives way."""
    before = extra.get(_DROPPED)
    extra[_DROPPED] = before + 1 if type(before) is int else 1


def _is_scalar(value: object) -> bool:
    if isinstance(value, str):
        return identifiers.is_identifier(value)
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and abs(value) <= model.MAX_INTEGER


_EXPECTED = {
    "missing": ("is missing", "a value"),
    "enum": ("is no word of its list", "one of {expected}"),
    "literal_error": ("is no word of its list", "{expected}"),
    "string_type": ("is no string", "a string"),
    "int_type": ("is no integer", "a number without quotes or fraction"),
    "int_from_float": ("is no integer", "a number without fraction"),
    "float_type": ("is no number", "a number without quotes"),
    "bool_type": ("is no boolean", "true or false"),
    "dict_type": ("is no object", "an object"),
    "dataclass_type": ("is no object", "an object"),
    "tuple_type": ("is no list", "a list"),
    "finite_number": ("is not finite", "a finite number"),
    "greater_than_equal": ("is too small", "at least {ge}"),
    "less_than_equal": ("is too large", "at most {le}"),
    "no_time": ("is no time", "RFC 3339 with offset, as 2026-11-28T08:00:00Z"),
    "too_long": ("has too many entries", "at most {max_length}"),
    "unexpected_keyword_argument": ("is not known", "only known keys"),
    "json_invalid": ("has half a character in it, or is nested too deep", "whole characters, and plain JSON"),
}
_EVIDENCE = (
    f"an identifier, a number (an integer up to {model.MAX_INTEGER}), true, false, or a list of up to 16 of these"
)


def _line_error(number: int, problem: Any) -> LineError:  # noqa: ANN401
    steps = _place(problem)
    place = ".".join(text if identifiers.is_identifier(text := str(step)) else "?" for step in steps) or "line"
    if problem["loc"][-1:] != ("[key]",) and "evidence" in steps[:-1]:
        return LineError(number, place, "is nothing that evidence can be", _EVIDENCE)
    if problem["type"] == "string_pattern_mismatch":
        return LineError(number, place, "does not have the shape of its field", _shape(problem["ctx"]["pattern"]))
    reason, expected = _EXPECTED.get(problem["type"], ("has the wrong type", "the type that `stopcause schema` shows"))
    return LineError(number, place, reason, expected.format_map(problem.get("ctx") or {}))


def _shape(pattern: str) -> str:
    known = {
        identifiers.IDENTIFIER_PATTERN: identifiers.IDENTIFIER_WORDS,
        identifiers.DISPLAY_NAME_PATTERN: identifiers.DISPLAY_NAME_WORDS,
    }
    return known.get(pattern, pattern)
