"""fork_conversation: a new conversation that begins as another does."""

from __future__ import annotations

from uuid import uuid4

import pytest

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


@pytest.fixture
def source(ann):
    """Eight messages: 2 is edited, 4 is deleted, 5 to 7 are a call and its results."""
    own = ann.create(
        title="Trip",
        system_prompt="Be brief.",
        metadata='{"a": 1}',
        retention_class="short",
        policy="cheap",
    )
    ann.say(own, 1, role="system")
    ann.say(own, 2, 4, 8)
    ann.row("edit_message", conversation_id=own, seq=2, content="new", tokens=3)
    ann.row("delete_message", conversation_id=own, seq=4)
    ann.append(
        own,
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [CALL, CALL | {"id": "c2"}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "one"},
            {"role": "tool", "tool_call_id": "c2", "content": "two"},
        ],
        tokens=[16, 32, 64],
        model="gpt-x",
        idempotency_key="k1",
    )
    ann.row(
        "append_message",
        conversation_id=own,
        role="assistant",
        content="end",
        tokens=128,
        metadata='{"b": 2}',
    )
    return own


def fork(caller, conversation_id, **arguments):
    return caller.value(
        "fork_conversation", conversation_id=conversation_id, **arguments
    )


def stored(db, conversation_id):
    """All messages as they are in the table, deleted ones too."""
    return db.execute(
        "select seq, user_id, role, content, payload::text, format, tokens,"
        " is_estimated, group_seq, revision, model, call_ids, result_ids, metadata,"
        " created_at, edited_at, deleted_at from convo.message"
        " where conversation_id = %s order by seq",
        [conversation_id],
    ).fetchall()


def test_copies_every_message_with_seq_and_time(ann, db, source):
    assert stored(db, fork(ann, source)) == stored(db, source)


def test_copies_up_to_a_seq(ann, db, source):
    assert stored(db, fork(ann, source, through_seq=5)) == stored(db, source)[:5]


def test_copies_none_up_to_0(ann, source):
    copy = fork(ann, source, through_seq=0)

    assert ann.live(copy) == []
    assert ann.get(copy)["last_seq"] == 0


def test_copies_the_revisions(ann, source):
    copy = fork(ann, source)

    revisions = ann.rows("message_revisions", conversation_id=copy, seq=2)
    assert [row["content"] for row in revisions] == ["sesame 1", "new"]
    assert revisions == ann.rows("message_revisions", conversation_id=source, seq=2)


def test_leaves_out_revisions_after_the_seq(ann, db, source):
    copy = fork(ann, source, through_seq=1)

    assert not db.execute(
        "select from convo.message_revision where conversation_id = %s", [copy]
    ).fetchall()


def test_copies_title_prompt_metadata_class_and_policy(ann, source):
    row = ann.get(fork(ann, source))

    assert row["title"] == "Trip"
    assert row["system_prompt"] == "Be brief."
    assert row["metadata"] == {"a": 1}
    assert row["retention_class"] == "short"
    assert row["policy"] == "cheap"


@pytest.mark.parametrize(
    ("title", "stored_title"), [("Copy", "Copy"), ("", None), (None, "Trip")]
)
def test_takes_a_title(ann, source, title, stored_title):
    assert ann.get(fork(ann, source, title=title))["title"] == stored_title


def test_says_what_it_was_forked_from(ann, source):
    row = ann.get(fork(ann, source, through_seq=3))

    assert row["forked_from"] == source
    assert row["forked_at_seq"] == 3


def test_counts_what_it_copied(ann, source):
    row = ann.get(fork(ann, source, through_seq=6))

    assert row["last_seq"] == 6
    assert row["message_count"] == 5
    assert row["token_total"] == 1 + 3 + 4 + 16 + 32


def test_deleted_messages_can_be_restored_in_the_copy_alone(ann, source):
    copy = fork(ann, source)
    ann.row("restore_message", conversation_id=copy, seq=4)

    assert [row["seq"] for row in ann.live(copy)] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [row["seq"] for row in ann.live(source)] == [1, 2, 3, 5, 6, 7, 8]


def test_goes_on_with_the_next_seq_and_a_later_time(ann, source):
    copy = fork(ann, source, through_seq=3)
    ann.say(copy, 5)

    rows = ann.live(copy)
    assert [row["seq"] for row in rows] == [1, 2, 3, 4]
    assert rows[3]["created_at"] >= rows[2]["created_at"]


def test_neither_changes_with_the_other(ann, db, source):
    copy = fork(ann, source)
    before = stored(db, source)
    ann.say(copy, 5)
    ann.row("edit_message", conversation_id=copy, seq=3, content="changed")
    ann.value("delete_messages", conversation_id=copy, from_seq=5)

    assert stored(db, source) == before


def test_a_call_open_at_the_seq_gets_its_result_in_the_copy(ann, source):
    copy = fork(ann, source, through_seq=5)
    rows = ann.append(copy, {"role": "tool", "tool_call_id": "c2", "content": "new"})

    assert [(row["seq"], row["group_seq"]) for row in rows] == [(6, 5)]


def test_keys_stay_behind(ann, source):
    copy = fork(ann, source)
    rows = ann.append(copy, {"role": "user", "content": "new"}, idempotency_key="k1")

    assert [row["seq"] for row in rows] == [9]


def test_a_hold_stays_behind(ann, service, source):
    service.row("hold_conversation", conversation_id=source, reason="case 7")
    copy = fork(ann, source)

    assert ann.get(copy)["is_on_hold"] is False
    assert ann.value("delete_conversation", conversation_id=copy) is True


def test_an_archived_one_gives_a_fork_that_is_not(ann, source):
    ann.row("archive_conversation", conversation_id=source)

    assert ann.get(fork(ann, source))["archived_at"] is None


def test_a_fork_can_be_forked(ann, db, source):
    copy = fork(ann, source, through_seq=6)
    second = fork(ann, copy, through_seq=5)

    assert ann.get(second)["forked_from"] == copy
    assert stored(db, second) == stored(db, source)[:5]


def test_a_fork_is_the_owners_whoever_makes_it(service, ann, source):
    copy = fork(service, source)

    assert ann.get(copy)["user_id"] == "ann"


def test_does_not_count_as_activity_of_the_source(ann, source):
    before = ann.get(source)
    fork(ann, source)

    assert ann.get(source) == before


@pytest.mark.parametrize("through_seq", [-1, 9])
def test_a_seq_that_is_not_there_is_an_error(ann, source, fails, through_seq):
    with fails("PC002", conversation_id=source, seq=through_seq, last_seq=8):
        fork(ann, source, through_seq=through_seq)


def test_an_unknown_id_is_an_error(ann, fails):
    with fails("PC001"):
        fork(ann, uuid4())


def test_a_deleted_one_is_an_error(ann, source, fails):
    ann.value("delete_conversation", conversation_id=source)

    with fails("PC012", conversation_id=source):
        fork(ann, source)


def test_outsiders_find_nothing(outsider, source, fails):
    with fails("PC001", conversation_id=source):
        fork(outsider, source)


def test_needs_a_context(unknown, source, fails):
    with fails("PC030"):
        fork(unknown, source)
