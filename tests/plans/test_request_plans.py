"""A turn reads its window, however long the conversation is, and is small."""

from __future__ import annotations

from uuid import UUID

import pytest

BIG, LONG = UUID(int=1), UUID(int=3)
WINDOW = 80  # messages of 100 tokens in a budget of 8,000


@pytest.mark.parametrize("random_page_cost", ["1.1", "4"])
def test_preparing_and_replaying_reads_the_window(random_page_cost, log_in, reads):
    conn = log_in()
    conn.execute(f"set local random_page_cost = {random_page_cost}")
    for _ in range(7):  # from the sixth time on plans may be generic ones
        with reads(conn) as prepared:
            (request_id, body) = conn.execute(
                "select request_id, body from convo.prepare_request(%s, 'openai')",
                (BIG,),
            ).fetchone()
        with reads(conn) as replayed:
            again = conn.execute(
                "select convo.replay_request(%s)", (request_id,)
            ).fetchone()
        assert again == (body,)
        for counts, most in ((prepared, 4 * WINDOW + 20), (replayed, WINDOW)):
            assert counts["message"]["sequential"] == 0
            assert WINDOW - 1 <= counts["message"]["index"] <= most


def test_a_list_of_requests_reads_its_page(log_in, plans_db, explain):
    conn = log_in()
    conn.execute("select convo.prepare_request(%s, 'openai')", (LONG,))
    for _ in range(9):
        conn.execute(
            "insert into convo.request (tenant_id, request_id, conversation_id,"
            " frame_id, created_at, token_count, edit_count, user_id, body_sha256,"
            " messages)"
            " select tenant_id, gen_random_uuid(), conversation_id, frame_id,"
            " created_at + (row_number() over ()) * interval '1 s', token_count,"
            " edit_count, user_id, body_sha256, messages from convo.request"
        )
    # No statistics: the rows are of this transaction.
    for other in ("seqscan", "bitmapscan", "sort"):
        conn.execute(f"set local enable_{other} = off")
    for mode in ("custom", "generic"):
        plan = explain(
            conn, "convo.list_requests($1, page_size => 5)", "uuid", LONG, mode=mode
        )
        assert plan.rows == 5
        assert plan.is_inlined()
        assert plan.read("request") <= 6
        assert plan.largest_sort() <= 6
