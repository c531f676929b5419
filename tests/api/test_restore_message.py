"""restore_message brings a softly deleted message back to its place."""

from __future__ import annotations

from uuid import uuid4

import pytest


@pytest.fixture
def deleted(ann, conversation_id):
    """Three messages of 1, 2 and 4 tokens, the second of them deleted."""
    ann.say(conversation_id, 1, 2, 4)
    ann.row("delete_message", conversation_id=conversation_id, seq=2)
    return conversation_id


def restore(caller, conversation_id, seq=2):
    return caller.row("restore_message", conversation_id=conversation_id, seq=seq)


def test_brings_it_back_to_its_place(ann, deleted):
    row = restore(ann, deleted)

    assert row["deleted_at"] is None
    assert [found["content"] for found in ann.live(deleted)] == [
        "sesame 1",
        "sesame 2",
        "sesame 3",
    ]


def test_moves_the_counters_back(ann, deleted):
    restore(ann, deleted)

    row = ann.get(deleted)
    assert (row["last_seq"], row["message_count"], row["token_total"]) == (3, 3, 7)


def test_a_live_message_stays_as_it_is(ann, deleted):
    before = ann.get(deleted)
    restore(ann, deleted, 1)

    assert ann.get(deleted) == before


def test_what_delete_messages_took_comes_back_one_by_one(ann, deleted):
    ann.value("delete_messages", conversation_id=deleted)
    restore(ann, deleted, 3)

    assert [row["seq"] for row in ann.live(deleted)] == [3]


def test_it_can_be_edited_again(ann, deleted):
    restore(ann, deleted)
    row = ann.row("edit_message", conversation_id=deleted, seq=2, content="new")

    assert row["revision"] == 2


@pytest.mark.parametrize("seq", [0, -1, 4, None])
def test_a_seq_that_is_not_there_is_an_error(ann, deleted, fails, seq):
    with fails("PC002", conversation_id=deleted, seq=seq):
        restore(ann, deleted, seq)


def test_an_unknown_id_is_an_error(ann, fails):
    with fails("PC001"):
        restore(ann, uuid4())


def test_a_deleted_conversation_is_an_error(ann, deleted, fails):
    ann.value("delete_conversation", conversation_id=deleted)

    with fails("PC012"):
        restore(ann, deleted)


def test_outsiders_find_nothing(outsider, ann, deleted, fails):
    with fails("PC001", conversation_id=deleted):
        restore(outsider, deleted)
    assert len(ann.live(deleted)) == 2


def test_needs_a_context(unknown, deleted, fails):
    with fails("PC030"):
        restore(unknown, deleted)
