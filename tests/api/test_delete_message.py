"""delete_message: soft, once as good as twice, the seq stays taken."""

from __future__ import annotations

from uuid import uuid4

import pytest


@pytest.fixture
def three(ann, conversation_id):
    """Three messages of 1, 2 and 4 tokens."""
    ann.say(conversation_id, 1, 2, 4)
    return conversation_id


def delete(caller, conversation_id, seq=2):
    return caller.row("delete_message", conversation_id=conversation_id, seq=seq)


def seqs(rows):
    return [row["seq"] for row in rows]


def test_gives_the_message_with_its_time(ann, three):
    before = ann.live(three)[1]
    row = delete(ann, three)

    assert row["deleted_at"] is not None
    assert row | {"deleted_at": None} == before


def test_it_leaves_every_list_and_window(ann, three):
    delete(ann, three)

    assert seqs(ann.live(three)) == [1, 3]
    assert seqs(ann.rows("list_messages", conversation_id=three)) == [1, 3]
    assert seqs(ann.window(three, 1000)) == [1, 3]


def test_moves_the_counters(ann, three):
    delete(ann, three)

    row = ann.get(three)
    assert (row["last_seq"], row["message_count"], row["token_total"]) == (3, 2, 5)


def test_again_changes_nothing(ann, three):
    first = delete(ann, three)
    before = ann.get(three)

    assert delete(ann, three) == first
    assert ann.get(three) == before


def test_the_row_stays_with_its_content(ann, three, db):
    delete(ann, three)

    rows = db.execute("select seq, content from convo.message order by seq").fetchall()
    assert rows == [(1, "sesame 1"), (2, "sesame 2"), (3, "sesame 3")]


def test_a_held_conversation_allows_it(ann, service, three):
    service.row("hold_conversation", conversation_id=three, reason="case 7")

    assert delete(ann, three)["deleted_at"] is not None


@pytest.mark.parametrize("seq", [0, -1, 4, None])
def test_a_seq_that_is_not_there_is_an_error(ann, three, fails, seq):
    with fails("PC002", conversation_id=three, seq=seq):
        delete(ann, three, seq)


def test_an_unknown_id_is_an_error(ann, fails):
    with fails("PC001"):
        delete(ann, uuid4())


def test_a_deleted_conversation_is_an_error(ann, three, fails):
    ann.value("delete_conversation", conversation_id=three)

    with fails("PC012"):
        delete(ann, three)


def test_outsiders_find_nothing(outsider, ann, three, fails):
    with fails("PC001", conversation_id=three):
        delete(outsider, three)
    assert seqs(ann.live(three)) == [1, 2, 3]


def test_needs_a_context(unknown, three, fails):
    with fails("PC030"):
        delete(unknown, three)
