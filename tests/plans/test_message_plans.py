"""Windows and pages read what they return, however long the conversation is."""

from __future__ import annotations

from uuid import UUID

import pytest

BIG, TAIL, LONG = (UUID(int=n) for n in (1, 2, 3))
SLACK = 4  # rows beyond those returned: where the scan notices that it has enough
CALLS = {
    "token_window": ("convo.token_window($1, $2)", "uuid, int", 5000, 50),
    "last_messages": ("convo.last_messages($1, $2)", "uuid, int", 20, 20),
    "newest page": ("convo.list_messages($1, page_size => $2)", "uuid, int", 30, 30),
    "page before": ("convo.list_messages($1, 30000, null, $2)", "uuid, int", 30, 30),
    "page after": ("convo.list_messages($1, null, 30000, $2)", "uuid, int", 30, 30),
    "page between": ("convo.list_messages($1, 35000, 30000, $2)", "uuid, int", 30, 30),
}

costs = pytest.mark.parametrize("random_page_cost", ["1.1", "4"])
modes = pytest.mark.parametrize("mode", ["custom", "generic"])


def check(plan, rows):
    """The guard: rows read, kinds of scans and sorts of a bounded read."""
    assert plan.rows == rows
    assert plan.is_inlined()
    assert plan.read("message") <= rows + SLACK
    assert plan.kinds("message") == {"Index Scan"}
    assert plan.largest_sort() <= rows


@costs
@modes
@pytest.mark.parametrize("conversation", [BIG, TAIL], ids=["big", "deleted tail"])
@pytest.mark.parametrize("name", CALLS)
def test_reads_what_it_returns(
    name, conversation, mode, random_page_cost, log_in, explain
):
    call, types, size, rows = CALLS[name]
    conn = log_in()
    conn.execute(f"set local random_page_cost = {random_page_cost}")
    check(explain(conn, call, types, conversation, size, mode=mode), rows)


@costs
@modes
@pytest.mark.parametrize("login", ["test_service", "test_reader"])
def test_a_window_for_a_whole_tenant(login, mode, random_page_cost, log_in, explain):
    call, types, size, rows = CALLS["token_window"]
    conn = log_in(login)
    conn.execute(f"set local random_page_cost = {random_page_cost}")
    check(explain(conn, call, types, BIG, size, mode=mode), rows)


@modes
@pytest.mark.parametrize(
    ("budget", "rows"), [(0, 0), (99, 0), (100, 1), (100_000, 1000)]
)
def test_windows_of_other_sizes(budget, rows, mode, log_in, explain):
    call, types, *_ = CALLS["token_window"]
    check(explain(log_in(), call, types, BIG, budget, mode=mode), rows)


@modes
@pytest.mark.parametrize("name", CALLS)
def test_a_conversation_of_another_user(name, mode, log_in, explain):
    call, types, size, _ = CALLS[name]
    conn = log_in(user="bob")
    plan = explain(conn, call, types, BIG, size, mode=mode)
    assert plan.rows == 0


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("select * from convo.token_window(%s, 1000)", 10),
        ("select * from convo.last_messages(%s, 10)", 10),
        ("select * from convo.list_messages(%s, page_size => 10)", 10),
    ],
)
def test_nothing_outside_is_detoasted(query, rows, log_in, reads):
    conn = log_in()
    with reads(conn) as read:
        assert len(conn.execute(query, (LONG,)).fetchall()) == rows
    # A content of 3,200 bytes lies in two chunks.
    assert read["toast"] == {"sequential": 0, "index": 2 * rows}


def test_numbers_alone_detoast_nothing(log_in, reads):
    conn = log_in()
    with reads(conn) as read:
        conn.execute(
            "select seq, running_tokens from convo.token_window(%s, 100000)", (LONG,)
        )
    assert read["toast"] == {"sequential": 0, "index": 0}


# The guard must notice what it guards against.

FUNCTION = (
    "select pg_get_functiondef('convo.token_window(uuid, integer)'::regprocedure)"
)


def as_app(conn):
    conn.execute("set local role test_app")
    conn.execute("select convo.set_context('acme', 'ann')")
    conn.execute("set local random_page_cost = 4")


@modes
@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("token_window", "message_group_seq_idx"),
        ("last_messages", "message_seq_idx"),
    ],
)
def test_a_missing_index_is_noticed(name, index, mode, plans_db, explain):
    plans_db.execute(f"drop index convo.{index}")
    as_app(plans_db)
    call, types, size, rows = CALLS[name]
    plan = explain(plans_db, call, types, TAIL, size, mode=mode)
    with pytest.raises(AssertionError):
        check(plan, rows)


@modes
@pytest.mark.parametrize(
    ("old", "new"),
    [("over_budget <= 0", "running_tokens <= token_budget")],
    ids=["no run condition"],
)
def test_another_window_query_is_noticed(old, new, mode, plans_db, explain):
    (definition,) = plans_db.execute(FUNCTION).fetchone()
    assert old in definition
    plans_db.execute(definition.replace(old, new))
    as_app(plans_db)
    call, types, size, rows = CALLS["token_window"]
    plan = explain(plans_db, call, types, BIG, size, mode=mode)
    with pytest.raises(AssertionError):
        check(plan, rows)


def test_a_missing_fence_is_noticed(plans_db, explain):
    """Where reading an index is dear: one conversation, its rows all over the table."""
    plans_db.execute(
        """
        set local session_replication_role = replica;
        create temporary table shuffled as
        select * from convo.message where conversation_id = %s order by random();
        truncate convo.conversation cascade;
        insert into convo.message select * from shuffled;
        analyze convo.message
        """.replace("%s", f"'{BIG}'")
    )
    (definition,) = plans_db.execute(FUNCTION).fetchone()
    call, types, size, rows = CALLS["token_window"]

    def explain_dear_reads():
        with plans_db.transaction(force_rollback=True):
            as_app(plans_db)
            plans_db.execute("set local random_page_cost = 20")
            return explain(plans_db, call, types, BIG, size, mode="generic")

    check(explain_dear_reads(), rows)
    fence = definition[definition.index("LIMIT") : definition.index(") m)")]
    plans_db.execute(definition.replace(fence, ""))
    with pytest.raises(AssertionError):
        check(explain_dear_reads(), rows)
