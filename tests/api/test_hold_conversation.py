"""hold_conversation: neither deleted nor purged until it is released."""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest


def hold(caller, conversation_id, reason="case 7"):
    return caller.row(
        "hold_conversation", conversation_id=conversation_id, reason=reason
    )


def test_gives_the_row_with_the_hold(service, ann, conversation_id):
    before = ann.get(conversation_id)

    assert hold(service, conversation_id) == before | {"is_on_hold": True}
    assert ann.get(conversation_id)["is_on_hold"] is True


def test_is_no_activity(service, ann, conversation_id):
    before = ann.get(conversation_id)["updated_at"]

    assert hold(service, conversation_id)["updated_at"] == before


def test_is_noted_with_its_reason(service, db, conversation_id):
    hold(service, conversation_id)

    assert db.execute(
        "select tenant_id, action, conversation_id, reason, acted_by,"
        " abs(extract(epoch from now() - acted_at)) < 60 from convo.audit"
    ).fetchall() == [("acme", "hold", conversation_id, "case 7", "test_service", True)]


def test_the_user_it_was_done_for_is_noted_too(as_role, db, conversation_id):
    hold(as_role("test_service", "acme", "lawyer"), conversation_id)

    assert db.execute("select acted_by from convo.audit").fetchall() == [
        ("test_service/lawyer",)
    ]


def test_again_is_noted_again(service, db, conversation_id):
    hold(service, conversation_id)

    assert hold(service, conversation_id, "case 8")["is_on_hold"] is True
    assert db.execute("select reason from convo.audit order by reason").fetchall() == [
        ("case 7",),
        ("case 8",),
    ]


@pytest.mark.parametrize("reason", [None, "", "x" * 1001])
def test_a_reason_is_required(service, ann, conversation_id, fails, reason):
    with fails("22023", argument="reason"):
        hold(service, conversation_id, reason)
    assert ann.get(conversation_id)["is_on_hold"] is False


def test_versions_of_a_held_conversation_are_kept(service, ann, conversation_id):
    ann.say(conversation_id, 5)
    hold(service, conversation_id)
    ann.row("edit_message", conversation_id=conversation_id, seq=1, content="new")
    ann.value("delete_messages", conversation_id=conversation_id)

    rows = ann.rows("message_revisions", conversation_id=conversation_id, seq=1)
    assert [row["content"] for row in rows] == ["sesame 1", "new"]


@pytest.mark.parametrize("role", ["ann", "reader", "maintainer"])
def test_is_for_services_alone(request, role, conversation_id):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        hold(request.getfixturevalue(role), conversation_id)


def test_another_tenants_service_finds_nothing(
    hostile_service, ann, conversation_id, fails
):
    with fails("PC001", conversation_id=conversation_id):
        hold(hostile_service, conversation_id)
    assert ann.get(conversation_id)["is_on_hold"] is False


def test_an_unknown_id_is_an_error(service, fails):
    with fails("PC001"):
        hold(service, uuid4())


def test_a_deleted_one_is_an_error(service, ann, conversation_id, fails):
    ann.value("delete_conversation", conversation_id=conversation_id)

    with fails("PC012"):
        hold(service, conversation_id)


def test_needs_a_context(as_role, conversation_id, fails):
    with fails("PC030"):
        hold(as_role("test_service"), conversation_id)
