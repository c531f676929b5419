"""What the commands share: the DSN, errors of one line, and cells of tables."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

import psycopg
import typer
from psycopg import sql
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from pgconvo import Client
from pgconvo.errors import NotAllowed, PgconvoError
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
        help="Its user, as convo_app; without one, as convo_reader or convo_service.",
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


def become(conn: psycopg.Connection, *roles: str) -> None:
    """Act as the first of these roles that the login may act as, in a transaction."""
    for role in roles:
        try:
            with conn.transaction():
                conn.execute(sql.SQL("set local role {}").format(sql.Identifier(role)))
            return
        except psycopg.errors.InsufficientPrivilege:
            pass
        except psycopg.errors.InvalidParameterValue as error:
            raise NotAllowed(
                f"there is no role {role}", hint="Run `pgconvo migrate` first."
            ) from error
    login = conn.info.user
    raise NotAllowed(
        f"{login} may not act as {' or '.join(roles)}",
        hint=f"As superuser: grant {roles[0]} to {login}",
    )


@contextmanager
def reading(dsn: str | None, tenant: str, user: str | None) -> Iterator[Client]:
    """Act for the whole tenant, or as a user of it, in one transaction."""
    roles = ("convo_reader", "convo_service") if user is None else ("convo_app",)
    with connect(dsn) as conn, conn.transaction():
        become(conn, *roles)
        client = Client(conn)
        client.set_context(tenant, user)
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


def print_table(
    names: Sequence[str], rows: Sequence[Sequence[object]], first_out: Sequence[str]
) -> None:
    """Print rows for a reader, or for a program if stdout isn't a terminal.

    A program gets tabs between the values. Where a terminal is too narrow, the columns
    of `first_out` are left out, one after the other. No value is ever shortened: long
    texts are folded.
    """
    allow_any_text()
    if not console.is_terminal:
        for row in (names, *rows):
            typer.echo("\t".join(map(_plain, row)))
        return
    columns = {
        name: [_shown(row[place]) for row in rows] for place, name in enumerate(names)
    }
    left_out = []
    for name in first_out:
        if _width(columns) <= console.width:
            break
        left_out.append(name)
        del columns[name]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for place, name in enumerate(names):
        is_number = all(isinstance(row[place], int | Decimal | None) for row in rows)
        if name in columns:
            table.add_column(
                "\n".join(_words(name)),
                justify="right" if is_number else "left",
                no_wrap=is_number,
                overflow="fold",
            )
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*map(Text, cells))
    console.print(table)
    if left_out:
        typer.echo(f"No room for: {', '.join(left_out)}", err=True)


def _words(name: str) -> list[str]:
    return name.removesuffix("_tokens").removesuffix("_price").split("_")


def _width(columns: dict[str, list[str]]) -> int:
    """The width of a table in which long texts are folded."""
    widths = [
        max(map(cell_len, [*_words(name), *cells])) for name, cells in columns.items()
    ]
    return sum(min(width, 36) for width in widths) + 3 * (len(widths) - 1)


def _shown(value: object) -> str:
    if isinstance(value, Decimal) and value % 1:
        return f"{value.normalize():,f}"
    if isinstance(value, int | Decimal):
        return f"{value:,.0f}"
    text = _plain(value)
    return text.removesuffix(" 00:00:00") if isinstance(value, datetime) else text


def _plain(value: object) -> str:
    if value is None:
        return ""
    return f"{value:f}" if isinstance(value, Decimal) else one_line(str(value))
