"""transfer_conversation gives a conversation to another user of the tenant."""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest
from psycopg import sql


@pytest.fixture
def full(ann):
    """A conversation with a prompt, a revision and an idempotency key."""
    own = ann.create(title="sesame", system_prompt="sesame prompt")
    ann.row(
        "append_message",
        conversation_id=own,
        role="user",
        content="sesame",
        idempotency_key="k1",
    )
    ann.row("edit_message", conversation_id=own, seq=1, content="sesame 2")
    return own


def transfer(caller, conversation_id, to_user_id="ben"):
    return caller.row(
        "transfer_conversation", conversation_id=conversation_id, to_user_id=to_user_id
    )


def prompts(db):
    return db.execute(
        "select user_id, content from convo.prompt order by user_id, content"
    ).fetchall()


def test_gives_the_row_with_its_new_owner(service, ann, full):
    before = ann.get(full)

    assert transfer(service, full) == before | {"user_id": "ben"}


def test_the_new_owner_has_all_of_it_and_the_old_one_nothing(service, ann, ben, full):
    before = ann.live(full), ann.rows("message_revisions", conversation_id=full, seq=1)
    transfer(service, full)

    after = ben.live(full), ben.rows("message_revisions", conversation_id=full, seq=1)
    assert after == before
    assert ann.rows("get_conversation", conversation_id=full) == []
    assert ann.live(full) == []


def test_every_row_of_it_names_the_new_owner(service, db, full):
    transfer(service, full)
    tables = db.execute(
        "select c.relname from pg_class as c where c.relkind in ('r', 'p')"
        " and c.relnamespace = 'convo'::regnamespace"
        " and (select count(*) from pg_attribute as a where a.attrelid = c.oid"
        " and a.attname in ('conversation_id', 'user_id') and not a.attisdropped) = 2"
    ).fetchall()

    for (table,) in tables:
        query = sql.SQL("select user_id from convo.{} where conversation_id = %s")
        rows = db.execute(query.format(sql.Identifier(table)), [full]).fetchall()
        assert {user for (user,) in rows} <= {"ben"}, table


def test_the_new_owner_writes_on(service, ben, full):
    transfer(service, full)
    ben.say(full, 5)
    ben.row("edit_message", conversation_id=full, seq=1, content="new")

    assert [row["content"] for row in ben.live(full)] == ["new", "sesame 1"]


def test_idempotency_keys_come_along(service, ben, full):
    transfer(service, full)
    row = ben.row(
        "append_message",
        conversation_id=full,
        role="user",
        content="sesame",
        idempotency_key="k1",
    )

    assert (row["seq"], row["content"]) == (1, "sesame 2")


def test_the_prompt_moves_and_the_old_one_is_collected(service, ben, db, full):
    transfer(service, full)

    assert ben.get(full)["system_prompt"] == "sesame prompt"
    assert prompts(db) == [("ben", "sesame prompt")]


def test_a_prompt_that_the_old_owner_still_uses_stays(service, ann, db, full):
    other = ann.create(system_prompt="sesame prompt")
    transfer(service, full)

    assert ann.get(other)["system_prompt"] == "sesame prompt"
    assert prompts(db) == [("ann", "sesame prompt"), ("ben", "sesame prompt")]


def test_a_prompt_that_the_new_owner_has_is_not_stored_twice(service, ben, db, full):
    ben.create(system_prompt="sesame prompt")
    transfer(service, full)

    assert prompts(db) == [("ben", "sesame prompt")]


def test_to_the_same_user_changes_nothing(service, ann, db, full):
    before = ann.get(full)

    assert transfer(service, full, "ann") == before
    assert prompts(db) == [("ann", "sesame prompt")]


def test_there_and_back_is_as_before(service, ann, full):
    before = ann.get(full), ann.live(full)
    transfer(service, full)
    transfer(service, full, "ann")

    assert (ann.get(full), ann.live(full)) == before


def test_is_noted_in_the_audit_trail(service, db, full):
    transfer(service, full)

    assert db.execute(
        "select tenant_id, action, conversation_id, acted_by from convo.audit"
    ).fetchall() == [("acme", "transfer", full, "test_service")]


def test_a_hold_comes_along(service, ben, full, fails):
    service.row("hold_conversation", conversation_id=full, reason="case 7")
    transfer(service, full)

    with fails("PC040"):
        ben.value("delete_conversation", conversation_id=full)


def test_after_deletion_the_id_was_the_new_owners(service, ann, ben, full, fails):
    transfer(service, full)
    ben.value("delete_conversation", conversation_id=full)

    with fails("PC012"):
        ben.create(conversation_id=full)
    with fails("PC013"):
        ann.create(conversation_id=full)


@pytest.mark.parametrize("to_user_id", [None, "", "x" * 256])
def test_a_user_that_is_empty_or_too_long_is_refused(service, full, fails, to_user_id):
    with fails("22023", argument="to_user_id"):
        transfer(service, full, to_user_id)


def test_an_application_can_not_transfer(ann, full):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        transfer(ann, full)


def test_another_tenants_service_finds_nothing(hostile_service, ann, full, fails):
    with fails("PC001", conversation_id=full):
        transfer(hostile_service, full)
    assert ann.get(full)["user_id"] == "ann"


def test_an_unknown_id_is_an_error(service, fails):
    with fails("PC001"):
        transfer(service, uuid4())


def test_a_deleted_one_is_an_error(service, ann, full, fails):
    ann.value("delete_conversation", conversation_id=full)

    with fails("PC012", conversation_id=full):
        transfer(service, full)


def test_needs_a_context(as_role, full, fails):
    with fails("PC030"):
        transfer(as_role("test_service"), full)
