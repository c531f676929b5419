"""pgconvo memories."""

from __future__ import annotations

from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from pgconvo import Client

from ._common import (
    DsnOption,
    Tenant,
    allow_any_text,
    become,
    connect,
    console,
    fit,
    one_line,
)

User = Annotated[str, typer.Option(help="The user.")]
PageSize = Annotated[int, typer.Option(min=1, max=1000, help="The most to list.")]


def memories(
    tenant: Tenant, user: User, dsn: DsnOption = None, page_size: PageSize = 30
) -> None:
    """List what is known about a user, last accessed first."""
    with connect(dsn) as conn, conn.transaction():
        become(conn, "convo_app", "convo_service", "convo_reader")
        client = Client(conn)
        client.set_context(tenant, user)
        found = client.recall(page_size)
    allow_any_text()
    rows = [
        [
            one_line(memory.key),
            one_line(memory.value),
            f"{memory.version:,}",
            f"{memory.expires_at:%Y-%m-%d}" if memory.expires_at else "",
        ]
        for memory in found
    ]
    names = ["key", "value", "version", "expires"]
    fit(rows, names, 1)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in names:
        table.add_column(name, no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
