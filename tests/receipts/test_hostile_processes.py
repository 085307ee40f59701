"""Processes that end badly, fork or have no room: what was written stays, and the host never notices."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest


def spool_lines(folder: Path) -> list[dict[str, Any]]:
    lines = b"".join(path.read_bytes() for path in sorted(folder.glob("*.ndjson"))).splitlines()
    return [each for line in lines if "kind" in (each := json.loads(line))]


def python(program: str, spool: Path) -> subprocess.Popen[bytes]:
    env = {**os.environ, "STOPCAUSE_SPOOL": str(spool)}
    return subprocess.Popen([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


# Processes ------------------------------------------------------------------------------------------------------------

RUNS = """
import stopcause, sys, time, os, signal
with stopcause.run("done", run_id="r1"):
    pass
stopcause.flush()
"""


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"


def test_a_normal_end_writes_what_is_not_written_yet(spool: Path) -> None:
    child = python("import stopcause\nwith stopcause.run('a', run_id='r1'):\n  pass\n", spool)
    assert child.communicate(timeout=30)[1] == b""
    assert child.returncode == 0

    assert [each["kind"] for each in spool_lines(spool)] == ["run.started", "run.stopped"]


def test_an_exit_by_exception_is_written_too(spool: Path) -> None:
    child = python("import stopcause\nwith stopcause.run('a', run_id='r1'):\n  raise SystemExit(7)\n", spool)
    child.communicate(timeout=30)

    assert child.returncode == 7
    assert spool_lines(spool)[-1]["stop_cause"] == "platform_abort"


@pytest.mark.parametrize(
    "end", ["os._exit(3)", "os.kill(os.getpid(), signal.SIGKILL)", "os.kill(os.getpid(), signal.SIGTERM)"]
)
def test_what_was_flushed_survives_every_end(spool: Path, end: str) -> None:
    program = RUNS + f"run = stopcause.run('open', run_id='r2').start()\nstopcause.flush()\n{end}\n"
    child = python(program, spool)
    child.communicate(timeout=30)

    kinds = [(each["run_id"], each["kind"]) for each in spool_lines(spool)]
    assert kinds == [("r1", "run.started"), ("r1", "run.stopped"), ("r2", "run.started")]


def test_an_interrupt_from_the_keyboard_ends_the_run_and_the_process_as_ever(spool: Path) -> None:
    program = (
        "import stopcause, time\nwith stopcause.run('a', run_id='r1'):\n  print('go', flush=True)\n  time.sleep(60)\n"
    )
    child = python(program, spool)
    assert child.stdout is not None
    assert child.stdout.readline() == b"go\n"
    child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=30)

    assert child.returncode == -signal.SIGINT
    assert b"KeyboardInterrupt" in said
    assert spool_lines(spool)[-1]["stop_cause"] == "user_abort"


def test_a_forked_child_has_a_file_of_its_own_and_leaves_the_parent_s_runs_alone(spool: Path) -> None:
    program = """
import os, stopcause
with stopcause.run("parent", run_id="r1"):
    stopcause.flush()
    child = os.fork()
    if child == 0:
        with stopcause.run("child", run_id="r2"):
            pass
    else:
        os.waitpid(child, 0)
"""
    child = python(program, spool)
    assert child.communicate(timeout=30)[1] == b""

    by_file = {
        path: [json.loads(line).get("run_id") for line in path.read_bytes().splitlines()]
        for path in spool.glob("*.ndjson")
    }
    assert sorted(by_file.values(), key=str) == [[None, "r1", "r1"], [None, "r2", "r2"]]
    found = {each["run_id"]: each for each in spool_lines(spool) if each["kind"] == "run.started"}
    assert found["r1"]["process"]["pid"] != found["r2"]["process"]["pid"]
    assert found["r2"]["parent_run_id"] == "r1"


WORKERS = {
    "Pool": """
        with context.Pool(2) as pool:
            pool.map(work, range(4))
            pool.close()
            pool.join()
""",
    "Process": """
        workers = [context.Process(target=work, args=(number,)) for number in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
""",
    "ProcessPoolExecutor": """
        with ProcessPoolExecutor(2, mp_context=context) as executor:
            list(executor.map(work, range(4)))
""",
}


def test_what_a_forked_child_says_of_its_parent_s_run_claims_no_place_in_its_order(spool: Path) -> None:
    program = """
import os, stopcause
with stopcause.run("parent", run_id="r1") as run:
    child = os.fork()
    if child == 0:
        run.progress("tool_result")
    else:
        os.waitpid(child, 0)
        run.progress("state_change")
"""
    child = python(program, spool)
    assert child.communicate(timeout=30)[1] == b""

    found = [(each["kind"], each.get("sign"), each.get("seq")) for each in spool_lines(spool)]
    assert sorted(found, key=str) == [
        ("run.progress", "state_change", 2),
        ("run.progress", "tool_result", None),
        ("run.started", None, 1),
        ("run.stopped", None, 3),
    ]


@pytest.mark.parametrize("kind", list(WORKERS))
@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_worker_processes_of_every_kind_record_their_own(spool: Path, tmp_path: Path, method: str, kind: str) -> None:
    program = f"""
import multiprocessing, stopcause
from concurrent.futures import ProcessPoolExecutor

def work(number):
    with stopcause.run("worker", run_id=f"w{{number}}"):
        pass

if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    with stopcause.run("boss", run_id="r1"):
        {WORKERS[kind].strip()}
"""
    file = tmp_path / "program.py"
    file.write_text(program)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(file)],
        env={**os.environ, "STOPCAUSE_SPOOL": str(spool)}, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stderr == b""

    ended = [each["run_id"] for each in spool_lines(spool) if each["kind"] == "run.stopped"]
    assert sorted(ended) == ["r1", "w0", "w1", "w2", "w3"]


def test_a_sink_that_hangs_does_not_keep_the_process(spool: Path) -> None:
    program = """
import stopcause, time
class Hangs:
    def write(self, lines): time.sleep(3600)
    def close(self): pass
stopcause.configure(sink=Hangs())
with stopcause.run("a"):
    pass
"""
    begun = time.monotonic()
    child = python(program, spool)
    child.communicate(timeout=30)

    assert child.returncode == 0
    assert time.monotonic() - begun < 15


def test_a_sink_that_was_replaced_and_hangs_does_not_keep_the_other_s_last_records(spool: Path) -> None:
    program = """
import stopcause, time
from stopcause.receipts.sinks import Spool
class Hangs:
    def write(self, lines): time.sleep(3600)
    def close(self): pass
for _ in range(5):
    stopcause.configure(sink=Hangs())
    with stopcause.run("a"):
        pass
stopcause.configure(sink=Spool())
with stopcause.run("b", run_id="r1"):
    pass
"""
    child = python(program, spool)
    child.communicate(timeout=30)

    assert child.returncode == 0
    assert [each["kind"] for each in spool_lines(spool)] == ["run.started", "run.stopped"]


def test_no_home_and_no_folder_cost_nothing_but_the_records(tmp_path: Path) -> None:
    file = tmp_path / "a-file"
    file.write_text("")
    child = python("import stopcause\nwith stopcause.run('a') as run:\n  run.step()\nprint('fine')\n", file / "spool")
    out, said = child.communicate(timeout=30)

    assert (child.returncode, out) == (0, b"fine\n")
    assert f"records cannot be written to {file / 'spool'} (Not a directory)".encode() in said


def test_importing_the_hook_loads_nothing_of_an_operator_s() -> None:
    program = (
        "import sys, stopcause.receipts.capture, stopcause.receipts.instrumentation\n"
        "heavy = {'duckdb', 'pyarrow', 'typer', 'rich', 'starlette', 'opentelemetry.sdk', 'requests', 'msgspec'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, check=True)

    assert done.stdout == b"[]\n"


def test_nothing_is_imported_behind(spool: Path) -> None:
    """A process may be forked at any moment. What was being imported then stays half there in the child for ever."""
    program = """
import sys, stopcause
from stopcause.receipts.sinks import HttpSink, Spool, Tee
stopcause.configure(sink=Tee(Spool(), HttpSink("http://localhost:9/nobody")))
stopcause.run("a")
before = set(sys.modules)
with stopcause.run("a", thread_id="two words", labels={"a": "b"}) as run:
    run.steps = -1
    run.waiting("ap-1", owner="ann@example.com")
stopcause.flush()
print(sorted(set(sys.modules) - before))
"""
    out, _ = python(program, spool).communicate(timeout=30)

    assert out == b"[]\n"
