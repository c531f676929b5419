"""pgconvo migrate, status and drift."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from pgconvo import drift as drift_
from pgconvo import migrate as migrate_

from ._common import Dsn, connect, console

Target = Annotated[
    int | None,
    typer.Option("--to", min=1, help="The last version to apply.", show_default=False),
]


def migrate(dsn: Dsn = None, target: Target = None) -> None:
    """Apply the pending migrations."""
    with connect(dsn) as conn:
        done = migrate_.migrate(conn, target)
    for migration in done:
        console.print(f"applied {migration.name}")
    if not done:
        console.print("nothing to apply")


def status(dsn: Dsn = None) -> None:
    """List the migrations, and when and by whom each was applied."""
    table = Table("migration", "applied at", "by")
    with connect(dsn) as conn:
        for row in migrate_.status(conn):
            when = f"{row.applied_at:%Y-%m-%d %H:%M:%S %Z}" if row.applied_at else "-"
            table.add_row(row.name, when, row.applied_by)
    console.print(table)


def drift(dsn: Dsn = None) -> None:
    """Compare the schema with what its migrations make; exit code 1 if it differs.

    Builds a new database of the same major version on a throwaway server.
    """
    with connect(dsn) as conn:
        lines = drift_.diff(conn)
    for line in lines:
        console.print(line, style=_color(line), markup=False, soft_wrap=True)
    if lines:
        raise typer.Exit(1)
    console.print("no drift")


def _color(line: str) -> str:
    return {"+": "green", "-": "red"}.get(line[0], "dim")
