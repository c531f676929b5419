"""Many workers that embed at once: each message once, and none forgotten."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("vector")

CLAIM = "select seq from convo.claim_embeddings('m', %s)"
STORE = "select convo.store_embedding(%s, %s, 'm', '{1}')"


def claim(conn, page_size=1000):
    return [seq for (seq,) in conn.execute(CLAIM, (page_size,)).fetchall()]


def test_workers_share_the_messages(connect, crew, make_conversation):
    make_conversation(60)
    workers = [connect("test_service", "acme") for _ in range(8)]

    def work(conn):
        mine = []
        while page := claim(conn, 7):
            mine += page
        return mine

    shares = crew.at_once([lambda c=conn: work(c) for conn in workers])
    assert sorted(seq for share in shares for seq in share) == list(range(1, 61))


def test_a_claim_waits_for_nobody(connect, make_conversation):
    """It leaves out what an open transaction of another worker claims."""
    make_conversation(4)
    first = connect("test_service", "acme", autocommit=False)
    second = connect("test_service", "acme")
    second.execute("set lock_timeout = '1s'")
    assert claim(first, 3) == [1, 2, 3]
    assert claim(second) == [4]
    first.rollback()  # it died
    assert claim(second) == [1, 2, 3]


def test_a_claim_stops_no_append(connect, app, make_conversation):
    conversation = make_conversation(2)
    worker = connect("test_service", "acme", autocommit=False)
    assert claim(worker) == [1, 2]
    app.execute("set lock_timeout = '1s'")
    app.execute("select convo.append_message(%s, 'user', 'more')", (conversation,))
    worker.commit()
    assert claim(worker) == [3]


def test_two_first_embeddings_of_a_model_agree_on_its_length(
    connect, crew, codes, make_conversation
):
    conversation = make_conversation(2)
    conns = [connect("test_service", "acme") for _ in range(2)]
    store = "select convo.store_embedding(%s, %s, 'm', %s::real[])"
    results = crew.at_once(
        [
            lambda: conns[0].execute(store, (conversation, 1, "{1}")),
            lambda: conns[1].execute(store, (conversation, 2, "{1, 1}")),
        ]
    )
    assert sorted(map(str, codes(results))) == ["22023", "None"]


def test_storing_while_the_conversation_is_deleted(
    connect, crew, codes, app, db, make_conversation
):
    for _ in range(10):
        conversation = make_conversation(3)
        conns = [connect("test_service", "acme") for _ in range(2)]
        results = crew.at_once(
            [
                lambda c=conns[0], i=conversation: c.execute(STORE, (i, 1)),
                lambda c=conns[1], i=conversation: c.execute(
                    "select convo.delete_conversation(%s)", (i,)
                ),
            ]
        )
        assert codes(results)[1] is None
        assert codes(results)[0] in (None, "PC001", "PC012", "23503")
    assert db.execute("select count(*) from convo.embedding").fetchone() == (0,)
