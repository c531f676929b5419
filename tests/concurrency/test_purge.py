"""The purge: two at once, killed, beside writers and beside legal holds."""

from __future__ import annotations

import time
from threading import Event

import psycopg
import pytest

PURGE = (
    "select (p).conversations, (p).messages, (p).held from convo.purge(false, %s) as p"
)
HOLD = "select (convo.hold_conversation(%s, 'lawsuit')).is_on_hold"
APPEND = "select (convo.append_message(%s, 'user', 'x', 1)).seq"
MESSAGES = 10


@pytest.fixture
def make_due(db):
    """Make conversations of 5 users that are due, 10 messages each, newest first."""

    def make(count, tenant="acme", basis="activity"):
        db.execute(
            "insert into convo.retention_policy values (%s, 'standard', '1 day', %s,"
            " 'delete')"
            " on conflict do nothing",
            (tenant, basis),
        )
        with db.transaction():
            made = db.execute(
                """
                insert into convo.conversation (
                    tenant_id, conversation_id, user_id, retention_class, last_seq,
                    message_count, token_total, body_count, body_tokens, created_at,
                    updated_at
                )
                select
                    %(tenant)s, gen_random_uuid(), 'user ' || n %% 5, 'standard', 10,
                    10, 20, 10, 20, now() - '3 days'::interval - n * '1s'::interval,
                    now() - '2 days'::interval
                from generate_series(1, %(count)s) as n
                returning conversation_id
                """,
                {"tenant": tenant, "count": count},
            ).fetchall()
            db.execute(
                """
                insert into convo.message (
                    tenant_id, conversation_id, seq, user_id, role, content, tokens,
                    is_estimated, is_empty, group_seq, created_at
                )
                select
                    c.tenant_id, c.conversation_id, n, c.user_id, 'user', 'text', 2,
                    false, false, n, c.created_at
                from convo.conversation as c
                cross join generate_series(1, 10) as n
                where c.tenant_id = %s and c.last_seq = 10 and not exists (
                    select
                    from convo.message as m
                    where (m.tenant_id, m.conversation_id)
                        = (c.tenant_id, c.conversation_id)
                )
                """,
                (tenant,),
            )
        return [conversation for (conversation,) in made]

    return make


@pytest.fixture
def purgers(connect):
    options = "-c lock_timeout=10s"
    return [connect("test_maintainer", options=options) for _ in range(3)]


@pytest.fixture
def check_books(db, check_invariants):
    """Whole conversations went, each with a tombstone, and the log counts them."""

    def check(gone):
        check_invariants(db)
        counted = db.execute(
            "select (select count(*) from convo.tombstone),"
            " coalesce(sum(conversations), 0), coalesce(sum(messages), 0)"
            " from convo.purge_run"
        ).fetchone()
        assert counted == (gone, gone, gone * MESSAGES)

    return check


def remaining(db):
    return db.execute("select count(*) from convo.conversation").fetchone()[0]


def purge_until_nothing(conn, page_size):
    done = []
    while True:
        conversations, messages, _ = conn.execute(PURGE, (page_size,)).fetchone()
        assert messages >= conversations * MESSAGES
        if conversations == 0:
            return sum(done)
        done.append(conversations)


def test_purgers_at_once_share_the_work(purgers, crew, db, make_due, check_books):
    make_due(200)
    make_due(100, tenant="globex", basis="creation")
    jobs = [lambda c=conn: purge_until_nothing(c, 7) for conn in purgers]
    shares = crew.at_once(jobs)
    assert sum(shares) == 300
    assert all(share > 0 for share in shares)
    assert remaining(db) == 0
    check_books(300)


def test_a_second_purger_doesnt_wait(purgers, db, make_due, check_books):
    make_due(20)
    one, other, _ = purgers
    with one.transaction():
        assert one.execute(PURGE, (15,)).fetchone() == (15, 150, 0)
        assert other.execute(PURGE, (15,)).fetchone() == (5, 50, 0)
    assert remaining(db) == 0
    check_books(20)


def test_a_conversation_that_is_being_written_to_is_skipped(
    connect, purgers, db, make_due, check_books
):
    busy, _ = make_due(2)
    (user,) = db.execute(
        "select user_id from convo.conversation where conversation_id = %s", (busy,)
    ).fetchone()
    writer = connect("test_app", "acme", user)
    with writer.transaction(force_rollback=True):
        writer.execute(APPEND, (busy,))
        assert purgers[0].execute(PURGE, (10,)).fetchone() == (1, 10, 0)
    assert db.execute("select conversation_id from convo.conversation").fetchall() == [
        (busy,)
    ]
    check_books(1)


def test_what_was_written_to_stays(connect, purgers, crew, db, make_due, codes):
    """An append that was acknowledged is an activity: the purge must see it."""
    conversations = make_due(250)
    service = [connect("test_service", "acme") for _ in range(3)]
    ended = Event()

    def write(number, conn):
        def run():
            kept, lost = [], []
            # From the side where the purge arrives last, so that they meet.
            for conversation in conversations[number::3]:
                try:
                    conn.execute(APPEND, (conversation,))
                    kept.append(conversation)
                except psycopg.Error as error:
                    lost.append(error)
            return kept, codes(lost)

        return run

    def purge():
        total = 0
        while not ended.is_set():
            total += purgers[0].execute(PURGE, (3,)).fetchone()[0]
        return total

    purging = crew.pool.submit(purge)
    results = crew.at_once([write(n, conn) for n, conn in enumerate(service)])
    ended.set()
    purged = purging.result(20)
    kept = {conversation for result in results for conversation in result[0]}
    left = {
        conversation
        for (conversation,) in db.execute(
            "select conversation_id from convo.conversation"
        )
    }
    assert kept <= left
    assert {code for result in results for code in result[1]} <= {"PC012"}
    assert kept and purged == len(conversations) - len(left)


@pytest.mark.parametrize("deletion", ["purge", "delete"])
def test_what_is_held_stays(
    deletion, connect, purgers, service, crew, db, make_due, codes
):
    """Once hold_conversation has returned, nothing takes the conversation away."""
    conversations = make_due(120)
    holder = connect("test_service", "acme")
    ended = Event()

    def hold():
        held, lost = [], []
        # From the side where the purge arrives last, so that they meet.
        for conversation in conversations:
            try:
                holder.execute(HOLD, (conversation,))
                held.append(conversation)
            except psycopg.Error as error:
                lost.append(error)
            left = db.execute(
                "select count(*) from convo.conversation"
                " where conversation_id = any (%s)",
                (held,),
            ).fetchone()
            assert left == (len(held),)
        return held, codes(lost)

    def remove():
        if deletion == "purge":
            return sum(
                purgers[0].execute(PURGE, (2,)).fetchone()[0]
                for _ in iter(ended.is_set, True)
            )
        refused = []
        for conversation in reversed(conversations):
            try:
                service.execute("select convo.delete_conversation(%s)", (conversation,))
            except psycopg.Error as error:
                refused.append(error)
        assert set(codes(refused)) <= {"PC040"}
        return len(conversations) - len(refused)

    removing = crew.pool.submit(remove)
    held, lost = hold()
    ended.set()
    removed = removing.result(20)
    assert set(lost) <= {"PC012"}
    assert len(held) + len(lost) == 120
    assert held and removed
    assert removed == 120 - remaining(db)
    assert remaining(db) == len(held)


def test_a_hold_that_is_not_committed_yet(
    service, purgers, crew, connect, db, make_due
):
    (conversation,) = make_due(1)
    other = connect("test_service", "acme")
    with service.transaction():
        service.execute(HOLD, (conversation,))
        assert purgers[0].execute(PURGE, (5,)).fetchone() == (0, 0, 0)
        waiting = crew.blocked(
            other, "select convo.delete_conversation(%s)", conversation
        )
    with pytest.raises(psycopg.Error) as raised:
        waiting.result(10)
    assert raised.value.sqlstate == "PC040"
    assert purgers[0].execute(PURGE, (5,)).fetchone() == (0, 0, 1)
    assert remaining(db) == 1


def test_a_hold_that_comes_too_late(service, purgers, crew, make_due):
    (conversation,) = make_due(1)
    with purgers[0].transaction():
        assert purgers[0].execute(PURGE, (5,)).fetchone() == (1, 10, 0)
        waiting = crew.blocked(service, HOLD, conversation)
    with pytest.raises(psycopg.Error) as raised:
        waiting.result(10)
    assert raised.value.sqlstate == "PC012"


def test_a_purge_that_is_terminated(connect, crew, db, rng, make_due, check_books):
    """Wherever it is cut off, whole conversations have gone; the next run goes on."""
    make_due(400)
    interrupted = 0
    for _ in range(12):
        purger = connect("test_maintainer")
        running = crew.pool.submit(purger.execute, "call convo.purge_all(10)")
        time.sleep(rng.uniform(0, 0.03))
        db.execute("select pg_terminate_backend(%s)", (purger.info.backend_pid,))
        try:
            running.result(10)
        except psycopg.OperationalError:
            interrupted += 1
        check_books(400 - remaining(db))
    assert interrupted > 0
    connect("test_maintainer").execute("call convo.purge_all(100)")
    assert remaining(db) == 0
    check_books(400)


def test_a_purge_while_conversations_with_its_prompts_are_made(
    connect, purgers, crew, db, codes, check_invariants
):
    users = [connect("test_app", "acme", "ann") for _ in range(3)]
    create = "select convo.create_conversation(system_prompt => %s)"
    db.execute(
        "insert into convo.retention_policy"
        " values ('acme', 'standard', '0', 'activity', 'delete')"
    )
    ended = Event()

    def make(conn):
        return lambda: [
            conn.execute(create, (f"prompt {n % 2}",)).fetchone() and None
            for n in range(40)
        ]

    def purge():
        while not ended.is_set():
            purgers[0].execute(PURGE, (4,))

    purging = crew.pool.submit(purge)
    results = crew.at_once([make(conn) for conn in users])
    ended.set()
    purging.result(20)
    assert set(codes(results)) == {None}
    purgers[0].execute("call convo.purge_all()")
    assert db.execute("select count(*) from convo.prompt").fetchone() == (0,)
    check_invariants(db)
