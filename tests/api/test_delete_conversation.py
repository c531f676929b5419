"""delete_conversation: all of it goes, only a tombstone stays."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest
from psycopg import sql


@pytest.fixture
def tables(db):
    """All tables of the schema that have a conversation_id, from the catalog."""
    return [
        name
        for (name,) in db.execute(
            "select c.relname from pg_class as c"
            " join pg_attribute as a on a.attrelid = c.oid"
            " where c.relnamespace = 'convo'::regnamespace and c.relkind in ('r', 'p')"
            " and a.attname = 'conversation_id' and not a.attisdropped"
            " order by c.relname"
        )
    ]


@pytest.fixture
def full(ann, db):
    """A conversation that has a row in everything that belongs to one."""
    own = ann.create(title="sesame", system_prompt="sesame")
    ann.row(
        "append_message",
        conversation_id=own,
        role="assistant",
        content="sesame",
        idempotency_key="k1",
    )
    ann.row("edit_message", conversation_id=own, seq=1, content="sesame 2")
    ann.say(own, 1)
    ann.summarise(own, 1)
    request = ann.row("prepare_request", conversation_id=own, format="openai")
    answer = {"message": {"role": "assistant", "content": "sesame"}}
    response = json.dumps({"choices": [answer], "usage": {"prompt_tokens": 1}})
    ann.rows("complete_request", request_id=request["request_id"], response=response)
    if db.execute("select to_regclass('convo.embedding')").fetchone() != (None,):
        ann.value(
            "store_embedding",
            conversation_id=own,
            seq=1,
            model="m",
            embedding="{1, 0}",
        )
    return own


def delete(caller, conversation_id):
    return caller.value("delete_conversation", conversation_id=conversation_id)


def count(db, table, conversation_id):
    query = sql.SQL("select count(*) from convo.{} where conversation_id = %s").format(
        sql.Identifier(table)
    )
    return db.execute(query, [conversation_id]).fetchone()[0]


def test_the_test_covers_every_table_of_a_conversation(db, tables, full):
    rows = {table: count(db, table, full) for table in tables}

    empty = {table for table in tables if not rows[table]}
    assert empty - {"embedding_progress"} == {"tombstone", "audit"}


def test_no_table_keeps_a_row_of_it_but_tombstone_and_bill(ann, db, tables, full):
    delete(ann, full)
    rows = {table: count(db, table, full) for table in tables}

    assert {table: n for table, n in rows.items() if n} == {"tombstone": 1, "usage": 1}


def test_the_audit_trail_keeps_what_was_done_to_it(ann, service, db, full):
    service.row("hold_conversation", conversation_id=full, reason="case 7")
    service.row("release_conversation", conversation_id=full, reason="closed")
    delete(ann, full)

    assert count(db, "audit", full) == 2


def test_says_that_there_was_one(ann, full):
    assert delete(ann, full) is True
    assert ann.rows("get_conversation", conversation_id=full) == []


def test_says_that_there_was_none(ann):
    assert delete(ann, uuid4()) is False


def test_the_second_time_there_is_none(ann, full):
    delete(ann, full)

    assert delete(ann, full) is False


def test_leaves_a_tombstone_with_owner_and_time(ann, db, full):
    delete(ann, full)

    assert db.execute(
        "select tenant_id, conversation_id, user_id,"
        " abs(extract(epoch from now() - deleted_at)) < 60 from convo.tombstone"
    ).fetchall() == [("acme", full, "ann", True)]


def test_the_owners_others_stay_as_they_are(ann, conversation_id, full):
    ann.say(conversation_id, 5)
    before = ann.get(conversation_id), ann.live(conversation_id)
    delete(ann, full)

    assert (ann.get(conversation_id), ann.live(conversation_id)) == before


def test_a_tenant_with_the_same_id_keeps_its_own(ann, hostile, full):
    hostile.create(conversation_id=full)
    hostile.say(full, 5)
    delete(ann, full)

    assert len(hostile.live(full)) == 1


def test_a_fork_lives_on(ann, full):
    fork = ann.value("fork_conversation", conversation_id=full)
    delete(ann, full)

    assert ann.live(fork)[0]["content"] == "sesame 2"
    assert ann.get(fork)["forked_from"] == full


def test_a_held_one_stays(ann, service, full, fails):
    service.row("hold_conversation", conversation_id=full, reason="case 7")

    with fails("PC040", conversation_id=full):
        delete(ann, full)
    with fails("PC040", conversation_id=full):
        delete(service, full)
    assert len(ann.live(full)) == 3


def test_a_released_one_goes(ann, service, full):
    service.row("hold_conversation", conversation_id=full, reason="case 7")
    service.row("release_conversation", conversation_id=full, reason="closed")

    assert delete(ann, full) is True


def test_the_service_deletes_for_any_user(service, ann, full):
    assert delete(service, full) is True
    assert ann.rows("get_conversation", conversation_id=full) == []


def test_outsiders_find_none_and_delete_none(outsider, ann, full):
    assert delete(outsider, full) is False
    assert len(ann.live(full)) == 3


def test_needs_a_context(unknown, full, fails):
    with fails("PC030"):
        delete(unknown, full)


def test_a_late_writer_brings_nothing_back(ann, full, fails):
    delete(ann, full)

    with fails("PC012", conversation_id=full):
        ann.row("append_message", conversation_id=full, role="user", content="late")
    with fails("PC012", conversation_id=full):
        ann.append(full, {"role": "user", "content": "late"})
