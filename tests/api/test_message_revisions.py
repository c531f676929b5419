"""message_revisions: all versions of a message, oldest first."""

from __future__ import annotations

from uuid import uuid4

import pytest


@pytest.fixture
def edited(ann, conversation_id):
    """One message that was edited twice."""
    ann.row(
        "append_message",
        conversation_id=conversation_id,
        role="user",
        content="one",
        tokens=1,
        metadata='{"a": 1}',
    )
    for content, tokens in (("two", 2), ("three", None)):
        ann.row(
            "edit_message",
            conversation_id=conversation_id,
            seq=1,
            content=content,
            tokens=tokens,
        )
    return conversation_id


def revisions(caller, conversation_id, seq=1):
    return caller.rows("message_revisions", conversation_id=conversation_id, seq=seq)


def test_gives_all_versions_oldest_first(ann, edited):
    rows = revisions(ann, edited)

    assert [row["revision"] for row in rows] == [1, 2, 3]
    assert [row["content"] for row in rows] == ["one", "two", "three"]


def test_each_version_has_its_own_tokens(ann, edited):
    rows = revisions(ann, edited)

    assert [row["tokens"] for row in rows][:2] == [1, 2]
    assert [row["is_estimated"] for row in rows] == [False, False, True]


def test_each_version_has_the_time_it_was_written(ann, edited):
    rows = revisions(ann, edited)
    times = [row["created_at"] for row in rows]

    assert times == sorted(times)
    assert times[0] == ann.live(edited)[0]["created_at"]


def test_what_the_versions_share_is_the_messages(ann, edited):
    rows = revisions(ann, edited)

    assert {(row["seq"], row["role"], row["group_seq"]) for row in rows} == {
        (1, "user", 1)
    }
    assert all(row["metadata"] == {"a": 1} for row in rows)


def test_the_last_is_the_current_one(ann, edited):
    last = revisions(ann, edited)[-1]
    current = ann.live(edited)[0]

    assert last | {"created_at": None} == current | {"created_at": None}


def test_a_message_that_was_never_edited_has_one(ann, conversation_id):
    ann.say(conversation_id, 5)

    assert revisions(ann, conversation_id) == ann.live(conversation_id)


def test_a_deleted_message_has_its_versions(ann, edited):
    ann.row("delete_message", conversation_id=edited, seq=1)
    rows = revisions(ann, edited)

    assert len(rows) == 3
    assert all(row["deleted_at"] for row in rows)


@pytest.mark.parametrize("seq", [0, 2, None])
def test_a_seq_that_is_not_there_gives_no_rows(ann, edited, seq):
    assert revisions(ann, edited, seq) == []


def test_an_unknown_id_gives_no_rows(ann):
    assert revisions(ann, uuid4()) == []


def test_outsiders_get_no_rows(outsider, edited):
    assert revisions(outsider, edited) == []


@pytest.mark.parametrize("role", ["service", "reader"])
def test_the_tenants_service_and_reader_get_them(request, role, edited):
    assert len(revisions(request.getfixturevalue(role), edited)) == 3


def test_needs_a_context(unknown, edited, fails):
    with fails("PC030"):
        revisions(unknown, edited)
