"""What searches and claims read, of a user's rows and of a tenant's."""

from __future__ import annotations

import psycopg
import pytest

from .conftest import BIG

pytestmark = pytest.mark.usefixtures("vector")

# 3,000 messages of ann's and 9,000 of bob's have an embedding, pointing all ways.
EMBEDDINGS = f"""
insert into convo.embedding_model values ('acme', 'm', 8);
insert into convo.embedding (
    tenant_id, conversation_id, seq, model, user_id, revision, dimension, embedding
)
select m.tenant_id, m.conversation_id, m.seq, 'm', m.user_id, 1, 8, (
    select array_agg(hashfloat8(m.seq * 8 + n + hashtext(m.user_id))::real)
    from generate_series(1, 8) as n
)
from (
    (
        select m.* from convo.message as m
        where m.tenant_id = 'acme' and m.conversation_id = '{BIG}' and m.seq <= 3000
    )
    union all
    (
        select m.* from convo.message as m
        where m.tenant_id = 'acme' and m.user_id = 'bob'
        order by m.conversation_id, m.seq limit 9000
    )
) as m;
"""
HNSW = """
create index embedding_acme_idx on convo.embedding
using hnsw ((embedding::vector(8)) vector_cosine_ops)
where tenant_id = 'acme' and model = 'm'
"""
SEARCH = "select seq from convo.search_similar('{1, 1, 1, 1, 1, 1, 1, 1}', 'm')"


@pytest.fixture(scope="module")
def embedded(plans_dsn, make_database):
    """The database with embeddings, to which the other tests don't come."""
    name = psycopg.conninfo.conninfo_to_dict(plans_dsn)["dbname"]
    dsn = make_database(template=name)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(EMBEDDINGS)
        conn.execute("vacuum analyze convo.embedding")
    return dsn


@pytest.fixture
def index(embedded):
    """What a tenant that wants approximate search has."""
    with psycopg.connect(embedded, autocommit=True) as conn:
        conn.execute(HNSW)
        yield
        conn.execute("drop index convo.embedding_acme_idx")


@pytest.fixture
def log_in(embedded):
    """Connect as a login; its transaction ends before an index goes."""
    opened = []

    def log_in(login="test_app", user="ann"):
        conn = psycopg.connect(psycopg.conninfo.make_conninfo(embedded, user=login))
        opened.append(conn)
        conn.execute("select convo.set_context('acme', %s)", (user,))
        return conn

    yield log_in
    for conn in opened:
        conn.close()


def test_a_search_reads_the_users_embeddings_and_the_messages_it_gives(log_in, reads):
    conn = log_in()
    with reads(conn) as counted:
        assert len(conn.execute(SEARCH).fetchall()) == 20
    assert counted["embedding"] == {"sequential": 0, "index": 3000}
    assert counted["message"]["sequential"] == 0
    assert counted["message"]["index"] <= 2 * 20 + 5


def test_a_search_within_a_conversation_reads_its_embeddings(log_in, reads):
    conn = log_in("test_service")
    (other,) = conn.execute(
        "select conversation_id from convo.embedding where user_id = 'bob' limit 1"
    ).fetchone()
    with reads(conn) as counted:
        conn.execute(SEARCH.replace("'m')", "'m', %s)"), (other,))
    assert counted["embedding"]["sequential"] == 0
    assert counted["embedding"]["index"] <= 4


def test_an_index_is_used_for_the_tenant(index, log_in, reads):
    conn = log_in("test_service")
    with reads(conn) as counted:
        assert len(conn.execute(SEARCH).fetchall()) == 20
    assert counted["embedding"]["sequential"] == 0
    assert counted["embedding"]["index"] < 1000


def test_with_an_index_a_users_search_is_still_exact(embedded, index, log_in):
    expected = """
        select e.seq
        from convo.embedding as e
        where e.user_id = %s
        order by e.embedding <=> '[1, 1, 1, 1, 1, 1, 1, 1]', e.seq
        limit 20
    """
    for user in ("ann", "bob"):
        with psycopg.connect(embedded) as conn:
            exact = conn.execute(expected, (user,)).fetchall()
        found = log_in(user=user).execute(SEARCH).fetchall()
        assert sorted(found) == sorted(exact), user


def test_a_claim_reads_no_conversation_that_is_done(log_in, embedded, reads):
    with psycopg.connect(embedded, autocommit=True) as conn:
        conn.execute(
            "insert into convo.embedding_progress"
            " select tenant_id, conversation_id, 'm', last_seq, updated_at"
            " from convo.conversation where tenant_id = 'acme'"
        )
        conn.execute("analyze convo.embedding_progress")
    conn = log_in("test_service")
    with reads(conn) as counted:
        assert conn.execute("select convo.claim_embeddings('m')").fetchall() == []
    assert counted["message"] == {"sequential": 0, "index": 0}
    assert counted["embedding"] == {"sequential": 0, "index": 0}
