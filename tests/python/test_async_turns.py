"""AsyncClient.turn: what Client.turn does, and cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from openai import AsyncOpenAI
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus

import pgconvo
from pgconvo import AsyncClient, Client

ANN = {"tenant_id": "acme", "user_id": "ann"}
ANSWER = {"role": "assistant", "content": "Hello."}


@pytest.fixture
def conversation_id(connect):
    """A conversation of ann's with one message."""
    ann = Client(connect("test_app", tenant="acme", user="ann"))
    conversation_id = ann.create_conversation()
    ann.append_message(conversation_id, "user", "Hi")
    return conversation_id


@pytest.fixture
def turn(dsn, conversation_id):
    """Begin a turn of ann's, on a connection of its own, `one.connection`."""

    @asynccontextmanager
    async def turn(**options: Any) -> AsyncIterator[Any]:
        conninfo = make_conninfo(dsn, user="test_app")
        async with await psycopg.AsyncConnection.connect(conninfo) as connection:
            client = AsyncClient(connection)
            options = {**ANN, **options}
            async with client.turn(conversation_id, "openai", **options) as one:
                one.connection = connection
                yield one

    return turn


@pytest.fixture
def requests(db):
    """Error of each request, and whether it has an answer."""
    query = "select error, response_sha256 is not null from convo.request"
    return lambda: db.execute(query).fetchall()


def test_a_turn(turn, requests):
    async def scenario():
        async with turn(model="gpt-x") as one:
            assert one.json()["model"] == "gpt-x"
            status = one.connection.info.transaction_status
            assert status is TransactionStatus.IDLE
            first = await one.complete(ANSWER)
            assert await one.complete(ANSWER) == first
            return first

    (message,) = asyncio.run(scenario())
    assert message.content == "Hello."
    assert requests() == [(None, True)]


def test_an_exception_is_recorded_and_goes_on(turn, requests):
    async def scenario():
        async with turn():
            raise ZeroDivisionError("by 0")

    with pytest.raises(ZeroDivisionError):
        asyncio.run(scenario())
    assert requests() == [("ZeroDivisionError: by 0", False)]


def test_leaving_without_an_answer_is_recorded(turn, requests):
    async def scenario():
        async with turn():
            pass

    asyncio.run(scenario())
    assert requests() == [("the turn ended without an answer", False)]


def test_a_cancelled_turn_is_recorded(turn, requests):
    async def scenario():
        async with asyncio.timeout(0.3), turn():
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        asyncio.run(scenario())
    assert requests() == [("CancelledError: ", False)]


def test_a_failed_try_and_then_an_answer(turn, requests, db):
    async def scenario():
        async with turn() as one:
            await one.fail("no tokens left", usage={"prompt_tokens": 7})
            await one.complete(ANSWER)

    asyncio.run(scenario())
    assert requests() == [("no tokens left", True)]
    assert db.execute("select input_tokens from convo.usage").fetchall() == [(7,)]


def test_refused_responses_cost(turn, requests, db):
    def refused(tokens):
        return {"choices": [], "usage": {"prompt_tokens": tokens}}

    async def scenario():
        async with turn() as one:
            await one.fail("try 1")
            with pytest.raises(pgconvo.InvalidMessage):
                await one.complete(refused(1))
            await one.complete(refused(2))

    with pytest.raises(pgconvo.InvalidMessage):
        asyncio.run(scenario())
    assert requests()[0][0].startswith("InvalidMessage: message not valid")
    tokens = db.execute("select input_tokens from convo.usage order by created_at")
    assert tokens.fetchall() == [(1,), (2,)]


def test_a_lost_connection_hides_no_exception(turn):
    async def scenario():
        async with turn() as one:
            await one.connection.close()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        asyncio.run(scenario())
    assert caught.value.__notes__[0].startswith("and it could not be recorded: ")


def test_an_answer_that_somebody_else_stored_is_an_answer(turn, connect, requests):
    other = Client(connect("test_app", tenant="acme", user="ann"))

    async def scenario():
        async with turn() as one:
            other.complete_request(one.request_id, ANSWER)

    asyncio.run(scenario())
    assert requests() == [(None, True)]


def test_it_refuses_a_connection_inside_a_transaction(dsn, conversation_id):
    async def scenario():
        conninfo = make_conninfo(dsn, user="test_app")
        async with await psycopg.AsyncConnection.connect(conninfo) as connection:
            await connection.execute("select 1")
            async with AsyncClient(connection).turn(conversation_id, "openai", **ANN):
                pass

    with pytest.raises(pgconvo.AlreadyInTransaction, match="a turn needs"):
        asyncio.run(scenario())


@pytest.mark.parametrize(
    ("who", "error"),
    [({"tenant_id": None, "user_id": None}, pgconvo.ContextMissing),
     ({"tenant_id": None}, TypeError)],
)  # fmt: skip
def test_without_a_tenant_the_login_says_who_is_asking(turn, who, error):
    async def scenario():
        async with turn(**who):
            pass

    with pytest.raises(error):
        asyncio.run(scenario())


def test_the_answer_of_an_sdk(turn, stand_in):
    async def scenario():
        openai = AsyncOpenAI(base_url=f"{stand_in.url}/v1", api_key="-")
        async with turn(model="a-model") as one:
            completion = await openai.chat.completions.create(**one.json())
            (message,) = await one.complete(completion)
            return message

    assert asyncio.run(scenario()).model == "a-model"
