"""For tests of your own: what a run would leave behind, in memory, as the records that a spool would hold.

    with recorded() as receipts:
        my_agent("...")
    assert receipts.stopped.stop_cause == "natural"

The configuration is the process's: one such block at a time, or one inside the other; all threads and tasks are in it.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from stopcause.receipts import capture, codec, model

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stopcause.receipts.writer import Writer

_WAIT_S = 10.0


class MemorySink:
    """Keeps lines in a list."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def write(self, lines: Sequence[bytes]) -> None:
        """Takes them."""
        self.lines += lines

    def close(self) -> None:
        """Does nothing."""


class Recorded:
    """What has been recorded so far. Reading waits until all that happened is written, and validators have looked."""

    def __init__(self, sink: MemorySink, writer: Writer | None) -> None:
        self._sink = sink
        self._writer = writer  # None: STOPCAUSE_DISABLED

    @property
    def lines(self) -> list[bytes]:
        """The lines, in order.

        Raises:
            AssertionError: Not all of them are there, because a validator takes too long.
        """
        if self._writer is not None and not self._writer.flush(_WAIT_S):
            raise AssertionError(f"not all is recorded after {_WAIT_S:g} s")
        return list(self._sink.lines)

    @property
    def records(self) -> list[model.Record]:
        """The records, in order."""
        return [record for line in self.lines if not isinstance(record := codec.read_line(line), codec.LineError)]  # type: ignore[misc]  # ours are all of a known kind

    @property
    def receipts(self) -> list[model.RunStopped]:
        """The stop receipts, in order."""
        return [record for record in self.records if isinstance(record, model.RunStopped)]

    @property
    def stopped(self) -> model.RunStopped:
        """The only stop receipt.

        Raises:
            AssertionError: There is none, or there are several.
        """
        found = self.receipts
        if len(found) != 1:
            raise AssertionError(f"{len(found)} stop receipts, not 1")
        return found[0]


@contextlib.contextmanager
def recorded(**options: Any) -> Iterator[Recorded]:  # noqa: ANN401 - what `configure` takes
    """Records into memory for a block; options are those of `configure`. The configuration before it comes back."""
    sink = MemorySink()
    with capture.configured(sink=sink, **options):
        yield Recorded(sink, capture.writer())
