"""The journal on a real disk: what is acknowledged stays, what is not acknowledged never looks as if it were."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stopcause.errors import StoreError, StoreInUseError, StoreVersionError
from stopcause.receipts import journal as module
from stopcause.receipts import segments as reading
from stopcause.receipts.journal import LOCK_NAME, TORN_NAME, Journal
from stopcause.receipts.segments import Position, read
from tests.support.machine import lacking

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
LINES = st.lists(st.lists(st.binary(max_size=60).map(lambda b: b.replace(b"\n", b"\r")), max_size=6), max_size=12)

# Appends groups of three numbered lines, goes on after the last one it finds, says after each what is acknowledged.
APPENDER = """
    import sys
    from stopcause.receipts.journal import Journal
    from stopcause.receipts.segments import read
    with Journal(sys.argv[1], segment_bytes=2000) as journal:
        done = sum(1 for _ in read(sys.argv[1]))
        print(done, flush=True)
        while True:
            journal.append(b"%d" % n + b"." * (n % 50) for n in range(done, done + 3))
            done += 3
            print(done, flush=True)
"""

# Fills a disk until it takes no more; then what was acknowledged is there, and only that.
FILLER = """
    import resource, sys
    from stopcause.errors import StoreFullError
    from stopcause.receipts.journal import Journal
    from stopcause.receipts.segments import read
    folder, limit = sys.argv[1], int(sys.argv[2])
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    journal, acknowledged = Journal(folder, segment_bytes=int(sys.argv[3])), []
    try:
        for _ in range(200):
            group = [b"%06d" % n * 100 for n in range(len(acknowledged), len(acknowledged) + 5)]
            journal.append(group)
            acknowledged += group
    except StoreFullError as error:
        assert "Free space" in str(error), error
    assert [line for line, _ in read(folder)] == acknowledged
    for _ in range(50):
        try:
            journal.append([b"x" * 5000])
        except StoreFullError:
            break
        acknowledged.append(b"x" * 5000)
    else:
        raise AssertionError("the disk is never full")
    journal.remove_before(journal.end)
    if journal.end.segment > 1:  # segments are gone, so there is room again
        kept = [line for line, _ in read(folder)]
        journal.append([b"small"])
        assert [line for line, _ in read(folder)] == [*kept, b"small"]
        acknowledged.append(b"small")
    journal.close()
    with Journal(folder) as again:
        assert again.torn == 0
        kept = [line for line, _ in read(folder)]
        assert kept == acknowledged[-len(kept):], "only what was acknowledged"
    print(len(acknowledged))
"""


def lines_of(folder: Path, start: Position | None = None) -> list[bytes]:
    return [line for line, _ in read(folder, start)]


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("0*.ndjson"))


def python(program: str, *args: object) -> list[str]:
    return [sys.executable, "-c", textwrap.dedent(program), *map(str, args)]


def run(command: Sequence[str]) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@given(LINES, st.integers(1, 400))
@settings(max_examples=60, deadline=None)
def test_what_goes_in_comes_out_and_every_position_is_a_place_to_go_on(
    groups: list[list[bytes]], segment_bytes: int
) -> None:
    with tempfile.TemporaryDirectory() as name:
        with Journal(name, segment_bytes=segment_bytes) as journal:
            ends = [journal.append(group) for group in groups]
            assert ends[-1:] in ([], [journal.end])
        given_lines = [line for group in groups for line in group]
        got = list(read(name))
        assert [line for line, _ in got] == given_lines
        assert all(a < b for (_, a), (_, b) in pairwise(got))
        for n, (_, position) in enumerate(got, 1):
            assert lines_of(Path(name), position) == given_lines[n:]
        with Journal(name) as journal:
            assert (journal.end, journal.torn) == (ends[-1] if ends else Position(1, len(reading.header_of(1))), 0)


def test_a_group_is_read_up_to_stop_and_in_batches(tmp_path: Path) -> None:
    with Journal(tmp_path, segment_bytes=100) as journal:
        middle = journal.append([b"a" * 9] * 5)
        journal.append([b"b" * 9] * 5)
        assert [line for line, _ in read(tmp_path, stop=middle)] == [b"a" * 9] * 5
        assert list(read(tmp_path, middle, stop=middle)) == []
        assert len(list(read(tmp_path, max_bytes=20))) == 2
        assert len(list(read(tmp_path, max_bytes=1))) == 1


def test_a_line_longer_than_a_chunk_is_one_line(tmp_path: Path) -> None:
    long = b"x" * (3 * reading._CHUNK + 7)
    with Journal(tmp_path) as journal:
        journal.append([b"before", long, b"after"])
    assert lines_of(tmp_path) == [b"before", long, b"after"]


def test_a_group_larger_than_a_segment_stays_whole(tmp_path: Path) -> None:
    with Journal(tmp_path, segment_bytes=10) as journal:
        journal.append([b"small"])
        assert journal.append([b"x" * 50] * 3).segment == 2
        assert journal.append([b"next"]).segment == 3
    assert [path.name for path in segments(tmp_path)] == ["00000001.ndjson", "00000002.ndjson", "00000003.ndjson"]
    assert segments(tmp_path)[1].read_bytes().startswith(b'{"journal":"stopcause/1","segment":2}\n')


def test_a_newline_in_a_line_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        with pytest.raises(ValueError, match="newline"):
            journal.append([b"good", b"b\nad"])
        assert journal.append([]) == journal.end
    assert lines_of(tmp_path) == []


def test_a_torn_tail_of_every_length_is_set_aside_and_nothing_else_changes(tmp_path: Path) -> None:
    with Journal(tmp_path / "whole") as journal:
        good = journal.append([b"first", b"second"])
        end = journal.append([b"third", b"", b"the last one"])
    whole = segments(tmp_path / "whole")[0].read_bytes()
    for size in range(good.offset, end.offset + 1):
        folder = tmp_path / str(size)
        folder.mkdir()
        path = folder / "00000001.ndjson"
        path.write_bytes(whole[:size])
        kept, _, tail = whole[:size].rpartition(b"\n")
        assert lines_of(folder) == kept.split(b"\n")[1:], "a reader leaves the torn line out"
        with Journal(folder) as journal:
            assert journal.torn == bool(tail)
            assert path.read_bytes() == kept + b"\n"
            journal.append([b"goes on"])
        torn = folder / TORN_NAME
        assert (torn.read_bytes() if torn.exists() else b"") == (tail + b"\n" if tail else b"")
        assert lines_of(folder) == [*kept.split(b"\n")[1:], b"goes on"]


def test_a_torn_tail_longer_than_a_block_is_found_from_the_end(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append([b"kept"])
    for tail in (b"x" * (3 * module._BLOCK), b"y"):
        with segments(tmp_path)[0].open("ab") as file:
            file.write(tail)
        with Journal(tmp_path) as journal:
            assert journal.torn == 1
    assert (tmp_path / TORN_NAME).read_bytes() == b"x" * (3 * module._BLOCK) + b"\ny\n"
    assert lines_of(tmp_path) == [b"kept"]


@pytest.mark.parametrize(("limit", "segment_bytes"), [(20_011, 10**6), (3_500, 3_200)])
def test_a_file_that_may_not_grow_keeps_what_was_acknowledged(tmp_path: Path, limit: int, segment_bytes: int) -> None:
    assert int(run(python(FILLER, tmp_path / "j", limit, segment_bytes))) > 0


def test_a_segment_that_finds_no_room_leaves_nothing_behind(tmp_path: Path) -> None:
    program = """
        import os, resource, sys
        from stopcause.errors import StoreFullError
        from stopcause.receipts.journal import Journal
        from stopcause.receipts.segments import read
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, resource.RLIM_INFINITY))
        for _ in range(2):
            try:
                Journal(sys.argv[1])
            except StoreFullError:
                assert os.listdir(sys.argv[1]) == ["journal.lock"]
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        with Journal(sys.argv[1]) as journal:
            journal.append([b"room"])
        print(*read(sys.argv[1]))
    """
    assert run(python(program, tmp_path)) == "(b'room', Position(segment=1, offset=43))\n"


@pytest.mark.parametrize("segment_bytes", [10**6, 30_000])
def test_a_full_disk_keeps_what_was_acknowledged(tmp_path: Path, segment_bytes: int) -> None:
    mount = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=256k none "$0" && exec "$@"', str(tmp_path)]
    if not shutil.which("unshare") or subprocess.run([*mount, "true"], capture_output=True, check=False).returncode:
        lacking("needs the right to mount a tmpfs")
    assert int(run([*mount, *python(FILLER, tmp_path / "j", 0, segment_bytes)])) > 0


def test_a_sync_that_fails_acknowledges_nothing_and_is_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def broken(fd: int) -> None:
        tried.append(fd)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with Journal(tmp_path) as journal:
        end = journal.append([b"kept"])
        with monkeypatch.context() as patch:
            patch.setattr(module, "_sync", broken)
            with pytest.raises(StoreError, match="not acknowledged") as caught:
                journal.append([b"gone", b"gone too"])
        assert (len(tried), journal.end, caught.type) == (1, end, StoreError)
        assert lines_of(tmp_path) == [b"kept"]
        journal.append([b"later"])
    assert lines_of(tmp_path) == [b"kept", b"later"]


@pytest.mark.parametrize("then", ["append", "close"])
def test_an_interrupted_append_leaves_nothing_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    def interrupted(_fd: int) -> None:
        raise KeyboardInterrupt

    journal = Journal(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(module, "_sync", interrupted)
        with pytest.raises(KeyboardInterrupt):
            journal.append([b"a long group that was not acknowledged"] * 3)
    if then == "append":
        journal.append([b"short"])
    journal.close()
    assert lines_of(tmp_path) == ([b"short"] if then == "append" else [])


def test_a_second_writer_is_refused_and_told_who_the_first_one_is(tmp_path: Path) -> None:
    child = subprocess.Popen(python(APPENDER, tmp_path), cwd=ROOT, stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(StoreInUseError, match=rf"process {child.pid} is writing.*another folder"):
            Journal(tmp_path)
        child.kill()
    with Journal(tmp_path), pytest.raises(StoreInUseError, match=str(os.getpid())):
        Journal(tmp_path)
    assert (tmp_path / LOCK_NAME).read_bytes() == b""


def test_a_reader_reads_on_while_a_writer_appends(tmp_path: Path) -> None:
    child = subprocess.Popen(python(APPENDER, tmp_path), cwd=ROOT, stdout=subprocess.PIPE, text=True)
    places: list[Position | None] = [None]
    got: list[bytes] = []
    with child:
        assert child.stdout is not None
        child.stdout.readline()
        while len(got) < 1500:
            batch = list(read(tmp_path, places[-1], max_bytes=10**5))
            got += [line for line, _ in batch]
            places += [position for _, position in batch[-1:]]
        child.kill()
    assert got == [b"%d" % n + b"." * (n % 50) for n in range(len(got))]
    assert len(places) > 2
    assert len(segments(tmp_path)) > 10


def test_a_reader_sees_what_is_written_between_its_end_and_the_next_segment(tmp_path: Path) -> None:
    with Journal(tmp_path, segment_bytes=100) as journal:
        journal.append([b"1" * 20])
        reader = read(tmp_path)
        assert next(reader)[0] == b"1" * 20
        journal.append([b"2" * 20])
        journal.append([b"3" * 20])
        assert journal.end.segment == 2
        assert [line for line, _ in reader] == [b"2" * 20, b"3" * 20]


def four_segments(folder: Path) -> list[Position]:
    with Journal(folder, segment_bytes=1) as journal:
        return [journal.append([b"line %d" % n]) for n in range(1, 5)]


def test_a_missing_segment_is_named_and_never_skipped(tmp_path: Path) -> None:
    places = four_segments(tmp_path)
    (tmp_path / "00000002.ndjson").unlink()
    reader = read(tmp_path)
    assert next(reader)[0] == b"line 1"
    with pytest.raises(StoreError, match=r"00000002\.ndjson is missing"):
        next(reader)
    with pytest.raises(StoreError, match=r"00000002\.ndjson is missing"):
        lines_of(tmp_path, places[1])
    assert lines_of(tmp_path, places[2]) == [b"line 4"]


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (b"", "header"),
        (b'{"journal":"stopcause/1","segment":3}\nline 2\n', "header"),
        (b"line 2\n", "header"),
        (b'{"journal":"stopcause/1","segment":2}\nline', "inside a line"),
    ],
)
def test_a_damaged_segment_in_the_middle_is_named(tmp_path: Path, damage: bytes, fault: str) -> None:
    four_segments(tmp_path)
    (tmp_path / "00000002.ndjson").write_bytes(damage)
    with pytest.raises(StoreError, match=rf"00000002\.ndjson .*{fault}.*bytes are lost"):
        lines_of(tmp_path)


def test_a_position_at_which_no_line_ends_means_lost_bytes(tmp_path: Path) -> None:
    end = four_segments(tmp_path)[-1]
    for wrong in (end._replace(offset=end.offset + 1), end._replace(offset=end.offset - 1), Position(4, 3)):
        with pytest.raises(StoreError, match=rf"no line that ends at byte {wrong.offset}"):
            lines_of(tmp_path, wrong)
    with pytest.raises(StoreError, match="is missing"):
        lines_of(tmp_path, Position(5, 38))
    assert lines_of(tmp_path, Position(4, 0)) == [b"line 4"]


def test_a_newer_journal_is_neither_read_nor_written(tmp_path: Path) -> None:
    (tmp_path / "00000001.ndjson").write_bytes(b'{"journal":"stopcause/12","segment":1,"new":1}\n')
    with pytest.raises(StoreVersionError, match="Upgrade"):
        lines_of(tmp_path)
    for _ in range(2):  # the first refusal lets go of the lock
        with pytest.raises(StoreVersionError, match="Upgrade"):
            Journal(tmp_path)


def test_retention_removes_whole_segments_and_never_the_current_one(tmp_path: Path) -> None:
    with Journal(tmp_path, segment_bytes=1) as journal:
        places = [journal.append([b"line %d" % n]) for n in range(1, 5)]
        assert journal.remove_before(places[1]) == 1
        assert lines_of(tmp_path) == [b"line 2", b"line 3", b"line 4"]
        assert lines_of(tmp_path, places[1]) == [b"line 3", b"line 4"]
        assert journal.remove_before(Position(99, 0)) == 2
        journal.append([b"line 5"])
    assert lines_of(tmp_path) == [b"line 4", b"line 5"]
    with pytest.raises(StoreError, match=r"00000001\.ndjson is missing"):
        lines_of(tmp_path, places[0])


def test_other_files_in_the_folder_are_no_segments(tmp_path: Path) -> None:
    for name in (
        "1.ndjson",
        "00000000.ndjson",
        "000000001.ndjson",
        "notes.ndjson",
        "00000009.ndjson.new",
        "\u0660\u0660\u0660\u0660\u0660\u0660\u0660\u0661.ndjson",
    ):
        (tmp_path / name).write_bytes(b"something else")
    with Journal(tmp_path) as journal:
        assert journal.append([b"one"]).segment == 1
    assert lines_of(tmp_path) == [b"one"]


def test_a_folder_that_cannot_be_used_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="file"):
        Journal(tmp_path / "file" / "journal")
    with pytest.raises(StoreError, match="nowhere"):
        lines_of(tmp_path / "nowhere")
    with Journal(tmp_path / "a" / "b" / "c") as journal:
        journal.append([b"made"])
    journal.close()
    with pytest.raises(StoreError, match="closed"):
        journal.append([b"late"])


def test_a_forked_child_neither_writes_nor_keeps_the_lock(tmp_path: Path) -> None:
    program = """
        import os, signal, sys
        from stopcause.errors import StoreError, StoreInUseError
        from stopcause.receipts.journal import Journal
        journal = Journal(sys.argv[1])
        journal.append([b"parent"])
        ready, told = os.pipe()
        if not (child := os.fork()):
            try:
                journal.append([b"child"])
            except StoreError as error:
                os.write(told, b"refused" if "which forked this one" in str(error) else b"?")
            try:
                Journal(sys.argv[1])
            except StoreInUseError:
                os.write(told, b", held")
            os.close(told)
            os.close(1)  # the test waits for its end
            signal.pause()
        os.close(told)
        said = open(ready).read()
        journal.append([b"still the parent"])
        print(child, said, sep=":", end="", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run(
        python(program, tmp_path), cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=30, check=False
    )
    child, said = done.stdout.split(":")
    try:
        assert (done.returncode, said) == (-signal.SIGKILL, "refused, held")
        with Journal(tmp_path) as journal:  # the child lives on, and its parent's journal is free
            journal.append([b"next"])
        assert lines_of(tmp_path) == [b"parent", b"still the parent", b"next"]
    finally:
        os.kill(int(child), signal.SIGKILL)


def killed_after(folder: Path, seconds: float) -> int:
    """Lets a child append, kills it, and returns the last count that it acknowledged."""
    with subprocess.Popen(python(APPENDER, folder), cwd=ROOT, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        first = child.stdout.readline()
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            child.kill()
        said = (first + child.stdout.read()).split(b"\n")[:-1]
    assert child.returncode == -signal.SIGKILL
    return int(said[-1])


@pytest.mark.parametrize("kills", [5, pytest.param(200, marks=pytest.mark.kill)])
def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path: Path, kills: int) -> None:
    moments = random.Random(7)  # noqa: S311 (moments to kill at, no secret)
    for n in range(kills):
        folder = tmp_path / str(n // 10)  # a new one now and then, or reading takes longer than killing
        acknowledged = killed_after(folder, moments.uniform(0, 0.05))
        got = lines_of(folder)
        assert len(got) >= acknowledged
        assert got == [b"%d" % n + b"." * (n % 50) for n in range(len(got))]
