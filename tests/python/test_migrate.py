"""The runner: what is there, what is pending, and what it refuses."""

from __future__ import annotations

import hashlib

import psycopg
import pytest
from psycopg.rows import dict_row

from pgconvo import migrate
from pgconvo.errors import MigrationError


def make_folder(path, *names):
    sums = ""
    for name in names:
        (path / name).write_text("select 1;\n")
        digest = hashlib.sha256((path / name).read_bytes()).hexdigest()
        sums += f"{digest}  {name}\n"
    (path / "SHA256SUMS").write_text(sums)
    return path


@pytest.fixture
def conn(make_database):
    with psycopg.connect(make_database(), autocommit=True) as conn:
        yield conn


def test_available_is_in_order_and_leaves_tracks_out(tmp_path):
    folder = make_folder(tmp_path, "0010_c.sql", "0002_b.sql", "0001_a.sql")
    (folder / "vector").mkdir()
    (folder / "vector/0001_v.sql").write_text("select 1;\n")
    (folder / "README.md").write_text("-\n")
    found = migrate.available(folder)
    assert [(m.version, m.name) for m in found] == [
        (1, "0001_a"),
        (2, "0002_b"),
        (10, "0010_c"),
    ]


def test_the_shipped_ones_are_those_of_the_checkout():
    assert migrate.available()[0].version == 1
    assert migrate.shipped("tools/catalog.sql").name == "catalog.sql"


def test_an_empty_folder_is_an_error(tmp_path):
    with pytest.raises(MigrationError, match="no migrations in"):
        migrate.available(tmp_path)


def test_a_file_that_no_sum_lists_is_an_error(tmp_path):
    folder = make_folder(tmp_path, "0001_a.sql")
    (folder / "0002_b.sql").write_text("select 1;\n")
    with pytest.raises(MigrationError, match=r"0002_b\.sql isn't the released file"):
        migrate.available(folder)
    (folder / "SHA256SUMS").unlink()
    with pytest.raises(MigrationError, match=r"0001_a\.sql isn't the released file"):
        migrate.available(folder)


def test_everything_is_pending_in_an_empty_database(conn):
    known = migrate.available()
    assert migrate.pending(conn) == known
    assert [row.applied_at for row in migrate.status(conn)] == [None] * len(known)


def test_a_target_is_the_last_one_applied(conn):
    assert migrate.migrate(conn, target=0) == []
    assert [m.version for m in migrate.migrate(conn, target=1)] == [1]
    assert migrate.status(conn)[0].applied_by == "postgres"


def test_it_does_not_mind_the_connections_row_factory(dsn):
    with psycopg.connect(dsn, autocommit=True, row_factory=dict_row) as conn:
        assert migrate.pending(conn) == []


def test_it_leaves_the_connection_as_it_was(conn):
    query = (
        "select current_user, current_setting('role'), current_setting('search_path'),"
        " current_setting('lock_timeout'),"
        " (select count(*) from pg_locks where locktype = 'advisory')"
    )
    before = conn.execute(query).fetchone()
    migrate.migrate(conn)
    assert conn.execute(query).fetchone() == before


@pytest.mark.parametrize("function", [migrate.migrate, migrate.pending, migrate.status])
def test_a_connection_in_transactions_is_refused(function, dsn):
    with (
        psycopg.connect(dsn) as conn,
        pytest.raises(MigrationError, match="autocommit"),
    ):
        function(conn)


def test_a_database_from_the_future_is_refused(dsn, db):
    newest = len(migrate.available())
    db.execute(
        "insert into convo.schema_migration (track, version, name)"
        " values ('core', %s, 'x')",
        (newest + 1,),
    )
    with pytest.raises(MigrationError, match="upgrade pgconvo"):
        migrate.migrate(db)
    assert [row.version for row in migrate.status(db)] == [*range(1, newest + 2)]
