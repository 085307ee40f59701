"""Reads a stream of 2 GB to runs, with a frame of 100 MB in the middle, in a process that imports nothing else.

Run by `python -m bench.agui.long_stream`; prints how many events there were, megabytes at most, and seconds of CPU.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Iterator
from pathlib import Path

from bench.agui.streams import frame, recorded
from stopcause.agui.lifecycle import Watch
from stopcause.agui.reader import read_exchanges

SIZE = 2_000_000_000  # bytes
LARGE = 100_000_000  # bytes of one frame


class Stream(io.BytesIO):
    """A file of recorded streams, one after the other, that is nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self._parts = self._all()

    def read1(self, _: int | None = -1, /) -> bytes:
        """One part more, of any size."""
        return next(self._parts, b"")

    def _all(self) -> Iterator[bytes]:
        part = b"".join(map(frame, recorded(1)))
        count = SIZE // len(part)
        for number in range(count):
            yield part
            if number == count // 2:
                yield b'data: {"type":"STATE_SNAPSHOT","snapshot":"'
                yield from [b"x" * 1_000_000] * (LARGE // 1_000_000)
                yield b'"}\n\n'


def most_memory() -> int:
    """Kilobytes at most. `getrusage` would count what the process held that started this one."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1])


def main() -> None:
    """Prints the three numbers."""
    watch, count, before = Watch(), 0, time.process_time()
    for exchange in read_exchanges(Stream()):
        for event in exchange.events:
            watch.take(event)
            count += 1
    print(count, most_memory() // 1024, round(time.process_time() - before))


if __name__ == "__main__":
    main()
