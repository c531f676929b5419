"""archive_conversation takes a conversation out of the default list."""

from __future__ import annotations

from uuid import uuid4


def archive(caller, conversation_id):
    return caller.row("archive_conversation", conversation_id=conversation_id)


def test_gives_the_row_with_its_time(ann, conversation_id):
    row = archive(ann, conversation_id)

    assert row["archived_at"] is not None
    assert row == ann.get(conversation_id)


def test_again_keeps_the_first_time(ann, conversation_id):
    first = archive(ann, conversation_id)

    assert archive(ann, conversation_id) == first


def test_is_no_activity(ann, conversation_id):
    before = ann.get(conversation_id)

    assert archive(ann, conversation_id)["updated_at"] == before["updated_at"]


def test_appending_goes_on_and_leaves_it_archived(ann, conversation_id):
    archive(ann, conversation_id)
    ann.say(conversation_id, 5)

    row = ann.get(conversation_id)
    assert row["last_seq"] == 1
    assert row["archived_at"] is not None


def test_an_unknown_id_is_an_error(ann, fails):
    with fails("PC001"):
        archive(ann, uuid4())


def test_a_deleted_one_is_an_error(ann, conversation_id, fails):
    ann.value("delete_conversation", conversation_id=conversation_id)

    with fails("PC012", conversation_id=conversation_id):
        archive(ann, conversation_id)


def test_outsiders_find_nothing(outsider, ann, conversation_id, fails):
    with fails("PC001", conversation_id=conversation_id):
        archive(outsider, conversation_id)
    assert ann.get(conversation_id)["archived_at"] is None


def test_needs_a_context(unknown, conversation_id, fails):
    with fails("PC030"):
        archive(unknown, conversation_id)
