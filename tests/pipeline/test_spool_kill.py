"""Real processes, killed at random moments: of what an agent's process acknowledged nothing is lost, none is doubled.

`make check` does 24 kills. `KILLS=200 pytest -m kill tests/pipeline/test_spool_kill.py` does 200.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from stopcause.pipeline.spool_files import files_of
from tests.support.spooled import NOW, ROOT, environment, records, taken_in, verdicts

KILLS = int(os.environ.get("KILLS", "24"))

# Runs agents, some at a time; says of each when it is acknowledged that it began, and that it ended.
AGENT = """
    import random, sys
    import stopcause
    from stopcause.receipts.spool import Spool
    stopcause.configure(sink=Spool(file_bytes=20_000))
    chance, opened = random.Random(int(sys.argv[1])), []
    while True:
        for run in [stopcause.run("agent").start() for _ in range(chance.randrange(1, 4))]:
            opened.append(run)
        assert stopcause.flush()
        print(*("began", *[run.run_id for run in opened]), flush=True)
        chance.shuffle(opened)
        ended = [opened.pop() for _ in range(chance.randrange(len(opened) + 1))]
        for run in ended:
            run.progress("tool_result")
            run.end()
        assert stopcause.flush()
        print(*("ended", *[run.run_id for run in ended]), flush=True)
"""

# Takes the spool in, again and again.
TAKER = """
    import sys
    from pathlib import Path
    from tests.support.spooled import taken_in
    print("ready", flush=True)
    while True:
        taken_in(Path(sys.argv[1]), Path(sys.argv[2]))
"""


class Said(NamedTuple):
    """What an agent's process had acknowledged when it was killed."""

    began: set[str]
    ended: set[str]


class Agent(NamedTuple):
    """An agent's process, and the file that it speaks into: nobody has to listen."""

    process: subprocess.Popen[bytes]
    said: Path

    def wait_for_a_word(self) -> None:
        while not self.said.read_bytes():
            assert self.process.poll() is None
            time.sleep(0.01)


@contextmanager
def agent(spool: Path, seed: int) -> Iterator[Agent]:
    command = [sys.executable, "-c", textwrap.dedent(AGENT), str(seed)]
    said = spool.with_name(f"said-{seed}")
    with said.open("wb") as out, subprocess.Popen(command, cwd=ROOT, stdout=out, env=environment(spool)) as child:
        try:
            yield Agent(child, said)
        finally:
            child.kill()


def killed(child: Agent) -> Said:
    child.process.kill()
    child.process.wait(timeout=60)
    whole = [line.split() for line in child.said.read_text().splitlines(keepends=True) if line.endswith("\n")]
    told = {word: {run for first, *runs in whole if first == word for run in runs} for word in ("began", "ended")}
    return Said(told["began"], told["ended"])


def check(store: Path, spool: Path, said: list[Said]) -> None:
    """All that was acknowledged is there once; what only began is lost with its process."""
    taken_in(store, spool)
    assert files_of(spool) == []
    found = Counter(records(store))
    # A machine that stands still for ten seconds gives a run a second progress record, and nothing else a second time.
    assert [each for each, times in found.items() if times > 1 and each[0] != "run.progress"] == []
    judged = verdicts(store, NOW)
    for began, ended in said:
        assert began <= {run for kind, run in found if kind == "run.started"}
        assert ended <= {run for kind, run in found if kind == "run.stopped"}
    stopped = {run for kind, run in found if kind == "run.stopped"}
    for kind, run in found:
        if kind == "run.started" and run not in stopped:
            assert judged[run] == "FAILED process_lost"
        elif kind == "run.started":
            assert judged[run].startswith("FALSE_COMPLETE")


@pytest.mark.kill
def test_nothing_that_an_agent_acknowledged_is_lost_or_doubled_after_kills(tmp_path: Path) -> None:
    chance, said, store, spool = random.Random(7), [], tmp_path / "s.duckdb", tmp_path / "spool"  # noqa: S311 - moments of killing
    for seed in range(KILLS // 2):
        with agent(spool, seed) as child:
            child.wait_for_a_word()
            time.sleep(chance.uniform(0, 0.3))
            said.append(killed(child))
        if seed % 4 == 3:
            check(store, spool, said)
    check(store, spool, said)
    print(f"{len(said)} kills, {sum(len(each.began) for each in said)} runs acknowledged")  # noqa: T201
    assert sum(len(each.ended) for each in said) > len(said)


@pytest.mark.kill
def test_nothing_is_lost_or_doubled_where_the_taker_is_killed_while_agents_write(tmp_path: Path) -> None:
    chance, store, spool = random.Random(8), tmp_path / "s.duckdb", tmp_path / "spool"  # noqa: S311
    command = [sys.executable, "-c", textwrap.dedent(TAKER), str(store), str(spool)]
    with ExitStack() as children:
        agents = [children.enter_context(agent(spool, seed)) for seed in (100, 101)]
        for _ in range(KILLS // 2):
            with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, env=environment(spool)) as taker:
                assert taker.stdout is not None
                taker.stdout.readline()
                time.sleep(chance.uniform(0, 0.4))
                taker.kill()
            assert all(each.process.poll() is None for each in agents)
        said = [killed(each) for each in agents]
    check(store, spool, said)
    print(f"{KILLS // 2} kills, {sum(len(each.began) for each in said)} runs acknowledged")  # noqa: T201
