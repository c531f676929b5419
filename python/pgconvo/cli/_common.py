"""What the commands share: the DSN argument, and errors of one line."""

from __future__ import annotations

from typing import Annotated, Any

import psycopg
import typer
from rich.console import Console
from typer.core import TyperGroup

from pgconvo.errors import PgconvoError
from pgconvo.server import kept

console = Console(highlight=False)

Dsn = Annotated[
    str | None,
    typer.Argument(
        envvar="PGCONVO_DSN",
        help="A connection string; by default the local server's.",
        show_default=False,
    ),
]


class Group(TyperGroup):
    """Commands whose expected errors are one line on stderr and exit code 1."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (PgconvoError, psycopg.Error) as error:
            # A driver's error can have several lines.
            typer.echo("Error: " + " ".join(str(error).split()), err=True)
            raise typer.Exit(1) from error


def connect(dsn: str | None) -> psycopg.Connection:
    """Connect in autocommit mode, to the local server when no DSN is given."""
    if dsn is None:
        server = kept()
        if server is None:
            raise PgconvoError(
                "no database to connect to",
                hint="Give a DSN, set PGCONVO_DSN, or run `pgconvo server start`.",
            )
        dsn = server.dsn()
    return psycopg.connect(dsn, autocommit=True, application_name="pgconvo")
