"""What the functions run inside goes by index, and follows what it is about."""

from __future__ import annotations

import json
from uuid import UUID

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

BIG, TAIL, LONG = (UUID(int=n) for n in (1, 2, 3))
CALLS = (
    '[{"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type":'
    ' "function", "function": {"name": "f", "arguments": ""}}]},'
    ' {"role": "tool", "tool_call_id": "c", "content": "r"}]'
)
# Each with the most rows of conversation and of message that it may read.
WRITES = {
    "append_message": ("select convo.append_message(%s, 'user', 'x')", 3, 0),
    "append with a key": (
        "select convo.append_message(%s, 'user', 'x', idempotency_key => 'k')",
        4,
        0,
    ),
    "append_messages": (
        f"select count(*) from convo.append_messages(%s, '{CALLS}')",
        4,
        2,
    ),
    "edit_message": ("select convo.edit_message(%s, 500, 'x')", 4, 3),
    "delete_message": ("select convo.delete_message(%s, 500)", 3, 3),
    "restore_message": ("select convo.restore_message(%s, 500)", 3, 3),
    "delete_messages": ("select convo.delete_messages(%s, 99991)", 3, 12),
    "update_conversation": ("select convo.update_conversation(%s, title => 'x')", 4, 0),
    "message_revisions": ("select count(*) from convo.message_revisions(%s, 5)", 0, 2),
    "get_conversation": ("select count(*) from convo.get_conversation(%s)", 1, 0),
}


@pytest.mark.parametrize("random_page_cost", ["1.1", "4"])
@pytest.mark.parametrize("name", WRITES)
def test_goes_by_index(name, random_page_cost, log_in, reads):
    query, conversations, messages = WRITES[name]
    conn = log_in()
    conn.execute(f"set local random_page_cost = {random_page_cost}")
    for _ in range(7):  # from the sixth time on plans may be generic ones
        with conn.transaction(force_rollback=True):
            with reads(conn) as read:
                conn.execute(query, (BIG,))
            assert all(counts["sequential"] == 0 for counts in read.values()), read
            assert read["conversation"]["index"] <= conversations
            assert read["message"]["index"] <= messages


@pytest.mark.parametrize("random_page_cost", ["1.1", "4"])
@pytest.mark.parametrize("mode", ["custom", "generic"])
def test_a_list_of_one_user_reads_no_other_users(
    mode, random_page_cost, log_in, explain
):
    """23 of 5,023 in the tenant; an index of the tenant alone would be 40 blocks."""
    conn = log_in()
    conn.execute(f"set local random_page_cost = {random_page_cost}")
    call = "convo.list_conversations(page_size => $1)"
    explain(conn, call, "int", 30, mode=mode)  # what is read once a session
    plan = explain(conn, call, "int", 30, mode=mode)
    assert plan.rows == 23
    assert plan.is_inlined()
    assert plan.read("conversation") == 23
    assert plan.root["Shared Hit Blocks"] + plan.root["Shared Read Blocks"] <= 15


@pytest.mark.parametrize(
    "query",
    [
        "select * from convo.token_window(%(id)s, 50000)",
        "select * from convo.last_messages(%(id)s, 500)",
        "select * from convo.list_messages(%(id)s, page_size => 500)",
        "select * from convo.list_conversations()",
        "select convo.delete_messages(%(id)s, 99501)",
        "select convo.append_message(%(id)s, 'user', 'x')",
        "select * from convo.append_messages(%(id)s, %(batch)s)",
        "select * from convo.message where conversation_id = %(id)s and seq <= 500",
    ],
)
def test_who_is_asking_is_worked_out_once_a_statement(query, plans_db):
    """Policies that call the context's functions for each row would show here."""
    plans_db.execute("set local track_functions = 'all'")
    plans_db.execute("set local role test_app")
    plans_db.execute("select convo.set_context('acme', 'ann')")
    batch = json.dumps([{"role": "user", "content": "x"}] * 500)
    plans_db.execute(query, {"id": BIG, "batch": batch})
    rows = plans_db.execute(
        "select funcname, calls from pg_stat_xact_user_functions"
        " where funcname like 'current_%_id'"
    ).fetchall()
    assert len(rows) == 2
    assert all(calls <= 15 for _, calls in rows), rows


@pytest.mark.parametrize("random_page_cost", ["1.1", "4"])
@pytest.mark.parametrize("is_dry_run", [True, False])
@pytest.mark.parametrize("basis", ["activity", "creation"])
def test_the_purge_reads_what_is_due(
    basis, is_dry_run, random_page_cost, plans_dsn, reads
):
    """100 of 7,023 conversations are due, 5 of them held."""
    with psycopg.connect(plans_dsn) as conn:
        conn.execute(
            """
            insert into convo.retention_policy
            values ('acme', 'standard', '1 day', %s, 'delete'),
                ('tenant 1', 'standard', null, 'activity', 'delete'),
                ('tenant 2', 'standard', '1 year', 'activity', 'delete')
            """,
            (basis,),
        )
        conn.execute(
            """
            update convo.conversation
            set created_at = now() - '2 days'::interval,
                updated_at = now() - '2 days'::interval,
                is_on_hold = conversation_id in (
                    select conversation_id from convo.conversation
                    where user_id = 'bob' order by 1 limit 5
                )
            where conversation_id in (
                select conversation_id from convo.conversation
                where user_id = 'bob' order by 1 limit 100
            )
            """
        )
        conn.execute("set local role test_maintainer")
        conn.execute(f"set local random_page_cost = {random_page_cost}")
        with reads(conn) as read:
            row = conn.execute(
                "select (p).conversations, (p).held from convo.purge(%s) as p",
                (is_dry_run,),
            ).fetchone()
        conn.rollback()
    assert row == (95, 5)
    assert read["conversation"]["sequential"] == 0, read
    assert read["message"]["sequential"] == 0, read
    # Once each to count the held, to lock, to delete, and for its messages' cascade.
    assert read["conversation"]["index"] <= 5 * 100, read
    assert read["message"]["index"] <= 95 * 4 * 2, read


def test_appends_update_the_counters_in_place(plans_dsn):
    """HOT updates: no index holds what an append changes."""
    query = (
        "select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables"
        " where relid = 'convo.conversation'::regclass"
    )
    with psycopg.connect(
        make_conninfo(plans_dsn, user="test_app"), autocommit=True
    ) as conn:
        conn.execute("select set_config('convo.tenant_id', 'hot', false)")
        conn.execute("select set_config('convo.user_id', 'ann', false)")
        conn.execute("select pg_stat_force_next_flush()")
        before = conn.execute(query).fetchone()
        (made,) = conn.execute("select convo.create_conversation()").fetchone()
        for _ in range(300):
            conn.execute("select convo.append_message(%s, 'user', 'x', 1)", (made,))
        conn.execute("select pg_stat_force_next_flush()")
        updates, hot = (
            after - earlier
            for after, earlier in zip(
                conn.execute(query).fetchone(), before, strict=True
            )
        )
        conn.execute("select convo.delete_conversation(%s)", (made,))
    assert updates == 300
    # Not all: a snapshot open elsewhere keeps pages from being pruned. With an index
    # on what an append changes it would be none.
    assert hot >= 0.5 * updates
