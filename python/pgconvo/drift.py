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
    applied = {
        track: [
            row.version for row in migrate.status(conn, None, track) if row.applied_at
        ]
        for track in migrate.TRACKS
    }
    if not applied[migrate.CORE]:
        raise MigrationError("no migration was applied to this database")
    bindir = server.find_bindir(conn.info.server_version // 10000)
    with (
        server.running(bindir=bindir) as fresh,
        psycopg.connect(fresh.dsn(), autocommit=True) as other,
    ):
        if applied["vector"]:
            _put_vector(other, _schema_of_vector(conn))
        for track, versions in applied.items():
            migrate.migrate(other, max(versions, default=0), track=track)
        expected = facts(other)
    lines = difflib.unified_diff(
        expected, facts(conn), "migrations", "database", n=0, lineterm=""
    )
    return list(lines)


def _schema_of_vector(conn: psycopg.Connection[Any]) -> str:
    """Return where pgvector is, which the facts name."""
    row = conn.execute(
        "select extnamespace::regnamespace::text from pg_extension"
        " where extname = 'vector'"
    ).fetchone()
    return row[0] if row else "public"


def _put_vector(conn: psycopg.Connection[Any], schema: str) -> None:
    """Make pgvector there, if the server has it; else the migration says it hasn't."""
    available = "select from pg_available_extensions where name = 'vector'"
    if conn.execute(available).fetchone() is not None:
        conn.execute(f"create schema if not exists {schema}".encode())
        conn.execute(f"grant usage on schema {schema} to public".encode())
        conn.execute(f"create extension vector schema {schema}".encode())
