"""pgconvo context and pgconvo explain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal
from uuid import UUID

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from ._common import (
    DsnOption,
    Tenant,
    User,
    allow_any_text,
    bar,
    console,
    fit,
    one_line,
    reading,
)

Conversation = Annotated[UUID, typer.Argument(help="The conversation.", metavar="ID")]
Policy = Annotated[
    str | None,
    typer.Option(help="A context policy of the tenant.", show_default=False),
]
Budget = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=2**31 - 1,
        help="Tokens, instead of the policy's.",
        show_default=False,
    ),
]
Format = Annotated[
    Literal["openai", "openai_responses", "anthropic", "gemini"] | None,
    typer.Option(
        help="Print it as the JSON of a provider.",
        show_default=False,
    ),
]


def context(
    conversation_id: Conversation,
    tenant: Tenant,
    user: User = None,
    dsn: DsnOption = None,
    policy: Policy = None,
    budget: Budget = None,
    format: Format = None,
) -> None:
    """Show what would be sent to a model, with running totals."""
    with reading(dsn, tenant, user) as client:
        if format is not None:
            text = client.render_context(conversation_id, format, policy, budget)
            typer.echo(text.encode())
            return
        items = client.get_context(conversation_id, policy, budget)
    rows = [
        [
            item.kind,
            _number(item.seq),
            item.role,
            "(no text)" if item.content is None else one_line(item.content),
            _number(item.tokens),
            _number(item.running_tokens),
        ]
        for item in items
    ]
    columns = ["kind", "seq", "role", "content", "tokens", "total"]
    _print(columns, rows, [item.tokens for item in items], [True] * len(items))
    console.print(f"{len(items):,} items, {items[-1].running_tokens:,} tokens")


def explain(
    conversation_id: Conversation,
    tenant: Tenant,
    user: User = None,
    dsn: DsnOption = None,
    policy: Policy = None,
    budget: Budget = None,
) -> None:
    """Show every message: whether it would be sent to a model, or why not."""
    with reading(dsn, tenant, user) as client:
        items = client.explain_context(conversation_id, policy, budget)
    rows = [
        [
            item.kind,
            _number(item.seq),
            item.role,
            item.reason,
            _number(item.tokens),
            _number(item.running_tokens),
        ]
        for item in items
    ]
    columns = ["kind", "seq", "role", "kept or why not", "tokens", "total"]
    kept = [item.is_kept for item in items]
    _print(columns, rows, [item.tokens for item in items], kept)
    total = sum(item.tokens for item in items if item.is_kept)
    console.print(f"{sum(kept):,} of {len(items):,} items kept, {total:,} tokens")


def _number(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _print(
    columns: Sequence[str],
    rows: list[list[str]],
    tokens: Sequence[int],
    kept: Sequence[bool],
) -> None:
    allow_any_text()
    names = list(columns)
    if console.width >= 60:
        names.append("")
        most = max(tokens, default=0)
        for row, count in zip(rows, tokens, strict=True):
            row.append(bar(count, most))
    fit(rows, names, 3)
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in names:
        is_number = name in ("seq", "tokens", "total")
        table.add_column(name, justify="right" if is_number else "left", no_wrap=True)
    for row, is_kept in zip(rows, kept, strict=True):
        table.add_row(*map(Text, row), style=None if is_kept else "dim")
    console.print(table)
