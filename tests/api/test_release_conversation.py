"""release_conversation ends a legal hold."""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest


@pytest.fixture
def held(service, conversation_id):
    """A conversation on hold."""
    service.row("hold_conversation", conversation_id=conversation_id, reason="case 7")
    return conversation_id


def release(caller, conversation_id, reason="closed"):
    return caller.row(
        "release_conversation", conversation_id=conversation_id, reason=reason
    )


def test_gives_the_row_without_the_hold(service, ann, held):
    before = ann.get(held)

    assert release(service, held) == before | {"is_on_hold": False}


def test_is_noted_with_its_reason(service, db, held):
    release(service, held)

    assert db.execute(
        "select action, reason from convo.audit order by action"
    ).fetchall() == [("hold", "case 7"), ("release", "closed")]


def test_one_that_is_not_held_stays_so(service, conversation_id):
    assert release(service, conversation_id)["is_on_hold"] is False


def test_it_can_be_deleted_again(service, ann, held):
    release(service, held)

    assert ann.value("delete_conversation", conversation_id=held) is True


@pytest.mark.parametrize("reason", [None, "", "x" * 1001])
def test_a_reason_is_required(service, ann, held, fails, reason):
    with fails("22023", argument="reason"):
        release(service, held, reason)
    assert ann.get(held)["is_on_hold"] is True


@pytest.mark.parametrize("role", ["ann", "reader", "maintainer"])
def test_is_for_services_alone(request, role, held):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        release(request.getfixturevalue(role), held)


def test_another_tenants_service_finds_nothing(hostile_service, ann, held, fails):
    with fails("PC001", conversation_id=held):
        release(hostile_service, held)
    assert ann.get(held)["is_on_hold"] is True


def test_an_unknown_id_is_an_error(service, fails):
    with fails("PC001"):
        release(service, uuid4())


def test_needs_a_context(as_role, held, fails):
    with fails("PC030"):
        release(as_role("test_service"), held)
