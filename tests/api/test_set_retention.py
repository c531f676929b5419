"""set_retention: how long conversations of a class are kept in a tenant."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest


def set_retention(caller, retention_class="short", max_age="30 days", **arguments):
    return caller.row(
        "set_retention", retention_class=retention_class, max_age=max_age, **arguments
    )


def rules(db):
    return db.execute(
        "select tenant_id, retention_class, max_age, basis, action"
        " from convo.retention_policy order by tenant_id, retention_class"
    ).fetchall()


def test_gives_the_rule_with_its_defaults(service):
    assert set_retention(service) == {
        "retention_class": "short",
        "max_age": timedelta(days=30),
        "basis": "activity",
        "action": "delete",
    }


def test_stores_it_for_the_tenant(service, db):
    set_retention(service, basis="creation")

    assert rules(db) == [("acme", "short", timedelta(days=30), "creation", "delete")]


def test_again_replaces_it(service, db):
    set_retention(service, basis="creation")
    set_retention(service, max_age="1 day")

    assert rules(db) == [("acme", "short", timedelta(days=1), "activity", "delete")]


def test_a_null_age_keeps_for_ever(service, maintainer, ann, db):
    own = ann.create(retention_class="short")
    set_retention(service, max_age="0")
    assert set_retention(service, max_age=None)["max_age"] is None
    db.execute("update convo.conversation set created_at = '2000-01-01Z'")
    db.execute("update convo.conversation set updated_at = '2000-01-01Z'")

    assert maintainer.row("purge")["conversations"] == 0
    assert ann.get(own)


def test_each_tenant_has_its_own(service, hostile_service, db):
    set_retention(service)
    set_retention(hostile_service, max_age="1 day")

    assert [(tenant, age.days) for tenant, _, age, *_ in rules(db)] == [
        ("acme", 30),
        ("evil", 1),
    ]


@pytest.mark.parametrize("retention_class", [None, "", "x" * 64])
def test_a_class_that_is_empty_or_too_long_is_refused(service, fails, retention_class):
    with fails("22023", argument="retention_class"):
        set_retention(service, retention_class)


@pytest.mark.parametrize("max_age", ["-1 second", "1001 years"])
def test_an_age_that_is_negative_or_too_long_is_refused(service, fails, max_age):
    with fails("22023", argument="max_age"):
        set_retention(service, max_age=max_age)


@pytest.mark.parametrize("basis", [None, "", "age"])
def test_an_unknown_basis_is_refused(service, fails, basis):
    with fails("22023", argument="basis"):
        set_retention(service, basis=basis)


@pytest.mark.parametrize("action", [None, "", "archive"])
def test_an_unknown_action_is_refused(service, fails, action):
    with fails("22023", argument="action"):
        set_retention(service, action=action)


@pytest.mark.parametrize("role", ["ann", "reader", "maintainer"])
def test_is_for_services_alone(request, role):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        set_retention(request.getfixturevalue(role))


def test_needs_a_context(as_role, fails):
    with fails("PC030"):
        set_retention(as_role("test_service"))
