"""A search reads the live messages of its scope, by an index, and nothing else."""

from __future__ import annotations

from uuid import UUID

import pytest

LONG = UUID(int=3)
QUERY = "the word of a message"


@pytest.mark.parametrize("random_page_cost", ["1.1", "4"])
@pytest.mark.parametrize("login", ["test_app", "test_service"])
def test_one_conversation(login, random_page_cost, log_in, reads):
    conn = log_in(login)
    conn.execute(f"set local random_page_cost = {random_page_cost}")
    (messages,) = conn.execute(
        "select message_count from convo.get_conversation(%s)", (LONG,)
    ).fetchone()
    with reads(conn) as counted:
        found = conn.execute(
            "select * from convo.search_messages(%s, %s)", (QUERY, LONG)
        ).fetchall()
    assert counted["message"]["sequential"] == 0
    assert counted["message"]["index"] <= messages + len(found)


@pytest.mark.parametrize("random_page_cost", ["1.1", "4"])
def test_all_of_one_user(random_page_cost, log_in, reads):
    """Neither other users of the tenant nor other tenants are read."""
    conn = log_in(user="bob")
    conn.execute(f"set local random_page_cost = {random_page_cost}")
    (messages,) = conn.execute(
        "select sum(message_count) from convo.conversation"
    ).fetchone()
    with reads(conn) as counted:
        found = conn.execute(
            "select * from convo.search_messages(%s)", (QUERY,)
        ).fetchall()
    assert len(found) == 20
    assert counted["message"]["sequential"] == 0
    assert counted["message"]["index"] <= messages + len(found)


def test_a_conversation_of_another_user_is_not_read(log_in, reads):
    conn = log_in(user="bob")
    with reads(conn) as counted:
        conn.execute(
            "select * from convo.search_messages(%s, %s)", (QUERY, LONG)
        ).fetchall()
    assert counted["message"] == {"sequential": 0, "index": 0}
