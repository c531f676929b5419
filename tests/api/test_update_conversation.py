"""update_conversation: null keeps, '' clears."""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest

FULL = {
    "title": "sesame title",
    "system_prompt": "sesame prompt",
    "metadata": '{"a": 1}',
    "policy": "cheap",
    "retention_class": "short",
}


@pytest.fixture
def full(ann):
    """A conversation with everything set."""
    return ann.create(**FULL)


def update(caller, conversation_id, **arguments):
    return caller.row(
        "update_conversation", conversation_id=conversation_id, **arguments
    )


def changed(before, after):
    return {name for name in before if before[name] != after[name]} - {"updated_at"}


def test_changes_nothing_when_nothing_is_given(ann, full):
    before = ann.get(full)

    assert changed(before, update(ann, full)) == set()


@pytest.mark.parametrize(
    ("column", "given", "stored"),
    [
        ("title", "new", "new"),
        ("system_prompt", "new", "new"),
        ("metadata", '{"b": 2}', {"b": 2}),
        ("policy", "rich", "rich"),
        ("retention_class", "long", "long"),
        ("title", "", None),
        ("system_prompt", "", None),
        ("metadata", "{}", {}),
        ("policy", "", None),
        ("retention_class", "", "standard"),
    ],
)
def test_changes_what_is_given_and_keeps_the_rest(ann, full, column, given, stored):
    before = ann.get(full)
    after = update(ann, full, **{column: given})

    assert after[column] == stored
    assert changed(before, after) == {column}


def test_gives_the_row_as_it_is_now(ann, full):
    assert update(ann, full, title="new") == ann.get(full)


def test_is_an_activity(ann, full):
    before = ann.get(full)["updated_at"]
    ann.conn.execute("select pg_sleep(0.002)")

    assert update(ann, full, title="new")["updated_at"] > before


def test_time_never_goes_back(ann, full, db):
    db.execute("update convo.conversation set updated_at = '2100-01-01Z'")

    assert update(ann, full, title="new")["updated_at"].year == 2100


def test_an_archived_one_stays_archived(ann, full):
    ann.row("archive_conversation", conversation_id=full)

    assert update(ann, full, title="new")["archived_at"] is not None


def test_the_service_changes_it_for_its_owner(service, ann, full):
    assert update(service, full, system_prompt="new")["user_id"] == "ann"
    assert ann.get(full)["system_prompt"] == "new"


@pytest.mark.parametrize(
    "arguments",
    [
        {"title": "x" * 1001},
        {"policy": "x" * 64},
        {"retention_class": "x" * 64},
    ],
)
def test_what_does_not_fit_changes_nothing(ann, full, arguments):
    before = ann.get(full)
    with pytest.raises(psycopg.errors.CheckViolation):
        update(ann, full, **arguments)

    assert ann.get(full) == before


def test_an_unknown_id_is_an_error(ann, fails):
    unknown_id = uuid4()

    with fails("PC001", conversation_id=unknown_id):
        update(ann, unknown_id, title="new")


def test_a_deleted_one_is_an_error(ann, full, fails):
    ann.value("delete_conversation", conversation_id=full)

    with fails("PC012", conversation_id=full):
        update(ann, full, title="new")


def test_outsiders_find_nothing_and_change_nothing(outsider, ann, full, fails):
    before = ann.get(full)
    with fails("PC001", conversation_id=full):
        update(outsider, full, title="theirs")

    assert ann.get(full) == before


def test_needs_a_context(unknown, full, fails):
    with fails("PC030"):
        update(unknown, full, title="new")


@pytest.mark.parametrize("metadata", ["[]", "1", '"text"', "null"])
def test_metadata_that_is_no_object_is_refused(ann, full, fails, metadata):
    with fails("22023", argument="metadata", reason="not an object"):
        update(ann, full, metadata=metadata)
