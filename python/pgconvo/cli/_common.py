"""What the commands share: the DSN, errors of one line, and cells of tables."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import psycopg
import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from pgconvo import Client
from pgconvo.errors import PgconvoError
from pgconvo.server import kept

console = Console(highlight=False)
# What a command meets where the schema or a function of it is missing.
NOT_INSTALLED = (
    psycopg.errors.InvalidSchemaName,
    psycopg.errors.UndefinedFunction,
    psycopg.errors.UndefinedTable,
)

Dsn = Annotated[
    str | None,
    typer.Argument(
        envvar="PGCONVO_DSN",
        help="A connection string; by default the local server's.",
        show_default=False,
    ),
]
Tenant = Annotated[str, typer.Option(help="The tenant.")]
User = Annotated[
    str | None,
    typer.Option(
        help="Its user, as convo_app; without one it is read as convo_reader.",
        show_default=False,
    ),
]
DsnOption = Annotated[
    str | None,
    typer.Option(
        envvar="PGCONVO_DSN",
        help="A connection string; by default the local server's.",
        show_default=False,
    ),
]


class Group(TyperGroup):
    """Commands whose expected errors are one line on stderr, and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (PgconvoError, psycopg.Error) as error:
            if isinstance(error, NOT_INSTALLED):
                error = PgconvoError(
                    "pgconvo isn't installed in this database",
                    hint="Run `pgconvo migrate` first.",
                )
            # A driver's error can have several lines.
            typer.echo("Error: " + " ".join(str(error).split()), err=True)
            # As in diff(1): 1 says that there are differences.
            raise typer.Exit(2 if ctx.invoked_subcommand == "diff" else 1) from error


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


@contextmanager
def reading(dsn: str | None, tenant: str, user: str | None) -> Iterator[Client]:
    """Act as a reader of the tenant, or as a user of it, in one transaction."""
    role = "convo_reader" if user is None else "convo_app"
    with connect(dsn) as conn, Client(conn).acting_as(tenant, user, role) as client:
        yield client


def allow_any_text() -> None:
    """Let stdout replace what its locale can't show, which a chat may hold."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def fit(cells: list[list[str]], columns: list[str], wide: int) -> None:
    """Shorten the cells of one column so that the table is no wider than the screen."""
    widths = [
        max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)
    ]
    room = console.width - (sum(widths) - widths[wide]) - 3 * (len(columns) - 1)
    for row in cells:
        text = Text(row[wide])
        text.truncate(max(room, 8), overflow="ellipsis")
        row[wide] = text.plain


def one_line(text: str) -> str:
    """Return a text that is safe to print in a cell."""
    # Nothing of a chat may move the cursor or change colours.
    return "".join(char if char.isprintable() else " " for char in text)


def bar(tokens: int, most: int) -> str:
    """Draw tokens as a bar; `most` is as long as a bar gets."""
    width = 24 if console.width >= 100 else 10
    full = "█" if "utf" in console.encoding else "#"
    return full * max(1, round(width * tokens / most)) if tokens else ""
