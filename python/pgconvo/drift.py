"""Compare a database's schema with what its migrations make."""

from __future__ import annotations

import difflib
from typing import Any

import psycopg
from psycopg.rows import scalar_row

from . import migrate, server
from .errors import MigrationError


def facts(conn: psycopg.Connection[Any]) -> list[str]:
    """Return one sorted line for each fact about the schema (tools/catalog.sql)."""
    query = migrate.shipped("tools/catalog.sql").read_bytes()
    with conn.transaction(), conn.cursor(row_factory=scalar_row) as cursor:
        # With an empty path the server prints every name with its schema.
        cursor.execute("set local search_path = pg_catalog")
        return cursor.execute(query).fetchall()


def diff(conn: psycopg.Connection[Any]) -> list[str]:
    """Return a unified diff from what the migrations make to what is there.

    Empty when they agree. Runs a throwaway server of the same major version, and raises
    ServerError when there is none, MigrationError when nothing was migrated.
    """
    applied = [row.version for row in migrate.status(conn) if row.applied_at]
    if not applied:
        raise MigrationError("no migration was applied to this database")
    bindir = server.find_bindir(conn.info.server_version // 10000)
    with (
        server.running(bindir=bindir) as fresh,
        psycopg.connect(fresh.dsn(), autocommit=True) as other,
    ):
        migrate.migrate(other, target=max(applied))
        expected = facts(other)
    lines = difflib.unified_diff(
        expected, facts(conn), "migrations", "database", n=0, lineterm=""
    )
    return list(lines)
