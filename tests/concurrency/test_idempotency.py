"""A retry stores nothing twice, also while the first try still runs."""

from __future__ import annotations

import psycopg
import pytest

ONE = (
    "select (r).seq from convo.append_message(%s, 'user', %s, 1,"
    " idempotency_key => %s) as r"
)
MANY = (
    "select array_agg(seq order by seq)"
    " from convo.append_messages(%s, json_build_array("
    "json_build_object('role', 'user', 'content', %s::text),"
    "json_build_object('role', 'user', 'content', 'second')), idempotency_key => %s)"
)
FORMS = pytest.mark.parametrize(
    ("append", "stored"), [(ONE, 1), (MANY, [1, 2])], ids=["one", "many"]
)


@FORMS
def test_two_tries_at_once_store_once(
    append, stored, apps, crew, db, make_conversation, check_invariants
):
    first, second = apps(2)
    conversation = make_conversation()
    arguments = (conversation, "hi", "k")
    with first.transaction():
        assert first.execute(append, arguments).fetchone() == (stored,)
        waiting = crew.blocked(second, append, *arguments)
    assert waiting.result(10) == stored
    assert second.execute(append, arguments).fetchone() == (stored,)
    check_invariants(db)


@FORMS
def test_a_try_that_rolls_back_leaves_the_key_free(
    append, stored, apps, crew, db, make_conversation, check_invariants
):
    first, second = apps(2)
    conversation = make_conversation()
    with first.transaction(force_rollback=True):
        first.execute(append, (conversation, "hi", "k"))
        waiting = crew.blocked(second, append, conversation, "other", "k")
    assert waiting.result(10) == stored
    assert db.execute("select content from convo.message where seq = 1").fetchone() == (
        "other",
    )
    check_invariants(db)


@FORMS
def test_a_second_try_with_other_content_is_refused(
    append, stored, apps, crew, make_conversation
):
    first, second = apps(2)
    conversation = make_conversation()
    with first.transaction():
        first.execute(append, (conversation, "hi", "k"))
        waiting = crew.blocked(second, append, conversation, "other", "k")
    with pytest.raises(psycopg.Error) as raised:
        waiting.result(10)
    assert raised.value.sqlstate == "PC011"


@FORMS
def test_eight_writers_with_the_same_keys(
    append, stored, apps, crew, db, make_conversation, check_invariants
):
    conversation = make_conversation()
    keys = [f"k{n}" for n in range(25)]

    def write(conn):
        return lambda: [
            conn.execute(append, (conversation, key, key)).fetchone()[0] for key in keys
        ]

    results = crew.at_once([write(conn) for conn in apps(8)])
    assert all(result == results[0] for result in results)
    size = len(keys) * (1 if stored == 1 else 2)
    assert db.execute("select count(*) from convo.message").fetchone() == (size,)
    check_invariants(db)
