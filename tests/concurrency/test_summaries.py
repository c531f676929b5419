"""Workers that summarise at once, and what a crash of one leaves."""

from __future__ import annotations

import pytest

IMPATIENT = "-c lock_timeout=5s"
COVERED = "select conversation_id, through_seq from convo.summary order by 1, 2"


@pytest.fixture
def due(service, make_conversation):
    """Make conversations of 12 messages; a summary is due over 4 tokens."""
    service.execute(
        "select convo.set_policy('default', summary_threshold => 4, summary_share => 1)"
    )
    return lambda count: [make_conversation(12) for _ in range(count)]


def claim(worker, page_size, lease="5 min"):
    rows = worker.execute(
        "select conversation_id from convo.claim_summaries(%s, %s)", (lease, page_size)
    )
    return [conversation_id for (conversation_id,) in rows]


def work(worker):
    """Summarise until nothing is due, and return the batches that were saved."""
    saved = []
    while claimed := claim(worker, 3):
        for conversation_id in claimed:
            row = worker.execute(
                "select previous_through_seq, through_seq"
                " from convo.summary_batch(%s, 3)",
                (conversation_id,),
            ).fetchone()
            worker.execute(
                "select convo.save_summary(%s, 'text', %s, %s)",
                (conversation_id, row[1], row[0]),
            )
            saved.append((conversation_id, row[1]))
    return saved


def test_workers_share_the_work_and_no_batch_is_done_twice(connect, crew, due, db):
    conversations = due(12)
    workers = [connect("test_service", "acme") for _ in range(4)]

    results = crew.at_once([lambda w=worker: work(w) for worker in workers])

    saved = sorted(batch for result in results for batch in result)
    assert saved == db.execute(COVERED).fetchall()
    # 12 tokens, 3 a summary, until no more than 4 are left
    assert len(saved) == 3 * len(conversations)


def test_a_claim_that_is_not_committed_blocks_nobody(connect, due):
    conversations = due(4)
    first = connect("test_service", "acme", autocommit=False)
    second = connect("test_service", "acme", options=IMPATIENT)

    one, two = claim(first, 2), claim(second, 10)

    assert sorted(one + two) == sorted(conversations)
    first.rollback()
    assert sorted(claim(second, 10)) == sorted(one)


def test_what_a_crashed_worker_had_comes_back(connect, crew, due, db):
    conversations = due(2)
    crashed, other = (connect("test_service", "acme") for _ in range(2))
    assert sorted(claim(crashed, 10, "200 ms")) == sorted(conversations)
    db.execute("select pg_terminate_backend(%s)", (crashed.info.backend_pid,))
    assert claim(other, 10) == []

    other.execute("select pg_sleep(0.25)")

    assert sorted(claim(other, 10)) == sorted(conversations)


def test_a_conversation_that_is_written_to_is_left_for_the_next_claim(
    connect, app, due
):
    (conversation_id,) = due(1)
    worker = connect("test_service", "acme", options=IMPATIENT)
    with app.transaction():
        app.execute("select convo.append_message(%s, 'user', 'x')", (conversation_id,))
        assert claim(worker, 10) == []

    assert claim(worker, 10) == [conversation_id]


def test_of_two_that_have_the_same_batch_one_saves_it(connect, crew, codes, due):
    (conversation_id,) = due(1)
    workers = [connect("test_service", "acme") for _ in range(2)]

    results = crew.at_once(
        [
            lambda w=worker: w.execute(
                "select convo.save_summary(%s, 'text', 3, 0)", (conversation_id,)
            )
            for worker in workers
        ]
    )

    assert sorted(map(str, codes(results))) == ["None", "PC010"]
