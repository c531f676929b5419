"""Where the tenant comes from: the login's pin, else JWT claims, else settings."""

from __future__ import annotations

import json
from contextlib import contextmanager

import psycopg
import pytest


def claim(caller, claims):
    """Set the claims for the session, as an RPC gateway does for a transaction."""
    text = claims if isinstance(claims, str) else json.dumps(claims)
    caller.conn.execute("select set_config('request.jwt.claims', %s, false)", [text])


@pytest.fixture
def pin(db):
    """Pin test_app to a tenant."""

    def pin(tenant):
        db.execute(
            "insert into convo_private.tenant_login values ('test_app', 'pinned', %s)",
            [tenant],
        )

    return pin


@contextmanager
def login_default(db, tenant):
    """Give test_app a tenant that comes with each session."""
    db.execute(f"alter role test_app set convo.tenant_id = '{tenant}'")
    try:
        yield
    finally:
        # Roles are the whole server's, not the test's own.
        db.execute("alter role test_app reset all")


def test_is_null_when_nothing_is_set(as_role):
    assert as_role("test_app").value("current_tenant_id") is None


def test_comes_from_the_setting(ann):
    assert ann.value("current_tenant_id") == "acme"


def test_an_empty_setting_is_none(as_role):
    assert as_role("test_app", "", "ann").value("current_tenant_id") is None


def test_comes_from_the_logins_own_default(as_role, db):
    with login_default(db, "main"):
        app = as_role("test_app", user="ann")

    assert app.value("current_tenant_id") == "main"


def test_claims_that_hold_a_tenant_win_over_the_setting(ann):
    claim(ann, {"tenant_id": "beta", "sub": "cid"})

    assert ann.value("current_tenant_id") == "beta"
    assert ann.value("current_user_id") == "cid"


def test_set_context_does_not_get_past_the_claims(as_role):
    app = as_role("test_app", autocommit=False)
    claim(app, {"tenant_id": "beta", "sub": "cid"})
    app.rows("set_context", tenant_id="acme", user_id="ann")

    assert app.value("current_tenant_id") == "beta"
    assert app.value("current_user_id") == "cid"


@pytest.mark.parametrize(
    "claims", ["", {}, {"tenant_id": ""}, {"tenant_id": None}, {"role": "x"}]
)
def test_claims_without_a_tenant_leave_it_to_the_setting(ann, claims):
    claim(ann, claims)

    assert ann.value("current_tenant_id") == "acme"
    assert ann.value("current_user_id") == "ann"


def test_claims_with_a_user_alone_count_for_nothing(ann):
    claim(ann, {"sub": "eve"})

    assert ann.value("current_user_id") == "ann"


@pytest.mark.parametrize("claims", ["[]", "1", '"acme"', "null", '["tenant_id"]'])
def test_claims_that_are_no_object_hold_no_tenant(ann, claims):
    claim(ann, claims)

    assert ann.value("current_tenant_id") == "acme"


def test_claims_that_are_not_json_are_an_error(ann):
    claim(ann, "{tenant_id: beta}")

    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        ann.value("current_tenant_id")


def test_claims_decide_what_is_seen(ann, conversation_id):
    claim(ann, {"tenant_id": "evil", "sub": "ann"})

    assert ann.rows("get_conversation", conversation_id=conversation_id) == []


def test_a_pinned_login_has_its_tenant_without_any_setting(as_role, pin):
    pin("gamma")

    assert as_role("test_app").value("current_tenant_id") == "gamma"


def test_a_pinned_login_has_its_tenant_whatever_is_set(as_role, pin):
    pin("gamma")
    app = as_role("test_app", "acme", "ann")
    claim(app, {"tenant_id": "beta", "sub": "cid"})

    assert app.value("current_tenant_id") == "gamma"


def test_a_pinned_login_can_not_change_its_tenant_with_set_context(as_role, pin):
    pin("gamma")
    app = as_role("test_app", autocommit=False)
    app.rows("set_context", tenant_id="acme", user_id="ann")

    assert app.value("current_tenant_id") == "gamma"
    assert app.value("current_user_id") == "ann"


def test_set_role_does_not_change_whose_pin_counts(as_role, pin):
    pin("gamma")
    app = as_role("test_app", "acme", "ann")
    app.conn.execute("set role convo_app")

    assert app.value("current_tenant_id") == "gamma"


def test_a_pin_is_for_one_login(as_role, pin):
    pin("gamma")

    assert as_role("test_service", "acme").value("current_tenant_id") == "acme"


def test_a_login_row_of_mode_settings_uses_the_settings(ann, db):
    db.execute("insert into convo_private.tenant_login values ('test_app', 'settings')")

    assert ann.value("current_tenant_id") == "acme"


def test_a_login_can_not_change_its_pin(as_role, pin):
    pin("gamma")
    app = as_role("test_app")

    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app.conn.execute("delete from convo_private.tenant_login")


def test_a_pinned_login_never_reaches_another_tenant(
    as_role, ann, conversation_id, pin
):
    pin("gamma")
    app = as_role("test_app", "acme", "ann")

    assert app.rows("get_conversation", conversation_id=conversation_id) == []
    assert app.conn.execute("select from convo.conversation").fetchall() == []
