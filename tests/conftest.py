"""Fixtures that the whole suite shares: one server a run, one database a test.

PG=15 (or 16, 17, 18) runs the suite on that major version. Each pytest-xdist worker
has a server of its own.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from pytest_postgresql import factories
from pytest_postgresql.executors import NoopExecutor

from pgconvo import server
from pgconvo.migrate import migrate

# CI draws the same examples each time; runs at a desk go on looking for new ones.
hypothesis.settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    hypothesis.settings.load_profile("ci")

ROOT = Path(__file__).parents[1]
LOGINS = {
    "test_app": "convo_app",
    "test_service": "convo_service",
    "test_reader": "convo_reader",
    "test_maintainer": "convo_maintainer",
    "test_backup": "convo_backup",
    "test_nobody": None,
}


class Executor(NoopExecutor):
    """What pytest-postgresql needs to know about the server that we started."""

    template_dbname = "template1"

    def __init__(self, running: server.Server) -> None:
        self.server = running
        super().__init__(running.host, running.port, running.user, "", "postgres")

    def dsn(self, dbname: str = "postgres", user: str = "postgres") -> str:
        return self.server.dsn(dbname, user)


def find_bindir() -> Path:
    """Return the programs of the major version in $PG, else the default ones."""
    if major := os.environ.get("PG"):
        command = [sys.executable, str(ROOT / "tools/server_tree.py"), major]
        made = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        return Path(made.stdout.strip())
    return server.find_bindir()


def has_pgvector(conn: psycopg.Connection) -> bool:
    """Tell whether the server can have the vector track."""
    query = "select from pg_available_extensions where name = 'vector'"
    return conn.execute(query).fetchone() is not None


def load_schema(autocommit: bool, **connection: Any) -> None:
    """Migrate the template database, then make a login for each group role."""
    with psycopg.connect(**connection, autocommit=True) as conn:
        migrate(conn)
        if has_pgvector(conn):
            migrate(conn, track="vector")
        for login, group in LOGINS.items():
            query = sql.SQL("create role {} login").format(sql.Identifier(login))
            if group:
                query += sql.SQL(" in role {}").format(sql.Identifier(group))
            conn.execute(query)


@pytest.fixture(scope="session")
def bindir() -> Path:
    """The folder of psql, pg_dump and the server's other programs."""
    return find_bindir()


@pytest.fixture(scope="session")
def pg_server(bindir: Path) -> Iterator[Executor]:
    """A server without databases of ours; `.dsn(dbname, user)` says how to reach it."""
    with server.running({"max_connections": "100"}, bindir=bindir) as running:
        yield Executor(running)


pg_template = factories.postgresql_noproc(
    depends_on="pg_server", dbname="convo", load=[load_schema]
)


@pytest.fixture(scope="session")
def is_vector_available(pg_server: Executor) -> bool:
    """Whether the databases have the vector track."""
    with psycopg.connect(pg_server.dsn()) as conn:
        return has_pgvector(conn)


@pytest.fixture
def vector(is_vector_available: bool) -> None:
    """Skip where the server has no pgvector."""
    if not is_vector_available:
        pytest.skip("this server has no pgvector")


@pytest.fixture(scope="session")
def make_database(pg_server: Executor) -> Iterator[Callable[..., str]]:
    """Make a database, `make_database(template="template1")`, and return its DSN."""
    numbers = itertools.count(1)
    with psycopg.connect(pg_server.dsn(), autocommit=True) as conn:

        def make(template: str = "template1") -> str:
            name = f"test_{next(numbers)}"
            # Copying files is twice as fast as logging each page.
            conn.execute(
                sql.SQL("create database {} template {} strategy file_copy").format(
                    sql.Identifier(name), sql.Identifier(template)
                )
            )
            return pg_server.dsn(name)

        yield make


@pytest.fixture
def dsn(
    pg_server: Executor,
    pg_template: NoopExecutor,
    make_database: Callable[..., str],
) -> Iterator[str]:
    """A migrated database of the test's own, as superuser."""
    dsn = make_database(pg_template.template_dbname)
    yield dsn
    name = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
    with psycopg.connect(pg_server.dsn(), autocommit=True) as conn:
        conn.execute(
            sql.SQL("drop database {} with (force)").format(sql.Identifier(str(name)))
        )


@pytest.fixture
def db(dsn: str) -> Iterator[psycopg.Connection]:
    """A superuser's connection in autocommit mode, to prepare and to look."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        yield conn


@pytest.fixture
def connect(dsn: str) -> Iterator[Callable[..., psycopg.Connection]]:
    """Connect as a login, `connect("test_app", tenant="a", user="u", ...)`.

    In autocommit mode by default, with the context set for the session. Further
    keywords go to psycopg.connect().
    """
    opened = []

    def connect(
        login: str, tenant: str | None = None, user: str | None = None, **options: Any
    ) -> psycopg.Connection:
        context = {"convo.tenant_id": tenant, "convo.user_id": user}
        conn = psycopg.connect(
            make_conninfo(dsn, user=login), **{"autocommit": True, **options}
        )
        opened.append(conn)
        for setting, value in context.items():
            if value is not None:
                conn.execute("select set_config(%s, %s, false)", (setting, value))
        if not conn.autocommit:
            conn.commit()
        return conn

    yield connect
    for conn in opened:
        conn.close()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of larger data sets that don't ship with the project."""
    folder = os.environ.get("PGCONVO_TEST_DATA")
    path = Path(folder) if folder else ROOT.parent / "shared/data"
    if not path.is_dir():
        pytest.skip(f"no test data in {path}; PGCONVO_TEST_DATA names another folder")
    return path
