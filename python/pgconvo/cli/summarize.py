"""pgconvo summarize."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Annotated

import typer

from pgconvo import Client, SummaryBatch, SummaryRun
from pgconvo import summarize as summarize_

from ._common import DsnOption, Tenant, connect, console, one_line
from ._workers import (
    Command,
    Interval,
    Once,
    PageSize,
    Timeout,
    progress,
    repeat,
    run_command,
)

MessageLimit = Annotated[
    int, typer.Option(min=1, max=1000, help="The most messages in one summary.")
]
Lease = Annotated[
    int,
    typer.Option(min=1, max=86400, help="Seconds until a page is given to others."),
]
Model = Annotated[
    str | None, typer.Option(help="Noted as the writer.", show_default=False)
]


def summarize(
    tenant: Tenant,
    command: Command,
    dsn: DsnOption = None,
    once: Once = False,
    interval: Interval = 10,
    page_size: PageSize = 10,
    message_limit: MessageLimit = 20,
    lease: Lease = 300,
    timeout: Timeout = 120,
    model: Model = None,
) -> None:
    """Summarise the conversations of a tenant whose summary is due.

    The command gets {"previous_summary", "messages"} and prints the new summary of
    both. If it fails, the conversation stays as it is and is tried again when its lease
    is over; with --once the exit code is 1. Any number may run at once.
    """

    def write(batch: SummaryBatch) -> str:
        given = {
            "previous_summary": batch.previous_summary,
            "messages": json.loads(batch.messages),
        }
        return run_command(command, json.dumps(given), timeout).strip()

    def work() -> bool:
        with progress() as status:
            run = summarize_(
                client,
                tenant,
                write,
                page_size=page_size,
                message_limit=message_limit,
                lease=timedelta(seconds=lease),
                model=model,
                progress=lambda run: status.update(_totals(run)),
            )
        for claim, error in run.failed:
            typer.echo(f"{claim.conversation_id}: {one_line(str(error))}", err=True)
        if once or run.saved or run.failed:
            console.print(_totals(run))
        return not run.failed

    with connect(dsn) as conn:
        client = Client(conn)
        repeat(work, once, interval)


def _totals(run: SummaryRun) -> str:
    return (
        f"summaries: {run.saved:,}; nothing to do: {run.skipped:,}; "
        f"failed: {len(run.failed):,}"
    )
