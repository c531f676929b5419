"""pgconvo purge, as cron calls it."""

from __future__ import annotations

import os
import subprocess
import sys

import psycopg
import pytest
from psycopg.conninfo import make_conninfo


@pytest.fixture
def pgconvo():
    def run(*args):
        command = [sys.executable, "-c", "from pgconvo.cli import app; app()", *args]
        return subprocess.run(
            command,
            env={**os.environ, "COLUMNS": "80"},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def cron(dsn):
    """The DSN of a login in convo_maintainer."""
    return make_conninfo(dsn, user="test_maintainer")


@pytest.fixture
def due(connect):
    """Five conversations of two tenants that are due, and one more on hold."""
    for tenant, count in (("a", 3), ("b", 3)):
        service = connect("test_service", tenant, "u")
        for _ in range(count):
            (conversation_id,) = service.execute(
                "select convo.create_conversation()"
            ).fetchone()
            for _ in range(2):
                service.execute(
                    "select convo.append_message(%s, 'user', 'Hi')", (conversation_id,)
                )
        service.execute("select convo.set_retention('standard', interval '0')")
    service.execute("select convo.hold_conversation(%s, 'court')", (conversation_id,))
    service.execute("select pg_sleep(0.002)")  # times are rounded to milliseconds


def count(db):
    return db.execute("select count(*) from convo.conversation").fetchone()[0]


def test_dry_run_changes_nothing(pgconvo, cron, due, db):
    done = pgconvo("purge", cron, "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "due: 5 conversations, 10 messages; on hold: 1\n"
    done = pgconvo("purge", cron, "--dry-run", "--page-size", "2")
    assert done.stdout == "due: at least 2 conversations, 4 messages; on hold: 1\n"
    assert count(db) == 6


def test_batches_until_nothing_is_due(pgconvo, cron, due, db):
    done = pgconvo("purge", cron, "--page-size", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "purged: 5 conversations, 10 messages; on hold: 1; batches: 3\n"
    )
    assert count(db) == 1
    # Each batch is a transaction of its own.
    query = "select count(distinct xmin::text) from convo.purge_run"
    assert db.execute(query).fetchone() == (3,)
    assert pgconvo("purge", cron).stdout == (
        "purged: 0 conversations, 0 messages; on hold: 1; batches: 0\n"
    )


def test_max_batches(pgconvo, cron, due, db):
    done = pgconvo("purge", cron, "--page-size", "2", "--max-batches", "2")
    assert done.stdout == (
        "purged: 4 conversations, 8 messages; on hold: 1; batches: 2\n"
    )
    assert count(db) == 2


def test_superuser_purges_as_the_maintainer(pgconvo, dsn, due, db):
    assert pgconvo("purge", dsn).returncode == 0
    assert count(db) == 1


def test_login_that_may_not(pgconvo, dsn, due, db):
    done = pgconvo("purge", make_conninfo(dsn, user="test_service"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: test_service may not act as convo_maintainer"
        " | As superuser: grant convo_maintainer to test_service\n"
    )
    assert count(db) == 6


@pytest.mark.parametrize("option", ["--page-size", "--max-batches"])
def test_sizes_from_one_on(pgconvo, cron, option):
    assert pgconvo("purge", cron, option, "0").returncode == 2


def test_a_batch_leaves_locked_rows(pgconvo, cron, due, dsn, db):
    with psycopg.connect(dsn) as writer:
        writer.execute(
            "select from convo.conversation where tenant_id = 'a' limit 1 for update"
        )
        assert "purged: 4 conversations" in pgconvo("purge", cron).stdout
    assert "purged: 1 conversations" in pgconvo("purge", cron).stdout
