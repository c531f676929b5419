"""last_messages: the newest N, oldest of them first."""

from __future__ import annotations

from uuid import uuid4

import pytest


@pytest.fixture
def seven(ann, conversation_id):
    """A conversation of seven messages."""
    ann.say(conversation_id, *range(1, 8))
    return conversation_id


def last(caller, conversation_id, message_limit):
    rows = caller.rows(
        "last_messages", conversation_id=conversation_id, message_limit=message_limit
    )
    return [row["seq"] for row in rows]


def test_of_7_messages_the_last_4_are_4_to_7_in_order(ann, seven):
    naive = ann.conn.execute(
        "select seq from convo.message where conversation_id = %s order by seq limit 4",
        [seven],
    ).fetchall()

    assert last(ann, seven, 4) == [4, 5, 6, 7]
    assert [seq for (seq,) in naive] == [1, 2, 3, 4], "the oldest, which is wrong"


@pytest.mark.parametrize("limit", [1, 2, 6, 7, 8, 10_000, 2147483647])
def test_gives_as_many_as_there_are_up_to_the_limit(ann, seven, limit):
    assert last(ann, seven, limit) == list(range(1, 8))[-limit:]


def test_a_limit_of_0_gives_no_rows(ann, seven):
    assert last(ann, seven, 0) == []


@pytest.mark.parametrize("limit", [None, -1, -2147483648])
def test_a_null_or_negative_limit_is_refused(ann, seven, fails, limit):
    with fails("22023", argument="message_limit", value=limit):
        last(ann, seven, limit)


@pytest.mark.parametrize("limit", [None, -1])
def test_a_limit_is_refused_where_there_is_nothing_too(ann, fails, limit):
    with fails("22023", argument="message_limit"):
        last(ann, uuid4(), limit)


def test_a_limit_over_10000_is_10000(ann, conversation_id, db):
    db.execute(
        "insert into convo.message (tenant_id, conversation_id, seq, user_id, role,"
        " content, tokens, is_estimated, is_empty, group_seq, created_at)"
        " select 'acme', %s, n, 'ann', 'user', 'x', 1, false, false, n, now()"
        " from generate_series(1, 10003) as n",
        [conversation_id],
    )

    assert last(ann, conversation_id, 10_001) == list(range(4, 10_004))


def test_deleted_messages_are_left_out_and_others_fill_their_place(ann, seven):
    for seq in (5, 7):
        ann.row("delete_message", conversation_id=seven, seq=seq)

    assert last(ann, seven, 4) == [2, 3, 4, 6]


def test_system_messages_count(ann, seven):
    ann.say(seven, 1, role="system")

    assert last(ann, seven, 2) == [7, 8]


def test_messages_of_one_time_stay_in_order(ann, seven, db):
    db.execute("update convo.message set created_at = '2025-01-01Z'")

    assert last(ann, seven, 4) == [4, 5, 6, 7]


def test_cuts_a_call_from_its_result_since_it_counts_messages(ann, conversation_id):
    ann.append(
        conversation_id,
        [
            {
                "role": "assistant",
                "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": ""}}],
            },
            {"role": "tool", "tool_call_id": "a", "content": "x"},
        ],
    )

    assert last(ann, conversation_id, 1) == [2]


def test_an_empty_conversation_gives_no_rows(ann, conversation_id):
    assert last(ann, conversation_id, 5) == []


def test_an_unknown_id_gives_no_rows(ann):
    assert last(ann, uuid4(), 5) == []


def test_outsiders_get_no_rows(outsider, seven):
    assert last(outsider, seven, 5) == []


@pytest.mark.parametrize("role", ["service", "reader"])
def test_the_tenants_service_and_reader_get_them(request, role, seven):
    assert last(request.getfixturevalue(role), seven, 2) == [6, 7]


def test_a_tenant_with_the_same_id_gets_its_own(hostile, ann, seven):
    hostile.create(conversation_id=seven)
    hostile.say(seven, 1)

    assert last(hostile, seven, 5) == [1]


def test_needs_a_context(unknown, seven, fails):
    with fails("PC030"):
        last(unknown, seven, 5)
