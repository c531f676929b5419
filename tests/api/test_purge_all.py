"""purge_all: batch after batch, each committed."""

from __future__ import annotations

import psycopg
import pytest


@pytest.fixture
def five(ann, service, db):
    """Five conversations that are due."""
    for _ in range(5):
        ann.create()
    db.execute(
        "update convo.conversation set created_at = '2000-01-01Z',"
        " updated_at = '2000-01-01Z'"
    )
    service.row("set_retention", retention_class="standard", max_age="30 days")


def purge_all(caller, **arguments):
    names = ", ".join(f"{name} => %({name})s" for name in arguments)
    caller.conn.execute(f"call convo.purge_all({names})", arguments)


def batches(db):
    return [
        count
        for (count,) in db.execute(
            "select conversations from convo.purge_run order by conversations desc"
        )
    ]


def test_removes_all_that_is_due(maintainer, ann, five, db):
    purge_all(maintainer)

    assert ann.rows("list_conversations") == []
    assert batches(db) == [5]


def test_goes_batch_by_batch(maintainer, five, db):
    purge_all(maintainer, page_size=2)

    assert batches(db) == [2, 2, 1]


def test_stops_after_so_many_batches(maintainer, ann, five, db):
    purge_all(maintainer, page_size=2, max_batches=2)

    assert batches(db) == [2, 2]
    assert len(ann.rows("list_conversations")) == 1


def test_commits_after_each_batch(maintainer, five, db):
    purge_all(maintainer, page_size=2)

    assert db.execute(
        "select count(distinct xmin::text) from convo.purge_run"
    ).fetchone() == (3,)


@pytest.mark.parametrize("arguments", [{"max_batches": 0}, {"page_size": 0}])
def test_nothing_asked_for_removes_nothing(maintainer, five, db, arguments):
    purge_all(maintainer, **arguments)

    assert batches(db) == []


def test_held_ones_do_not_keep_it_from_ending(maintainer, ann, service, five):
    held = ann.rows("list_conversations")[0]["conversation_id"]
    service.row("hold_conversation", conversation_id=held, reason="case 7")
    purge_all(maintainer, page_size=2)

    (left,) = ann.rows("list_conversations")
    assert left["conversation_id"] == held


def test_nothing_due_is_no_error(maintainer):
    purge_all(maintainer)


@pytest.mark.parametrize("page_size", [None, -1])
def test_a_null_or_negative_batch_is_refused(maintainer, fails, page_size):
    with fails("22023", argument="page_size", value=page_size):
        purge_all(maintainer, page_size=page_size)


def test_a_negative_number_of_batches_is_refused(maintainer, five, db, fails):
    with fails("22023", argument="max_batches", value=-1):
        purge_all(maintainer, max_batches=-1)
    assert batches(db) == []


def test_inside_a_transaction_it_is_an_error_and_removes_nothing(as_role, five, db):
    maintainer = as_role("test_maintainer", autocommit=False)
    with pytest.raises(psycopg.errors.InvalidTransactionTermination):
        purge_all(maintainer)
    maintainer.conn.rollback()

    assert batches(db) == []


@pytest.mark.parametrize("role", ["ann", "service", "reader"])
def test_is_for_maintainers_alone(request, role):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        purge_all(request.getfixturevalue(role))
