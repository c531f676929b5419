"""summarize and summarize_async: all that is due, whatever goes wrong with one."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pgconvo import (
    AsyncClient,
    Client,
    InvalidArgument,
    NotAllowed,
    summarize,
    summarize_async,
)


@pytest.fixture
def client(dsn):
    with psycopg.connect(
        make_conninfo(dsn, user="test_service"), autocommit=True
    ) as conn:
        yield Client(conn)


@pytest.fixture
def ann(connect):
    return Client(connect("test_app", "acme", "ann"))


@pytest.fixture
def talks(ann, connect):
    """Three conversations of 10 messages; a summary is due over 40 tokens."""
    service = Client(connect("test_service", "acme"))
    service.set_policy("default", summary_threshold=40, summary_share=1)
    made = [ann.create_conversation() for _ in range(3)]
    for conversation_id in made:
        for number in range(10):
            ann.append_message(conversation_id, "user", f"say {number}", tokens=10)
    return made


def told(batch):
    return [message["content"] for message in json.loads(batch.messages)]


def summaries(db):
    return db.execute(
        "select conversation_id, through_seq, content, model from convo.summary"
        " order by 1, 2"
    ).fetchall()


def test_summarises_batch_by_batch_until_nothing_is_due(client, talks, db):
    def write(batch):
        return " ".join([batch.previous_summary or "", *told(batch)]).strip()

    run = summarize(client, "acme", write, message_limit=3, page_size=2, model="m")

    assert (run.saved, run.skipped, run.failed) == (6, 0, [])
    first = "say 0 say 1 say 2"
    second = f"{first} say 3 say 4 say 5"
    expected = [(3, first, "m"), (6, second, "m")]
    assert summaries(db) == [
        (talk, *summary) for talk in sorted(talks) for summary in expected
    ]
    assert client.connection.info.transaction_status == 0


def test_no_transaction_is_open_while_the_text_is_written(client, talks):
    seen = set()

    def write(batch):
        seen.add(client.connection.info.transaction_status)
        return "text"

    summarize(client, "acme", write)

    assert seen == {psycopg.pq.TransactionStatus.IDLE}


def test_an_error_leaves_one_for_later_and_the_others_go_on(client, talks, db):
    broken = ZeroDivisionError("broken")

    def write(batch):
        if calls.append(batch) or len(calls) == 2:
            raise broken
        return "text"

    calls = []
    run = summarize(client, "acme", write, message_limit=6)

    assert run.saved == 2
    ((claim, error),) = run.failed
    assert error is broken
    assert claim.conversation_id in talks
    assert claim.conversation_id not in [row[0] for row in summaries(db)]
    assert summarize(client, "acme", write).saved == 0  # its lease runs
    db.execute("update convo.conversation set summary_leased_until = null")
    assert summarize(client, "acme", write, message_limit=6).saved == 1


@pytest.mark.parametrize("text", ["", " \n", "x" * 2_000_000, "a\0b", None])
def test_a_text_that_cannot_be_saved_is_an_error(client, talks, db, text):
    run = summarize(client, "acme", lambda batch: text)

    assert (run.saved, len(run.failed)) == (0, 3)
    assert summaries(db) == []


@pytest.mark.parametrize("what", ["saved", "deleted"])
def test_somebody_else_was_faster(client, talks, ann, what):
    first, *others = talks
    for other in others:
        ann.delete_conversation(other)

    def write(batch):
        if what == "saved":
            ann.save_summary(first, "other", 7, 0)
        else:
            ann.delete_conversation(first)
        return "text"

    run = summarize(client, "acme", write)

    assert (run.saved, run.skipped, run.failed) == (0, 1, [])


def test_nothing_to_summarise_yet(client, ann, talks, db):
    """Everything but the newest user turn is covered, and that is too long."""
    for talk in talks:
        ann.append_message(talk, "user", "long", tokens=100)
        ann.save_summary(talk, "text", 10, 0)

    run = summarize(client, "acme", lambda batch: "text")

    assert (run.saved, run.skipped, run.failed) == (0, 3, [])


def test_progress_is_told(client, talks):
    told = []

    summarize(
        client,
        "acme",
        lambda batch: "text",
        progress=lambda run: told.append(run.saved),
    )

    assert told == [1, 2, 3]


def test_a_lost_connection_ends_it(client, talks, db):
    def write(batch):
        pid = client.connection.info.backend_pid
        db.execute("select pg_terminate_backend(%s)", (pid,))
        return "text"

    with pytest.raises(psycopg.OperationalError):
        summarize(client, "acme", write)


def test_it_needs_the_rights_of_a_service(ann, talks):
    with pytest.raises(NotAllowed):
        summarize(ann, "acme", lambda batch: "text")


def test_arguments_are_checked(client, talks):
    with pytest.raises(InvalidArgument):
        summarize(client, "acme", lambda batch: "text", lease=timedelta(0))


def test_the_same_with_coroutines(dsn, talks, db):
    async def write(batch):
        await asyncio.sleep(0)
        if len(calls) == 1:
            calls.append(batch)
            raise ZeroDivisionError
        calls.append(batch)
        return "text"

    async def main():
        async with await psycopg.AsyncConnection.connect(
            make_conninfo(dsn, user="test_service"), autocommit=True
        ) as conn:
            return await summarize_async(AsyncClient(conn), "acme", write, model="m")

    calls = []
    run = asyncio.run(main())

    assert (run.saved, run.skipped) == (2, 0)
    assert [type(error) for _, error in run.failed] == [ZeroDivisionError]
    assert len(summaries(db)) == 2
