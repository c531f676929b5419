"""The asynchronous client: one whole turn, and what differs from the other one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus

import pgconvo
from pgconvo import AsyncClient

PAYLOAD = '{ "role":"user", "content":"a\\u0000b" }'
CONTEXT = (
    "select current_user::text,"
    " nullif(current_setting('convo.tenant_id', true), ''),"
    " nullif(current_setting('convo.user_id', true), '')"
)

Login = Callable[..., Any]


@pytest.fixture
def login(dsn: str) -> Login:
    """Open a client of test_app, `async with login(autocommit=True) as client`."""

    @asynccontextmanager
    async def opened(**options: Any) -> AsyncIterator[AsyncClient]:
        conninfo = make_conninfo(dsn, user="test_app")
        async with await psycopg.AsyncConnection.connect(conninfo, **options) as conn:
            yield AsyncClient(conn)

    return opened


async def context(client: AsyncClient) -> Any:
    return await (await client.connection.execute(CONTEXT)).fetchone()


@pytest.mark.parametrize("autocommit", [True, False])
@pytest.mark.parametrize("prepare_threshold", [None, 0])
def test_a_turn_is_stored_and_read(login, autocommit, prepare_threshold):
    async def scenario():
        async with (
            login(autocommit=autocommit, prepare_threshold=prepare_threshold) as client,
            client.acting_as("acme", "ann"),
        ):
            conversation_id = await client.create_conversation(metadata={"a": 1})
            await client.append_message(conversation_id, "user", "Hi", tokens=2)
            await client.append_messages(conversation_id, PAYLOAD, tokens=[3])
            conversation = await client.get_conversation(conversation_id)
            window = await client.token_window(conversation_id, 5)
            (last,) = await client.last_messages(conversation_id, 1)
            return conversation, window, last

    conversation, window, last = asyncio.run(scenario())
    assert conversation.metadata == {"a": 1}
    assert [m.running_tokens for m in window] == [5, 3]
    assert last.payload == PAYLOAD


def test_acting_as_sets_role_tenant_and_user(login):
    async def scenario():
        async with login() as client, client.acting_as("acme", "ann"):
            return await context(client)

    assert asyncio.run(scenario()) == ("convo_app", "acme", "ann")


@pytest.mark.parametrize("autocommit", [True, False])
def test_after_an_exception_in_acting_as_nothing_stays_set(login, autocommit):
    async def scenario():
        async with login(autocommit=autocommit) as client:
            with pytest.raises(ZeroDivisionError):
                async with client.acting_as("acme", "ann"):
                    raise ZeroDivisionError
            status = client.connection.info.transaction_status
            return status, await context(client)

    assert asyncio.run(scenario()) == (
        TransactionStatus.IDLE,
        ("test_app", None, None),
    )


def test_after_acting_as_nothing_stays_set_and_all_is_committed(login):
    async def scenario():
        async with login() as client, login() as other:
            async with client.acting_as("acme", "ann"):
                conversation_id = await client.create_conversation()
            async with other.acting_as("acme", "ann"):
                found = await other.get_conversation(conversation_id)
            return found is not None, await context(client)

    assert asyncio.run(scenario()) == (True, ("test_app", None, None))


def test_acting_as_refuses_a_connection_inside_a_transaction(login):
    async def scenario():
        async with login() as client, client.connection.transaction():
            with pytest.raises(pgconvo.AlreadyInTransaction):
                async with client.acting_as("acme", "ann"):
                    pass

    asyncio.run(scenario())


def test_errors_are_converted(login):
    async def scenario():
        async with login() as client, client.acting_as("acme", "ann"):
            await client.append_message(uuid4(), "user", "Hi")

    with pytest.raises(pgconvo.ConversationNotFound) as caught:
        asyncio.run(scenario())
    assert isinstance(caught.value.__cause__, psycopg.Error)


def test_text_that_cant_be_stored_is_refused(login):
    async def scenario():
        async with login() as client:
            await client.append_message(uuid4(), "user", "a\0b")

    with pytest.raises(pgconvo.InvalidText):
        asyncio.run(scenario())


def test_a_role_of_others_is_not_allowed(login):
    async def scenario():
        async with login() as client, client.acting_as("acme", role="convo_service"):
            pass

    with pytest.raises(pgconvo.NotAllowed):
        asyncio.run(scenario())


def test_the_iterators_read_page_by_page(login):
    async def scenario():
        async with login() as client, client.acting_as("acme", "ann"):
            ids = {await client.create_conversation() for _ in range(3)}
            conversation_id = next(iter(ids))
            for n in range(3):
                await client.append_message(conversation_id, "user", f"m{n}")
            messages = client.iter_messages(conversation_id, page_size=2)
            conversations = client.iter_conversations(page_size=2)
            seqs = [m.seq async for m in messages]
            return seqs, ids, [c.conversation_id async for c in conversations]

    seqs, ids, read = asyncio.run(scenario())
    assert seqs == [1, 2, 3]
    assert len(read) == 3
    assert set(read) == ids


def test_contexts_policies_and_summaries(login):
    async def scenario():
        async with login() as client, client.acting_as("acme", "ann"):
            conversation_id = await client.create_conversation()
            await client.append_messages(conversation_id, PAYLOAD, tokens=[3])
            await client.append_message(conversation_id, "user", "Hi", tokens=2)
            await client.save_summary(conversation_id, "So far.", 1, 0, tokens=4)
            return (
                await client.get_context(conversation_id),
                await client.explain_context(conversation_id),
                await client.render_context(conversation_id, "openai"),
                await client.list_policies(),
                await client.get_policy("default"),
            )

    items, explained, rendered, policies, policy = asyncio.run(scenario())

    assert [item.kind for item in items] == ["summary", "summary", "message"]
    assert [item.reason for item in explained][-2:] == ["summarised", "kept"]
    assert json.loads(rendered)[-1] == {"role": "user", "content": "Hi"}
    assert (policies, policy) == ([], None)
