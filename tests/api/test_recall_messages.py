"""convo._recall_messages: which earlier messages a hybrid context brings back."""

from __future__ import annotations

import pytest

from .conftest import SECRET

X, Y = "{1, 0}", "{0, 1}"
POLICY = (
    "row('p', 'hybrid', 8000, null, 0, 0, true, true, 'drop', 'exchange', 20000, 0.8,"
    " 15, %s)::convo.policy_record"
)


@pytest.fixture
def recall(ann, conversation_id):
    def recall(limit=1, before_seq=1000):
        query = f"""
            select convo._recall_messages(c, {POLICY}, %s)
            from convo.conversation as c where c.conversation_id = %s
        """
        row = ann.conn.execute(query, (limit, before_seq, conversation_id)).fetchone()
        return row[0]

    return recall


@pytest.fixture
def chat(ann, conversation_id):
    """Messages 1 to 9: seven about nothing, one about llamas, and a question."""
    texts = [f"{SECRET} nothing {n}" for n in range(1, 8)]
    texts[3] = f"{SECRET} about llamas"
    for n, text in enumerate([*texts, "fine", "llamas?"]):
        ann.row(
            "append_message",
            conversation_id=conversation_id,
            role="assistant" if n % 2 else "user",
            content=text,
        )
    return conversation_id


def test_what_has_the_words_comes_with_its_neighbours(recall, chat):
    assert recall() == [4, 5, 3]


def test_each_comes_once(recall, chat):
    found = recall(limit=5)
    assert len(found) == len(set(found))
    assert found[0] == 4


def test_nothing_from_the_window(recall, chat):
    assert recall(before_seq=5) == [4, 3]
    assert 4 not in recall(before_seq=4)


def test_no_recall(recall, chat):
    assert recall(limit=0) == []


def test_deleted_messages_stay_away(ann, recall, chat):
    ann.row("delete_message", conversation_id=chat, seq=5)
    assert recall() == [4, 6, 3]
    ann.row("delete_message", conversation_id=chat, seq=4)
    assert 4 not in recall(limit=5)


def test_nothing_was_said(recall, conversation_id):
    assert recall() == []


def test_nothing_fits(ann, recall, chat):
    ann.row("append_message", conversation_id=chat, role="user", content="zebra")
    assert recall() == []


def test_a_neighbour_is_another_group(ann, recall, conversation_id):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    ann.append(
        conversation_id,
        [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "llamas", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "done"},
            {"role": "assistant", "content": "ready"},
            {"role": "user", "content": "llamas?"},
        ],
    )
    assert recall(before_seq=5) == [2, 4, 1]


def test_by_meaning_where_the_question_has_an_embedding(ann, recall, chat, vector):
    ann.row("append_message", conversation_id=chat, role="user", content="zebra")
    for seq in range(1, 9):
        ann.rows(
            "store_embedding",
            conversation_id=chat,
            seq=seq,
            model="m",
            embedding=X if seq == 2 else Y,
        )
    assert recall() == []
    ann.rows("store_embedding", conversation_id=chat, seq=10, model="m", embedding=X)
    assert recall() == [2, 3, 1]
