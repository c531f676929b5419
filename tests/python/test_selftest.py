"""pgconvo selftest: it passes, it fails when something is wrong, it leaves nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pgconvo import selftest
from pgconvo.errors import AlreadyInTransaction

TABLES = [
    "conversation",
    "message",
    "message_revision",
    "idempotency_key",
    "prompt",
    "tombstone",
    "retention_policy",
    "purge_run",
    "audit",
]


@pytest.fixture
def pgconvo():
    environ = {**os.environ, "COLUMNS": "80"}

    def run(*args):
        command = [sys.executable, "-c", "from pgconvo.cli import app; app()", *args]
        return subprocess.run(
            command, env=environ, capture_output=True, text=True, check=False
        )

    return run


def counts(db):
    return [db.execute(f"select count(*) from convo.{t}").fetchone()[0] for t in TABLES]


def test_all_pass_and_nothing_stays(pgconvo, dsn, db, connect):
    app = connect("test_app", "a", "u")
    app.execute("select convo.create_conversation(system_prompt => 'x')")
    before = counts(db)
    assert sum(before) == 2
    done = pgconvo("selftest", dsn)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count(" ok ") == len(selftest.CHECKS)
    assert "FAILED" not in done.stdout
    assert counts(db) == before


def test_settings_of_the_login_play_no_part(dsn, db):
    db.execute("select set_config('convo.tenant_id', 'a', false)")
    db.execute(
        "select set_config('request.jwt.claims', %s, false)",
        ('{"tenant_id": "b", "sub": "c"}',),
    )
    assert [result for result in selftest.run(db) if not result.passed] == []
    assert db.execute("select current_user").fetchone() == ("postgres",)


@pytest.mark.parametrize(
    ("damage", "name", "seen"),
    [
        (
            "drop policy message_tenant on convo.message;"
            "alter policy message_own on convo.message using (true)",
            "Another tenant sees nothing",
            "seen: [0, 0, 0, 2, 'PC001']",
        ),
        (
            "drop index convo.message_group_seq_idx",
            "A window reads its own rows",
            "seen: 3000",
        ),
        (
            "revoke execute on function convo.token_window from convo_app",
            "Of six turns",
            "seen: 42501 permission denied for function token_window",
        ),
    ],
)
def test_what_is_wrong_is_seen(pgconvo, dsn, db, damage, name, seen):
    db.execute(damage)
    done = pgconvo("selftest", dsn)
    assert done.returncode == 1
    assert "checks failed" in done.stdout
    text = " ".join(done.stdout.split())
    part = text[text.index(name) :]
    assert part.index("FAILED") < part.index("expected: ") < part.index(seen)


def test_login_that_may_not_set_role(pgconvo, dsn):
    done = pgconvo("selftest", make_conninfo(dsn, user="test_app"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: test_app may not SET ROLE to convo_service, convo_maintainer"
        " | Run it as a superuser, or first as one:"
        " grant convo_service, convo_maintainer to test_app\n"
    )


def test_login_that_may_set_role(dsn, db):
    db.execute("create role selftester login")
    try:
        db.execute("grant convo_app, convo_service, convo_maintainer to selftester")
        with psycopg.connect(
            make_conninfo(dsn, user="selftester"), autocommit=True
        ) as conn:
            results = list(selftest.run(conn))
        assert [result.name for result in results if not result.passed] == []
    finally:
        db.execute("drop role selftester")


def test_needs_the_connection_for_itself(db):
    with db.transaction(), pytest.raises(AlreadyInTransaction):
        next(selftest.run(db))


def test_empty_database(pgconvo, make_database):
    done = pgconvo("selftest", make_database())
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: pgconvo isn't installed in database test_")
