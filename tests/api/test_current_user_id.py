"""Where the user comes from: the same source as the tenant."""

from __future__ import annotations

import json


def claim(caller, **claims):
    """Set the claims for the session, as an RPC gateway does for a transaction."""
    caller.conn.execute(
        "select set_config('request.jwt.claims', %s, false)", [json.dumps(claims)]
    )


def pin(db):
    db.execute(
        "insert into convo_private.tenant_login values ('test_app', 'pinned', 'gamma')"
    )


def test_is_null_when_nothing_is_set(as_role):
    assert as_role("test_app").value("current_user_id") is None


def test_comes_from_the_setting(ann):
    assert ann.value("current_user_id") == "ann"


def test_an_empty_setting_is_none(as_role):
    assert as_role("test_app", "acme", "").value("current_user_id") is None


def test_comes_from_sub_when_the_claims_hold_a_tenant(as_role):
    app = as_role("test_app")
    claim(app, tenant_id="beta", sub="cid")

    assert app.value("current_user_id") == "cid"


def test_claims_with_a_tenant_but_no_user_leave_no_user(ann, fails):
    claim(ann, tenant_id="beta")

    assert ann.value("current_user_id") is None
    with fails("PC030", missing="user_id"):
        ann.create()


def test_an_empty_sub_is_no_user(ann):
    claim(ann, tenant_id="beta", sub="")

    assert ann.value("current_user_id") is None


def test_a_pinned_login_takes_its_user_from_the_claims(as_role, db):
    pin(db)
    app = as_role("test_app", user="ann")
    claim(app, sub="cid")

    assert app.value("current_user_id") == "cid"


def test_a_pinned_login_takes_its_user_from_the_setting(as_role, db):
    pin(db)
    app = as_role("test_app", user="ann")

    assert app.value("current_user_id") == "ann"


def test_a_pinned_login_without_user_is_told_so(as_role, db, fails):
    pin(db)

    with fails("PC030", missing="user_id"):
        as_role("test_app").create()


def test_claims_decide_whose_conversations_are_listed(ann, conversation_id):
    claim(ann, tenant_id="acme", sub="ben")
    assert ann.rows("list_conversations") == []

    claim(ann, tenant_id="acme", sub="ann")
    assert len(ann.rows("list_conversations")) == 1
