"""list_conversations: newest activity first, in pages that neither miss nor repeat."""

from __future__ import annotations

import pytest


@pytest.fixture
def ids(ann):
    """Four conversations, oldest first, each in a millisecond of its own."""
    made = []
    for n in range(4):
        made.append(ann.create(title=f"number {n}"))
        ann.conn.execute("select pg_sleep(0.002)")
    return made


def listed(caller, **arguments):
    rows = caller.rows("list_conversations", **arguments)
    return [row["conversation_id"] for row in rows]


def test_newest_first(ann, ids):
    assert listed(ann) == ids[::-1]


def test_an_append_moves_to_the_front(ann, ids):
    ann.say(ids[1], 5)

    assert listed(ann) == [ids[1], ids[3], ids[2], ids[0]]


def test_an_update_moves_to_the_front(ann, ids):
    ann.row("update_conversation", conversation_id=ids[0], title="new")

    assert listed(ann)[0] == ids[0]


def test_archived_ones_are_left_out(ann, ids):
    ann.row("archive_conversation", conversation_id=ids[2])

    assert listed(ann) == [ids[3], ids[1], ids[0]]


def test_archived_ones_come_in_their_place_when_asked_for(ann, ids):
    ann.row("archive_conversation", conversation_id=ids[2])

    assert listed(ann, include_archived=True) == ids[::-1]


def test_shows_the_same_row_as_get_conversation(ann, db):
    own = ann.create(title="a", system_prompt="Be brief.", metadata='{"a": 1}')
    ann.say(own, 5)

    assert ann.rows("list_conversations") == [ann.get(own)]


def test_gives_30_by_default(ann):
    for _ in range(31):
        ann.create()

    assert len(listed(ann)) == 30


def test_pages_by_the_last_row(ann, ids):
    first = ann.rows("list_conversations", page_size=3)
    rest = listed(
        ann,
        before_at=first[-1]["updated_at"],
        before_id=first[-1]["conversation_id"],
        page_size=3,
    )

    assert [row["conversation_id"] for row in first] == ids[:0:-1]
    assert rest == [ids[0]]


def test_rows_of_one_time_are_neither_missed_nor_repeated(ann, db):
    for _ in range(7):
        ann.create()
    db.execute("update convo.conversation set updated_at = '2025-01-01 00:00:00.123Z'")

    seen = []
    page = ann.rows("list_conversations", page_size=2)
    while page:
        seen += [row["conversation_id"] for row in page]
        page = ann.rows(
            "list_conversations",
            before_at=page[-1]["updated_at"],
            before_id=page[-1]["conversation_id"],
            page_size=2,
        )

    assert len(seen) == 7
    assert seen == sorted(seen, reverse=True)


def test_before_at_alone_leaves_out_rows_of_that_time(ann, ids):
    row = ann.get(ids[2])
    older = ann.rows("list_conversations", before_at=row["updated_at"])

    assert all(found["updated_at"] < row["updated_at"] for found in older)


def test_a_page_of_0_is_empty(ann, ids):
    assert listed(ann, page_size=0) == []


@pytest.mark.parametrize("page_size", [None, -1])
def test_a_null_or_negative_page_is_refused(ann, ids, fails, page_size):
    with fails("22023", argument="page_size", value=page_size):
        listed(ann, page_size=page_size)


def test_a_page_is_refused_when_there_is_nothing_too(ann, fails):
    with fails("22023", argument="page_size"):
        listed(ann, page_size=-1)


def test_a_page_over_1000_is_1000(ann, db):
    db.execute(
        "insert into convo.conversation (tenant_id, conversation_id, user_id,"
        " retention_class, created_at, updated_at)"
        " select 'acme', gen_random_uuid(), 'ann', 'standard', now(), now()"
        " from generate_series(1, 1001)"
    )

    assert len(listed(ann, page_size=2147483647)) == 1000


def test_outsiders_list_nothing_of_it(outsider, ids):
    assert listed(outsider) == []


def test_each_user_lists_their_own(ann, ben, ids):
    own = ben.create()

    assert listed(ben) == [own]
    assert listed(ann) == ids[::-1]


@pytest.mark.parametrize("role", ["service", "reader"])
def test_the_tenants_service_and_reader_list_all_users(request, role, ben, ids):
    own = ben.create()

    assert listed(request.getfixturevalue(role)) == [own, *ids[::-1]]


def test_needs_a_context(unknown, fails, ids):
    with fails("PC030"):
        listed(unknown)


def test_an_id_without_a_time_gives_no_page(ann):
    """Not the first one again, which a loop would never leave."""
    assert ann.rows("list_conversations", before_id=ann.create()) == []
