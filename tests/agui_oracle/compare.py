"""The reader beside the reference client, on streams that follow from a seed.

    python -m tests.agui_oracle.compare [SEED] [N]

What the client rejects is fatal here, and what is fatal here it rejects, but for `differences`; valid ones end alike.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from stopcause.agui.lifecycle import Watch
from stopcause.agui.values import Input, RunSeen
from tests.agui_oracle.differences import LOOSER, STRICTER
from tests.agui_oracle.streams import Stream, made, mutated, some
from tests.support.node import program

FOLDER = Path(__file__).parent
_LONGEST_S = 1_200
VALID_EACH = 5  # every fifth stream keeps the rules
_MOST_SHOWN = 5
_USUAL = 6_250  # four in five are mutated: 5,000
End = tuple[str, tuple[str, ...]]


class Verdict(NamedTuple):
    """What the client says. `field`: where it stopped; `ends`: the last word on each run."""

    ok: bool
    error: str = ""
    field: str = ""
    ends: tuple[End, ...] = ()


class Ours(NamedTuple):
    """What the reader says: fatal findings with what they are about, and the runs as they were told."""

    fatal: dict[str, tuple[str, ...]]
    runs: tuple[RunSeen, ...]

    @property
    def ends(self) -> tuple[End, ...]:
        """The last word on each run, as the client tells it."""
        return tuple({each.run_id: _end(each) for each in self.runs}.values())


class Disagreement(NamedTuple):
    """A stream on which the two differ in a way that no row of `differences` has."""

    number: int
    what: str
    stream: Stream


def judged(streams: Sequence[Stream]) -> list[Verdict]:
    """By the client, all in one process."""
    lines = (json.dumps({"threadId": each.thread_id, "runId": each.run_id, "events": each.events}) for each in streams)
    asked = "".join(f"{line}\n" for line in lines)
    done = subprocess.run(
        (program(), "judge.mjs"),
        cwd=FOLDER,
        input=asked,
        check=True,
        capture_output=True,
        text=True,
        timeout=_LONGEST_S,
    )
    return [_verdict(json.loads(line)) for line in done.stdout.split("\n") if line]


def _verdict(said: dict[str, object]) -> Verdict:
    ends = said.get("ends")
    told = tuple((word, tuple(ids)) for word, ids in ends) if isinstance(ends, list) else ()
    return Verdict(bool(said["ok"]), str(said.get("error", "")), str(said.get("field", "")), told)


def read(stream: Stream) -> Ours:
    """By us."""
    watch = Watch(Input(stream.thread_id, stream.run_id))
    told = [each for event in stream.events for each in watch.take(event)]
    runs = tuple(each for each in (*told, *watch.close()) if isinstance(each, RunSeen))
    return Ours({each.name: each.ids for run in runs for each in run.findings if each.fatal}, runs)


def _end(run: RunSeen) -> End:
    words = {"run_error": "error"}
    asked = tuple(each.id for each in run.interrupts) if run.ending == "interrupt" else ()
    left = run.pending if run.ending == "success" else ()
    return words.get(run.ending, str(run.ending)), asked or left


# Where they differ ----------------------------------------------------------------------------------------------------


def kinds(stream: Stream, ours: Ours, verdict: Verdict) -> Iterator[str]:
    """The rows of `differences` that say why the two differ; with "?" where none does."""
    if verdict.ok:
        for name, places in ours.fatal.items():
            rows = (each for each in STRICTER if each.finding == name and each.holds(stream, places))
            row = next(rows, None)
            yield f"{name}: {row.when}" if row else f"? {name} {' '.join(places)}: the client takes it"
    elif not ours.fatal:
        row_of = next((each for each in LOOSER if each.holds(stream, ours.runs, verdict.field)), None)
        yield row_of.when if row_of else f"? the client rejects it: {verdict.field} {' '.join(verdict.error.split())}"


def unknown(stream: Stream, ours: Ours, verdict: Verdict) -> str | None:
    """What differs and should not."""
    return next((each for each in kinds(stream, ours, verdict) if each.startswith("?")), None)


def differs(stream: Stream) -> str | None:
    """The same, of one stream."""
    return unknown(stream, read(stream), judged([stream])[0])


def shrunk(stream: Stream) -> Stream:
    """The stream with as few events as still make them differ: so many at once, then fewer."""
    size = max(len(stream.events) // 2, 1)
    while size:
        smaller = [_without(stream, start, size) for start in range(0, len(stream.events), size)]
        verdicts = judged(smaller) if smaller else []
        found = (each for each, said in zip(smaller, verdicts, strict=True) if unknown(each, read(each), said))
        less = next(found, None)
        stream, size = (less, size) if less is not None else (stream, size // 2)
    return stream


def _without(stream: Stream, start: int, size: int) -> Stream:
    return stream._replace(events=[*stream.events[:start], *stream.events[start + size :]])


# The law --------------------------------------------------------------------------------------------------------------


def stream_of(seed: int, number: int) -> Stream:
    """The stream of this number; every fifth keeps the rules."""
    rnd = Random(f"{seed} {number}")  # noqa: S311 - a seed is what it is for
    return made(rnd) if number % VALID_EACH == 0 else mutated(rnd, some(rnd))


def disagreements(seed: int, count: int, tally: Counter[str]) -> Iterator[Disagreement]:
    """Over so many streams. `tally` counts what was agreed on, and each known difference."""
    streams = [stream_of(seed, number) for number in range(count)]
    for number, (stream, verdict) in enumerate(zip(streams, judged(streams), strict=True)):
        ours = read(stream)
        what = unknown(stream, ours, verdict)
        if number % VALID_EACH == 0:
            what = what or _valid(ours, verdict)
        if what is not None:
            yield Disagreement(number, what, stream)
        tally.update(kinds(stream, ours, verdict) if bool(ours.fatal) is verdict.ok else [_agreed(verdict)])


def _valid(ours: Ours, verdict: Verdict) -> str | None:
    """A stream that keeps the rules is taken by both, and its runs end alike."""
    if ours.fatal or not verdict.ok:
        return f"a valid stream is rejected: {[*ours.fatal]} {verdict.error}"
    return None if ours.ends == verdict.ends else f"its runs end as {ours.ends}, for the client as {verdict.ends}"


def _agreed(verdict: Verdict) -> str:
    return "both take it" if verdict.ok else "both reject it"


def say(line: str) -> None:
    """A line for who runs it."""
    sys.stdout.write(f"{line}\n")


def main(seed: int, count: int) -> int:
    """Says what was found. 1 where the two differ in an unknown way."""
    say(f"seed {seed}, {count} streams")
    tally: Counter[str] = Counter()
    found = [*disagreements(seed, count, tally)]
    for what, number in tally.most_common():
        say(f"{number:>7}  {what}")
    for each in found[:_MOST_SHOWN]:
        stream = shrunk(each.stream) if each.what.startswith("?") else each.stream
        say(f"\nstream {each.number}: {each.what}\n{json.dumps(stream.events)}")
    if found:
        say(f"\n{len(found)} unknown differences; once more: bash tests/oracle.sh {seed} {count}")
    return bool(found)


if __name__ == "__main__":
    given = [int(each) for each in sys.argv[1:]]
    sys.exit(main(*(*given, *(secrets.randbelow(10**6), _USUAL)[len(given) :])))
