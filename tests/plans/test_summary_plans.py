"""Claims read what may be due, and contexts no more when a conversation gets long."""

from __future__ import annotations

from uuid import UUID

import pytest

BIG, TAIL, LONG = (UUID(int=n) for n in (1, 2, 3))
CLAIM = "select count(*) from convo.claim_summaries(page_size => %s)"


def as_service(conn):
    conn.execute("set local role test_service")
    conn.execute("select convo.set_context('acme')")


@pytest.mark.parametrize("mode", ["custom", "generic"])
@pytest.mark.parametrize("random_page_cost", ["1.1", "4"])
def test_a_claim_reads_what_is_due(plans_db, reads, random_page_cost, mode):
    """Three of 5,023 conversations are; the others are looked at once."""
    as_service(plans_db)
    plans_db.execute(f"set local random_page_cost = {random_page_cost}")
    plans_db.execute(f"set local plan_cache_mode = force_{mode}_plan")
    assert plans_db.execute(CLAIM, (10,)).fetchone() == (3,)
    plans_db.execute("update convo.conversation set summary_leased_until = null")
    plans_db.execute("reset role")
    plans_db.execute("analyze convo.conversation")
    plans_db.execute("set local role test_service")
    for _ in range(7):  # from the sixth time on plans may be generic ones
        with plans_db.transaction(force_rollback=True), reads(plans_db) as read:
            assert plans_db.execute(CLAIM, (10,)).fetchone() == (3,)
        assert read["conversation"]["sequential"] == 0
        # found, locked, updated; and once more to see that nothing else is there
        assert read["conversation"]["index"] <= 5 * 3
        with reads(plans_db) as read:
            assert plans_db.execute(CLAIM, (0,)).fetchone() == (0,)
        assert read["conversation"] == {"sequential": 0, "index": 0}


def test_an_append_stays_hot(plans_db):
    """It changes no index of the conversation but when it passes the mark."""
    as_service(plans_db)
    plans_db.execute(CLAIM, (10,))
    query = (
        "select n_tup_hot_upd, n_tup_upd from pg_stat_xact_user_tables"
        " where relid = 'convo.conversation'::regclass"
    )
    (made,) = plans_db.execute(
        "select convo.create_conversation(user_id => 'ann')"
    ).fetchone()
    before = plans_db.execute(query).fetchone()
    for _ in range(5):
        plans_db.execute("select convo.append_message(%s, 'user', 'x', 10)", (made,))
    after = plans_db.execute(query).fetchone()
    assert [b - a for a, b in zip(before, after, strict=True)] == [5, 5]


def test_stale_summaries_are_found_by_index(plans_db, reads):
    as_service(plans_db)
    plans_db.execute("select convo.save_summary(%s, 'so far', 50, 0)", (BIG,))
    plans_db.execute("select convo.edit_message(%s, 7, 'x')", (BIG,))
    for _ in range(7):
        with reads(plans_db) as read:
            rows = plans_db.execute("select * from convo.list_stale_summaries()")
            assert rows.fetchall() == [(BIG, 50, 7)]
        assert read["conversation"] == {"sequential": 0, "index": 1}


def test_a_batch_reads_its_messages(plans_db, reads):
    as_service(plans_db)
    plans_db.execute("select convo.save_summary(%s, 'so far', 50000, 0)", (BIG,))
    query = "select through_seq from convo.summary_batch(%s)"
    for _ in range(7):
        with reads(plans_db) as read:
            assert plans_db.execute(query, (BIG,)).fetchone() == (50020,)
        assert read["message"]["sequential"] == 0
        # the batch twice, up to 50 ahead, and back to the tenth newest user message
        assert read["message"]["index"] <= 2 * 20 + 50 + 30


def test_with_summaries_a_context_reads_as_much_after_10000_messages_as_after_100(
    plans_db, reads
):
    """A summary every 50 messages."""
    as_service(plans_db)
    plans_db.execute("select convo.set_policy('default', token_budget => 100000)")
    (made,) = plans_db.execute(
        "select convo.create_conversation(user_id => 'ann')"
    ).fetchone()
    counted = []
    for last in range(50, 10001, 50):
        plans_db.execute(
            "select count(convo.append_message(%s, 'user', 'x', 10))"
            " from generate_series(1, 50)",
            (made,),
        )
        if last in (100, 10000):
            with reads(plans_db) as read:
                plans_db.execute("select count(*) from convo.get_context(%s)", (made,))
            # the few summaries are one page, which may be read through
            counted.append([read[name] for name in ("conversation", "message")])
        plans_db.execute(
            "select convo.save_summary(%s, 'so far', %s, %s)",
            (made, last - 10, max(last - 60, 0)),
        )
    first, last = counted
    assert first[0] == {"sequential": 0, "index": 1}
    assert first[1]["index"] <= 3 * 60
    assert last == first


def test_memories_of_a_context_go_by_index(plans_db, reads):
    plans_db.execute(
        "insert into convo.memory select 'acme', 'ann', n::text, 'x', 1, null, now(),"
        " now(), now() - n * '1 min'::interval from generate_series(1, 10000) as n"
    )
    plans_db.execute("analyze convo.memory")
    as_service(plans_db)
    query = "select count(*) from convo.get_context(%s, token_budget => 1000)"
    for _ in range(7):
        with reads(plans_db) as read:
            plans_db.execute(query, (BIG,))
        assert read["memory"]["sequential"] == 0
        assert read["memory"]["index"] <= 20


@pytest.mark.parametrize("mode", ["custom", "generic"])
def test_recalled_messages_are_read_one_by_one(plans_db, reads, mode):
    plans_db.execute(
        "create or replace function convo._recall_messages("
        " conversation convo.conversation, policy convo.policy_record,"
        " before_seq integer) returns integer[] language sql stable"
        " return array[11, 22, 33, 44, 55]"
    )
    as_service(plans_db)
    plans_db.execute(f"set local plan_cache_mode = force_{mode}_plan")
    plans_db.execute("select convo.set_policy('default', 'hybrid', recall_limit => 5)")
    query = (
        "select count(*) filter (where kind = 'recalled'), count(*)"
        " from convo.get_context(%s, token_budget => 2000)"
    )
    for _ in range(3):
        with reads(plans_db) as read:
            assert plans_db.execute(query, (BIG,)).fetchone() == (5, 20)
        assert read["message"]["sequential"] == 0
        # the window twice, up to 50 ahead, its content; each recalled three times
        assert read["message"]["index"] <= 2 * (20 + 50) + 20 + 3 * 5
