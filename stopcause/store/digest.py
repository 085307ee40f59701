"""What rows say, as a number: the same in whatever order they lie, in whatever file, whatever version reads them.

Each row becomes a text of its columns in the order of their names; the sums of the texts' MD5 make the digest. It tells
whether two stores hold the same. It is no seal: who alters rows on purpose can alter the digest too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import duckdb

from stopcause.errors import StoreError

TABLES = ("records", "verdicts")
_NULL, _NEXT = "chr(26)", "chr(31)"  # no value of ours has a control character in it
_WORD = 1 << 64
_PLAIN = frozenset({"bigint", "boolean", "integer", "uuid"})


class TableDigest(NamedTuple):
    """The rows of a table: how many, and the two halves of the sum of their MD5. Parts of a table can be added up."""

    rows: int = 0
    upper: int = 0
    lower: int = 0

    def plus(self, other: TableDigest) -> TableDigest:
        """The digest of both parts together."""
        return TableDigest(
            self.rows + other.rows, (self.upper + other.upper) % _WORD, (self.lower + other.lower) % _WORD
        )

    @property
    def text(self) -> str:
        """As 32 hexadecimal digits."""
        return f"{self.upper:016x}{self.lower:016x}"


def whole(tables: Sequence[TableDigest]) -> str:
    """One digest of several tables, as 32 hexadecimal digits."""
    said = " ".join(f"{table.rows}:{table.text}" for table in tables)
    return hashlib.sha256(said.encode()).hexdigest()[:32]


def table_digest(
    connection: duckdb.DuckDBPyConnection, relation: str, columns: Sequence[str] | None = None
) -> TableDigest:
    """The digest of a table, a view or a registered table of a connection.

    Args:
        connection: An open one; nothing else may be open on it.
        relation: Its name, a word of ours.
        columns: Only these; None is all that it has.

    Raises:
        StoreError: It has none of a column, or has one of a type that no table of ours has.
    """
    shape = connection.sql(f"FROM {relation} LIMIT 0")
    types = dict(zip(shape.columns, shape.types, strict=True))
    wanted = sorted(types if columns is None else columns)
    if lacking := [name for name in wanted if name not in types]:
        raise StoreError(f"This file has no column {lacking[0]} in {relation}. Take a whole copy.")
    texts = (f"coalesce({_text(_quoted(name), types[name])}, {_NULL})" for name in wanted)
    row = f"concat_ws({_NEXT}, {', '.join(texts)})"
    query = f"""
        SELECT count(*), coalesce(sum((md5 >> 64)::UBIGINT), 0), coalesce(sum((md5 & {_WORD - 1})::UBIGINT), 0)
        FROM (SELECT md5_number({row})::UHUGEINT AS md5 FROM {relation})
    """  # noqa: S608 - columns of ours, quoted
    rows, upper, lower = connection.execute(query).fetchall()[0]
    return TableDigest(rows, int(upper) % _WORD, int(lower) % _WORD)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str, kind: Any, depth: int = 0) -> str:  # noqa: ANN401 - the engine's type of a type
    """SQL that says a value as text, the same in every version of the engine."""
    if kind.id == "varchar":
        return value
    if kind.id in _PLAIN:
        return f"{value}::VARCHAR"
    say = _WAYS.get(kind.id)
    if say is None:
        raise StoreError(f"A column of the type {kind} is none of a store of this version.")
    return say(value, kind, depth)


def _list(value: str, kind: Any, depth: int) -> str:  # noqa: ANN401
    each = f"x{depth}"
    said = f"lambda {each}: coalesce({_text(each, dict(kind.children)['child'], depth + 1)}, {_NULL})"
    return f"len({value}) || ':' || array_to_string(list_transform({value}, {said}), {_NEXT})"


def _struct(value: str, kind: Any, depth: int) -> str:  # noqa: ANN401
    fields = (f"coalesce({_text(f'{value}.{_quoted(name)}', of, depth)}, {_NULL})" for name, of in kind.children)
    return f"concat_ws({_NEXT}, {', '.join(fields)})"


_WAYS: dict[str, Callable[[str, Any, int], str]] = {
    "timestamp": lambda value, _kind, _depth: f"epoch_us({value})::VARCHAR",
    "double": lambda value, _kind, _depth: f"printf('%.17g', {value})",
    "list": _list,
    "struct": _struct,
}
