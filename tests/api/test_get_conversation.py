"""get_conversation: one conversation or no row."""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest


def test_gives_the_columns_of_the_record_in_order(ann, conversation_id):
    assert list(ann.get(conversation_id)) == [
        "conversation_id",
        "user_id",
        "title",
        "system_prompt",
        "retention_class",
        "policy",
        "last_seq",
        "message_count",
        "token_total",
        "metadata",
        "created_at",
        "updated_at",
        "archived_at",
        "is_on_hold",
        "forked_from",
        "forked_at_seq",
    ]


def test_counts_live_messages_and_their_tokens(ann, conversation_id):
    ann.say(conversation_id, 5, 7, 11)
    ann.row("delete_message", conversation_id=conversation_id, seq=2)

    row = ann.get(conversation_id)
    assert (row["last_seq"], row["message_count"], row["token_total"]) == (3, 2, 16)


def test_an_unknown_id_gives_no_row(ann):
    assert ann.rows("get_conversation", conversation_id=uuid4()) == []


def test_a_null_id_gives_no_row(ann):
    assert ann.rows("get_conversation", conversation_id=None) == []


def test_outsiders_get_no_row(outsider, conversation_id):
    assert outsider.rows("get_conversation", conversation_id=conversation_id) == []


def test_an_archived_one_is_there(ann, conversation_id):
    ann.row("archive_conversation", conversation_id=conversation_id)

    assert ann.get(conversation_id)["archived_at"] is not None


@pytest.mark.parametrize("role", ["service", "reader"])
def test_the_tenants_service_and_reader_get_it(request, role, conversation_id):
    caller = request.getfixturevalue(role)

    assert caller.get(conversation_id)["user_id"] == "ann"


def test_needs_a_context(unknown, fails, conversation_id):
    with fails("PC030"):
        unknown.rows("get_conversation", conversation_id=conversation_id)


def test_needs_a_context_in_an_empty_database_too(unknown, fails):
    with fails("PC030"):
        unknown.rows("get_conversation", conversation_id=uuid4())


@pytest.mark.parametrize("login", ["test_maintainer", "test_nobody"])
def test_is_not_for_those_who_read_nothing(as_role, login, conversation_id):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        as_role(login, "acme", "ann").get(conversation_id)
