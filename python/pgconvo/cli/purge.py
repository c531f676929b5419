"""pgconvo purge."""

from __future__ import annotations

from typing import Annotated

import psycopg
import typer
from psycopg import sql
from rich.console import Console

from pgconvo import Client
from pgconvo.errors import NotAllowed

from ._common import Dsn, connect, console

ROLE = "convo_maintainer"

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only count one batch.")]
PageSize = Annotated[
    int, typer.Option(min=1, max=1000, help="The most conversations in a batch.")
]
MaxBatches = Annotated[
    int | None,
    typer.Option(min=1, help="Stop after so many batches.", show_default=False),
]


def purge(
    dsn: Dsn = None,
    dry_run: DryRun = False,
    page_size: PageSize = 500,
    max_batches: MaxBatches = None,
) -> None:
    """Remove what is due by the retention rules of all tenants, for cron.

    Each batch is a transaction of its own, so it can be stopped at any point and
    run again. The login must be a member of convo_maintainer.
    """
    with connect(dsn) as conn:
        _become_maintainer(conn)
        client = Client(conn)
        if dry_run:
            batch = client.purge(is_dry_run=True, page_size=page_size)
            at_least = "at least " if batch.conversations == page_size else ""
            console.print(
                f"due: {at_least}{batch.conversations:,} conversations, "
                f"{batch.messages:,} messages; on hold: {batch.held:,}"
            )
            return
        conversations = messages = held = batches = 0
        # On stderr, so that cron's mail has the totals only.
        with Console(stderr=True).status("purging") as status:
            while max_batches is None or batches < max_batches:
                batch = client.purge(page_size=page_size)
                held = batch.held
                if not batch.conversations:
                    break
                batches += 1
                conversations += batch.conversations
                messages += batch.messages
                status.update(f"{conversations:,} conversations, {messages:,} messages")
    console.print(
        f"purged: {conversations:,} conversations, {messages:,} messages; "
        f"on hold: {held:,}; batches: {batches:,}"
    )


def _become_maintainer(conn: psycopg.Connection) -> None:
    try:
        conn.execute(sql.SQL("set role {}").format(sql.Identifier(ROLE)))
    except psycopg.errors.InsufficientPrivilege as error:
        raise NotAllowed(
            f"{conn.info.user} may not act as {ROLE}",
            hint=f"As superuser: grant {ROLE} to {conn.info.user}",
        ) from error
    except psycopg.errors.InvalidParameterValue as error:
        raise NotAllowed(
            f"there is no role {ROLE}", hint="Run `pgconvo migrate` first."
        ) from error
