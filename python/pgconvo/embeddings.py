"""A worker that embeds messages, with any function that turns texts into vectors.

    with psycopg.connect(..., autocommit=True) as connection:
        run = embed(Client(connection), "acme", "minilm", lambda texts: encode(texts))

It needs the vector track. Claiming and storing are short transactions; while vectors
are computed none is open. Any number of workers may run at once. It is safe to stop one
at any point and to run it again: what it had claimed comes back after 10 minutes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from .client import AsyncClient, Client
from .errors import ConversationDeleted, ConversationNotFound, MessageNotFound
from .records import ClaimedMessage

GONE = (ConversationDeleted, ConversationNotFound, MessageNotFound)

Vectors = Sequence[Sequence[float]]
Progress = Callable[["EmbeddingRun"], object]


@dataclass(slots=True)
class EmbeddingRun:
    """What a worker did: how many embeddings it stored, and what went wrong.

    `skipped` counts messages that were deleted meanwhile. `failed` has the exception
    for the messages whose vectors couldn't be computed or stored; they are claimed
    again after 10 minutes.
    """

    stored: int = 0
    skipped: int = 0
    failed: list[tuple[list[ClaimedMessage], Exception]] = field(default_factory=list)

    def fail(
        self, claims: list[ClaimedMessage], error: Exception, is_lost: bool
    ) -> None:
        """Note what went wrong; without a connection nothing can go on."""
        if is_lost:
            raise error
        self.failed.append((claims, error))


def embed(
    client: Client,
    tenant_id: str,
    model: str,
    compute: Callable[[list[str]], Vectors],
    *,
    page_size: int = 100,
    role: str | None = "convo_service",
    progress: Progress | None = None,
) -> EmbeddingRun:
    """Embed all messages of a tenant that have no embedding yet, page by page.

    model: the name that searches will give.
    compute: gets texts and returns a vector for each, in order. An exception leaves its
        page for later; the others go on.
    page_size: messages that are claimed at once.
    role: as in `acting_as`; it needs the rights of convo_service.
    progress: called after each page with what was done so far.
    Errors: FeatureNotAvailable, AlreadyInTransaction, InvalidArgument, NotAllowed, and
        psycopg's when the connection is lost.
    """
    run = EmbeddingRun()
    while True:
        with client.acting_as(tenant_id, role=role):
            claims = client.claim_embeddings(model, page_size)
        if not claims:
            return run
        try:
            vectors = _checked(claims, compute([claim.content for claim in claims]))
        except Exception as error:
            run.fail(claims, error, is_lost=client.connection.closed)
            vectors = []
        for claim, vector in zip(claims, vectors, strict=False):
            try:
                with client.acting_as(tenant_id, role=role):
                    client.store_embedding(*_stored(claim, model, vector))
                run.stored += 1
            except GONE:
                run.skipped += 1
            except Exception as error:
                run.fail([claim], error, is_lost=client.connection.closed)
        if progress is not None:
            progress(run)


async def embed_async(
    client: AsyncClient,
    tenant_id: str,
    model: str,
    compute: Callable[[list[str]], Awaitable[Vectors]],
    *,
    page_size: int = 100,
    role: str | None = "convo_service",
    progress: Progress | None = None,
) -> EmbeddingRun:
    """Do what `embed` does, with an `AsyncClient` and a coroutine as `compute`."""
    run = EmbeddingRun()
    while True:
        async with client.acting_as(tenant_id, role=role):
            claims = await client.claim_embeddings(model, page_size)
        if not claims:
            return run
        try:
            computed = await compute([claim.content for claim in claims])
            vectors = _checked(claims, computed)
        except Exception as error:
            run.fail(claims, error, is_lost=client.connection.closed)
            vectors = []
        for claim, vector in zip(claims, vectors, strict=False):
            try:
                async with client.acting_as(tenant_id, role=role):
                    await client.store_embedding(*_stored(claim, model, vector))
                run.stored += 1
            except GONE:
                run.skipped += 1
            except Exception as error:
                run.fail([claim], error, is_lost=client.connection.closed)
        if progress is not None:
            progress(run)


def _checked(claims: list[ClaimedMessage], vectors: Vectors) -> Vectors:
    if len(vectors) != len(claims):
        raise ValueError(f"{len(vectors)} vectors for {len(claims)} texts")
    return vectors


def _stored(
    claim: ClaimedMessage, model: str, vector: Sequence[float]
) -> tuple[UUID, int, str, Sequence[float]]:
    """The arguments of store_embedding."""
    return claim.conversation_id, claim.seq, model, vector
