"""What is on legal hold stays, whoever tries and however."""

from __future__ import annotations

import pytest

from .world import VICTIM, attempt

ROLES = ["test_app", "test_service", "test_reader", "test_maintainer", "rls_pinned"]
CHILDREN = ["message", "message_revision", "idempotency_key", "summary"]
MAKE_DUE = """
    update convo.conversation
    set updated_at = '2001-01-01', created_at = '2001-01-01', retention_class = 'short'
    where conversation_id = %s
"""


@pytest.fixture
def held(world):
    return world.things[VICTIM].held


@pytest.mark.parametrize("login", ROLES)
@pytest.mark.parametrize(
    "statement",
    [
        "delete from convo.conversation where conversation_id = %(id)s",
        "delete from convo.conversation where is_on_hold",
        "delete from convo.conversation as c using convo.conversation as d"
        " where c.conversation_id = d.conversation_id and d.is_on_hold",
        "merge into convo.conversation as c using (select 1) as s"
        " on c.conversation_id = %(id)s when matched then delete",
        "with d as (delete from convo.conversation where conversation_id = %(id)s"
        " returning 1) select from d",
        "update convo.conversation set conversation_id = gen_random_uuid()"
        " where conversation_id = %(id)s",
        "update convo.conversation set tenant_id = 'b' where conversation_id = %(id)s",
        "insert into convo.conversation select * from convo.conversation"
        " where conversation_id = %(id)s on conflict (tenant_id, conversation_id)"
        " do update set is_on_hold = false",
        "delete from convo.prompt as p using convo.conversation as c"
        " where c.conversation_id = %(id)s and p.tenant_id = c.tenant_id"
        " and p.user_id = c.user_id and p.sha256 = c.system_prompt_sha256",
        "truncate convo.conversation cascade",
        "truncate convo.tombstone, convo.message",
        *(
            f"delete from convo.{table} where conversation_id = %(id)s"
            for table in CHILDREN
        ),
        *(
            f"update convo.{table} set conversation_id = gen_random_uuid()"
            " where conversation_id = %(id)s"
            for table in CHILDREN
        ),
    ],
)
def test_no_statement_removes_it(act, held, login, statement):
    person = VICTIM if login != "test_maintainer" else ()
    with act(login, *person) as conn:
        conn.execute("set constraints all deferred")
        got = attempt(conn, statement.replace("%(id)s", f"'{held}'"))
    # 23503: the prompt is in use
    assert got.is_nothing or got.code in ("42501", "23503"), got


@pytest.mark.parametrize("login", ["test_app", "test_service"])
def test_deferred_constraints_don_t_open_a_way(act, held, login):
    """A cascade can't be started from a row that may go."""
    with act(login, *VICTIM) as conn:
        conn.execute("set constraints all deferred")
        conn.execute("delete from convo.conversation")
        conn.execute("set constraints all immediate")
        left = conn.execute("select conversation_id from convo.conversation").fetchall()
        assert (held,) in left
        rows = "select from convo.message where conversation_id = %s"
        assert conn.execute(rows, (held,)).rowcount == 2


def test_an_application_changes_neither_hold_nor_owner(act, held):
    with act("test_app", *VICTIM) as conn:
        for change in (
            "set is_on_hold = false",
            "set is_on_hold = true",
            "set user_id = 'bob'",
            "set title = '', is_on_hold = false",
            "set (title, is_on_hold) = (select '', false)",
        ):
            got = attempt(conn, f"update convo.conversation {change}")
            assert got.code == "42501", change
        for function in (
            "hold_conversation(%s, 'x')",
            "release_conversation(%s, 'x')",
            "_set_hold(%s, false, 'x')",
            "transfer_conversation(%s, 'bob')",
        ):
            assert attempt(conn, f"select convo.{function}", held).code == "42501"


@pytest.mark.parametrize("login", ["test_app", "test_service"])
def test_delete_conversation_says_so(act, held, login):
    with act(login, *VICTIM) as conn:
        got = attempt(conn, "select convo.delete_conversation(%s)", held)
    assert got.code == "PC040"
    assert got.words[1] == f'{{"conversation_id": "{held}"}}'


def test_appending_and_editing_go_on_and_soft_deletion_keeps_all(act, held):
    with act("test_app", *VICTIM) as conn:
        for call in (
            "append_message(%s, 'user', 'x')",
            "edit_message(%s, 1, 'y')",
            "delete_messages(%s)",
        ):
            conn.execute(f"select convo.{call}", (held,))
        counts = [
            conn.execute(
                f"select from convo.{table} where conversation_id = %s", (held,)
            ).rowcount
            for table in CHILDREN
        ]
    assert counts == [3, 1, 1, 1]


def test_the_purge_counts_it_and_leaves_it(world, act, held):
    with act("postgres") as conn:
        conn.execute(MAKE_DUE, (held,))
        conn.execute("set local role test_maintainer")
        for statement in (
            "delete from convo.conversation where is_on_hold",
            "select from convo.conversation where is_on_hold for update",
            "select from convo.conversation where is_on_hold for key share",
        ):
            assert attempt(conn, statement).is_nothing
        seen = conn.execute(
            "select conversation_id from convo.conversation where is_on_hold"
        ).fetchall()
        assert seen == [(held,)]
        for dry_run in (True, False):
            ((conversations, still_held),) = conn.execute(
                "select p.conversations, p.held from convo.purge(%s) as p", (dry_run,)
            ).fetchall()
            assert (conversations, still_held) == (len(world.things), 1)
        conn.execute("reset role")
        left = "select from convo.conversation where conversation_id = %s"
        assert conn.execute(left, (held,)).rowcount == 1


def test_nobody_lifts_a_hold_without_a_trace(act, held):
    with act("test_service", *VICTIM) as conn:
        got = attempt(conn, "update convo.conversation set is_on_hold = false")
        assert got.code == "42501"
        conn.execute("select convo.release_conversation(%s, 'settled')", (held,))
        trail = conn.execute(
            "select action, reason from convo.audit where conversation_id = %s"
            " order by audit_id desc limit 1",
            (held,),
        ).fetchall()
    assert trail == [("release", "settled")]
