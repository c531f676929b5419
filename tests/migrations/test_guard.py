"""Each migration refuses to run twice, out of order or in pieces."""

from __future__ import annotations

import threading

import psycopg
import pytest
from psycopg import errors

from pgconvo import migrate
from pgconvo.errors import MigrationError, OutOfOrder


@pytest.fixture
def core_facts(make_database, facts):
    """The facts of a database without optional tracks."""
    dsn = make_database()
    with psycopg.connect(dsn, autocommit=True) as conn:
        migrate.migrate(conn)
    return facts(dsn)


def run(dsn, path):
    with psycopg.connect(dsn) as conn:
        conn.execute(path.read_bytes())


def test_a_second_run_changes_nothing(dsn, facts):
    before = facts(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn:
        assert migrate.migrate(conn) == []
        rows = conn.execute(
            "select count(*) from convo.schema_migration where track = 'core'"
        ).fetchone()
        assert rows == (len(migrate.available()),)
    assert facts(dsn) == before


def test_applied_already(dsn):
    with pytest.raises(psycopg.Error) as raised:
        run(dsn, migrate.available()[0].path)
    diag = raised.value.diag
    assert (diag.sqlstate, diag.message_primary) == (
        "PC090",
        "migration applied already",
    )
    newest = len(migrate.available())
    assert f'"newest" : {newest}' in diag.message_detail
    assert diag.message_hint == "Leave this file out."


@pytest.mark.parametrize("is_installed", [True, False])
def test_out_of_order(is_installed, dsn, empty, copy):
    path = copy.add("later", "create table convo.x (a integer)", ahead=2)
    number = int(path.name[:4])
    with pytest.raises(psycopg.Error) as raised:
        run(dsn if is_installed else empty, path)
    diag = raised.value.diag
    assert (diag.sqlstate, diag.message_primary) == ("PC091", "migration out of order")
    assert f'"version" : {number}' in diag.message_detail


def test_out_of_order_has_its_own_error_class(dsn, copy):
    copy.add("later", "create table convo.x (a integer)", ahead=2)
    with (
        psycopg.connect(dsn, autocommit=True) as conn,
        pytest.raises(OutOfOrder, match="migration out of order"),
    ):
        migrate.migrate(conn, directory=copy.path)


@pytest.mark.parametrize("options", [[], ["-v", "ON_ERROR_STOP=1"]])
def test_outside_a_transaction_nothing_happens(options, empty, psql, facts):
    """Even where psql goes on after the error."""
    before = facts(empty)
    done = psql(empty, *options, "-f", migrate.available()[0].path)
    assert "migration not in one transaction" in done.stderr
    assert facts(empty) == before


def test_outside_a_transaction_is_pc092(empty, psql):
    path = migrate.available()[0].path
    done = psql(empty, "-v", "VERBOSITY=verbose", "-f", path)
    assert "ERROR:  PC092: migration not in one transaction" in done.stderr


def test_a_failure_in_the_middle_leaves_nothing(dsn, copy, facts, psql):
    body = "create table convo.x (a integer); select 1 / 0"
    path = copy.add("fails", body)
    before = facts(dsn)
    for options in (["-1"], ["-1", "-v", "ON_ERROR_STOP=1"]):
        assert "division by zero" in psql(dsn, *options, "-f", path).stderr
        assert facts(dsn) == before
    with psycopg.connect(dsn, autocommit=True) as conn:
        with pytest.raises(errors.DivisionByZero):
            migrate.migrate(conn, directory=copy.path)
        assert [m.path for m in migrate.pending(conn, copy.path)] == [path]
    assert facts(dsn) == before


def test_what_came_before_a_failure_stays(empty, copy):
    failing = copy.add("fails", "select 1 / 0")
    with psycopg.connect(empty, autocommit=True) as conn:
        with pytest.raises(errors.DivisionByZero):
            migrate.migrate(conn, directory=copy.path)
        assert [m.path for m in migrate.pending(conn, copy.path)] == [failing]


def at_once(*functions):
    results = [None] * len(functions)

    def call(index):
        try:
            results[index] = functions[index]()
        except Exception as error:
            results[index] = error

    threads = [
        threading.Thread(target=call, args=(index,)) for index in range(len(functions))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def test_two_runs_of_pgconvo_at_once(empty, copy, facts, core_facts):
    def run():
        with psycopg.connect(empty, autocommit=True) as conn:
            return [m.name for m in migrate.migrate(conn, directory=copy.path)]

    names = [migration.name for migration in migrate.available()]
    assert sorted(at_once(run, run)) == [[], names]
    assert facts(empty) == core_facts


def test_psql_and_pgconvo_at_once(empty, copy, psql, facts, core_facts):
    """psql doesn't take the lock before it starts, so either may be first."""
    path = migrate.available()[0].path

    def by_pgconvo():
        with psycopg.connect(empty, autocommit=True) as conn:
            return [m.name for m in migrate.migrate(conn, directory=copy.path)]

    def by_psql():
        return psql(empty, "-1", "-v", "ON_ERROR_STOP=1", "-f", path)

    done, result = at_once(by_pgconvo, by_psql)
    first = migrate.available()[0].name
    if result.returncode == 0:
        assert first not in done
    else:
        assert first in done
        assert "migration applied already" in result.stderr
    assert facts(empty) == core_facts


def test_pgconvo_goes_on_when_another_tool_was_faster(empty, copy, monkeypatch):
    with (
        psycopg.connect(empty, autocommit=True) as conn,
        psycopg.connect(empty, autocommit=True) as other,
    ):
        todo = migrate.pending(conn)
        migrate.migrate(other)
        added = copy.add("add_x", "create table convo.x (a integer)")
        stale = [*todo, *migrate.available(copy.path)[len(todo) :]]
        monkeypatch.setattr(migrate, "pending", lambda conn, directory, track: stale)
        done = migrate.migrate(conn, directory=copy.path)
    assert [m.path for m in done] == [added]


def test_a_changed_file_is_refused(empty, copy):
    path = next(copy.path.glob("0001_*.sql"))
    path.write_text(path.read_text() + "-- harmless\n")
    with psycopg.connect(empty, autocommit=True) as conn:
        with pytest.raises(MigrationError, match="isn't the released file"):
            migrate.migrate(conn, directory=copy.path)
        with pytest.raises(MigrationError, match="isn't the released file"):
            migrate.status(conn, copy.path)
