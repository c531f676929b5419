"""pgconvo demo."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from pgconvo import demo as demo_
from pgconvo import server as servers
from pgconvo import transcript as transcripts
from pgconvo.demo import Step
from pgconvo.server import Server

from ._common import allow_any_text, bar, console, fit, one_line

File = Annotated[
    Path | None,
    typer.Option(
        help="Your own chat: OpenAI messages as a JSON array, or JSON Lines.",
        show_default=False,
    ),
]
Budget = Annotated[int, typer.Option(min=0, help="The tokens of the window.")]


def demo(file: File = None, budget: Budget = 150) -> None:
    """Show what it does: a chat stored, read and deleted in a local server."""
    allow_any_text()
    transcript = transcripts.read(file) if file else demo_.builtin()
    started = time.monotonic()
    server = servers.start_kept()
    demo_.create_database(server)
    seconds = time.monotonic() - started
    console.print(f"Server and database {demo_.DATABASE} are ready ({seconds:.1f} s).")
    for number, step in enumerate(demo_.run(server, transcript, budget), 1):
        _print_step(number, step)
    _print_end(server)


def _print_step(number: int, step: Step) -> None:
    console.print()
    console.print(f"{number}. {step.title}", style="bold")
    console.print(f"   as {step.login}", style="dim")
    console.print()
    highlighted = Syntax("", "sql", theme="ansi_dark").highlight(step.sql)
    highlighted.rstrip()
    # Never broken, so that it can be copied.
    console.print(highlighted, soft_wrap=True)
    console.print()
    console.print(_table(step))
    for note in step.notes:
        console.print(note, style="dim", markup=False)


def _table(step: Step) -> Table:
    records = [dict(zip(step.columns, row, strict=True)) for row in step.rows]
    columns = [column for column in step.columns if column != "payload"]
    cells = [[_cell(column, record) for column in columns] for record in records]
    if step.budget is not None and console.width >= 60:
        columns.append("")
        most = max((record["tokens"] for record in records), default=0)
        for row, record in zip(cells, records, strict=True):
            row.append(bar(record["tokens"], most))
    if "content" in columns:
        fit(cells, columns, columns.index("content"))
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in columns:
        is_number = any(
            isinstance(record.get(column), int | Decimal)
            and not isinstance(record[column], bool)
            for record in records
        )
        table.add_column(column, justify="right" if is_number else "left", no_wrap=True)
    for row, record in zip(cells, records, strict=True):
        is_outside = record.get("in") is False
        table.add_row(*map(Text, row), style="dim" if is_outside else None)
    return table


def _cell(column: str, record: dict[str, Any]) -> str:
    value = record[column]
    if column == "content":
        return one_line(value if value is not None else " ".join(_calls(record)))
    if column == "in":
        return "yes" if value else "-"
    if column == "updated_at":
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, bool):
        return "true" if value else "false"
    is_number = isinstance(value, int | Decimal)
    return f"{value:,}" if is_number else one_line(str(value))


def _calls(record: dict[str, Any]) -> Iterator[str]:
    for call in (record["payload"] or {}).get("tool_calls") or ():
        target = call.get("function") or call.get("custom") or {}
        yield f"{target.get('name')}({target.get('arguments') or target.get('input')})"


def _print_end(server: Server) -> None:
    dsn = server.dsn(demo_.DATABASE, "demo_app")
    psql = "psql" if shutil.which("psql") else server.bindir / "psql"
    pgconvo = "pgconvo" if shutil.which("pgconvo") else sys.argv[0]
    lines = [
        "",
        "Go on by yourself; demo_app is ann of acme there:",
        f"  {psql} {dsn}",
        "  select * from convo.list_conversations();",
        "Check the database, see its migrations, stop the server:",
        f"  {pgconvo} selftest {server.dsn(demo_.DATABASE)}",
        f"  {pgconvo} status {server.dsn(demo_.DATABASE)}",
        f"  {pgconvo} server stop",
    ]
    for line in lines:
        console.print(line, soft_wrap=True, markup=False)
