"""Writers of one conversation never collide, and readers never see a gap."""

from __future__ import annotations

import json
from threading import Event

import psycopg
import pytest

WRITERS, EACH = 16, 200


def test_sixteen_writers_lose_nothing(
    apps, app, crew, db, make_conversation, check_invariants
):
    conversation = make_conversation()
    ended = Event()

    def write(number, conn):
        def run():
            return [
                conn.execute(
                    "select (convo.append_message(%s, 'user', %s, 1)).seq",
                    (conversation, f"{number}-{i}"),
                ).fetchone()[0]
                for i in range(EACH)
            ]

        return run

    def read():
        seen = polls = 0
        while True:
            last_poll = ended.is_set()
            rows = app.execute(
                "select seq from convo.list_messages(%s, null, %s, 1000)",
                (conversation, seen),
            ).fetchall()
            # What is new comes right after what was read: no gap, nothing before it.
            assert [seq for (seq,) in rows] == list(
                range(seen + 1, seen + len(rows) + 1)
            )
            seen += len(rows)
            polls += 1
            if last_poll and not rows:
                return seen, polls

    reader = crew.pool.submit(read)
    results = crew.at_once([write(n, conn) for n, conn in enumerate(apps(WRITERS))])
    ended.set()
    seen, polls = reader.result(60)

    assert sorted(seq for seqs in results for seq in seqs) == list(
        range(1, WRITERS * EACH + 1)
    )
    assert all(seqs == sorted(seqs) for seqs in results)
    assert (seen, polls > 10) == (WRITERS * EACH, True)
    stored = db.execute("select seq, content from convo.message").fetchall()
    assert {content: seq for seq, content in stored} == {
        f"{n}-{i}": seq for n, seqs in enumerate(results) for i, seq in enumerate(seqs)
    }
    check_invariants(db)


def test_batches_of_many_writers_stay_together(
    apps, crew, db, make_conversation, check_invariants
):
    conversation = make_conversation()

    def write(number, conn):
        batch = json.dumps([{"role": "user", "content": str(number)}] * 7)
        return lambda: [
            conn.execute(
                "select seq from convo.append_messages(%s, %s)", (conversation, batch)
            ).fetchall()
            for _ in range(20)
        ]

    results = crew.at_once([write(n, conn) for n, conn in enumerate(apps(8))])
    for batches in results:
        for batch in batches:
            first = batch[0][0]
            assert [seq for (seq,) in batch] == list(range(first, first + 7))
    assert db.execute("select count(*) from convo.message").fetchone() == (8 * 20 * 7,)
    check_invariants(db)


@pytest.mark.parametrize(
    "append",
    [
        "select (convo.append_message(%s, 'user', %s, 1, expected_seq => %s)).seq",
        "select seq from convo.append_messages(%s, json_build_object("
        "'role', 'user', 'content', %s::text), expected_seq => %s)",
    ],
)
def test_expected_seq_has_one_winner_per_seq(
    append, apps, crew, db, make_conversation, check_invariants
):
    conversation = make_conversation()

    def write(conn):
        def run():
            won = []
            for expected in range(60):
                try:
                    row = conn.execute(append, (conversation, "x", expected)).fetchone()
                    won.append(row[0])
                except psycopg.Error as error:
                    assert error.sqlstate == "PC010", error
                    # Too early is possible only if the writer before hasn't won yet.
                    assert f'"expected_seq": {expected}' in error.diag.message_detail
            return won

        return run

    results = crew.at_once([write(conn) for conn in apps(8)])
    winners = sorted(seq for seqs in results for seq in seqs)
    assert winners == list(range(1, len(winners) + 1))
    assert db.execute("select count(*) from convo.message").fetchone() == (60,)
    assert len(winners) == 60
    check_invariants(db)


def test_expected_seq_is_compared_under_the_lock(app, apps, crew, make_conversation):
    conversation = make_conversation(3)
    (late,) = apps(1)
    with app.transaction():
        app.execute("select convo.append_message(%s, 'user', 'a')", (conversation,))
        waiting = crew.blocked(
            late,
            "select (convo.append_message(%s, 'user', 'b', expected_seq => 3)).seq",
            conversation,
        )
    with pytest.raises(psycopg.Error) as raised:
        waiting.result(10)
    assert raised.value.sqlstate == "PC010"
    assert '"last_seq": 4' in raised.value.diag.message_detail
