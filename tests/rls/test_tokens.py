"""Logins in mode token: only a signed token says who is asking."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import timedelta

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.conninfo import make_conninfo

from pgconvo import sign_context

KEY = secrets.token_bytes(32)
COUNT = "select count(*) from convo.conversation"


@pytest.fixture
def guarded(dsn, db):
    """Connect as an application whose login is in mode token; a key k1 is there."""
    opened = []

    def guarded(group="convo_app"):
        login = f"guarded_{group}"
        conn = psycopg.connect(make_conninfo(dsn, user=login), autocommit=True)
        opened.append(conn)
        return conn

    groups = ("convo_app", "convo_service", "convo_reader")
    for group in groups:
        db.execute(f"create role guarded_{group} login in role {group}")
    with db.transaction():
        db.execute("set local role convo_owner")
        for group in groups:
            db.execute(
                "insert into convo_private.tenant_login values (%s, 'token', null)",
                (f"guarded_{group}",),
            )
        add_key(db, "k1", KEY)
    yield guarded
    for conn in opened:
        conn.close()
    for group in groups:
        db.execute(f"drop owned by guarded_{group}; drop role guarded_{group}")


def add_key(db, key_id, secret, expires_at=None):
    db.execute(
        "insert into convo_private.context_key values (%s, %s, %s)",
        (key_id, secret, expires_at),
    )


@pytest.fixture
def owned(connect):
    """A conversation of each of two tenants and of two users of one."""
    return {
        who: connect("test_app", *who)
        .execute("select convo.create_conversation(title => %s)", (" ".join(who),))
        .fetchone()[0]
        for who in (("a", "ann"), ("a", "ben"), ("b", "ann"))
    }


def titles(conn, token):
    with conn.transaction():
        conn.execute("select convo.set_context_token(%s)", (token,))
        rows = conn.execute("select title from convo.conversation order by 1")
        return [title for (title,) in rows]


def refused(conn, token):
    """The reason for which a token is refused."""
    with pytest.raises(psycopg.Error) as caught, conn.transaction():
        conn.execute("select convo.set_context_token(%s)", (token,))
    diag = caught.value.diag
    assert (diag.sqlstate, diag.message_primary) == (
        "PC031",
        "context token not valid",
    )
    assert token is None or token not in str(caught.value) or token in ("", ".")
    return diag.message_detail


@pytest.mark.parametrize(
    ("group", "user", "seen"),
    [
        ("convo_app", "ann", ["a ann"]),
        ("convo_service", None, ["a ann", "a ben"]),
        ("convo_reader", None, ["a ann", "a ben"]),
    ],
)
def test_a_token_gives_what_a_context_gives(guarded, owned, group, user, seen):
    assert titles(guarded(group), sign_context("k1", KEY, "a", user)) == seen


@pytest.mark.parametrize("who", ["tenant", "ü .:-_/", "日本", "x" * 255])
def test_any_id_survives(guarded, who):
    conn = guarded()
    with conn.transaction():
        token = sign_context("k1", KEY, who, who)
        conn.execute("select convo.set_context_token(%s)", (token,))
        row = conn.execute(
            "select convo.current_tenant_id(), convo.current_user_id()"
        ).fetchone()
    assert row == (who, who)


def test_it_ends_with_the_transaction(guarded, owned):
    conn = guarded()
    assert titles(conn, sign_context("k1", KEY, "a", "ann"))
    assert conn.execute(COUNT).fetchone() == (0,)


def test_settings_and_claims_count_nothing(guarded, owned):
    """S09"""
    conn = guarded()
    with conn.transaction():
        conn.execute(
            "select set_config('convo.tenant_id', 'a', true),"
            " set_config('convo.user_id', 'ann', true),"
            """ set_config('request.jwt.claims', '{"tenant_id": "a", "sub": "ann"}',"""
            " true)"
        )
        assert conn.execute(COUNT).fetchone() == (0,)
        with pytest.raises(psycopg.Error) as caught:
            conn.execute("select convo.create_conversation()")
    assert caught.value.sqlstate == "PC030"


def test_set_context_after_the_token_changes_nothing(guarded, owned):
    conn = guarded()
    with conn.transaction():
        token = sign_context("k1", KEY, "a", "ann")
        conn.execute("select convo.set_context_token(%s)", (token,))
        conn.execute("select convo.set_context('b', 'ann')")
        rows = conn.execute("select title from convo.conversation").fetchall()
    assert rows == [("a ann",)]


def test_an_injected_statement_stays_in_the_tenant(guarded, owned):
    """S10, S11: what plain settings can't stop."""
    injected = (
        "select title from convo.conversation where title = '' union all"
        " select title from convo.conversation, lateral (select"
        " set_config('convo.tenant_id', 'b', true)) as x"
    )
    conn = guarded()
    with conn.transaction():
        token = sign_context("k1", KEY, "a", "ann")
        conn.execute("select convo.set_context_token(%s)", (token,))
        assert conn.execute(injected).fetchall() == [("a ann",)]
        conn.execute("commit; begin; select convo.set_context('b', 'ann')")
        assert conn.execute(COUNT).fetchone() == (0,)


def test_a_token_set_by_hand_is_verified_too(guarded, owned):
    conn = guarded()
    token = sign_context("k1", KEY, "a", "ann")
    forged = token.replace(token.split(".")[2], sign_context(
        "k1", KEY, "b", "ann").split(".")[2])  # fmt: skip
    with conn.transaction():
        conn.execute("select set_config('convo.token', %s, true)", (token,))
        assert conn.execute(COUNT).fetchone() == (1,)
    with pytest.raises(psycopg.Error) as caught, conn.transaction():
        conn.execute("select set_config('convo.token', %s, true)", (forged,))
        conn.execute(COUNT)
    assert caught.value.sqlstate == "PC031"


@pytest.mark.parametrize(
    "token", [None, "", ".", "v1.....", "v1.k1.YQ.YQ.99999999999."]
)
def test_garbage_is_refused(guarded, token):
    """S12"""
    refused(guarded(), token)


def test_an_expired_token_is_refused(guarded):
    token = sign_context("k1", KEY, "a", "ann", timedelta(seconds=-1))
    assert refused(guarded(), token) == '{"reason": "expired"}'


def test_a_token_of_another_key_is_refused(guarded):
    unsigned = '{"reason": "not signed with a key that is valid now"}'
    other = secrets.token_bytes(32)
    assert refused(guarded(), sign_context("k1", other, "a", "ann")) == unsigned
    assert refused(guarded(), sign_context("k2", KEY, "a", "ann")) == unsigned


def test_a_signed_token_that_makes_no_sense_is_refused(guarded):
    for signed in ("v1.k1.*.YQ.99999999999", "v1.k1.YQABC.YQ.99999999999",
                   "v1.k1..YQ.99999999999", "v1.k1.YQ.YQ.soon",
                   "v2.k1.YQ.YQ.99999999999"):  # fmt: skip
        signature = hmac.new(KEY, signed.encode(), hashlib.sha256).hexdigest()
        refused(guarded(), f"{signed}.{signature}")


def test_keys_are_changed_without_a_gap(guarded, db, owned):
    conn, new = guarded(), secrets.token_bytes(48)
    old_token = sign_context("k1", KEY, "a", "ann")
    new_token = sign_context("k2", new, "a", "ann")
    add_key(db, "k2", new)
    assert titles(conn, old_token) == titles(conn, new_token) == ["a ann"]
    db.execute(
        "update convo_private.context_key set expires_at = now() where key_id = 'k1'"
    )
    assert titles(conn, new_token) == ["a ann"]
    refused(conn, old_token)


@pytest.mark.parametrize("group", ["convo_app", "convo_service", "convo_reader"])
def test_nobody_reads_a_key_or_signs_with_one(guarded, group):
    """S13"""
    conn = guarded(group)
    for query in (
        "select * from convo_private.context_key",
        "insert into convo_private.context_key values ('x', '\\x00', null)",
        "update convo_private.tenant_login set mode = 'settings'",
        "select convo._hmac_sha256('', '')",
        "set role convo_search",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute(query)


def test_other_logins_may_use_tokens_too(guarded, connect, owned):
    conn = connect("test_app")
    assert titles(conn, sign_context("k1", KEY, "a", "ann")) == ["a ann"]


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_a_token_changed_anywhere_is_refused(guarded_session, data):
    token = sign_context("k1", KEY, "a", "ann")
    place = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.characters(codec="utf-8", exclude_characters="\0"))
    changed = token[:place] + other + token[place + 1 :]
    if changed != token:
        refused(guarded_session, changed)


@pytest.fixture
def guarded_session(guarded):
    return guarded()


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (b"\x0b" * 20, b"Hi There"),
        (b"Jefe", b"what do ya want for nothing?"),
        (b"\xaa" * 20, b"\xdd" * 50),
        (bytes(range(1, 26)), b"\xcd" * 50),
        (b"\xaa" * 64, b""),
    ],
)
def test_the_signature_is_hmac_sha256(db, key, message):
    """The vectors of RFC 4231 with keys of up to 64 bytes, against Python's hmac."""
    row = db.execute("select convo._hmac_sha256(%s, %s)", (key, message)).fetchone()
    assert row == (hmac.new(key, message, hashlib.sha256).digest(),)
