"""delete_messages: softly from a message to the end."""

from __future__ import annotations

from uuid import uuid4

import pytest


@pytest.fixture
def five(ann, conversation_id):
    """A system message of 1 token, then messages of 2, 4, 8 and 16; 4 is deleted."""
    ann.say(conversation_id, 1, role="system")
    ann.say(conversation_id, 2, 4, 8, 16)
    ann.row("delete_message", conversation_id=conversation_id, seq=4)
    return conversation_id


def delete(caller, conversation_id, **arguments):
    return caller.value("delete_messages", conversation_id=conversation_id, **arguments)


def seqs(caller, conversation_id):
    return [row["seq"] for row in caller.live(conversation_id)]


def test_from_a_seq_to_the_end(ann, five):
    assert delete(ann, five, from_seq=3) == 2
    assert seqs(ann, five) == [1, 2]


def test_everything_by_default(ann, five):
    assert delete(ann, five) == 4
    assert seqs(ann, five) == []


def test_moves_the_counters(ann, five, db):
    delete(ann, five, from_seq=2)

    row = ann.get(five)
    assert (row["last_seq"], row["message_count"], row["token_total"]) == (5, 1, 1)
    assert db.execute(
        "select body_count, body_tokens from convo.conversation"
    ).fetchone() == (0, 0)


def test_those_deleted_before_keep_their_time(ann, five, db):
    before = db.execute("select deleted_at from convo.message where seq = 4").fetchone()
    delete(ann, five)

    assert (
        db.execute("select deleted_at from convo.message where seq = 4").fetchone()
        == before
    )


@pytest.mark.parametrize("from_seq", [6, 2147483647])
def test_after_the_end_there_is_nothing_to_delete(ann, five, from_seq):
    before = ann.get(five)

    assert delete(ann, five, from_seq=from_seq) == 0
    assert ann.get(five) == before


def test_again_there_is_nothing_to_delete(ann, five):
    delete(ann, five)

    assert delete(ann, five) == 0


def test_an_empty_conversation_has_nothing_to_delete(ann, conversation_id):
    assert delete(ann, conversation_id) == 0


def test_writing_goes_on_with_the_next_seq(ann, five):
    delete(ann, five)
    ann.say(five, 5)

    assert seqs(ann, five) == [6]


def test_an_answer_is_made_anew(ann, five):
    delete(ann, five, from_seq=5)
    ann.row("append_message", conversation_id=five, role="assistant", content="better")

    assert seqs(ann, five) == [1, 2, 3, 6]


def test_a_held_conversation_allows_it_and_keeps_the_rows(ann, service, five, db):
    service.row("hold_conversation", conversation_id=five, reason="case 7")

    assert delete(ann, five) == 4
    assert db.execute("select count(*) from convo.message").fetchone() == (5,)


@pytest.mark.parametrize("from_seq", [None, 0, -1])
def test_a_null_or_too_small_seq_is_refused(ann, five, fails, from_seq):
    with fails("22023", argument="from_seq"):
        delete(ann, five, from_seq=from_seq)
    assert seqs(ann, five) == [1, 2, 3, 5]


def test_an_unknown_id_is_an_error(ann, fails):
    with fails("PC001"):
        delete(ann, uuid4())


def test_a_deleted_conversation_is_an_error(ann, five, fails):
    ann.value("delete_conversation", conversation_id=five)

    with fails("PC012"):
        delete(ann, five)


def test_outsiders_find_nothing(outsider, ann, five, fails):
    with fails("PC001", conversation_id=five):
        delete(outsider, five)
    assert seqs(ann, five) == [1, 2, 3, 5]


def test_needs_a_context(unknown, five, fails):
    with fails("PC030"):
        delete(unknown, five)
