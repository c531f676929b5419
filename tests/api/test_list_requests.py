"""list_requests: what was sent, newest first, or as of a time."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest


@pytest.fixture
def three(ann, db, conversation_id):
    """Three requests of a conversation, a minute apart, oldest first."""
    ann.say(conversation_id, 1)
    made = [
        ann.row("prepare_request", conversation_id=conversation_id, format="openai")
        for _ in range(3)
    ]
    for minutes, row in zip((-2, -1, 0), made, strict=True):
        row["created_at"] += timedelta(minutes=minutes)
        db.execute(
            "update convo.request set created_at = %s where request_id = %s",
            (row["created_at"], row["request_id"]),
        )
    return made


def test_newest_first_and_without_bodies(ann, three, conversation_id):
    rows = ann.rows("list_requests", conversation_id=conversation_id)
    assert rows == [{**row, "body": None} for row in reversed(three)]


def test_at_a_time_the_first_is_what_was_sent_last_before(ann, three, conversation_id):
    def at(time):
        rows = ann.rows("list_requests", conversation_id=conversation_id, at=time)
        return [row["request_id"] for row in rows]

    ids = [row["request_id"] for row in three]
    second = three[1]["created_at"]
    assert at(second) == [ids[1], ids[0]]
    assert at(second - timedelta(milliseconds=1)) == [ids[0]]
    assert at(second - timedelta(days=1)) == []


def test_pages_have_a_size(ann, three, conversation_id, fails):
    def page(size):
        return ann.rows(
            "list_requests", conversation_id=conversation_id, page_size=size
        )

    assert [len(page(size)) for size in (0, 2, 5000)] == [0, 2, 3]
    for size in (None, -1):
        with fails("22023", argument="page_size"):
            page(size)


def test_what_is_not_theirs_gives_no_rows(three, outsider, conversation_id):
    for one in (conversation_id, uuid4()):
        assert outsider.rows("list_requests", conversation_id=one) == []


def test_readers_and_service_see_their_tenants(three, reader, service, conversation_id):
    for caller in (reader, service):
        assert len(caller.rows("list_requests", conversation_id=conversation_id)) == 3


def test_without_a_context_there_is_an_error(unknown, fails, conversation_id):
    with fails("PC030"):
        unknown.rows("list_requests", conversation_id=conversation_id)
