"""A context reads what its window holds, however long the conversation is."""

from __future__ import annotations

from uuid import UUID

import pytest

BIG, TAIL, LONG = (UUID(int=n) for n in (1, 2, 3))
# Every message of these has 100 tokens. A row of the window is read twice: to judge its
# group, then with its content. Groups come from a cursor that reads up to 50 ahead.
AHEAD = 50
BUDGET, ROWS = 5000, 50
CALL = "select count(*) from convo.get_context(%s, token_budget => %s)"
RENDER = "select length(convo.render_context(%s, 'openai', token_budget => %s)::text)"

costs = pytest.mark.parametrize("random_page_cost", ["1.1", "4"])


def check(read, rows):
    """The guard: what was read for a context of so many messages."""
    assert read["message"]["sequential"] == 0
    assert read["message"]["index"] <= 2 * rows + AHEAD
    assert read["conversation"] == {"sequential": 0, "index": 1}


@costs
@pytest.mark.parametrize("login", ["test_app", "test_service", "test_reader"])
@pytest.mark.parametrize("conversation", [BIG, TAIL], ids=["big", "deleted tail"])
def test_reads_what_the_window_holds(
    conversation, login, random_page_cost, log_in, reads
):
    conn = log_in(login)
    conn.execute(f"set local random_page_cost = {random_page_cost}")
    for _ in range(7):  # from the sixth time on plans may be generic ones
        with reads(conn) as read:
            (count,) = conn.execute(CALL, (conversation, BUDGET)).fetchone()
        assert ROWS - 1 <= count <= ROWS
        check(read, ROWS)


@pytest.mark.parametrize("budget", [100, 100_000])
def test_windows_of_other_sizes(budget, log_in, reads):
    conn = log_in()
    with reads(conn) as read:
        conn.execute(CALL, (BIG, budget))
    check(read, budget // 100)


@pytest.mark.parametrize(
    "options",
    [
        "strategy => 'last_n', message_limit => 50",
        "strategy => 'token_budget', step_tokens => 2500",
        "open_calls => 'keep', message_overhead => 5",
    ],
)
def test_any_policy(options, plans_db, reads):
    plans_db.execute("select convo.set_context('acme')")
    plans_db.execute(
        f"select convo.set_policy('default', token_budget => {BUDGET}, {options})"
    )
    as_app(plans_db)
    with reads(plans_db) as read:
        plans_db.execute(CALL, (BIG, BUDGET))
    check(read, ROWS)


def test_after_a_summary(plans_db, reads):
    as_app(plans_db)
    plans_db.execute("select convo.save_summary(%s, 'so far', 99000, 0)", (BIG,))
    with reads(plans_db) as read:
        plans_db.execute(CALL, (BIG, BUDGET))
    check(read, ROWS)


def test_nothing_outside_is_detoasted(log_in, reads):
    conn = log_in()
    with reads(conn) as read:
        query = "select content from convo.get_context(%s, token_budget => 1000)"
        rows = len(conn.execute(query, (LONG,)).fetchall())
    assert 9 <= rows <= 10
    # A content of 3,200 bytes lies in two chunks.
    assert read["toast"]["sequential"] == 0
    assert read["toast"]["index"] <= 2 * 10


@costs
@pytest.mark.parametrize("conversation", [BIG, TAIL], ids=["big", "deleted tail"])
def test_rendering_reads_it_once_more(conversation, random_page_cost, log_in, reads):
    conn = log_in()
    conn.execute(f"set local random_page_cost = {random_page_cost}")
    for _ in range(7):
        with reads(conn) as read:
            conn.execute(RENDER, (conversation, BUDGET))
        assert read["message"]["sequential"] == 0
        assert read["message"]["index"] <= 3 * ROWS + AHEAD


# The guard must notice what it guards against.


def as_app(conn):
    conn.execute("set local role test_app")
    conn.execute("select convo.set_context('acme', 'ann')")
    conn.execute("set local random_page_cost = 4")


def test_a_missing_index_is_noticed(plans_db, reads):
    plans_db.execute("drop index convo.message_group_seq_idx")
    as_app(plans_db)
    with reads(plans_db) as read:
        plans_db.execute(CALL, (TAIL, BUDGET))
    with pytest.raises(AssertionError):
        check(read, ROWS)


def test_a_scan_of_all_groups_is_noticed(plans_db, reads):
    function = "convo._scan_groups(convo.conversation, convo.policy_record, integer,"
    function += " bigint, boolean)"
    (definition,) = plans_db.execute(
        "select pg_get_functiondef(%s::regprocedure)", (function,)
    ).fetchone()
    end = "exit when is_full and not _scan_groups.is_explained;"
    assert end in definition
    plans_db.execute(definition.replace(end, "").encode())
    as_app(plans_db)
    with reads(plans_db) as read:
        plans_db.execute(CALL, (BIG, BUDGET))
    with pytest.raises(AssertionError):
        check(read, ROWS)
