"""create_conversation: defaults, ids of the caller's choice, owners."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import RFC_4122, uuid4

import psycopg
import pytest


def test_gives_an_empty_conversation(ann):
    row = ann.get(ann.create())

    assert row["user_id"] == "ann"
    assert row["title"] is None
    assert row["system_prompt"] is None
    assert row["retention_class"] == "standard"
    assert row["policy"] is None
    assert (row["last_seq"], row["message_count"], row["token_total"]) == (0, 0, 0)
    assert row["metadata"] == {}
    assert row["archived_at"] is None
    assert row["is_on_hold"] is False
    assert row["forked_from"] is None
    assert row["forked_at_seq"] is None


def test_stores_what_it_is_given(ann):
    given = {
        "title": "Trip",
        "system_prompt": "Be brief.",
        "metadata": '{"tags": ["a"], "n": 1.50}',
        "retention_class": "short",
        "policy": "cheap",
    }
    row = ann.get(ann.create(**given))

    assert row["title"] == "Trip"
    assert row["system_prompt"] == "Be brief."
    assert row["metadata"] == {"tags": ["a"], "n": 1.5}
    assert row["retention_class"] == "short"
    assert row["policy"] == "cheap"


def test_empty_strings_are_nothing(ann):
    row = ann.get(ann.create(title="", system_prompt="", policy=""))

    assert row["title"] is None
    assert row["system_prompt"] is None
    assert row["policy"] is None


def test_null_metadata_is_an_empty_object(ann):
    assert ann.get(ann.create(metadata=None))["metadata"] == {}


@pytest.mark.parametrize("retention_class", [None, ""])
def test_no_retention_class_is_the_standard_one(ann, retention_class):
    row = ann.get(ann.create(retention_class=retention_class))

    assert row["retention_class"] == "standard"


def test_is_created_and_active_now_in_milliseconds(ann):
    row = ann.get(ann.create())

    assert abs(row["created_at"] - datetime.now(UTC)) < timedelta(minutes=1)
    assert row["updated_at"] == row["created_at"]
    assert row["created_at"].microsecond % 1000 == 0


def test_ids_are_version_7_and_differ_in_their_random_part(ann):
    ids = [ann.create() for _ in range(20)]

    assert {(i.version, i.variant) for i in ids} == {(7, RFC_4122)}
    assert len({i.int & (2**62 - 1) for i in ids}) == 20
    assert sorted(i.int >> 80 for i in ids) == [i.int >> 80 for i in ids]


def test_an_own_id_is_taken(ann):
    own = uuid4()

    assert ann.create(conversation_id=own) == own


def test_an_own_id_given_again_gives_the_conversation_unchanged(ann):
    own = ann.create(conversation_id=uuid4(), title="first", system_prompt="one")
    again = ann.create(conversation_id=own, title="second", system_prompt="two")

    assert again == own
    assert ann.get(own)["title"] == "first"
    assert ann.get(own)["system_prompt"] == "one"


def test_an_own_id_given_again_leaves_no_unused_prompt(ann, db):
    own = ann.create(conversation_id=uuid4(), system_prompt="one")
    ann.create(conversation_id=own, system_prompt="two")

    assert db.execute("select content from convo.prompt").fetchall() == [("one",)]


def test_another_tenants_id_is_free(ann, hostile):
    own = ann.create(conversation_id=uuid4(), title="mine")

    assert hostile.create(conversation_id=own, title="theirs") == own
    assert ann.get(own)["title"] == "mine"
    assert hostile.get(own)["title"] == "theirs"


def test_an_id_deleted_in_another_tenant_is_free(ann, hostile):
    own = ann.create(conversation_id=uuid4())
    ann.value("delete_conversation", conversation_id=own)

    assert hostile.create(conversation_id=own) == own


def test_an_id_of_another_user_is_taken(ann, ben, fails):
    own = ann.create(conversation_id=uuid4())

    with fails("PC013", conversation_id=own):
        ben.create(conversation_id=own)


def test_an_id_that_another_user_had_is_taken(ann, ben, fails):
    own = ann.create(conversation_id=uuid4())
    ann.value("delete_conversation", conversation_id=own)

    with fails("PC013", conversation_id=own):
        ben.create(conversation_id=own)


def test_an_id_that_was_the_callers_and_was_deleted_stays_deleted(ann, fails):
    own = ann.create(conversation_id=uuid4())
    ann.value("delete_conversation", conversation_id=own)

    with fails("PC012", conversation_id=own):
        ann.create(conversation_id=own)
    assert ann.rows("get_conversation", conversation_id=own) == []


def test_an_id_that_was_transferred_away_is_taken(ann, service, fails):
    own = ann.create()
    service.row("transfer_conversation", conversation_id=own, to_user_id="ben")

    with fails("PC013", conversation_id=own):
        ann.create(conversation_id=own)


def test_a_refused_id_leaves_no_prompt(ann, ben, db, fails):
    own = ann.create()
    with fails("PC013"):
        ben.create(conversation_id=own, system_prompt="sesame")

    assert db.execute("select from convo.prompt").fetchall() == []


def test_a_service_names_the_owner(service, ann):
    own = service.create(user_id="ann")

    assert ann.get(own)["user_id"] == "ann"


def test_a_service_must_name_an_owner(service, fails):
    with fails("22023", argument="user_id"):
        service.create()


def test_a_service_with_a_user_creates_for_that_user(as_role):
    service = as_role("test_service", "acme", "cid")

    assert service.get(service.create())["user_id"] == "cid"


def test_a_service_gets_the_named_owners_conversation_back(service, ann):
    own = ann.create()

    assert service.create(conversation_id=own, user_id="ann") == own


def test_a_service_does_not_move_a_conversation_by_naming_another_owner(
    service, ann, fails
):
    own = ann.create()

    with fails("PC013"):
        service.create(conversation_id=own, user_id="ben")
    assert ann.get(own)["user_id"] == "ann"


def test_an_application_may_name_itself(ann):
    assert ann.get(ann.create(user_id="ann"))["user_id"] == "ann"


def test_an_application_can_not_create_for_another_user(ann, fails):
    with fails("42501", argument="user_id"):
        ann.create(user_id="ben")


def test_an_empty_owner_is_refused(ann, fails):
    with fails("22023", argument="user_id"):
        ann.create(user_id="")


def test_needs_a_context(unknown, fails):
    with fails("PC030"):
        unknown.create(user_id="ann")


@pytest.mark.parametrize("login", ["test_reader", "test_maintainer", "test_backup"])
def test_is_for_writers_alone(as_role, login):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        as_role(login, "acme", "ann").create()


@pytest.mark.parametrize(
    "arguments",
    [
        {"title": "x" * 1001},
        {"policy": "x" * 64},
        {"retention_class": "x" * 64},
    ],
)
def test_what_does_not_fit_is_refused(ann, arguments):
    with pytest.raises(psycopg.errors.CheckViolation):
        ann.create(**arguments)


def test_metadata_over_64_kib_is_refused(ann):
    with pytest.raises(psycopg.errors.CheckViolation):
        ann.create(metadata="{" + ", ".join(f'"{i}": {i}' for i in range(10_000)) + "}")


def test_a_nul_in_metadata_has_postgres_own_code(ann):
    with pytest.raises(psycopg.errors.UntranslatableCharacter):
        ann.create(metadata='{"a": "\\u0000"}')


@pytest.mark.parametrize(
    "title", ["🚀 עברית العربية 日本語", "‮evil", "'; drop --", "\\u0000"]
)
def test_a_title_comes_back_as_it_was(ann, title):
    assert ann.get(ann.create(title=title))["title"] == title


@pytest.mark.parametrize("metadata", ["[]", "1", '"text"', "null"])
def test_metadata_that_is_no_object_is_refused(ann, fails, metadata):
    with fails("22023", argument="metadata", reason="not an object"):
        ann.create(metadata=metadata)
