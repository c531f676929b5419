"""unarchive_conversation puts a conversation back into the default list."""

from __future__ import annotations

from uuid import uuid4

import pytest


@pytest.fixture
def archived(ann, conversation_id):
    ann.row("archive_conversation", conversation_id=conversation_id)
    return conversation_id


def unarchive(caller, conversation_id):
    return caller.row("unarchive_conversation", conversation_id=conversation_id)


def test_gives_the_row_without_a_time(ann, archived):
    row = unarchive(ann, archived)

    assert row["archived_at"] is None
    assert row == ann.get(archived)


def test_puts_it_back_into_the_list(ann, archived):
    assert ann.rows("list_conversations") == []
    unarchive(ann, archived)

    assert len(ann.rows("list_conversations")) == 1


def test_one_that_is_not_archived_stays_as_it_is(ann, conversation_id):
    before = ann.get(conversation_id)

    assert unarchive(ann, conversation_id) == before


def test_is_no_activity(ann, archived):
    before = ann.get(archived)["updated_at"]

    assert unarchive(ann, archived)["updated_at"] == before


def test_an_unknown_id_is_an_error(ann, fails):
    with fails("PC001"):
        unarchive(ann, uuid4())


def test_a_deleted_one_is_an_error(ann, archived, fails):
    ann.value("delete_conversation", conversation_id=archived)

    with fails("PC012", conversation_id=archived):
        unarchive(ann, archived)


def test_outsiders_find_nothing(outsider, ann, archived, fails):
    with fails("PC001", conversation_id=archived):
        unarchive(outsider, archived)
    assert ann.get(archived)["archived_at"] is not None


def test_needs_a_context(unknown, archived, fails):
    with fails("PC030"):
        unarchive(unknown, archived)
