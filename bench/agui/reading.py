"""Reading AG-UI: bytes to events, and to runs, beside `json.loads` of the same events; and the memory of a long stream.

    prose       runs of which 80 % of the events are small pieces of text: what a chat sends
    recorded    the recorded streams of two frameworks, in which half of the events are RAW, of a kilobyte each

Run by `python -m bench.agui.reading`. Memory is that of a child process, which has nothing else to do.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from bench.agui.streams import frame, prose, recorded
from bench.run import Figure, Work, best
from stopcause.agui.frames import Frames
from stopcause.agui.lifecycle import Watch

RUNS = 300  # of prose
TURNS = 60  # of the recordings
CHUNK = 65_536


def figures(what: str, events: list[dict[str, Any]]) -> Iterator[Figure]:
    """One kind of stream, read in the chunks of a file, and in those of a server that sends each event as it comes."""
    texts = [json.dumps(event, separators=(",", ":")).encode() for event in events]
    frames = [frame(event) for event in events]
    stream = b"".join(frames)
    chunks = [stream[at : at + CHUNK] for at in range(0, len(stream), CHUNK)]
    works: tuple[Work, ...] = (
        lambda: framed(chunks),
        lambda: watched(chunks),
        lambda: watched(frames),
        lambda: [json.loads(text) for text in texts],
    )
    read, whole, as_sent, floor = best(works, len(texts), turns=5)
    yield Figure(f"{what}: events", "event", read, "json.loads", floor)
    yield Figure(f"{what}: events and runs", "event", whole, "json.loads", floor)
    yield Figure(f"{what}: an event a chunk", "event", as_sent, "json.loads", floor)


def framed(chunks: list[bytes]) -> int:
    """How many events there are."""
    frames = Frames()
    return sum(len(frames.feed(chunk)) for chunk in chunks) + len(frames.end())


def watched(chunks: list[bytes]) -> int:
    """How much is said of them."""
    frames, watch = Frames(), Watch()
    said = 0
    for chunk in chunks:
        for event in frames.feed(chunk):
            said += len(watch.take(event))
    return said + len(watch.close())


def memory() -> str:
    """The row of the long stream."""
    done = subprocess.run([sys.executable, "-m", "bench.agui.long_stream"], check=True, capture_output=True, text=True)
    count, most, seconds = (int(each) for each in done.stdout.split())
    return f"a stream of 2 GB, {count:,} events: {most} MB at most, {seconds} s CPU"


def main() -> None:
    """Prints the table."""
    for figure in figures("prose", [event for run in range(RUNS) for event in prose(run)]):
        print(figure)
    for figure in figures("recorded", list(recorded(TURNS))):
        print(figure)
    print(memory())


if __name__ == "__main__":
    main()
