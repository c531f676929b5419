"""set_context says who is asking, for one transaction."""

from __future__ import annotations

import psycopg
import pytest


@pytest.fixture
def nobody(as_role):
    """A connection that has said nothing yet, with transactions."""
    return as_role("test_app", autocommit=False)


def test_tells_tenant_and_user(nobody):
    nobody.rows("set_context", tenant_id="acme", user_id="ann")

    assert nobody.value("current_tenant_id") == "acme"
    assert nobody.value("current_user_id") == "ann"


def test_ends_with_the_transaction(nobody):
    nobody.rows("set_context", tenant_id="acme", user_id="ann")
    nobody.conn.commit()

    assert nobody.value("current_tenant_id") is None
    assert nobody.value("current_user_id") is None


def test_ends_with_a_rollback(nobody):
    nobody.rows("set_context", tenant_id="acme", user_id="ann")
    nobody.conn.rollback()

    assert nobody.value("current_tenant_id") is None


def test_does_nothing_outside_a_transaction(as_role):
    nobody = as_role("test_app")
    nobody.rows("set_context", tenant_id="acme", user_id="ann")

    assert nobody.value("current_tenant_id") is None


def test_covers_what_the_session_has_set_until_the_end(as_role):
    ann = as_role("test_app", "acme", "ann", autocommit=False)
    ann.rows("set_context", tenant_id="evil", user_id="eve")
    assert ann.value("current_tenant_id") == "evil"
    ann.conn.commit()

    assert ann.value("current_tenant_id") == "acme"
    assert ann.value("current_user_id") == "ann"


def test_without_user_forgets_the_one_before(nobody):
    nobody.rows("set_context", tenant_id="acme", user_id="ann")
    nobody.rows("set_context", tenant_id="evil")

    assert nobody.value("current_tenant_id") == "evil"
    assert nobody.value("current_user_id") is None


def test_the_statement_after_it_sees_the_tenants_rows(nobody, ann, conversation_id):
    nobody.rows("set_context", tenant_id="acme", user_id="ann")
    found = nobody.rows("get_conversation", conversation_id=conversation_id)

    assert len(found) == 1


@pytest.mark.parametrize(
    ("tenant_id", "user_id", "argument"),
    [
        (None, "ann", "tenant_id"),
        ("", "ann", "tenant_id"),
        ("x" * 256, "ann", "tenant_id"),
        ("acme", "", "user_id"),
        ("acme", "x" * 256, "user_id"),
    ],
)
def test_refuses_what_is_empty_or_too_long(nobody, fails, tenant_id, user_id, argument):
    with fails("22023", argument=argument):
        nobody.rows("set_context", tenant_id=tenant_id, user_id=user_id)


def test_takes_255_characters_of_any_script(nobody):
    name = "日" * 255
    nobody.rows("set_context", tenant_id=name, user_id=name)

    assert nobody.value("current_tenant_id") == name
    assert nobody.value("current_user_id") == name


def test_takes_the_names_as_they_are(nobody):
    name = " ann'; drop table x -- "
    nobody.rows("set_context", tenant_id=name, user_id=name)

    assert nobody.value("current_tenant_id") == name
    assert nobody.value("current_user_id") == name


@pytest.mark.parametrize("login", ["test_service", "test_reader"])
def test_other_groups_may_call_it(as_role, login):
    caller = as_role(login, autocommit=False)
    caller.rows("set_context", tenant_id="acme")

    assert caller.value("current_tenant_id") == "acme"


def test_is_not_for_the_public(as_role):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        as_role("test_nobody").rows("set_context", tenant_id="acme")
