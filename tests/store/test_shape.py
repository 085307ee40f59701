"""The shape of a store: its tables, its migrations, and files that are none of ours or of a newer version."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from stopcause.errors import StoreError, StoreVersionError
from stopcause.store import migrations
from stopcause.store.duckdb_store import DuckStore
from stopcause.store.lock import StoreLock
from stopcause.store.migrations import MIGRATIONS, Migration, migrate
from stopcause.store.rows import RecordRow, VerdictRow
from tests.support.stored import T0, columns_of, record, verdict

if TYPE_CHECKING:
    pass


# The shape ------------------------------------------------------------------------------------------------------------


def test_no_index_and_no_constraint_exists(store: DuckStore) -> None:
    store.commit([record()], [verdict()], (1, 10))
    assert store._ask("SELECT * FROM duckdb_indexes()") == []
    assert store._ask("SELECT * FROM duckdb_constraints()") == []


def test_no_column_is_an_enum_or_has_a_time_zone(store: DuckStore) -> None:
    types = {kind for (kind,) in store._ask("SELECT DISTINCT data_type FROM duckdb_columns() WHERE NOT internal")}
    (waits,) = {kind for kind in types if kind.startswith("STRUCT")}
    plain = {"UUID", "VARCHAR", "VARCHAR[]", "BIGINT", "INTEGER", "TIMESTAMP", "DOUBLE", "BOOLEAN"}
    assert types <= {*plain, waits}
    assert not any(word in waits for word in ("ENUM", "TIME ZONE"))


def test_tables_have_the_fields_of_their_rows_and_the_hour(store: DuckStore) -> None:
    assert sorted(columns_of(store, "verdicts")) == sorted([*VerdictRow._fields, "hour"])
    assert sorted(columns_of(store, "records")) == sorted([*RecordRow._fields, "hour"])


def test_the_hour_counts_from_the_epoch(store: DuckStore) -> None:
    store.commit([record(at=T0)], [verdict(opened_at=T0)])
    hour = int(T0.timestamp() // 3600)
    assert store._ask("SELECT hour FROM records UNION ALL SELECT hour FROM verdicts") == [(hour,), (hour,)]


def test_lines_are_compressed(tmp_path: Path) -> None:
    with DuckStore.open(tmp_path / "s.duckdb") as store:
        store.commit([record(run_id=f"r{i}", line=b'{"n":%d}' % i * 20) for i in range(3000)], [])
        store._ask("CHECKPOINT")
        said = store._ask("SELECT DISTINCT compression FROM pragma_storage_info('records') WHERE column_name = 'line'")
    assert ("ZSTD",) in said


def test_it_is_shut_off_from_everything_else(tmp_path: Path) -> None:
    with DuckStore.open(tmp_path / "s.duckdb") as store:
        for query in (
            "SELECT * FROM read_csv('/etc/passwd')",
            f"COPY records TO '{tmp_path}/out.parquet'",
            f"ATTACH '{tmp_path}/other.duckdb'",
            "SET enable_external_access = true",
            "SET memory_limit = '100GB'",
            "INSTALL httpfs",
        ):
            with pytest.raises(StoreError):
                store._ask(query)
        assert store._ask("SELECT current_setting('TimeZone')") == [("UTC",)]
        assert store._ask("SELECT current_setting('checkpoint_threshold')") == [("122.0 MiB",)]  # 128 MB
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.duckdb", "s.duckdb.lock"]


# Migrations -----------------------------------------------------------------------------------------------------------


def test_a_new_store_gets_every_migration_and_a_second_opening_none(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "s.duckdb")) as connection:
        assert migrate(connection) == tuple(step.name for step in MIGRATIONS)
        assert migrate(connection) == ()
        applied = connection.execute("SELECT name FROM schema_migrations").fetchall()
    assert applied == [(step.name,) for step in MIGRATIONS]
    assert [step.name for step in MIGRATIONS] == sorted(step.name for step in MIGRATIONS)


def add_column(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("ALTER TABLE verdicts ADD COLUMN more VARCHAR").fetchall()


def test_a_later_migration_is_applied_to_an_older_store(tmp_path: Path) -> None:
    more = Migration("0002_more", add_column)
    with DuckStore.open(tmp_path / "s.duckdb") as store:
        store.commit([record()], [verdict()])
    with duckdb.connect(str(tmp_path / "s.duckdb")) as connection:
        assert migrate(connection, (*MIGRATIONS, more)) == ("0002_more",)
        assert connection.execute("SELECT more FROM verdicts").fetchall() == [(None,)]


def test_a_migration_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute("CREATE TABLE half (i INTEGER)").fetchall()
        raise ZeroDivisionError

    with duckdb.connect(str(tmp_path / "s.duckdb")) as connection:
        with pytest.raises(ZeroDivisionError):
            migrate(connection, (*MIGRATIONS, Migration("0002_half", fail)))
        assert connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'half'").fetchall() == []
        assert migrate(connection) == ()


def test_a_store_of_a_newer_version_is_refused_and_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.duckdb"
    newer = (*MIGRATIONS, Migration("0999_newer", lambda _: None))
    with duckdb.connect(str(path)) as connection:
        migrate(connection, newer)
    before = path.read_bytes()
    with pytest.raises(StoreVersionError, match=r"0999_newer.*knows 0002_reported.*Nothing was changed.*Upgrade"):
        DuckStore.open(path)
    assert path.read_bytes() == before
    monkeypatch.setattr(migrations, "MIGRATIONS", newer)
    StoreLock(path).release()  # the lock was let go


def test_a_database_of_something_else_is_refused_and_not_changed(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "s.duckdb")) as connection:
        connection.execute("CREATE TABLE theirs (i INTEGER)").fetchall()
    with pytest.raises(StoreError, match="something else"):
        DuckStore.open(tmp_path / "s.duckdb")
    with duckdb.connect(str(tmp_path / "s.duckdb")) as connection:
        assert connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("theirs",)]


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.duckdb").write_text("not one " * 1000)
    with pytest.raises(StoreError, match="no DuckDB file"):
        DuckStore.open(tmp_path / "s.duckdb")
    assert (tmp_path / "s.duckdb").read_text() == "not one " * 1000
