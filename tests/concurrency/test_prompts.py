"""Shared prompts are collected with their last conversation, and never too early."""

from __future__ import annotations

from uuid import uuid4

import psycopg
from psycopg import sql

CREATE = "select convo.create_conversation(system_prompt => %s)"
DELETE = "select convo.delete_conversation(%s)"
PROMPT = "select system_prompt from convo.get_conversation(%s)"


def test_a_creation_that_waits_for_the_collection(
    app, apps, crew, db, check_invariants
):
    (other,) = apps(1)
    (old,) = app.execute(CREATE, ("Be brief.",)).fetchone()
    with app.transaction():
        app.execute(DELETE, (old,))
        waiting = crew.blocked(other, CREATE, "Be brief.")
    made = waiting.result(10)
    assert other.execute(PROMPT, (made,)).fetchone() == ("Be brief.",)
    check_invariants(db)


def test_a_collection_that_waits_for_a_creation(app, apps, crew, db, check_invariants):
    (other,) = apps(1)
    (old,) = app.execute(CREATE, ("Be brief.",)).fetchone()
    with other.transaction():
        (made,) = other.execute(CREATE, ("Be brief.",)).fetchone()
        waiting = crew.blocked(app, DELETE, old)
    assert waiting.result(10) is True
    assert other.execute(PROMPT, (made,)).fetchone() == ("Be brief.",)
    check_invariants(db)


def test_a_collection_that_waits_for_a_creation_that_is_undone(
    app, apps, crew, db, check_invariants
):
    (other,) = apps(1)
    (old,) = app.execute(CREATE, ("Be brief.",)).fetchone()
    with other.transaction(force_rollback=True):
        other.execute(CREATE, ("Be brief.",))
        waiting = crew.blocked(app, DELETE, old)
    assert waiting.result(10) is True
    check_invariants(db)


def test_creations_while_the_last_one_goes(apps, crew, db, check_invariants):
    connections = apps(6)

    def churn(conn):
        def run():
            for number in range(40):
                prompt = f"prompt {number % 2}"
                (made,) = conn.execute(CREATE, (prompt,)).fetchone()
                assert conn.execute(PROMPT, (made,)).fetchone() == (prompt,)
                assert conn.execute(DELETE, (made,)).fetchone() == (True,)

        return run

    assert crew.at_once([churn(conn) for conn in connections]) == [None] * 6
    assert db.execute("select count(*) from convo.prompt").fetchone() == (0,)
    check_invariants(db)


def test_two_conversations_swap_their_prompts(dsn, apps, crew, db, check_invariants):
    """Each would collect the prompt that the other one is about to use."""
    database = psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]
    db.execute(
        sql.SQL("alter database {} set deadlock_timeout = '10ms'").format(
            sql.Identifier(database)
        )
    )
    connections = apps(2)
    made = [conn.execute(CREATE, ("A",)).fetchone()[0] for conn in connections]

    def swap(number):
        def run():
            for turn in range(100):
                connections[number].execute(
                    "select convo.update_conversation(%s, system_prompt => %s)",
                    (made[number], "AB"[(turn + number) % 2]),
                )

        return run

    assert crew.at_once([swap(0), swap(1)]) == [None, None]
    check_invariants(db)


def test_a_creation_that_is_repeated_stores_no_second_prompt(app, db, check_invariants):
    create = (
        "select convo.create_conversation(conversation_id => %s, system_prompt => %s)"
    )
    wanted = uuid4()
    for prompt in ("first", "second"):
        assert app.execute(create, (wanted, prompt)).fetchone() == (wanted,)
    assert app.execute(PROMPT, (wanted,)).fetchone() == ("first",)
    check_invariants(db)
