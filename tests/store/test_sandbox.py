"""Free SQL: every way out that somebody found is closed or cut off, and after all of them nothing has changed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from stopcause.classifier.policy import DEFAULT_POLICY
from stopcause.errors import QueryError, QueryStoppedError, StoreError
from stopcause.pipeline.ingest import ingest
from stopcause.pipeline.keeper import Keeper
from stopcause.store import meanings, sandbox
from stopcause.store.duckdb_store import DuckStore
from stopcause.store.sandbox import Found, Limits, ask
from tests.support.recordings import few

NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)
SHORT = Limits(timeout_s=2)
ROOT = Path(__file__).parents[2]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits memory, and shows processes in /proc")

ONLY_READS = "takes one SELECT"
ONLY_THIS = "reads this store only"
MEMORY = "needs more memory|took too much memory"
TIME = "stopped after 2 s"

# What each of them meets. OUT is a file that must not appear, STORE the database file itself.
REFUSED = {
    # not a reading statement
    "insert": ("INSERT INTO journal_position VALUES (9, 9)", ONLY_READS),
    "update": ("UPDATE verdicts SET verdict = 'VERIFIED_COMPLETE'", ONLY_READS),
    "delete": ("DELETE FROM records", ONLY_READS),
    "drop": ("DROP TABLE records", ONLY_READS),
    "alter": ("ALTER TABLE records ADD COLUMN x INTEGER", ONLY_READS),
    "merge": (
        "MERGE INTO policies USING policies AS o ON false WHEN NOT MATCHED THEN INSERT VALUES (1,2,3,4,now())",
        ONLY_READS,
    ),
    "create": ("CREATE TABLE t (i INTEGER)", ONLY_READS),
    "temp table": ("CREATE TEMP TABLE t AS SELECT 1", ONLY_READS),
    "temp macro": ("CREATE TEMP MACRO m() AS 1", ONLY_READS),
    "view": ("CREATE VIEW v AS SELECT 1", ONLY_READS),
    "comment": ("COMMENT ON TABLE records IS 'x'", ONLY_READS),
    "prepare": ("PREPARE p AS SELECT 1", ONLY_READS),
    "call": ("CALL pragma_version()", ONLY_READS),
    "checkpoint": ("CHECKPOINT", ONLY_READS),
    "force checkpoint": ("FORCE CHECKPOINT", ONLY_READS),
    "vacuum": ("VACUUM", ONLY_READS),
    "transaction": ("BEGIN", ONLY_READS),
    "use": ("USE system", ONLY_READS),
    "set": ("SET memory_limit = '64GB'", ONLY_READS),
    "set threads": ("SET threads = 64", ONLY_READS),
    "set time zone": ("SET TimeZone = 'Asia/Seoul'", ONLY_READS),
    "set variable": ("SET VARIABLE x = 1", ONLY_READS),
    "reset": ("RESET max_execution_time", ONLY_READS),
    "pragma": ("PRAGMA enable_profiling", ONLY_READS),
    "pragma setting": ("PRAGMA temp_directory = 'OUT'", ONLY_READS),
    "attach file": ("ATTACH 'OUT'", ONLY_READS),
    "attach read-only": ("ATTACH 'STORE' AS again (READ_ONLY)", ONLY_READS),
    "attach memory": ("ATTACH ':memory:' AS m", ONLY_READS),
    "attach http": ("ATTACH 'http://127.0.0.1:9/x.duckdb'", ONLY_READS),
    "attach sqlite": ("ATTACH 'OUT' (TYPE sqlite)", ONLY_READS),
    "detach": ("DETACH system", ONLY_READS),
    "install": ("INSTALL httpfs", ONLY_READS),
    "load": ("LOAD httpfs", ONLY_READS),
    "load path": ("LOAD 'OUT'", ONLY_READS),
    "connect": ("CONNECT 'quack:127.0.0.1'", ONLY_READS),
    "copy to": ("COPY records TO 'OUT'", ONLY_READS),
    "copy from": ("COPY records FROM '/etc/passwd'", ONLY_READS),
    "copy to stdout": ("COPY (SELECT 1) TO '/dev/stdout'", ONLY_READS),
    "copy database": ("COPY FROM DATABASE store TO memory", ONLY_READS),
    "export": ("EXPORT DATABASE 'OUT'", ONLY_READS),
    "import": ("IMPORT DATABASE 'OUT'", ONLY_READS),
    "secret": ("CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')", ONLY_READS),
    "persistent secret": ("CREATE PERSISTENT SECRET s (TYPE http, BEARER_TOKEN 'b')", ONLY_READS),
    "two": ("SELECT 1; SELECT 2", "2 statements"),
    "commit and insert": ("COMMIT; INSERT INTO journal_position VALUES (9, 9)", "2 statements"),
    "pivot": ("PIVOT verdicts ON verdict USING count(*)", "name its values"),
    "nothing": (" ", "no SQL in it"),
    "a comment": ("-- SELECT 1", "no SQL in it"),
    # a reading statement that does not only read
    "cte insert": ("WITH x AS (INSERT INTO journal_position VALUES (9, 9) RETURNING *) SELECT * FROM x", ONLY_THIS),
    "cte delete": ("WITH x AS (DELETE FROM records RETURNING run_id) SELECT * FROM x", ONLY_THIS),
    "cte copy": ("WITH x AS (COPY records TO 'OUT') SELECT * FROM x", ONLY_THIS),
    "explain analyze copy": ("EXPLAIN ANALYZE COPY records TO 'OUT'", ONLY_THIS),
    "explain analyze insert": ("EXPLAIN ANALYZE INSERT INTO journal_position VALUES (9, 9)", ONLY_THIS),
    "copy over the store": ("WITH x AS (COPY records TO 'STORE') SELECT * FROM x", ONLY_THIS),
    "copy over the store by another name": ("WITH x AS (COPY records TO 'file://STORE') SELECT * FROM x", ONLY_THIS),
    "copy over the store's log": ("WITH x AS (COPY records TO 'STORE.wal') SELECT * FROM x", ONLY_THIS),
    "copy into its temporary folder": ("WITH x AS (COPY records TO 'STORE.tmp') SELECT * FROM x", ONLY_THIS),
    "explain analyze copy over the store": ("EXPLAIN ANALYZE COPY records TO 'STORE' (FORMAT csv)", ONLY_THIS),
    "explain analyze drop": ("EXPLAIN ANALYZE DROP TABLE records", ONLY_THIS),
    "copy into an open file": ("WITH x AS (COPY records TO '/proc/self/fd/4') SELECT * FROM x", ONLY_THIS),
    "query copy": ("SELECT * FROM query('COPY records TO ''OUT''')", "single SELECT"),
    # other files, the network, this process
    "read_csv": ("SELECT * FROM read_csv('/etc/passwd')", ONLY_THIS),
    "read_parquet": ("SELECT * FROM read_parquet('OUT')", ONLY_THIS),
    "read_json": ("SELECT * FROM read_json('OUT')", ONLY_THIS),
    "read_text": ("SELECT * FROM read_text('/proc/self/environ')", ONLY_THIS),
    "read_blob": ("SELECT * FROM read_blob('/proc/self/maps')", ONLY_THIS),
    "sniff_csv": ("SELECT * FROM sniff_csv('/etc/passwd')", ONLY_THIS),
    "read http": ("SELECT * FROM read_csv('http://127.0.0.1:9/x.csv')", ONLY_THIS),
    "bare file": ("FROM '/etc/passwd'", "does not exist"),
    "bare csv": ("FROM '/etc/hosts.csv'", ONLY_THIS),
    "bare database": ("FROM 'STORE'", "multiple tables"),
    "another database": ("FROM '/var/other.duckdb'", ONLY_THIS),
    "read_duckdb": ("FROM read_duckdb('/var/other.duckdb')", ONLY_THIS),
    "the orders": ("SELECT * FROM read_csv('/dev/stdin')", ONLY_THIS),
    "glob": ("SELECT * FROM glob('/etc/*')", ONLY_THIS),
    "json plan of a file": (
        "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM read_text(''/etc/passwd'')'))",
        ONLY_THIS,
    ),
    "query of a file": ("SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')", ONLY_THIS),
    "getenv": ("SELECT getenv('PATH')", "getenv does not exist"),
    "python object": ("SELECT * FROM orders", "does not exist"),
    "python module": ("SELECT * FROM sys", "does not exist"),
    "parameter": ("SELECT ?", "not provided"),
    # bombs for the parser
    "deep brackets": (f"SELECT {'(' * 5000}1{')' * 5000}", "depth"),
    "deep sum": (f"SELECT {'+'.join(['1'] * 50_000)}", "depth"),
    "deep selects": ("SELECT * FROM (" * 3000 + "SELECT 1" + ")" * 3000, "depth|syntax error|nested"),
    "long": (f"SELECT '{'x' * 1_000_000}'", "letters long"),
    "broken": ("SELECT 'a", "unterminated"),
}
CUT_OFF = {
    "range": ("SELECT len(range(2000000000))", MEMORY),
    "repeat": ("SELECT repeat('x', 3000000000)", MEMORY),
    "string_split": ("SELECT len(string_split(repeat('a,', 300000000), ','))", MEMORY),
    "list_sort": ("SELECT len(list_sort(range(100000000)))", MEMORY),
    "group": ("SELECT count(*) FROM (SELECT i, repeat(i::VARCHAR, 99) FROM range(90000000) t(i) GROUP BY ALL)", MEMORY),
    "a scalar call that no engine stops": ("SELECT len(lpad('x', 600000000, 'y'))", TIME),
    "join": ("SELECT max(a.i * b.i * c.i) FROM range(90000) a(i), range(90000) b(i), range(90000) c(i)", TIME),
    "recursion": ("WITH RECURSIVE r AS (SELECT 1 i UNION ALL SELECT i + 1 FROM r) SELECT max(i) FROM r", TIME),
}
# What the engine allows, because it reads, and what comes of it.
HARMLESS = {
    "secrets": ("FROM duckdb_secrets()", 0),
    "explain analyze checkpoint": ("EXPLAIN ANALYZE CHECKPOINT", 1),
    "write_log": ("SELECT write_log('x', level := 'error')", 1),
    "logs": ("SELECT * FROM duckdb_logs", 0),
    "query": ("SELECT * FROM query('SELECT 1')", 1),
    "query_table": ("SELECT * FROM query_table('journal_position')", 1),
    "serialized": ("SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))", 1),
    "explain analyze create": ("EXPLAIN ANALYZE CREATE TEMP TABLE t AS SELECT 1", 1),
    "the store's own bytes": ("SELECT size FROM read_blob('STORE')", 1),
    "pivot with its values": ("PIVOT runs ON verdict IN ('STUCK', 'FAILED') USING count(*) GROUP BY agent", 1000),
}
READING = (
    "SELECT 1",
    "FROM runs",
    "VALUES (1)",
    "TABLE runs",
    "EXPLAIN SELECT 1",
    "DESCRIBE runs",
    "SHOW TABLES",
    "SUMMARIZE verdicts",
    "WITH x AS (SELECT 1) FROM x;",
    "SELECT 1 -- and so on",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a store of recorded runs; whatever is asked, neither is changed by it."""
    folder = tmp_path_factory.mktemp("sandbox")
    with Keeper.open(folder / "store.duckdb", DEFAULT_POLICY, NOW) as keeper:
        assert ingest(few(), keeper, NOW).accepted > 30
    before = content(folder / "store.duckdb")
    yield folder
    assert content(folder / "store.duckdb") == before


@pytest.fixture
def store(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The store; not a byte or a file may be new after the test, neither here nor in the user's own folders."""
    monkeypatch.chdir(place)
    monkeypatch.setenv("HOME", str(place))
    before = traces(place)
    yield place / "store.duckdb"
    assert traces(place) == before


def traces(folder: Path) -> dict[str, str]:
    """Each file with a digest of it. A lock file stays, as it should."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def content(store: Path) -> list[list[tuple[Any, ...]]]:
    with DuckStore.open(store) as opened:
        return [opened.ask(f"FROM {table} ORDER BY ALL").rows for table in meanings.TABLES]


def filled_in(sql: str, store: Path) -> str:
    return sql.replace("OUT", str(store.parent / "out.csv")).replace("STORE", str(store))


# Attacks


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_more_than_read_this_store_is_refused(name: str, store: Path) -> None:
    sql, said = REFUSED[name]

    with pytest.raises(QueryError, match=said) as refused:
        ask(store, filled_in(sql, store), Limits())

    assert not isinstance(refused.value, QueryStoppedError)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500


@LINUX
@pytest.mark.parametrize("name", [name for name, (_, said) in CUT_OFF.items() if said == MEMORY])
def test_what_eats_memory_is_cut_off(name: str, store: Path) -> None:
    began = time.monotonic()

    with pytest.raises(QueryStoppedError, match=CUT_OFF[name][1]):
        ask(store, CUT_OFF[name][0], Limits())

    assert time.monotonic() - began < 10


@pytest.mark.parametrize("name", [name for name, (_, said) in CUT_OFF.items() if said == TIME])
def test_what_eats_time_is_killed_at_its_deadline(name: str, store: Path) -> None:
    began = time.monotonic()

    with pytest.raises(QueryStoppedError, match=CUT_OFF[name][1]):
        ask(store, CUT_OFF[name][0], SHORT)

    assert 2 <= time.monotonic() - began < 4


@pytest.mark.parametrize("name", HARMLESS)
def test_what_the_engine_allows_is_harmless(name: str, store: Path) -> None:
    sql, most = HARMLESS[name]

    assert len(ask(store, filled_in(sql, store), Limits()).rows) <= most


def test_no_setting_of_the_fence_is_off(store: Path) -> None:
    names = ("enable_external_access", "lock_configuration", "autoinstall_known_extensions", "TimeZone")
    found = ask(store, "SELECT " + ", ".join(f"current_setting('{name}')" for name in names), Limits())

    assert found.rows == [[False, True, False, "UTC"]]


@LINUX
def test_the_child_has_no_environment_of_ours(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BILLING_DB", "a secret")
    with sandbox._child() as child:
        time.sleep(0.2)  # until it is another program
        environment = Path(f"/proc/{child.pid}/environ").read_bytes()
        command = Path(f"/proc/{child.pid}/cmdline").read_bytes()

    assert store.exists()
    assert b"BILLING_DB" not in environment
    assert b"sandbox_child.py" in command


@LINUX
def test_the_system_holds_the_child_back(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, str] = {}
    take = sandbox._Reader.take

    def look(reader: sandbox._Reader, line: bytes) -> bool:
        if b"ready" in line:
            child = Path(f"/proc/{child_of(os.getpid())}")
            limits = (re.split(r"  +", each) for each in (child / "limits").read_text("ascii").splitlines())
            seen.update({each[0]: each[1] for each in limits}, score=(child / "oom_score_adj").read_text("ascii"))
        return take(reader, line)

    monkeypatch.setattr(sandbox._Reader, "take", look)
    with pytest.raises(QueryStoppedError):
        ask(store, CUT_OFF["join"][0], SHORT)

    assert (seen["Max address space"], seen["Max file size"]) == (str(1536 * 1024 * 1024), "0")
    assert (seen["Max cpu time"], seen["Max open files"], seen["Max core file size"]) == ("6", "64", "0")
    assert seen["score"].strip() == "1000"


# The parent's side


def test_a_large_answer_ends_at_the_limit_of_rows(store: Path) -> None:
    found = ask(store, "SELECT a.i FROM range(200000) a(i), range(200000) b(i)", Limits(rows=100))

    assert (len(found.rows), found.more) == (100, True)


def test_as_many_rows_as_the_limit_are_all_of_them(store: Path) -> None:
    found = ask(store, "FROM range(100)", Limits(rows=100))

    assert (len(found.rows), found.more) == (100, False)


def test_an_answer_that_is_too_large_ends_where_it_is(store: Path) -> None:
    found = ask(store, "SELECT repeat('x', 200000) FROM range(500)", Limits())

    assert 150 < len(found.rows) < 200
    assert found.more


def test_values_come_back_as_json_has_them(store: Path) -> None:
    sql = """SELECT NULL, 1::HUGEINT << 100, 1.5, 'nan'::DOUBLE, TIMESTAMP '2026-11-28 08:00:00', DATE '2026-11-28',
    '\\x1b'::BLOB, {'a': [1, 2]}, MAP {1: 'b'}, INTERVAL 90 SECOND, true, '\x1b[31m\u20ac\n'"""
    row = ask(store, sql, Limits()).rows[0]

    assert row == [None, 2**100, 1.5, "nan", "2026-11-28T08:00:00Z", "2026-11-28", "1b", {"a": [1, 2]}, {"1": "b"},
                   "90s", True, "\x1b[31m\u20ac\n"]  # fmt: skip


@pytest.mark.parametrize("sql", READING)
def test_every_way_to_read_is_taken(sql: str, store: Path) -> None:
    assert ask(store, sql, Limits()).rows


@pytest.mark.parametrize(
    "program",
    ["import sys\nwhile True: sys.stdout.write('[1]\\n')", "import time, os; os.close(1); time.sleep(60)", "0 / 0"],
)
def test_a_child_that_answers_otherwise_is_left_at_once(
    program: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "child.py").write_text(program, "utf-8")
    monkeypatch.setattr(sandbox, "_PROGRAM", tmp_path / "child.py")
    began = time.monotonic()

    with pytest.raises(QueryStoppedError, match="ended the process that ran it"):
        ask(store, "SELECT 1", Limits())

    assert time.monotonic() - began < 5


def test_lines_that_are_no_answer_are_not_believed(store: Path) -> None:
    reader = sandbox._Reader(store, "SELECT 1", Limits(rows=1))

    assert not reader.take(b'{"columns":[["a","INTEGER"]]}')
    for line in (b"not json", b"[1,2]"):
        with pytest.raises(QueryStoppedError, match="no answer"):
            reader.take(line)
    assert not reader.take(b"[1]")
    assert reader.take(b"[2]")
    assert reader.found() == Found(["a"], ["INTEGER"], [[1]], more=True)


def test_a_child_that_dies_is_said_to_have(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = sandbox._order

    def order_and_kill(child: subprocess.Popen[bytes], data: bytes) -> None:
        order(child, data)
        os.kill(child.pid, signal.SIGKILL)

    monkeypatch.setattr(sandbox, "_order", order_and_kill)

    with pytest.raises(QueryStoppedError, match="signal 9"):
        ask(store, "SELECT 1", Limits())


@LINUX
def test_ctrl_c_ends_the_query_and_lets_go_of_the_store(store: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from stopcause.store.sandbox import ask, Limits\n"
        "try: ask(Path(sys.argv[1]), sys.argv[2], Limits(60))\n"
        "except KeyboardInterrupt: print('interrupted')"
    )
    arguments = (sys.executable, "-c", code, str(store), CUT_OFF["join"][0])
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, env={"PYTHONPATH": str(ROOT)}) as parent:
        child = child_of(parent.pid)
        parent.send_signal(signal.SIGINT)
        said = parent.communicate(timeout=20)[0]

    assert said.strip() == b"interrupted"
    assert ended(child)


@LINUX
def test_a_killed_parent_takes_the_child_with_it(store: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from stopcause.store.sandbox import ask, Limits\n"
        "ask(Path(sys.argv[1]), sys.argv[2], Limits(60))"
    )
    arguments = (sys.executable, "-c", code, str(store), CUT_OFF["join"][0])
    with subprocess.Popen(arguments, env={"PYTHONPATH": str(ROOT)}) as parent:
        child = child_of(parent.pid)
        parent.kill()

    assert ended(child)
    assert ask(store, "SELECT 1", Limits()).rows == [[1]]


def child_of(pid: int) -> int:
    """The process that this one started, once it runs the query."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
        found = [each for each in children if b"sandbox_child" in _command(each)]
        if found:
            time.sleep(0.5)
            return int(found[0])
        time.sleep(0.02)
    raise AssertionError("no child was started")


def _command(pid: str) -> bytes:
    with contextlib.suppress(OSError):  # it has ended meanwhile
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def ended(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def test_a_file_that_is_no_store_is_an_error_of_the_store(tmp_path: Path) -> None:
    (tmp_path / "x.duckdb").write_bytes(b"nothing of the kind")

    with pytest.raises(StoreError, match="cannot open it to read"):
        ask(tmp_path / "x.duckdb", "SELECT 1", Limits())


# Errors


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT verdct FROM runs", '"verdct" not found .*letter 8.* Near: verdict.* sql .schema'),
        ("SELECT 1 FROM verdict", r"Table with name verdict does not exist \(letter 15\). Near: verdicts"),
        ("SELECT\n  '\u00e9\u00e9', verdct\nFROM runs", r"\(line 2, letter 9\)"),
        ("SELEC 1", r'syntax error at or near "SELEC" \(letter 1\)'),
        ("SELECT medain(steps) FROM runs", "medain does not exist.* Near: median"),
        ('SELECT "\x1b[31m" FROM runs', r"\?\[31m"),
    ],
)  # fmt: skip
def test_an_error_says_where_and_what_is_near(sql: str, said: str, store: Path) -> None:
    with pytest.raises(QueryError, match=said):
        ask(store, sql, Limits())


# Words


def test_every_column_has_a_meaning_and_every_meaning_a_column() -> None:
    with DuckStore.open(None) as store:
        shape = store.ask("SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal").rows

    real = {table: {column for each, column in shape if each == table} for table, _ in shape}
    assert real.keys() == meanings.TABLES.keys()
    assert real.pop("runs") == real["verdicts"]
    assert real == {table: set(columns) for table, columns in meanings.COLUMNS.items()}
    assert all(column.meaning for column in meanings.columns())


@pytest.mark.parametrize("example", meanings.examples(), ids=lambda example: example.about)
def test_examples_run(example: meanings.Example, store: Path) -> None:
    found = ask(store, example.sql, Limits())

    assert found.names
    if "changed" not in example.about:
        assert found.rows
