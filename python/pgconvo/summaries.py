"""A worker that summarises what is due, with any function that writes the text.

    with psycopg.connect(..., autocommit=True) as connection:
        run = summarize(Client(connection), "acme", lambda batch: ask_a_model(batch))

Each claim, batch and summary is a short transaction of its own; while the text is being
written none is open. Any number of workers may run at once. It is safe to stop one at
any point and to run it again: what it had claimed comes back when the lease is over.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from .client import AsyncClient, Client
from .errors import Conflict, ConversationDeleted, ConversationNotFound
from .records import ClaimedSummary, SummaryBatch

LEASE = timedelta(minutes=5)
# Somebody else was first, or the conversation is gone: nothing is left to do.
OVERTAKEN = (Conflict, ConversationNotFound, ConversationDeleted)

Progress = Callable[["SummaryRun"], object]


@dataclass(slots=True)
class SummaryRun:
    """What a worker did: how many summaries it saved, and what went wrong.

    `skipped` counts conversations without anything to summarise yet, or that somebody
    else was faster with. `failed` has the exception for each conversation whose text
    couldn't be written or saved; they are claimed again when the lease is over.
    """

    saved: int = 0
    skipped: int = 0
    failed: list[tuple[ClaimedSummary, Exception]] = field(default_factory=list)
    goes_on: bool = True
    """Whether the last page had anything that hadn't failed before."""

    def of_page(
        self, claimed: list[ClaimedSummary], lease: timedelta
    ) -> Iterator[ClaimedSummary]:
        """What is to be done of a page: what didn't fail before, while it is leased."""
        begun = time.monotonic()
        gone = {claim.conversation_id for claim, _ in self.failed}
        fresh = [claim for claim in claimed if claim.conversation_id not in gone]
        self.goes_on = bool(fresh)
        for claim in fresh:
            # What is left of it then is somebody else's, or comes with the next page.
            if time.monotonic() - begun >= lease.total_seconds():
                return
            yield claim

    def count(self, batch: SummaryBatch | None) -> None:
        """Count a batch that was summarised, or that there was none."""
        if batch is None:
            self.skipped += 1
        else:
            self.saved += 1

    def fail(self, claim: ClaimedSummary, error: Exception, is_lost: bool) -> None:
        """Note what went wrong; without a connection nothing can go on."""
        if is_lost:
            raise error
        self.failed.append((claim, error))


def summarize(
    client: Client,
    tenant_id: str,
    write: Callable[[SummaryBatch], str],
    *,
    page_size: int = 10,
    message_limit: int = 20,
    lease: timedelta = LEASE,
    model: str | None = None,
    role: str | None = "convo_service",
    progress: Progress | None = None,
) -> SummaryRun:
    """Summarise all that is due in a tenant, batch by batch, and return what was done.

    write: gets a batch and returns the text of the summary, which stands for
        `previous_summary` and `messages`. An exception leaves the conversation as it
        is, for later; the others go on.
    page_size: conversations that are claimed at once. message_limit: messages in a
        batch. lease: how long one page should take at most; up to a day.
    model: what is noted as the writer.
    role: as in `acting_as`; it needs the rights of convo_service.
    progress: called after each conversation with what was done so far.
    Errors: AlreadyInTransaction, InvalidArgument, NotAllowed, and psycopg's when the
        connection is lost.
    """
    run = SummaryRun()
    while True:
        with client.acting_as(tenant_id, role=role):
            claimed = client.claim_summaries(lease, page_size)
        for claim in run.of_page(claimed, lease):
            try:
                with client.acting_as(tenant_id, role=role):
                    batch = client.summary_batch(claim.conversation_id, message_limit)
                if batch is not None:
                    text = write(batch)
                    with client.acting_as(tenant_id, role=role):
                        client.save_summary(*_saved(claim, batch, text), model=model)
                run.count(batch)
            except OVERTAKEN:
                run.skipped += 1
            except Exception as error:
                run.fail(claim, error, is_lost=client.connection.closed)
            if progress is not None:
                progress(run)
        if not run.goes_on:
            return run


async def summarize_async(
    client: AsyncClient,
    tenant_id: str,
    write: Callable[[SummaryBatch], Awaitable[str]],
    *,
    page_size: int = 10,
    message_limit: int = 20,
    lease: timedelta = LEASE,
    model: str | None = None,
    role: str | None = "convo_service",
    progress: Progress | None = None,
) -> SummaryRun:
    """Do what `summarize` does, with an `AsyncClient` and a coroutine as `write`."""
    run = SummaryRun()
    while True:
        async with client.acting_as(tenant_id, role=role):
            claimed = await client.claim_summaries(lease, page_size)
        for claim in run.of_page(claimed, lease):
            try:
                async with client.acting_as(tenant_id, role=role):
                    batch = await client.summary_batch(
                        claim.conversation_id, message_limit
                    )
                if batch is not None:
                    text = await write(batch)
                    async with client.acting_as(tenant_id, role=role):
                        await client.save_summary(
                            *_saved(claim, batch, text), model=model
                        )
                run.count(batch)
            except OVERTAKEN:
                run.skipped += 1
            except Exception as error:
                run.fail(claim, error, is_lost=client.connection.closed)
            if progress is not None:
                progress(run)
        if not run.goes_on:
            return run


def _saved(
    claim: ClaimedSummary, batch: SummaryBatch, text: str
) -> tuple[UUID, str, int, int]:
    """The arguments of save_summary."""
    return (
        claim.conversation_id,
        text,
        batch.through_seq,
        batch.previous_through_seq,
    )
