"""What a person sees of the spool: commands that read take it in, the sidecar takes it in again and again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stopcause import cli
from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.errors import StoreFullError
from stopcause.pipeline.keeper import Keeper
from tests.support.machine import a_terminal
from tests.support.node import AI_SDK, node
from tests.support.spooled import (
    NOW,
    ROOT,
    STOPCAUSE,
    environment,
    left,
    objects,
    process,
    run,
    said_by,
    started,
    stopped,
    verdicts,
)

MID_RUN = """
    import sys, time
    import stopcause
    with stopcause.run("done"):
        pass
    run = stopcause.run("invoice-agent").start()
    stopcause.flush()
    print(run.run_id, flush=True)
    time.sleep(60)
"""


WITHOUT_LOCKS = """
    import fcntl
    def flock(*_):
        raise OSError(37, "No locks available")
    fcntl.flock = flock
"""


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "s.duckdb"


def runs(store: Path, spool: Path, **more: str) -> dict[str, tuple[str, str]]:
    listed = objects(run(("runs",), spool, STOPCAUSE_STORE=str(store), **more))
    return {each["agent"]: (each["verdict"] or "RUNNING", each["reason"]) for each in listed}


# Reading commands


def test_an_agent_that_is_killed_in_mid_run_is_lost(store: Path, spool: Path) -> None:
    with process(MID_RUN, spool) as agent:
        run_id = said_by(agent)
        alive = runs(store, spool)
        agent.send_signal(signal.SIGKILL)
        agent.wait()
        dead = runs(store, spool)

    assert alive["invoice-agent"] == ("RUNNING", "running")
    assert dead == {"invoice-agent": ("FAILED", "process_lost"), "done": ("FALSE_COMPLETE", "no_contract")}
    assert "process_lost" in run(("explain", run_id, "-o", "table"), spool, STOPCAUSE_STORE=str(store)).stdout
    assert list(spool.iterdir()) == []


def test_where_no_lock_can_tell_it_is_stuck_once_its_lease_is_over(store: Path, spool: Path) -> None:
    with process(WITHOUT_LOCKS + MID_RUN, spool) as agent:
        run_id = said_by(agent)
        agent.kill()
        agent.wait()

    assert runs(store, spool)["invoice-agent"] == ("RUNNING", "running")
    assert verdicts(store, NOW + timedelta(hours=1))[run_id] == "STUCK lease_expired"
    (kept,) = spool.glob("*.ndjson")
    assert kept.name.startswith("unlocked-")


def test_an_agent_in_node_that_is_killed_is_left_to_its_lease(store: Path, spool: Path) -> None:
    program = f"""
        import {{ fileSink }} from '{(AI_SDK / "src" / "node.js").as_uri()}';
        const sink = fileSink();
        sink.accept({started("r1", 400).decode()});
        await sink.flush();
        process.kill(process.pid, 'SIGKILL'); // not from outside: what was started may only be what starts Node
    """
    command = [node(), "--input-type=module", "-e", program]
    done = subprocess.run(command, cwd=AI_SDK, timeout=60, check=False, env=environment(spool), stderr=subprocess.PIPE)
    assert done.returncode != 0
    assert done.stderr == b""

    assert runs(store, spool) == {"a": ("STUCK", "lease_expired")}
    (kept,) = spool.glob("*.ndjson")
    assert kept.name.startswith("ai-sdk-")


def test_a_run_that_is_open_when_its_process_ends_well_is_lost_too(store: Path, spool: Path) -> None:
    with process("import stopcause; stopcause.run('a').start()", spool) as agent:
        assert agent.wait(timeout=30) == 0

    assert runs(store, spool) == {"a": ("FAILED", "process_lost")}


def test_every_reading_command_takes_the_spool_in(tmp_path: Path, spool: Path) -> None:
    for n, command in enumerate((("runs",), ("waiting",), ("explain", "r1"), ("report", "stop-causes"))):
        store = tmp_path / f"{n}.duckdb"
        left(spool, started("r1"), stopped("r1"))
        done = run(command, spool, STOPCAUSE_STORE=str(store))
        assert (done.returncode, done.stderr) == (0, "")
        assert verdicts(store) == {"r1": "FALSE_COMPLETE no_contract"}


def test_an_empty_spool_makes_no_store(store: Path, spool: Path) -> None:
    spool.mkdir()
    left(spool)

    assert "No runs yet" in run(("runs",), spool, STOPCAUSE_STORE=str(store)).stderr
    assert not store.exists()


def test_what_was_set_aside_is_said_and_the_list_is_shown(store: Path, spool: Path) -> None:
    path = left(spool, started("r1"), b"no record", stopped("r1"))

    done = run(("runs",), spool, STOPCAUSE_STORE=str(store))

    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1)
    assert done.stderr.splitlines() == [
        f"stopcause: {spool}: 1 line of no record set aside",
        f"stopcause: set aside in {path}.rejected.jsonl",
    ]


def test_where_the_store_has_no_room_what_is_in_it_can_still_be_read(
    store: Path, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Keeper.open(store, DEFAULT_POLICY, NOW) as keeper:
        keeper.accept([stopped("r1")], NOW)
    path = left(spool, started("r2"))
    monkeypatch.setenv("STOPCAUSE_STORE", str(store))
    monkeypatch.setenv("STOPCAUSE_SPOOL", str(spool))

    def full(*_: object) -> None:
        raise StoreFullError("The disk took no more.")

    monkeypatch.setattr(Keeper, "add", full)
    done = CliRunner().invoke(cli.app, ["runs"])

    assert (done.exit_code, json.loads(done.stdout)["run_id"]) == (0, "r1")
    assert done.stderr == f"stopcause: The disk took no more. What hooks left stays in {spool}.\n"
    assert path.exists()


def test_a_command_that_is_given_another_store_leaves_the_spool_to_the_usual_one(
    tmp_path: Path, store: Path, spool: Path
) -> None:
    path, copy = left(spool, started("r1")), tmp_path / "copy.duckdb"
    none = run(("runs", "--store", str(copy)), spool, STOPCAUSE_STORE=str(store))
    assert (none.returncode, copy.exists(), path.exists()) == (0, False, True)
    assert none.stderr.splitlines()[0] == f"stopcause: {spool} has records for {store}, the usual store."
    assert run(("explain", "r1", "--store", str(copy)), spool, STOPCAUSE_STORE=str(store)).returncode == 2

    with Keeper.open(copy, DEFAULT_POLICY, NOW) as keeper:
        keeper.accept([stopped("r2")], NOW)
    other = run(("runs", "--store", str(copy)), spool, STOPCAUSE_STORE=str(store))
    assert (len(other.stdout.splitlines()), other.stderr, path.exists()) == (1, "", True)

    named = run(("runs", "--store", str(store)), spool, STOPCAUSE_STORE=str(store))  # the usual one, by its name
    assert (len(named.stdout.splitlines()), path.exists()) == (1, False)


# The sidecar


@contextmanager
def follow(store: Path, spool: Path) -> Iterator[subprocess.Popen[str]]:
    """The sidecar. It is killed at the end: a test that fails must not wait for it."""
    command = [*STOPCAUSE, "ingest", "--follow", str(spool), "--store", str(store)]
    pipe = subprocess.PIPE
    env = environment(spool)
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, env=env) as sidecar:
        try:
            yield sidecar
        finally:
            sidecar.kill()


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_the_sidecar_takes_in_what_comes_until_it_is_ended(store: Path, spool: Path, by: signal.Signals) -> None:
    with follow(store, spool) as sidecar:
        left(spool, started("r1"))
        first = json.loads(said_by(sidecar))
        with process(MID_RUN, spool) as agent:
            run_id = said_by(agent)
            second = json.loads(said_by(sidecar))
        third = json.loads(said_by(sidecar))
        sidecar.send_signal(by)
        rest, complaints = sidecar.communicate(timeout=30)

    assert (first["records"], first["lost"], first["files_removed"]) == (2, ["r1"], 1)
    assert (second["lost"], third["lost"]) == ([], [run_id])
    assert (sidecar.returncode, rest, complaints) == (0, "", "")
    assert verdicts(store)[run_id] == "FAILED process_lost"


def test_the_sidecar_waits_for_a_store_that_is_in_use_and_says_so_once(store: Path, spool: Path) -> None:
    with Keeper.open(store, DEFAULT_POLICY, NOW), follow(store, spool) as sidecar:
        left(spool, started("r1"))
        assert sidecar.stderr is not None
        assert "is in use by process" in sidecar.stderr.readline()
        time.sleep(1.5)
        assert sidecar.poll() is None
        sidecar.terminate()
        assert sidecar.communicate(timeout=30) == ("", "")
    with follow(store, spool) as sidecar:
        assert json.loads(said_by(sidecar))["lost"] == ["r1"]
        sidecar.terminate()
        sidecar.communicate(timeout=30)


def test_the_store_can_be_read_while_a_sidecar_waits(store: Path, spool: Path) -> None:
    with follow(store, spool) as sidecar:
        left(spool, started("r1"))
        said_by(sidecar)
        assert runs(store, spool) == {"a": ("FAILED", "process_lost")}
        sidecar.terminate()
        sidecar.communicate(timeout=30)


def test_a_sidecar_on_a_terminal_has_one_line_that_stands(store: Path, spool: Path) -> None:
    left(spool, started("r1"))
    ours, theirs = a_terminal()
    command = [*STOPCAUSE, "ingest", "--follow", "--store", str(store)]
    with subprocess.Popen(command, cwd=ROOT, stdout=theirs, stderr=theirs, env=environment(spool)) as sidecar:
        os.close(theirs)
        seen = b""
        while b"looked at" not in seen:
            seen += os.read(ours, 4096)
        sidecar.send_signal(signal.SIGINT)
        sidecar.wait(timeout=30)
        seen += os.read(ours, 4096)
    os.close(ours)

    assert sidecar.returncode == 0
    assert "until Ctrl-C or SIGTERM ends it." in " ".join(seen.decode().split())
    assert "2 new records, 1 run lost with their process" in seen.decode()
    assert seen.decode().endswith("2 new records, 1 run lost with their process.\r\n")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--store", "https://stops.example"), "a service cannot be named here yet"),
        (("a", "b"), "name one folder"),
        (("-",), "name one folder"),
    ],
)
def test_what_a_sidecar_cannot_do_is_said(spool: Path, more: tuple[str, ...], said: str) -> None:
    done = run(("ingest", "--follow", *more), spool)

    assert done.returncode == 2
    assert said in done.stderr


def test_ingest_of_nothing_is_usage(spool: Path) -> None:
    done = run(("ingest",), spool)

    assert done.returncode == 2
    assert "name a file, a folder or -" in done.stderr
