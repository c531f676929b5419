"""The two clients: one method for each public function, one line for each method.

What a method takes, does and returns stands in `_calls.py`, once for both. The caller
owns the connection and its transactions; a client adds no pool, no retries and no
settings. It works with autocommit on or off, and with prepared statements on or off
(`prepare_threshold=None` is for poolers that don't know them).
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from . import _calls
from ._calls import Call, Id, JsonObject
from .errors import AlreadyInTransaction, converted
from .records import Conversation, Message
from .turns import AsyncTurn, Turn

P = ParamSpec("P")
R = TypeVar("R")

_TURN_HINT = "Commit first: locks would be held for as long as the model answers."


def _method(call: Call[P, R]) -> Callable[Concatenate[Client, P], R]:
    """Make a call a method of `Client`."""

    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with converted(), self.connection.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(call.sql, call.parameters(*args, **kwargs))
            return call.read(cursor.fetchall() if call.returns_rows else [])

    _describe(method, call)
    return method


def _async_method(
    call: Call[P, R],
) -> Callable[Concatenate[AsyncClient, P], Awaitable[R]]:
    """Make a call a method of `AsyncClient`."""

    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with converted():
            async with self.connection.cursor(row_factory=tuple_row) as cursor:
                await cursor.execute(call.sql, call.parameters(*args, **kwargs))
                return call.read(await cursor.fetchall() if call.returns_rows else [])

    _describe(method, call)
    return method


def _describe(method: Any, call: Call[P, R]) -> None:
    """Give the method the name, docstring and signature that `help` shows."""
    self = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    parameters = [self, *call.signature.parameters.values()]
    method.__name__, method.__doc__ = call.name, call.doc
    method.__signature__ = call.signature.replace(parameters=parameters)


def _refuse_transaction(
    connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any],
    what: str = "acting_as",
    hint: str = "Commit or roll back first, or use set_context in your transaction.",
) -> None:
    # In a savepoint, role and context would outlive the block until the outer commit.
    if connection.info.transaction_status in (
        TransactionStatus.ACTIVE,
        TransactionStatus.INTRANS,
        TransactionStatus.INERROR,
    ):
        raise AlreadyInTransaction(
            f"{what} needs a connection that is outside any transaction", hint=hint
        )


def _set_role(role: str) -> sql.Composed:
    return sql.SQL("set local role {}").format(sql.Identifier(role))


class Client:
    """The functions of pgconvo over the caller's `psycopg.Connection`."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    @contextmanager
    def acting_as(
        self, tenant_id: str, user_id: str | None = None, role: str | None = "convo_app"
    ) -> Iterator[Client]:
        """One transaction as this tenant, user and role; after it nothing stays set.

        It commits at the end of the block and rolls back on an exception.
        role: set by `set local role`, as in PostgREST; None keeps the current one.
        Errors: AlreadyInTransaction, InvalidArgument, NotAllowed.
        """
        _refuse_transaction(self.connection)
        with self.connection.transaction():
            if role is not None:
                with converted():
                    self.connection.execute(_set_role(role))
            self.set_context(tenant_id, user_id)
            yield self

    @contextmanager
    def turn(
        self,
        conversation_id: Id,
        format: str,
        model: str | None = None,
        policy: str | None = None,
        token_budget: int | None = None,
        parameters: JsonObject | None = None,
        *,
        tenant_id: str | None = None,
        user_id: str | None = None,
        role: str | None = "convo_app",
    ) -> Iterator[Turn]:
        """A whole turn, around the call of a model; `turn.complete` stores its answer.

            with client.turn(conversation_id, "openai", model="gpt-5") as turn:
                turn.complete(send(turn.body))

        Preparing, completing and failing are each a transaction of its own, committed
        at once, so none is open while the model answers. An exception in the block is
        recorded as `fail_request` does, and goes on; so is leaving without an answer.
        tenant_id, user_id, role: as for `acting_as`; without a tenant the login's own
            settings say who is asking.
        format and the rest: as for `prepare_request`.
        Errors: those of `prepare_request` and `acting_as`.
        """
        transaction = partial(self._transaction, tenant_id, user_id, role)
        with transaction():
            request = self.prepare_request(
                conversation_id, format, model, policy, token_budget, parameters
            )
        turn = Turn(self, request, transaction)
        try:
            yield turn
        except BaseException as error:
            turn._end(error)
            raise
        turn._end()

    @contextmanager
    def _transaction(
        self, tenant_id: str | None, user_id: str | None, role: str | None
    ) -> Iterator[None]:
        """One transaction of a turn."""
        _refuse_transaction(self.connection, "a turn", _TURN_HINT)
        if tenant_id is not None:
            with self.acting_as(tenant_id, user_id, role):
                yield
        elif user_id is not None:
            raise TypeError("user_id needs tenant_id")
        else:
            with self.connection.transaction():
                yield

    def iter_messages(
        self, conversation_id: Id, page_size: int = 100
    ) -> Iterator[Message]:
        """All live messages of a conversation by seq, read page by page."""
        last_seq = 0
        while page := self.list_messages(
            conversation_id, after_seq=last_seq, page_size=page_size
        ):
            yield from page
            last_seq = page[-1].seq

    def iter_conversations(
        self, include_archived: bool = False, page_size: int = 100
    ) -> Iterator[Conversation]:
        """All conversations, newest activity first, read page by page."""
        last_at: datetime | None = None
        last_id: UUID | None = None
        while page := self.list_conversations(
            last_at, last_id, include_archived, page_size
        ):
            yield from page
            last_at, last_id = page[-1].updated_at, page[-1].conversation_id

    set_context = _method(_calls.set_context)
    set_context_token = _method(_calls.set_context_token)
    current_tenant_id = _method(_calls.current_tenant_id)
    current_user_id = _method(_calls.current_user_id)
    version = _method(_calls.version)

    create_conversation = _method(_calls.create_conversation)
    get_conversation = _method(_calls.get_conversation)
    list_conversations = _method(_calls.list_conversations)
    update_conversation = _method(_calls.update_conversation)
    archive_conversation = _method(_calls.archive_conversation)
    unarchive_conversation = _method(_calls.unarchive_conversation)
    delete_conversation = _method(_calls.delete_conversation)
    fork_conversation = _method(_calls.fork_conversation)
    transfer_conversation = _method(_calls.transfer_conversation)

    append_message = _method(_calls.append_message)
    append_messages = _method(_calls.append_messages)
    last_messages = _method(_calls.last_messages)
    list_messages = _method(_calls.list_messages)
    edit_message = _method(_calls.edit_message)
    delete_message = _method(_calls.delete_message)
    restore_message = _method(_calls.restore_message)
    delete_messages = _method(_calls.delete_messages)
    message_revisions = _method(_calls.message_revisions)
    estimate_tokens = _method(_calls.estimate_tokens)

    token_window = _method(_calls.token_window)
    get_context = _method(_calls.get_context)
    explain_context = _method(_calls.explain_context)
    render_context = _method(_calls.render_context)
    set_policy = _method(_calls.set_policy)
    get_policy = _method(_calls.get_policy)
    list_policies = _method(_calls.list_policies)
    delete_policy = _method(_calls.delete_policy)

    prepare_request = _method(_calls.prepare_request)
    complete_request = _method(_calls.complete_request)
    fail_request = _method(_calls.fail_request)
    replay_request = _method(_calls.replay_request)
    list_requests = _method(_calls.list_requests)

    save_summary = _method(_calls.save_summary)
    summary_due = _method(_calls.summary_due)
    claim_summaries = _method(_calls.claim_summaries)
    summary_batch = _method(_calls.summary_batch)
    list_stale_summaries = _method(_calls.list_stale_summaries)

    remember = _method(_calls.remember)
    recall = _method(_calls.recall)
    forget = _method(_calls.forget)
    forget_all = _method(_calls.forget_all)

    search_messages = _method(_calls.search_messages)
    store_embedding = _method(_calls.store_embedding)
    claim_embeddings = _method(_calls.claim_embeddings)
    search_similar = _method(_calls.search_similar)
    search_hybrid = _method(_calls.search_hybrid)

    set_retention = _method(_calls.set_retention)
    hold_conversation = _method(_calls.hold_conversation)
    release_conversation = _method(_calls.release_conversation)
    purge = _method(_calls.purge)
    purge_all = _method(_calls.purge_all)


class AsyncClient:
    """The functions of pgconvo over the caller's `psycopg.AsyncConnection`."""

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self.connection = connection

    @asynccontextmanager
    async def acting_as(
        self, tenant_id: str, user_id: str | None = None, role: str | None = "convo_app"
    ) -> AsyncIterator[AsyncClient]:
        """Do what `Client.acting_as` does; with `async with`."""
        _refuse_transaction(self.connection)
        async with self.connection.transaction():
            if role is not None:
                with converted():
                    await self.connection.execute(_set_role(role))
            await self.set_context(tenant_id, user_id)
            yield self

    @asynccontextmanager
    async def turn(
        self,
        conversation_id: Id,
        format: str,
        model: str | None = None,
        policy: str | None = None,
        token_budget: int | None = None,
        parameters: JsonObject | None = None,
        *,
        tenant_id: str | None = None,
        user_id: str | None = None,
        role: str | None = "convo_app",
    ) -> AsyncIterator[AsyncTurn]:
        """Do what `Client.turn` does; with `async with`."""
        transaction = partial(self._transaction, tenant_id, user_id, role)
        async with transaction():
            request = await self.prepare_request(
                conversation_id, format, model, policy, token_budget, parameters
            )
        turn = AsyncTurn(self, request, transaction)
        try:
            yield turn
        except BaseException as error:
            await turn._end(error)
            raise
        await turn._end()

    @asynccontextmanager
    async def _transaction(
        self, tenant_id: str | None, user_id: str | None, role: str | None
    ) -> AsyncIterator[None]:
        """One transaction of a turn."""
        _refuse_transaction(self.connection, "a turn", _TURN_HINT)
        if tenant_id is not None:
            async with self.acting_as(tenant_id, user_id, role):
                yield
        elif user_id is not None:
            raise TypeError("user_id needs tenant_id")
        else:
            async with self.connection.transaction():
                yield

    async def iter_messages(
        self, conversation_id: Id, page_size: int = 100
    ) -> AsyncIterator[Message]:
        """All live messages of a conversation by seq, read page by page."""
        last_seq = 0
        while page := await self.list_messages(
            conversation_id, after_seq=last_seq, page_size=page_size
        ):
            for message in page:
                yield message
            last_seq = page[-1].seq

    async def iter_conversations(
        self, include_archived: bool = False, page_size: int = 100
    ) -> AsyncIterator[Conversation]:
        """All conversations, newest activity first, read page by page."""
        last_at: datetime | None = None
        last_id: UUID | None = None
        while page := await self.list_conversations(
            last_at, last_id, include_archived, page_size
        ):
            for conversation in page:
                yield conversation
            last_at, last_id = page[-1].updated_at, page[-1].conversation_id

    set_context = _async_method(_calls.set_context)
    set_context_token = _async_method(_calls.set_context_token)
    current_tenant_id = _async_method(_calls.current_tenant_id)
    current_user_id = _async_method(_calls.current_user_id)
    version = _async_method(_calls.version)

    create_conversation = _async_method(_calls.create_conversation)
    get_conversation = _async_method(_calls.get_conversation)
    list_conversations = _async_method(_calls.list_conversations)
    update_conversation = _async_method(_calls.update_conversation)
    archive_conversation = _async_method(_calls.archive_conversation)
    unarchive_conversation = _async_method(_calls.unarchive_conversation)
    delete_conversation = _async_method(_calls.delete_conversation)
    fork_conversation = _async_method(_calls.fork_conversation)
    transfer_conversation = _async_method(_calls.transfer_conversation)

    append_message = _async_method(_calls.append_message)
    append_messages = _async_method(_calls.append_messages)
    last_messages = _async_method(_calls.last_messages)
    list_messages = _async_method(_calls.list_messages)
    edit_message = _async_method(_calls.edit_message)
    delete_message = _async_method(_calls.delete_message)
    restore_message = _async_method(_calls.restore_message)
    delete_messages = _async_method(_calls.delete_messages)
    message_revisions = _async_method(_calls.message_revisions)
    estimate_tokens = _async_method(_calls.estimate_tokens)

    token_window = _async_method(_calls.token_window)
    get_context = _async_method(_calls.get_context)
    explain_context = _async_method(_calls.explain_context)
    render_context = _async_method(_calls.render_context)
    set_policy = _async_method(_calls.set_policy)
    get_policy = _async_method(_calls.get_policy)
    list_policies = _async_method(_calls.list_policies)
    delete_policy = _async_method(_calls.delete_policy)

    prepare_request = _async_method(_calls.prepare_request)
    complete_request = _async_method(_calls.complete_request)
    fail_request = _async_method(_calls.fail_request)
    replay_request = _async_method(_calls.replay_request)
    list_requests = _async_method(_calls.list_requests)

    save_summary = _async_method(_calls.save_summary)
    summary_due = _async_method(_calls.summary_due)
    claim_summaries = _async_method(_calls.claim_summaries)
    summary_batch = _async_method(_calls.summary_batch)
    list_stale_summaries = _async_method(_calls.list_stale_summaries)

    remember = _async_method(_calls.remember)
    recall = _async_method(_calls.recall)
    forget = _async_method(_calls.forget)
    forget_all = _async_method(_calls.forget_all)

    search_messages = _async_method(_calls.search_messages)
    store_embedding = _async_method(_calls.store_embedding)
    claim_embeddings = _async_method(_calls.claim_embeddings)
    search_similar = _async_method(_calls.search_similar)
    search_hybrid = _async_method(_calls.search_hybrid)

    set_retention = _async_method(_calls.set_retention)
    hold_conversation = _async_method(_calls.hold_conversation)
    release_conversation = _async_method(_calls.release_conversation)
    purge = _async_method(_calls.purge)
    purge_all = _async_method(_calls.purge_all)
