"""The spool on a real disk: locked while its process lives, whole lines only, each file tells which runs are open."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stopcause.receipts import spool as module
from stopcause.receipts.spool import OpenRuns, Spool, is_mark
from tests.support.machine import lacking

ROOT = Path(__file__).parents[2]


def line(kind: str, run_id: str, attempt: int = 1, **more: object) -> bytes:
    """As our own writer makes it."""
    said = {"schema": "stopcause/1", "kind": kind, "record_id": f"{kind}-{run_id}", "run_id": run_id}
    return json.dumps({**said, "attempt": attempt, **more}, separators=(",", ":")).encode()


def started(run_id: str, **more: object) -> bytes:
    return line("run.started", run_id, **more)  # type: ignore[arg-type]  # keywords of the record


def stopped(run_id: str) -> bytes:
    return line("run.stopped", run_id, stop_cause="natural")


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Spool]:
    made = Spool(tmp_path / "spool", file_bytes=1000)
    yield made
    made.close()


def files(spool: Spool) -> list[Path]:
    found = spool.folder.glob("*.ndjson")
    return sorted(found, key=lambda path: json.loads(path.read_bytes().split(b"\n")[0])["segment"])


def lines(path: Path) -> list[bytes]:
    data = path.read_bytes()
    assert data.endswith(b"\n")
    return [each for each in data.split(b"\n")[:-1] if not is_mark(each)]


def opens_in(path: Path) -> list[str]:
    """The runs that are open where this file ends."""
    runs = OpenRuns()
    for each in path.read_bytes().split(b"\n"):
        runs.see(each)
    return [run.run_id for run in runs.runs]


def is_locked(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def python(program: str, *arguments: object) -> str:
    command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


# One file


def test_a_file_is_its_owners_alone_locked_and_named_after_its_process(spool: Spool) -> None:
    spool.write([started("r1"), stopped("r1")])

    (path,) = spool.folder.iterdir()
    assert path == spool.path
    assert path.name.startswith(f"py-{os.getpid()}-")
    assert (path.stat().st_mode & 0o777, spool.folder.stat().st_mode & 0o777) == (0o600, 0o700)
    assert path.read_bytes().startswith(b'{"journal":"stopcause/1","segment":1}\n')
    assert lines(path) == [started("r1"), stopped("r1")]
    assert is_locked(path)
    spool.close()
    assert not is_locked(path)


def test_nothing_is_made_before_the_first_line(spool: Spool) -> None:
    spool.close()

    assert not spool.folder.exists()


def test_a_file_is_locked_before_it_has_its_name(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[bool, bytes]] = []
    rename = Path.rename

    def watched(path: Path, target: Path) -> Path:
        seen.append((is_locked(path), path.read_bytes()))
        assert list(path.parent.glob("*.ndjson")) == []
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", watched)
    spool.write([started("r1")])

    assert seen == [(True, b'{"journal":"stopcause/1","segment":1}\n')]


def no_locks(*_: object) -> None:
    raise OSError(errno.ENOLCK, "No locks available")


def locks_that_hold_nothing(*_: object) -> None:
    pass


@pytest.mark.parametrize("flock", [no_locks, locks_that_hold_nothing])
def test_where_there_are_no_locks_the_name_says_so(
    spool: Spool, monkeypatch: pytest.MonkeyPatch, flock: Callable[..., None]
) -> None:
    monkeypatch.setattr(fcntl, "flock", flock)
    spool.write([started("r1")])

    assert spool.path is not None
    assert spool.path.name.startswith(f"unlocked-{os.getpid()}-")


def test_each_line_is_one_write_and_each_group_one_sync(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.write([started("r0")])
    done: list[bytes] = []
    write, sync = os.write, module._sync

    def written(fd: int, data: bytes) -> int:
        done.append(bytes(data))
        return write(fd, data)

    def synced(fd: int) -> None:
        done.append(b"sync")
        sync(fd)

    monkeypatch.setattr(os, "write", written)
    monkeypatch.setattr(module, "_sync", synced)

    spool.write([started("r1"), stopped("r1")])

    assert done == [started("r1") + b"\n", stopped("r1") + b"\n", b"sync"]


# A disk that takes no more


def failing(after: int, error: int = errno.ENOSPC) -> Callable[[int, bytes], int]:
    """A write that takes so many bytes, and then none."""
    room, write = [after], os.write

    def limited(fd: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(error, os.strerror(error))
        done = write(fd, bytes(data)[: room[0]])
        room[0] -= done
        return done

    return limited


@pytest.mark.parametrize("after", [0, 1, 60, 150, 151, 152])
def test_of_a_group_that_the_disk_refuses_nothing_stays_and_it_can_be_given_again(
    spool: Spool, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    spool.write([started("r1")])
    with monkeypatch.context() as disk:
        disk.setattr(os, "write", failing(after))
        for _ in range(2):
            with pytest.raises(OSError, match="No space"):
                spool.write([stopped("r1"), started("r2"), stopped("r2")])
        assert lines(files(spool)[0]) == [started("r1")]

    spool.write([stopped("r1"), started("r2"), stopped("r2")])

    assert lines(files(spool)[0]) == [started("r1"), stopped("r1"), started("r2"), stopped("r2")]


def test_a_write_that_takes_a_part_goes_on_with_the_rest(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.write([started("r1")])
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data)[:7]))

    spool.write([stopped("r1")])

    assert lines(files(spool)[0]) == [started("r1"), stopped("r1")]


def test_a_sync_that_fails_writes_the_group_anew(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    spool.write([started("r1")])
    with monkeypatch.context() as disk:
        disk.setattr(module, "_sync", lambda fd: failing(0, errno.EIO)(fd, b""))
        with pytest.raises(OSError, match="Input/output"):
            spool.write([stopped("r1")])
        assert lines(files(spool)[0]) == [started("r1")]

    spool.write([stopped("r1")])

    assert lines(files(spool)[0]) == [started("r1"), stopped("r1")]


def test_what_cannot_be_cut_back_at_once_is_cut_before_the_next_line(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.write([started("r1")])
    with monkeypatch.context() as disk:
        disk.setattr(os, "write", failing(20))
        disk.setattr(os, "ftruncate", lambda fd, _size: failing(0)(fd, b""))
        for _ in range(2):
            with pytest.raises(OSError, match="No space"):
                spool.write([stopped("r1")])

    spool.write([stopped("r1")])

    assert lines(files(spool)[0]) == [started("r1"), stopped("r1")]


def test_a_file_that_cannot_be_begun_leaves_nothing(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as disk:
        disk.setattr(os, "write", failing(10))
        with pytest.raises(OSError, match="No space"):
            spool.write([started("r1")])
        assert list(spool.folder.iterdir()) == []

    spool.write([started("r1")])

    assert lines(files(spool)[0]) == [started("r1")]


FULL = """
    import os, resource, sys
    from stopcause.receipts.spool import Spool
    if sys.argv[2] != "0":
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
    spool, acknowledged = Spool(sys.argv[1], file_bytes=10**9), 0
    try:
        for n in range(100_000):
            spool.write([b'{"n":%d,"pad":"%s"}' % (n, b"." * (n % 300)), b'{"n":-1}'])
            acknowledged += 1
    except OSError as error:
        print(acknowledged, error.strerror, flush=True)
    os.kill(os.getpid(), 9)
"""


def written_on_a_full_disk(folder: Path, limit: int) -> tuple[list[int], list[int]]:
    """What is in the file once the disk takes no more, and what was acknowledged."""
    command = [sys.executable, "-c", textwrap.dedent(FULL), str(folder), str(limit)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    count, _, why = done.stdout.strip().partition(" ")
    assert why in ("No space left on device", "File too large"), done.stderr
    (path,) = folder.glob("*.ndjson")
    assert int(count) > 10
    return [json.loads(each)["n"] for each in lines(path)], [n for i in range(int(count)) for n in (i, -1)]


def test_a_file_that_may_not_grow_keeps_what_was_acknowledged_and_no_more(tmp_path: Path) -> None:
    written, acknowledged = written_on_a_full_disk(tmp_path / "spool", 50_000)

    assert written == acknowledged


@pytest.mark.system
def test_a_disk_that_is_full_keeps_what_was_acknowledged_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    mount = shutil.which("mount") or "mount"
    made = subprocess.run([mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", tmp_path / "disk"], check=False, stderr=-3)
    if made.returncode:
        lacking("this user may not mount a file system")
    try:
        written, acknowledged = written_on_a_full_disk(tmp_path / "disk" / "spool", 0)
    finally:
        subprocess.run([shutil.which("umount") or "umount", tmp_path / "disk"], check=True)

    assert written == acknowledged


# Taken away, grown large


def test_a_large_file_is_followed_by_one_that_begins_with_the_open_runs(spool: Spool) -> None:
    early = [started("open"), started("done"), stopped("done"), started("again"), stopped("again"), started("again")]
    spool.write(early)
    spool.write([line("run.progress", "open", n=n) for n in range(9)])
    spool.write([started("late")])

    first, second = files(spool)
    assert lines(second) == [started("open"), started("again"), started("late")]
    assert first.read_bytes().endswith(b'\n{"journal":"stopcause/1","next":2}\n')
    assert (opens_in(first), opens_in(second)) == ([], ["open", "again", "late"])
    assert (is_locked(first), is_locked(second)) == (False, True)


def test_start_records_alone_do_not_make_a_file_large(spool: Spool) -> None:
    spool.write([started(f"r{n}") for n in range(30)])
    for n in range(10):
        spool.write([line("run.progress", "r1", n=n)])

    assert len(files(spool)) == 2


def test_a_file_goes_on_until_the_next_one_is_whole(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    large = [started("r1"), *(line("run.progress", "r1", n=n) for n in range(12))]
    spool.write(large)
    for room in (10, 100, 160):  # in the next one's header, in its start record, in the old one's last line
        with monkeypatch.context() as disk:
            disk.setattr(os, "write", failing(room))
            with pytest.raises(OSError, match="No space"):
                spool.write([stopped("r1")])
        (only,) = spool.folder.iterdir()
        assert (lines(only), opens_in(only), is_locked(only)) == (large, ["r1"], True)

    spool.write([stopped("r1")])

    assert [opens_in(each) for each in files(spool)] == [[], []]


def test_a_folder_that_is_full_takes_no_more_files_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = b'{"schema":"stopcause/1"}' + b" " * 1_000
    spool = Spool(tmp_path, file_bytes=2_000, most_bytes=5_000)
    taken = [spool.write([line]) for _ in range(20)]

    assert taken == [0] * taken.count(0) + [1] * taken.count(1), "once it is full, it is full"
    assert 4 <= taken.count(0) <= 8
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 9_000
    assert caplog.text.count("has reached its") == 1
    for path in tmp_path.iterdir():
        path.unlink()
    assert spool.write([line]) == 1, "it does not look each time"
    monkeypatch.setattr(module, "_LOOK_AGAIN_S", 0.0)
    spool._look_at = 0.0
    assert spool.write([line]) == 0
    spool.close()


@pytest.mark.parametrize("how", ["file", "folder", "moved", "replaced"])
def test_a_file_that_is_taken_away_is_followed_by_another(spool: Spool, how: str) -> None:
    spool.write([started("r1")])
    path = spool.path
    assert path is not None
    if how == "folder":
        shutil.rmtree(spool.folder)
    elif how == "moved":
        path.rename(path.with_name("elsewhere"))
    else:
        path.unlink()
    if how == "replaced":
        path.write_bytes(b"")

    spool.write([line("run.progress", "r1")])

    assert spool.path not in (None, path)
    assert lines(Path(str(spool.path))) == [started("r1"), line("run.progress", "r1")]


def test_lines_that_were_written_while_the_file_went_away_are_written_anew(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.write([started("r1")])
    path, sync = spool.path, module._sync
    assert path is not None

    def go_away(fd: int) -> None:
        path.unlink(missing_ok=True)
        sync(fd)

    monkeypatch.setattr(module, "_sync", go_away)

    spool.write([stopped("r1")])

    assert lines(files(spool)[0]) == [started("r1"), stopped("r1")]


# Forks


def test_a_forked_child_has_a_file_of_its_own_and_leaves_the_parents_alone(tmp_path: Path) -> None:
    said = python(
        """
        import os, sys
        from stopcause.receipts.spool import Spool
        spool = Spool(sys.argv[1])
        spool.write([b'{"schema":"stopcause/1","kind":"run.started","record_id":"1","run_id":"parent","attempt":1}'])
        if not os.fork():
            spool.write([b'{"schema":"stopcause/1","kind":"run.started","record_id":"2","run_id":"child","attempt":1}'])
            spool.close()
            os._exit(0)
        os.wait()
        print(os.getpid(), spool.path)
        spool.write([b'{"by":"parent"}'])
        os.kill(os.getpid(), 9) if len(sys.argv) > 2 else None
        """,
        tmp_path,
    )

    pid, own = said.split()
    parents = [path for path in tmp_path.iterdir() if path.name.startswith(f"py-{pid}-")]
    assert parents == [Path(own)]
    assert b"child" not in Path(own).read_bytes()
    (child,) = (path for path in tmp_path.iterdir() if path != Path(own))
    assert (opens_in(child), b"parent" in child.read_bytes()) == (["child"], False)


def test_a_child_that_lives_on_does_not_keep_its_dead_parents_lock(tmp_path: Path) -> None:
    program = """
        import os, sys, time
        import stopcause
        run = stopcause.run("agent").start()
        stopcause.flush()
        if not os.fork():
            print("ready", flush=True)
            time.sleep(60)
        time.sleep(60)
    """
    environment = {**os.environ, "STOPCAUSE_SPOOL": str(tmp_path)}
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, env=environment, start_new_session=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        (path,) = tmp_path.glob("*.ndjson")
        assert is_locked(path)
        parent.kill()
        parent.wait()
        free = not is_locked(path)
        os.killpg(parent.pid, 9)
        parent.stdout.read()
    assert free
