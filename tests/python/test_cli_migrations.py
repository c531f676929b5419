"""pgconvo migrate, status and drift, as a user calls them."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import psycopg
import pytest


@pytest.fixture
def pgconvo(bindir, tmp_path):
    environ = {
        **os.environ,
        "PGBIN": str(bindir),
        "PGCONVO_HOME": str(tmp_path),
        "COLUMNS": "100",
    }
    environ.pop("PGCONVO_DSN", None)

    def run(*args, **more):
        command = [sys.executable, "-c", "from pgconvo.cli import app; app()", *args]
        return subprocess.run(
            command,
            env={**environ, **more},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_migrate_then_status(pgconvo, make_database):
    dsn = make_database()
    pending = pgconvo("status", dsn).stdout
    assert re.search("0001_initial +│ -", pending)
    assert re.search("vector/0001_embeddings +│ -", pending)
    first = pgconvo("migrate", dsn)
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.startswith("applied 0001_initial\n")
    assert pgconvo("migrate", PGCONVO_DSN=dsn).stdout == "nothing to apply\n"
    assert " UTC │ postgres" in pgconvo("status", dsn).stdout


def test_migrate_a_track(pgconvo, make_database, vector):
    dsn = make_database()
    early = pgconvo("migrate", "--track", "vector", dsn)
    assert early.stderr.startswith("Error: migration out of order | ")
    pgconvo("migrate", dsn)
    first = pgconvo("migrate", "--track", "vector", dsn)
    assert first.stdout.startswith("applied vector/0001_embeddings\n")
    assert pgconvo("migrate", "--track", "vector", dsn).stdout == "nothing to apply\n"
    assert pgconvo("drift", dsn).stdout == "no drift\n"


def test_no_drift_without_a_track(pgconvo, make_database):
    dsn = make_database()
    pgconvo("migrate", dsn)
    assert pgconvo("drift", dsn).stdout == "no drift\n"


def test_no_drift(pgconvo, dsn):
    done = pgconvo("drift", dsn)
    assert (done.returncode, done.stdout, done.stderr) == (0, "no drift\n", "")


def test_drift_is_a_diff_and_exit_code_1(pgconvo, dsn, db):
    db.execute("grant select on convo.message to public")
    done = pgconvo("drift", dsn)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[3:] == [
        "+grant SELECT on table convo.message to public"
    ]


def test_a_tenants_index_and_pgvectors_place_are_no_drift(
    pgconvo, make_database, vector
):
    dsn = make_database()
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create schema extensions")
        conn.execute("grant usage on schema extensions to public")
        conn.execute("create extension vector schema extensions")
        conn.execute("set search_path = public, extensions")
        pgconvo("migrate", dsn)
        assert pgconvo("migrate", "--track", "vector", dsn).stderr == ""
        conn.execute(
            "create index on convo.embedding using hnsw"
            " ((embedding::vector(3)) vector_cosine_ops) where tenant_id = 'acme'"
        )
    assert pgconvo("drift", dsn).stdout == "no drift\n"


def test_drift_needs_a_migrated_database(pgconvo, make_database):
    done = pgconvo("drift", make_database())
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: no migration was applied to this database\n"


@pytest.mark.parametrize("command", ["migrate", "status", "drift"])
def test_errors_are_one_line(command, pgconvo):
    nowhere = pgconvo(command, "postgresql://nobody@127.0.0.1:1/x?connect_timeout=2")
    nothing = pgconvo(command)
    for done in (nowhere, nothing):
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("Error: ") and done.stderr.count("\n") == 1
    assert "pgconvo server start" in nothing.stderr


def test_usage_errors_are_exit_code_2(pgconvo):
    assert pgconvo("migrate", "--to", "x").returncode == 2
    assert pgconvo("nonsense").returncode == 2
