"""save_summary: one transaction that covers whole groups, and nothing unfinished."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from uuid import UUID, uuid4

import psycopg
import pytest

from .test_get_context import ASSISTANT, EMPTY, USER, calls, kept, result


@pytest.fixture
def three(ann, conversation_id):
    """A conversation of three messages of 1, 2 and 4 tokens."""
    ann.say(conversation_id, 1, 2, 4)
    return conversation_id


def state(db):
    """All that a summary could change."""
    return [
        db.execute(f"select * from convo.{table} order by 1, 2, 3").fetchall()
        for table in ("conversation", "message", "summary")
    ]


def counters(db, conversation_id):
    return db.execute(
        "select summary_through_seq, body_count, body_tokens, message_count,"
        " token_total from convo.conversation where conversation_id = %s",
        [conversation_id],
    ).fetchone()


def test_gives_the_summary(ann, three):
    row = ann.summarise(three, 2, model="m")

    assert isinstance(row.pop("created_at"), datetime)
    assert row == {
        "through_seq": 2, "content": "sesame summary", "tokens": 10, "model": "m",
    }  # fmt: skip


def test_tokens_are_estimated_if_not_given(ann, three):
    row = ann.summarise(three, 2, content="sesame " * 50, tokens=None, model="")

    assert row["tokens"] == ann.value("estimate_tokens", content="sesame " * 50)
    assert row["model"] is None


def test_messages_stay_and_counters_follow(ann, db, three):
    before = ann.live(three)
    assert counters(db, three) == (0, 3, 7, 3, 7)

    ann.summarise(three, 1)
    assert counters(db, three) == (1, 2, 6, 3, 7)
    ann.summarise(three, 2, 1)
    assert counters(db, three) == (2, 1, 4, 3, 7)
    assert ann.live(three) == before


def test_counters_follow_changes_of_what_is_covered(ann, db, three):
    ann.summarise(three, 2)
    place = {"conversation_id": three, "seq": 1}

    ann.row("edit_message", **place, content="sesame", tokens=100)
    assert counters(db, three) == (2, 1, 4, 3, 106)
    ann.row("delete_message", **place)
    assert counters(db, three) == (2, 1, 4, 2, 6)
    ann.row("restore_message", **place)
    assert counters(db, three) == (2, 1, 4, 3, 106)
    ann.value("delete_messages", conversation_id=three)
    assert counters(db, three) == (0, 0, 0, 0, 0)


def test_what_was_deleted_or_is_a_system_message_is_not_counted(ann, db, three):
    ann.row("delete_message", conversation_id=three, seq=1)
    ann.say(three, 8, role="system")
    ann.say(three, 16)

    ann.summarise(three, 4)

    assert counters(db, three) == (4, 1, 16, 4, 30)


@pytest.mark.parametrize("previous", [1, 3, -1, None])
def test_another_summary_than_the_one_it_was_made_from(ann, db, three, previous, fails):
    ann.say(three, 8, 16)
    ann.summarise(three, 2)
    before = state(db)

    with fails("PC010", expected_through_seq=previous, through_seq=2):
        ann.summarise(three, 4, previous)
    assert state(db) == before


def test_of_two_at_once_one_wins(as_role, ann, db, three):
    """The other waits for it, then fails, and everything is as the first left it."""
    first = as_role("test_app", "acme", "ann", autocommit=False)
    second = as_role("test_app", "acme", "ann")
    first.summarise(three, 1, content="sesame first")
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(second.summarise, three, 2, content="sesame second")
        first.conn.commit()
        error = waiting.exception(timeout=20)

    assert isinstance(error, psycopg.Error)
    assert error.sqlstate == "PC010"
    assert db.execute("select content from convo.summary").fetchall() == [
        ("sesame first",)
    ]
    assert counters(db, three) == (1, 2, 6, 3, 7)


@pytest.mark.parametrize("through_seq", [0, -1, None, 4, 2**31 - 1])
def test_it_must_cover_something_new_that_is_there(ann, db, three, through_seq, fails):
    before = state(db)

    with fails("22023", conversation_id=three):
        ann.summarise(three, through_seq)
    assert state(db) == before


def test_it_must_cover_more_than_the_last_one(ann, three, fails):
    ann.summarise(three, 2)

    with fails("22023"):
        ann.summarise(three, 2, 2)
    with fails("22023"):
        ann.summarise(three, 1, 2)


@pytest.mark.parametrize("content", [None, "", " \n\t"])
def test_a_summary_says_something(ann, db, three, content, fails):
    before = state(db)

    with fails("22023"):
        ann.summarise(three, 2, content=content)
    assert state(db) == before


def test_negative_tokens(ann, three, fails):
    with fails("22023"):
        ann.summarise(three, 2, tokens=-1)


def test_a_summary_that_is_too_long_changes_nothing(ann, db, three):
    before = state(db)

    with pytest.raises(psycopg.errors.CheckViolation):
        ann.summarise(three, 2, content="x" * 1_048_577)
    assert state(db) == before


@pytest.mark.parametrize("through_seq", [3, 4, 5, 6])
def test_the_newest_user_message_is_never_covered(
    ann, conversation_id, through_seq, fails
):
    """What says nothing is no user message; the work it asked for stays, too."""
    ann.append(
        conversation_id,
        [USER, ASSISTANT, USER, calls("a"), result("a"), {**EMPTY, "role": "user"}],
    )

    with fails("22023"):
        ann.summarise(conversation_id, through_seq)
    ann.summarise(conversation_id, 2)


def test_an_open_call_is_never_covered(ann, conversation_id, fails):
    ann.append(conversation_id, [USER, calls("a", "b"), result("a"), USER, USER])

    for through_seq in (2, 3, 4):
        with fails("22023"):
            ann.summarise(conversation_id, through_seq)
    ann.append(conversation_id, [result("b")])
    assert ann.summarise(conversation_id, 4)["through_seq"] == 4


def test_a_group_is_covered_whole(ann, db, conversation_id):
    """Its results lie behind through_seq, and are covered all the same."""
    ann.append(
        conversation_id,
        [USER, calls("a", "b"), result("a"), USER, result("b"), USER],
        tokens=[1, 2, 4, 8, 16, 32],
    )

    ann.summarise(conversation_id, 2)

    assert kept(ann, conversation_id) == [4, 6]
    assert counters(db, conversation_id) == (2, 2, 40, 6, 63)


@pytest.mark.parametrize("who", ["ann", "service"])
def test_owner_and_service_may(request, three, who):
    assert request.getfixturevalue(who).summarise(three, 2)["through_seq"] == 2


def test_nobody_else_may(outsider, three, fails):
    for missing in (three, uuid4(), UUID(int=0)):
        with fails("PC001", conversation_id=missing):
            outsider.summarise(missing, 2)


def test_a_reader_may_not(reader, three):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader.summarise(three, 2)


def test_a_deleted_conversation_says_so(ann, three, fails):
    ann.summarise(three, 2)
    ann.value("delete_conversation", conversation_id=three)

    with fails("PC012"):
        ann.summarise(three, 2)


def test_deleting_the_conversation_deletes_its_summaries(ann, db, three):
    ann.summarise(three, 2)
    ann.value("delete_conversation", conversation_id=three)

    assert db.execute("select from convo.summary").rowcount == 0


def test_a_fork_takes_the_summaries_that_end_in_it(ann, db, three):
    ann.summarise(three, 1)
    ann.summarise(three, 2, 1)

    for through_seq, expected in [(3, (2, 1, 4, 3, 7)), (1, (1, 0, 0, 1, 1))]:
        fork = ann.value(
            "fork_conversation", conversation_id=three, through_seq=through_seq
        )
        assert counters(db, fork) == expected
        assert db.execute(
            "select max(through_seq) from convo.summary where conversation_id = %s",
            [fork],
        ).fetchone() == (expected[0],)


def test_what_was_cleared_is_told_by_no_summary(ann, three):
    ann.summarise(three, 2)
    ann.value("delete_messages", conversation_id=three)
    ann.say(three, 1)

    kinds = [item["kind"] for item in ann.context(three)]

    assert kinds == ["message"]


def test_clearing_the_end_goes_back_to_the_summary_before(ann, db, three):
    ann.say(three, 8, 16)
    ann.summarise(three, 1, tokens=5)
    ann.summarise(three, 4, previous=1, tokens=6)
    ann.value("delete_messages", conversation_id=three, from_seq=3)

    assert counters(db, three) == (1, 1, 2, 2, 3)
    assert [i["tokens"] for i in ann.context(three) if i["kind"] == "summary"] == [6, 5]
