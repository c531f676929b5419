"""embed and pgconvo embed: all that is missing gets embedded, whatever fails."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import psycopg
import pytest

from pgconvo import AsyncClient, Client, FeatureNotAvailable, embed, embed_async
from pgconvo.migrate import migrate

pytestmark = pytest.mark.usefixtures("vector")

# Prints [length of the content, 1] for each line.
COMMAND = (
    f"{sys.executable} -c 'import json, sys\n"
    'for line in sys.stdin: print([len(json.loads(line)["content"]), 1])\''
)


@pytest.fixture
def chat(connect):
    """A conversation of five messages."""
    app = connect("test_app", "acme", "ann")
    client = Client(app)
    conversation_id = client.create_conversation()
    for number in range(5):
        client.append_message(conversation_id, "user", "x" * (number + 1))
    return client, conversation_id


@pytest.fixture
def worker(connect):
    return Client(connect("test_service"))


def compute(texts):
    return [[len(text), 1] for text in texts]


def test_all_are_embedded_page_by_page(worker, chat):
    pages = []
    run = embed(
        worker, "acme", "m", compute, page_size=2,
        progress=lambda run: pages.append(run.stored),
    )  # fmt: skip
    assert (run.stored, run.skipped, run.failed, pages) == (5, 0, [], [2, 4, 5])
    client, _ = chat
    assert len(client.search_similar([1, 1], "m")) == 5
    assert embed(worker, "acme", "m", compute).stored == 0


def test_asynchronously(dsn, chat):
    async def main():
        conn = await psycopg.AsyncConnection.connect(dsn, autocommit=True)

        async def computed(texts):
            return compute(texts)

        async with conn:
            return await embed_async(AsyncClient(conn), "acme", "m", computed)

    assert asyncio.run(main()).stored == 5


def test_a_page_that_fails_is_left_for_later(worker, chat, db):
    def fails_once(texts, left=[1]):  # noqa: B006
        if left and left.pop():
            raise RuntimeError("no answer")
        return compute(texts)

    run = embed(worker, "acme", "m", fails_once, page_size=2)
    ((claims, error),) = run.failed
    assert (run.stored, len(claims), str(error)) == (3, 2, "no answer")
    assert embed(worker, "acme", "m", compute).stored == 0
    db.execute("update convo.embedding set claimed_until = '2001-01-01'"
               " where claimed_until is not null")  # fmt: skip
    assert embed(worker, "acme", "m", compute).stored == 2


def test_a_vector_that_is_refused_stops_no_other(worker, chat):
    run = embed(worker, "acme", "m", lambda texts: [[len(t) - 2, 0] for t in texts])
    ((claims, _),) = run.failed
    assert (run.stored, [claim.seq for claim in claims]) == (4, [2])


def test_too_few_vectors(worker, chat):
    run = embed(worker, "acme", "m", lambda texts: compute(texts)[1:])
    assert str(run.failed[0][1]) == "4 vectors for 5 texts"


def test_a_message_that_was_deleted_meanwhile(worker, chat):
    client, conversation_id = chat

    def deletes(texts):
        client.delete_message(conversation_id, 1)
        return compute(texts)

    run = embed(worker, "acme", "m", deletes)
    assert (run.stored, run.skipped, run.failed) == (4, 1, [])


def test_without_the_track(make_database):
    dsn = make_database()
    with psycopg.connect(dsn, autocommit=True) as conn:
        migrate(conn)
        with pytest.raises(FeatureNotAvailable) as caught:
            embed(Client(conn), "acme", "m", compute)
    assert "pgconvo migrate --track vector" in caught.value.hint


@pytest.fixture
def pgconvo(dsn):
    def pgconvo(*args):
        command = [sys.executable, "-c", "from pgconvo.cli import app; app()", "embed"]
        return subprocess.run(
            [*command, "--tenant", "acme", "--model", "m", "--once", *args],
            env={**os.environ, "PGCONVO_DSN": dsn},
            capture_output=True,
            text=True,
            check=False,
        )

    return pgconvo


def test_the_command(pgconvo, chat):
    done = pgconvo("--command", COMMAND, "--page-size", "2")
    assert (done.returncode, done.stdout) == (0, "embedded: 5; gone: 0; failed: 0\n")
    done = pgconvo("--command", COMMAND)
    assert (done.returncode, done.stdout) == (0, "embedded: 0; gone: 0; failed: 0\n")


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("false", "it ended with exit code 1"),
        ("echo nonsense", "it printed a line that isn't a vector"),
        ("echo 1", "it printed a line that isn't a vector"),
        ("echo '[1, 2]'", "1 vectors for 5 texts"),
    ],
)
def test_a_command_that_fails(pgconvo, chat, command, error):
    done = pgconvo("--command", command)
    assert (done.returncode, done.stdout) == (1, "embedded: 0; gone: 0; failed: 5\n")
    assert f"5 messages: {error}" in done.stderr
