"""Resume tokens taken out of lines: what leaves the store says that a run can be resumed, and not where.

A line that had one says `resumable` in its place, unless it says something about that already, and keeps its
`record_id`: taken in again, it is known.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

_KEY, _RESUMABLE, _APPROVAL = "resume_token", "resumable", "approval_id"


class Tokens:
    """Takes tokens out of batches of records, and counts them; with `stay` it leaves them."""

    def __init__(self, *, stay: bool) -> None:
        self.taken_out = 0
        self._stay = stay

    def without(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch (columns `record_id` and `line` among others) as it may leave the store."""
        if self._stay:
            return batch
        lines: list[Any] = batch.column("line").to_pylist()
        touched = [i for i, line in enumerate(lines) if _KEY in line or "\\" in line]
        if not touched:
            return batch
        ids = batch.column("record_id")
        for i in touched:
            lines[i] = self._line(lines[i], ids[i].as_py())
        place = batch.schema.get_field_index("line")
        return batch.set_column(place, batch.schema.field(place), pa.array(lines, batch.schema.field(place).type))

    def _line(self, line: str, record_id: str) -> str:
        record = json.loads(line)
        before = self.taken_out
        self._clear(record)
        if self.taken_out == before:
            return line
        record.setdefault("record_id", record_id)
        return json.dumps(record, ensure_ascii=False, separators=(",", ":"))

    def _clear(self, value: Any) -> None:  # noqa: ANN401 - any JSON value
        """Takes them out wherever they are."""
        if isinstance(value, list):
            for each in value:
                self._clear(each)
        elif isinstance(value, dict):
            if value.pop(_KEY, None) is not None:
                self.taken_out += 1
                if _APPROVAL in value and value.get(_RESUMABLE) is None:
                    value[_RESUMABLE] = True
            for each in value.values():
                self._clear(each)
