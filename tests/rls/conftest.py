"""One filled database for all of these tests; what each does to it is undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import Connection
from psycopg.conninfo import make_conninfo
from psycopg.types.string import TextLoader

from . import world as worlds

LOGINS = {
    "rls_pinned": "convo_app",
    "rls_two": "convo_app, convo_service, convo_reader",
}


@pytest.fixture(scope="session")
def world(pg_template, make_database) -> worlds.World:
    """Two tenants with a row in every table. Nothing may be committed to it."""
    dsn = make_database(pg_template.template_dbname)
    with psycopg.connect(dsn, autocommit=True) as conn:
        for login, groups in LOGINS.items():
            conn.execute(f"create role {login} login in role {groups}")
        conn.execute(
            "insert into convo_private.tenant_login"
            " values ('rls_pinned', 'pinned', 'a')"
        )
    return worlds.create(dsn)


@pytest.fixture(scope="session")
def sessions(world) -> Iterator[Callable[[str], Connection]]:
    opened: dict[str, Connection] = {}

    def session(login: str) -> Connection:
        if login not in opened:
            opened[login] = psycopg.connect(make_conninfo(world.dsn, user=login))
            opened[login].adapters.register_loader("json", TextLoader)
        return opened[login]

    yield session
    for conn in opened.values():
        conn.close()


@pytest.fixture
def act(sessions) -> worlds.Act:
    """Be a login for a transaction that is undone: act("test_app", "a", "ann")."""

    @contextmanager
    def act(
        login: str, tenant: str | None = None, user: str | None = None
    ) -> Iterator[Connection]:
        conn = sessions(login)
        context = {"convo.tenant_id": tenant, "convo.user_id": user}
        try:
            for setting, value in context.items():
                if value is not None:
                    conn.execute("select set_config(%s, %s, true)", (setting, value))
            yield conn
        finally:
            conn.rollback()

    return act
