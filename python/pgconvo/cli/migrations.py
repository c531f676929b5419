"""pgconvo migrate, status and drift."""

from __future__ import annotations

from typing import Annotated, Literal

import typer
from rich.table import Table

from pgconvo import drift as drift_
from pgconvo import migrate as migrate_

from ._common import Dsn, connect, console

Target = Annotated[
    int | None,
    typer.Option("--to", min=1, help="The last version to apply.", show_default=False),
]
Track = Annotated[
    Literal["core", "vector"], typer.Option(help="vector needs pgvector.")
]


def migrate(dsn: Dsn = None, target: Target = None, track: Track = "core") -> None:
    """Apply the pending migrations of a track: the core, or an optional one."""
    with connect(dsn) as conn:
        done = migrate_.migrate(conn, target, track=track)
    for migration in done:
        console.print(f"applied {_name(track, migration.name)}")
    if not done:
        console.print("nothing to apply")


def status(dsn: Dsn = None) -> None:
    """List the migrations, and when and by whom each was applied."""
    table = Table("migration", "applied at", "by")
    with connect(dsn) as conn:
        for track in migrate_.TRACKS:
            for row in migrate_.status(conn, None, track):
                at = row.applied_at
                when = f"{at:%Y-%m-%d %H:%M:%S %Z}" if at else "-"
                table.add_row(_name(track, row.name), when, row.applied_by)
    console.print(table)


def _name(track: str, name: str) -> str:
    return name if track == migrate_.CORE else f"{track}/{name}"


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
