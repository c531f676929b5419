"""Apply the numbered migrations and read their ledger.

The files are plain SQL that psql and dbmate run too. Each is sent as it is, in one
transaction of its own, and checks for itself that its turn has come.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from .errors import AlreadyApplied, MigrationError, converted

_PACKAGE = Path(__file__).parent
CORE = "core"
TRACKS = (CORE, "vector")
"""The tracks. All but the core are optional: each needs an extension."""

_LOCK_KEY = "pgconvo migration"  # the guard in each migration takes the same one


@dataclass(frozen=True)
class Migration:
    """One migration file."""

    version: int
    name: str
    path: Path


@dataclass(frozen=True)
class MigrationStatus:
    """One migration and when and by whom it was applied, None while it is pending."""

    version: int
    name: str
    applied_at: datetime | None
    applied_by: str | None


def shipped(path: str) -> Path:
    """Return a file or folder that the wheel carries, or else the checkout's own.

    ``path`` is its place in the checkout: ``migrations`` or ``tools/catalog.sql``.
    """
    packaged = _PACKAGE / Path(path).name
    return packaged if packaged.exists() else _PACKAGE.parents[1] / path


def available(directory: Path | None = None, track: str = CORE) -> list[Migration]:
    """Return the migrations of a folder, by default the shipped ones, in order.

    Those of an optional track are in a folder of its name within it.
    Raises MigrationError when a file isn't what its SHA256SUMS says.
    """
    directory = directory or shipped("migrations")
    if track != CORE:
        directory /= track
    paths = sorted(directory.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    if not paths:
        raise MigrationError(f"no migrations in {directory}")
    _check_sums(directory, paths)
    return [Migration(int(path.stem[:4]), path.stem, path) for path in paths]


def pending(
    conn: psycopg.Connection[Any], directory: Path | None = None, track: str = CORE
) -> list[Migration]:
    """Return the migrations that the database doesn't have yet, in order."""
    known = available(directory, track)
    applied = _applied(conn, track)
    newest = max(applied, default=0)
    if newest > known[-1].version:
        raise MigrationError(
            f"the database is at migration {newest}, but this pgconvo only knows "
            f"{known[-1].version}: upgrade pgconvo"
        )
    return [migration for migration in known if migration.version not in applied]


def migrate(
    conn: psycopg.Connection[Any],
    target: int | None = None,
    directory: Path | None = None,
    track: str = CORE,
) -> list[Migration]:
    """Apply what is pending, up to version ``target`` if given, and return it.

    Safe to run twice at once: the second waits, then finds nothing to do. A migration
    that fails leaves nothing of itself and ends the run with its error.
    """
    done = []
    with _exclusive(conn):
        for migration in pending(conn, directory, track):
            if target is not None and migration.version > target:
                break
            try:
                with converted(), conn.transaction():
                    # Without parameters psycopg sends it as one simple query.
                    conn.execute(migration.path.read_bytes())
            except AlreadyApplied:
                continue  # psql or dbmate, which don't wait for us, were faster
            done.append(migration)
    return done


def status(
    conn: psycopg.Connection[Any], directory: Path | None = None, track: str = CORE
) -> list[MigrationStatus]:
    """Return every migration, those that only the database knows too, in order."""
    rows = {
        migration.version: MigrationStatus(
            migration.version, migration.name, None, None
        )
        for migration in available(directory, track)
    }
    rows |= _applied(conn, track)
    return [rows[version] for version in sorted(rows)]


def _check_sums(directory: Path, paths: list[Path]) -> None:
    sums = {}
    with contextlib.suppress(FileNotFoundError):
        for line in (directory / "SHA256SUMS").read_text().splitlines():
            digest, name = line.split()
            sums[name] = digest
    for path in paths:
        if hashlib.sha256(path.read_bytes()).hexdigest() != sums.get(path.name):
            raise MigrationError(
                f"{path} isn't the released file that SHA256SUMS lists: "
                "migrations never change, restore it"
            )


def _require_autocommit(conn: psycopg.Connection[Any]) -> None:
    if not conn.autocommit:
        raise MigrationError(
            "migrations need a connection in autocommit mode: each is a transaction "
            "of its own"
        )


@contextlib.contextmanager
def _exclusive(conn: psycopg.Connection[Any]) -> Iterator[None]:
    _require_autocommit(conn)
    key = (_LOCK_KEY,)
    conn.execute("select pg_advisory_lock(hashtextextended(%s, 0))", key)
    try:
        yield
    finally:
        if not conn.closed:
            conn.execute("select pg_advisory_unlock(hashtextextended(%s, 0))", key)


def _applied(conn: psycopg.Connection[Any], track: str) -> dict[int, MigrationStatus]:
    _require_autocommit(conn)
    with conn.transaction(), conn.cursor(row_factory=tuple_row) as cursor:
        # Not to_regclass(), which raises without USAGE on the schema.
        ledger = cursor.execute(
            "select pg_get_userbyid(c.relowner) from pg_class as c"
            " join pg_namespace as n on n.oid = c.relnamespace"
            " where n.nspname = 'convo' and c.relname = 'schema_migration'"
        ).fetchone()
        if ledger is None:
            return {}
        # An installer is a member of the owner, but may not inherit from it.
        (may_read,) = cursor.execute(
            "select has_schema_privilege('convo', 'usage')"
            " and has_table_privilege('convo.schema_migration', 'select')"
        ).fetchone() or (False,)
        if not may_read:
            owner = sql.Identifier(ledger[0])
            cursor.execute(sql.SQL("set local role {}").format(owner))
        rows = cursor.execute(
            "select version, name, applied_at, applied_by"
            " from convo.schema_migration where track = %s",
            (track,),
        ).fetchall()
    return {row[0]: MigrationStatus(*row) for row in rows}
