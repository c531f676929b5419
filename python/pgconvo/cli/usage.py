"""pgconvo usage, and pgconvo prices load and list."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from psycopg import sql
from psycopg.rows import dict_row

from pgconvo.errors import InvalidArgument, NotAllowed

from ._common import DsnOption, Tenant, become, connect, console, print_table
from ._common import reading as reading_as

OWNER = "convo_owner"
REQUIRED = ("model", "effective_from", "input", "output")
# What a file may leave out, and whose price counts then.
OPTIONAL = {
    "cache_read": "input",
    "cache_write_5m": "input",
    "cache_write_1h": "input",
    "reasoning": "output",
}
PRICES = ("input", "cache_read", "cache_write_5m", "cache_write_1h", "output",
          "reasoning")  # fmt: skip

# No price is beyond that; a bill and PostgreSQL would have no room for it.
LEAST, MOST = Decimal("1e-12"), Decimal("1e12")

# What a narrow terminal does without.
FIRST_OUT = ("reasoning_tokens", "cache_write_tokens", "failed_calls",
             "unpriced_calls", "cache_read_tokens", "calls", "output_tokens",
             "input_tokens", "cost")  # fmt: skip
FIRST_OUT_OF_PRICES = tuple(f"{name}_price" for name in (*OPTIONAL, "output", "input"))

prices = typer.Typer(
    no_args_is_help=True, help="What models cost, the same for all tenants."
)

By = Annotated[
    Literal["conversation", "user", "tenant", "model", "day"],
    typer.Option(help="What the rows are about."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print an array of objects.")]
File = Annotated[
    Path, typer.Argument(help="A CSV file, with a header.", exists=True, dir_okay=False)
]


def usage(
    tenant: Tenant,
    by: By = "model",
    dsn: DsnOption = None,
    as_json: AsJson = False,
) -> None:
    """Show the tokens that a tenant used, and what they cost."""
    query = sql.SQL("select * from convo.{} order by 1, 2, 3").format(
        sql.Identifier(f"usage_by_{by}")
    )
    with (
        reading_as(dsn, tenant, None) as client,
        client.connection.cursor(row_factory=dict_row) as cursor,
    ):
        rows = cursor.execute(query).fetchall()
        columns = [column.name for column in cursor.description or ()]
    for row in rows:
        # sums of bigint come as numeric; a cost stays exact, so it's a string in JSON
        row |= {n: int(row[n]) for n in columns if n.endswith("_tokens")}
    if as_json:
        typer.echo(json.dumps(rows, default=str, indent=2))
        return
    print_table(columns[1:], [[*row.values()][1:] for row in rows], FIRST_OUT)
    unpriced = sum(row["unpriced_calls"] for row in rows)
    if unpriced:
        text = f"{unpriced:,} calls of models without a price aren't in the cost"
        typer.echo(text, err=True)


@prices.command()
def load(file: File, dsn: DsnOption = None) -> None:
    """Load prices of a million tokens from a CSV file, all or none.

    Columns: model, effective_from, input, output; if need be cache_read,
    cache_write_5m, cache_write_1h (else as input) and reasoning (else as output).
    A price that is there already, for the model and the time, is replaced; what was
    recorded before keeps its cost. The login must be a member of convo_owner.
    """
    rows = list(_read(file))
    query = sql.SQL(
        """
        insert into convo.model_price as p (model, effective_from, {columns})
        values (%(model)s, %(effective_from)s, {values})
        on conflict (model, effective_from) do update set ({columns}) = row({new})
        where ({old}) is distinct from ({new})
        """
    ).format(
        columns=_joined("{}", PRICES),
        values=sql.SQL(", ").join(sql.Placeholder(name) for name in PRICES),
        new=_joined("excluded.{}", PRICES),
        old=_joined("p.{}", PRICES),
    )
    with connect(dsn) as conn, conn.transaction():
        become(conn, OWNER)
        changed = sum(conn.execute(query, row).rowcount for row in rows)
    console.print(f"{len(rows):,} prices read, {changed:,} of them new or changed")


@prices.command("list")
def list_prices(dsn: DsnOption = None) -> None:
    """List the prices, the ones that are no longer or not yet valid too; UTC."""
    query = sql.SQL(
        "select model, effective_from at time zone 'UTC' as effective_from, {}"
        " from convo.model_price order by 1, 2"
    ).format(_joined("{}", PRICES))
    with connect(dsn) as conn, conn.transaction():
        # Whoever loads prices may be a member that doesn't inherit; others read too.
        with suppress(NotAllowed):
            become(conn, OWNER)
        cursor = conn.execute(query)
        rows = cursor.fetchall()
        columns = [column.name for column in cursor.description or ()]
    print_table(columns, rows, FIRST_OUT_OF_PRICES)


def _joined(template: str, names: tuple[str, ...]) -> sql.Composed:
    return sql.SQL(", ").join(
        sql.SQL(template).format(sql.Identifier(f"{name}_price")) for name in names
    )


def _read(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.DictReader(lines, strict=True)
        seen = set()
        try:
            _check_columns(reader.fieldnames or [])
            for row in reader:
                price = _price(row)
                key = (price["model"], price["effective_from"])
                if key in seen:
                    raise ValueError(f"{key[0]} has two prices from that time on")
                seen.add(key)
                yield price
        except (ValueError, csv.Error) as error:
            raise InvalidArgument(
                f"{file.name}, line {max(reader.line_num, 1)}: {error}",
                hint="Mend it and load the file again; nothing was loaded.",
            ) from error


def _check_columns(names: Sequence[str]) -> None:
    columns = set(names)
    known = [*REQUIRED, *OPTIONAL]
    if len(columns) < len(names):
        raise ValueError("a column is there twice")
    if problem := sorted({*REQUIRED} - columns) or sorted(columns - {*known}):
        raise ValueError(
            f"columns missing or unknown: {', '.join(problem)}; they are"
            f" {', '.join(known)}"
        )


def _price(row: dict[str, Any]) -> dict[str, Any]:
    if None in row or None in row.values():
        raise ValueError("more or fewer fields than columns")
    texts = {name: text.strip() for name, text in row.items()}
    if not 1 <= len(texts["model"]) <= 255:
        raise ValueError("a model has 1 to 255 characters")
    since = datetime.fromisoformat(texts["effective_from"])
    if since.microsecond % 1000:
        raise ValueError("a time is no finer than milliseconds")
    amounts = {
        name: texts.get(name) or texts[OPTIONAL.get(name, name)] for name in PRICES
    }
    return {
        "model": texts["model"],
        "effective_from": since if since.tzinfo else since.replace(tzinfo=UTC),
        **{name: _amount(name, text) for name, text in amounts.items()},
    }


def _amount(name: str, text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    is_price = amount.is_finite() and (not amount or LEAST <= amount <= MOST)
    if not is_price or len(text) > 30:
        raise ValueError(f"{name} is no price: {text:.100}")
    return amount or Decimal(0)
