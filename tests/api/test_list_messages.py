"""list_messages: pages in both directions, always oldest first."""

from __future__ import annotations

from uuid import uuid4

import pytest


@pytest.fixture
def seven(ann, conversation_id):
    """A conversation of seven messages, the fifth of them deleted."""
    ann.say(conversation_id, *range(1, 8))
    ann.row("delete_message", conversation_id=conversation_id, seq=5)
    return conversation_id


def page(caller, conversation_id, **arguments):
    rows = caller.rows("list_messages", conversation_id=conversation_id, **arguments)
    return [row["seq"] for row in rows]


def test_the_newest_page_when_nothing_is_said(ann, seven):
    assert page(ann, seven, page_size=3) == [4, 6, 7]


def test_the_page_before_a_seq(ann, seven):
    assert page(ann, seven, before_seq=4, page_size=2) == [2, 3]


def test_the_page_after_a_seq(ann, seven):
    assert page(ann, seven, after_seq=3, page_size=2) == [4, 6]


def test_between_two_seqs_the_page_after_the_first(ann, seven):
    assert page(ann, seven, after_seq=1, before_seq=7, page_size=2) == [2, 3]
    assert page(ann, seven, after_seq=3, before_seq=7) == [4, 6]


@pytest.mark.parametrize("before_seq", [1, 0, -5, -2147483648])
def test_nothing_is_before_the_first(ann, seven, before_seq):
    assert page(ann, seven, before_seq=before_seq) == []


@pytest.mark.parametrize("after_seq", [7, 100, 2147483647])
def test_nothing_is_after_the_last(ann, seven, after_seq):
    assert page(ann, seven, after_seq=after_seq) == []


@pytest.mark.parametrize("after_seq", [0, -1, -2147483648])
def test_the_first_page_is_after_0(ann, seven, after_seq):
    assert page(ann, seven, after_seq=after_seq, page_size=2) == [1, 2]


def test_before_a_seq_that_is_not_there_yet_is_the_end(ann, seven):
    assert page(ann, seven, before_seq=2147483647, page_size=2) == [6, 7]


def test_a_deleted_seq_is_a_place_all_the_same(ann, seven):
    assert page(ann, seven, before_seq=5, page_size=1) == [4]
    assert page(ann, seven, after_seq=5, page_size=1) == [6]


def test_pages_forwards_meet_every_message_once(ann, seven):
    seen = []
    while found := page(ann, seven, after_seq=seen[-1] if seen else 0, page_size=2):
        seen += found

    assert seen == [1, 2, 3, 4, 6, 7]


def test_pages_backwards_meet_every_message_once(ann, seven):
    seen = page(ann, seven, page_size=2)
    while found := page(ann, seven, before_seq=seen[0], page_size=2):
        seen = found + seen

    assert seen == [1, 2, 3, 4, 6, 7]


def test_a_page_reads_on_while_messages_come_in(ann, seven):
    first = page(ann, seven, page_size=2)
    ann.say(seven, 1, 1)

    assert page(ann, seven, before_seq=first[0], page_size=2) == [3, 4]


def test_gives_30_by_default(ann, conversation_id):
    ann.say(conversation_id, *[1] * 31)

    assert page(ann, conversation_id) == list(range(2, 32))


def test_gives_the_same_rows_as_last_messages(ann, seven):
    rows = ann.rows("list_messages", conversation_id=seven)

    assert rows == ann.live(seven)


@pytest.mark.parametrize("place", [{}, {"before_seq": 5}, {"after_seq": 1}])
def test_a_page_of_0_is_empty(ann, seven, place):
    assert page(ann, seven, page_size=0, **place) == []


@pytest.mark.parametrize("place", [{}, {"before_seq": 5}, {"after_seq": 1}])
@pytest.mark.parametrize("page_size", [None, -1])
def test_a_null_or_negative_page_is_refused(ann, seven, fails, place, page_size):
    with fails("22023", argument="page_size", value=page_size):
        page(ann, seven, page_size=page_size, **place)


@pytest.mark.parametrize("place", [{}, {"before_seq": 1003}, {"after_seq": 0}])
def test_a_page_over_1000_is_1000(ann, conversation_id, db, place):
    db.execute(
        "insert into convo.message (tenant_id, conversation_id, seq, user_id, role,"
        " content, tokens, is_estimated, is_empty, group_seq, created_at)"
        " select 'acme', %s, n, 'ann', 'user', 'x', 1, false, false, n, now()"
        " from generate_series(1, 1002) as n",
        [conversation_id],
    )

    assert len(page(ann, conversation_id, page_size=1001, **place)) == 1000


def test_an_unknown_id_gives_no_rows(ann):
    assert page(ann, uuid4()) == []


def test_outsiders_get_no_rows(outsider, seven):
    assert page(outsider, seven) == []
    assert page(outsider, seven, after_seq=0) == []


@pytest.mark.parametrize("role", ["service", "reader"])
def test_the_tenants_service_and_reader_get_them(request, role, seven):
    assert page(request.getfixturevalue(role), seven, page_size=2) == [6, 7]


@pytest.mark.parametrize("place", [{}, {"after_seq": 0}])
def test_needs_a_context(unknown, seven, fails, place):
    with fails("PC030"):
        page(unknown, seven, **place)
