"""What races with the end of a conversation brings nothing back and loses nothing."""

from __future__ import annotations

from functools import partial
from uuid import uuid4

import psycopg
import pytest

DELETE = "select convo.delete_conversation(%s)"
CREATE = "select convo.create_conversation(conversation_id => %s)"
CREATE_WITH_PROMPT = (
    "select convo.create_conversation(conversation_id => %s, system_prompt => %s)"
)
WRITES = {
    "append_message": "select (convo.append_message(%s, 'user', 'x')).seq",
    "append_with_key": (
        "select (convo.append_message(%s, 'user', 'x', idempotency_key => 'k')).seq"
    ),
    "append_messages": (
        "select seq from convo.append_messages(%s,"
        """ '{"role": "user", "content": "x"}')"""
    ),
    "edit_message": "select (convo.edit_message(%s, 1, 'x')).seq",
    "delete_message": "select (convo.delete_message(%s, 1)).seq",
    "restore_message": "select (convo.restore_message(%s, 1)).seq",
    "delete_messages": "select convo.delete_messages(%s)",
    "fork": "select convo.fork_conversation(%s)",
    "update": "select (convo.update_conversation(%s, title => 'x')).title",
    "archive": "select (convo.archive_conversation(%s)).title",
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_loses_the_race_finds_it_deleted(
    name, apps, crew, db, make_conversation, check_invariants
):
    deleter, writer = apps(2)
    conversation = make_conversation(2)
    with deleter.transaction():
        deleter.execute(DELETE, (conversation,))
        waiting = crew.blocked(writer, WRITES[name], conversation)
    with pytest.raises(psycopg.Error) as raised:
        waiting.result(10)
    assert raised.value.sqlstate == "PC012"
    assert db.execute("select count(*) from convo.conversation").fetchone() == (0,)
    assert db.execute("select count(*) from convo.message").fetchone() == (0,)
    check_invariants(db)


def test_a_write_that_wins_the_race_is_deleted_with_the_rest(
    apps, crew, db, make_conversation
):
    deleter, writer = apps(2)
    conversation = make_conversation(2)
    with writer.transaction():
        writer.execute(WRITES["append_message"], (conversation,))
        waiting = crew.blocked(deleter, DELETE, conversation)
    assert waiting.result(10) is True
    assert db.execute("select count(*) from convo.message").fetchone() == (0,)


def test_two_deletions_at_once(apps, crew, db, make_conversation, check_invariants):
    one, other = apps(2)
    conversation = make_conversation(1)
    with one.transaction():
        one.execute(DELETE, (conversation,))
        waiting = crew.blocked(other, DELETE, conversation)
    assert waiting.result(10) is False
    check_invariants(db)


def test_deletion_while_many_append(
    apps, crew, db, codes, make_conversation, check_invariants
):
    conversations = [make_conversation(3) for _ in range(30)]
    *writers, deleter = apps(5)

    def delete():
        for conversation in conversations:
            assert deleter.execute(DELETE, (conversation,)).fetchone() == (True,)

    def write(conn):
        def run():
            lost = []
            for conversation in conversations:
                for _ in range(6):
                    try:
                        conn.execute(WRITES["append_message"], (conversation,))
                    except psycopg.Error as error:
                        lost.append(error)
            return codes(lost)

        return run

    results = crew.at_once([delete, *map(write, writers)])
    assert {code for lost in results[1:] for code in lost} == {"PC012"}
    assert db.execute("select count(*) from convo.message").fetchone() == (0,)
    check_invariants(db)


def test_the_same_id_by_the_same_user(apps, crew, db, check_invariants):
    one, other = apps(2)
    wanted = uuid4()
    with one.transaction():
        one.execute(CREATE, (wanted,))
        waiting = crew.blocked(other, CREATE, wanted)
    assert waiting.result(10) == wanted
    many = apps(8)
    for _ in range(10):
        wanted = uuid4()
        jobs = [partial(conn.execute, CREATE, (wanted,)) for conn in many]
        results = crew.at_once(jobs)
        assert [result.fetchone() for result in results] == [(wanted,)] * 8
    check_invariants(db)


def test_the_same_id_by_two_users(app, connect, crew, codes, check_invariants, db):
    other = connect("test_app", "acme", "bob")
    wanted = uuid4()
    with app.transaction():
        app.execute(CREATE, (wanted,))
        waiting = crew.blocked(other, CREATE, wanted)
    with pytest.raises(psycopg.Error) as raised:
        waiting.result(10)
    assert raised.value.sqlstate == "PC013"
    for _ in range(20):
        wanted = uuid4()
        jobs = [partial(conn.execute, CREATE, (wanted,)) for conn in (app, other)]
        assert sorted(codes(crew.at_once(jobs)), key=str) == [None, "PC013"]
    check_invariants(db)


def test_the_same_id_in_two_tenants(app, connect, crew, codes):
    other = connect("test_app", "globex", "ann")
    wanted = uuid4()
    with app.transaction():
        app.execute(CREATE, (wanted,))
        assert other.execute(CREATE, (wanted,)).fetchone() == (wanted,)


@pytest.mark.parametrize(
    ("user", "code"), [("ann", "PC012"), ("bob", "PC013")], ids=["owner", "another"]
)
@pytest.mark.parametrize("prompt", [None, "Be brief."])
def test_an_id_whose_deletion_is_going_on(
    user, code, prompt, app, connect, crew, db, check_invariants
):
    other = connect("test_app", "acme", user)
    wanted = uuid4()
    app.execute(CREATE_WITH_PROMPT, (wanted, prompt))
    with app.transaction():
        app.execute(DELETE, (wanted,))
        waiting = crew.blocked(other, CREATE_WITH_PROMPT, wanted, prompt)
    with pytest.raises(psycopg.Error) as raised:
        waiting.result(10)
    assert raised.value.sqlstate == code
    check_invariants(db)


def test_an_id_whose_deletion_is_undone(app, apps, crew, db, check_invariants):
    (other,) = apps(1)
    wanted = uuid4()
    app.execute(CREATE_WITH_PROMPT, (wanted, "Be brief."))
    with app.transaction(force_rollback=True):
        app.execute(DELETE, (wanted,))
        waiting = crew.blocked(other, CREATE_WITH_PROMPT, wanted, "Be brief.")
    assert waiting.result(10) == wanted
    check_invariants(db)


def test_recreation_and_deletion_of_the_only_user_of_a_prompt(
    apps, crew, db, codes, check_invariants
):
    """The creation must not hold the prompt while it waits for the deletion."""
    one, *others = apps(4)
    for number in range(40):
        wanted, prompt = uuid4(), f"prompt {number % 2}"
        one.execute(CREATE_WITH_PROMPT, (wanted, prompt))
        jobs = [partial(one.execute, DELETE, (wanted,))]
        jobs += [
            partial(conn.execute, CREATE_WITH_PROMPT, (wanted, prompt))
            for conn in others
        ]
        results = crew.at_once(jobs)
        assert set(codes(results)) <= {None, "PC012"}, results
    check_invariants(db)
