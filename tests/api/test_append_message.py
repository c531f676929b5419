"""append_message: one plain text message at the end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest


def append(caller, conversation_id, role="user", content="sesame", **arguments):
    return caller.row(
        "append_message",
        conversation_id=conversation_id,
        role=role,
        content=content,
        **arguments,
    )


def test_gives_the_stored_message(ann, conversation_id):
    row = append(ann, conversation_id)

    assert [row] == ann.live(conversation_id)
    assert row["seq"] == 1
    assert row["group_seq"] == 1
    assert row["revision"] == 1
    assert (row["role"], row["content"]) == ("user", "sesame")
    assert (row["payload"], row["format"], row["model"]) == (None, None, None)
    assert row["metadata"] == {}
    assert row["deleted_at"] is None


def test_gives_the_columns_of_the_record_in_order(ann, conversation_id):
    assert list(append(ann, conversation_id)) == [
        "seq",
        "role",
        "content",
        "tokens",
        "is_estimated",
        "created_at",
        "revision",
        "model",
        "payload",
        "format",
        "metadata",
        "group_seq",
        "deleted_at",
    ]


def test_seqs_count_from_1_without_gaps(ann, conversation_id):
    seqs = [append(ann, conversation_id)["seq"] for _ in range(5)]

    assert seqs == [1, 2, 3, 4, 5]


def test_a_refused_append_takes_no_seq(ann, conversation_id):
    append(ann, conversation_id)
    with pytest.raises(psycopg.errors.CheckViolation):
        append(ann, conversation_id, model="x" * 256)

    assert append(ann, conversation_id)["seq"] == 2


def test_a_seq_of_a_deleted_message_is_not_given_again(ann, conversation_id):
    append(ann, conversation_id)
    ann.row("delete_message", conversation_id=conversation_id, seq=1)

    assert append(ann, conversation_id)["seq"] == 2


def test_is_stored_now_in_milliseconds(ann, conversation_id):
    row = append(ann, conversation_id)

    assert abs(row["created_at"] - datetime.now(UTC)) < timedelta(minutes=1)
    assert row["created_at"].microsecond % 1000 == 0
    assert ann.get(conversation_id)["updated_at"] == row["created_at"]


def test_time_goes_on_within_a_transaction(as_role, conversation_id):
    ann = as_role("test_app", "acme", "ann", autocommit=False)
    first = append(ann, conversation_id)
    ann.conn.execute("select pg_sleep(0.002)")

    assert append(ann, conversation_id)["created_at"] > first["created_at"]


def test_time_never_goes_back(ann, conversation_id, db):
    append(ann, conversation_id)
    db.execute("update convo.conversation set updated_at = '2100-01-01Z'")

    assert append(ann, conversation_id)["created_at"].year == 2100


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_takes_every_role_of_a_text(ann, conversation_id, role):
    assert append(ann, conversation_id, role)["role"] == role


@pytest.mark.parametrize("role", ["tool", "developer", "function", "User", "", None])
def test_refuses_every_other_role(ann, conversation_id, fails, role):
    with fails("22023", argument="role"):
        append(ann, conversation_id, role)


def test_refuses_no_content(ann, conversation_id, fails):
    with fails("22023", argument="content"):
        append(ann, conversation_id, content=None)


def test_takes_empty_content(ann, conversation_id):
    row = append(ann, conversation_id, content="")

    assert (row["content"], row["tokens"]) == ("", 0)


def test_estimates_tokens_that_are_not_given(ann, conversation_id):
    row = append(ann, conversation_id, content="Hello, world")

    assert row["tokens"] == ann.value("estimate_tokens", content="Hello, world") > 0
    assert row["is_estimated"] is True


def test_takes_tokens_as_given(ann, conversation_id):
    row = append(ann, conversation_id, tokens=0)

    assert (row["tokens"], row["is_estimated"]) == (0, False)


def test_refuses_negative_tokens(ann, conversation_id, fails):
    with fails("22023", argument="tokens"):
        append(ann, conversation_id, tokens=-1)


def test_totals_do_not_overflow_where_tokens_do_not(ann, conversation_id):
    for _ in range(3):
        append(ann, conversation_id, tokens=2147483647)

    assert ann.get(conversation_id)["token_total"] == 3 * 2147483647


def test_stores_model_and_metadata(ann, conversation_id):
    row = append(ann, conversation_id, model="gpt-x", metadata='{"a": [1]}')

    assert (row["model"], row["metadata"]) == ("gpt-x", {"a": [1]})


def test_null_metadata_is_an_empty_object(ann, conversation_id):
    assert append(ann, conversation_id, metadata=None)["metadata"] == {}


def test_an_empty_model_is_none(ann, conversation_id):
    assert append(ann, conversation_id, model="")["model"] is None


@pytest.mark.parametrize("arguments", [{"model": "x" * 256}])
def test_what_does_not_fit_is_refused(ann, conversation_id, arguments):
    with pytest.raises(psycopg.errors.CheckViolation):
        append(ann, conversation_id, **arguments)


@pytest.mark.parametrize(
    "content",
    [
        "🚀👩‍👩‍👧‍👦",
        "עברית العربية",
        "a literal \\u0000 and \\ud800",
        '{"json": "text"}',
        "line\r\nend\ttab\x01",
        "﷐ \uffff \ufffd",
        "NULL",
        "'; drop table convo.message; --",
    ],
)
def test_content_comes_back_as_it_was(ann, conversation_id, content):
    assert append(ann, conversation_id, content=content)["content"] == content
    assert ann.live(conversation_id)[0]["content"] == content


def test_a_text_of_1_mb_comes_back_as_it_was(ann, conversation_id):
    content = "".join(f"word{n} " for n in range(110_000))
    append(ann, conversation_id, content=content)

    assert len(content) > 1_000_000
    assert ann.live(conversation_id)[0]["content"] == content


# expected_seq


def test_expected_seq_0_is_an_empty_conversation(ann, conversation_id):
    assert append(ann, conversation_id, expected_seq=0)["seq"] == 1


def test_expected_seq_is_the_last_one_even_if_deleted(ann, conversation_id):
    append(ann, conversation_id)
    ann.row("delete_message", conversation_id=conversation_id, seq=1)

    assert append(ann, conversation_id, expected_seq=1)["seq"] == 2


@pytest.mark.parametrize("expected_seq", [-1, 0, 1, 3])
def test_another_last_seq_is_an_error_that_says_which(
    ann, conversation_id, fails, expected_seq
):
    ann.say(conversation_id, 1, 1)

    with fails(
        "PC010", conversation_id=conversation_id, expected_seq=expected_seq, last_seq=2
    ):
        append(ann, conversation_id, expected_seq=expected_seq)
    assert ann.get(conversation_id)["last_seq"] == 2


# idempotency_key


def test_a_key_given_again_stores_nothing_and_gives_the_stored_row(
    ann, conversation_id
):
    first = append(ann, conversation_id, idempotency_key="k1")
    before = ann.get(conversation_id)
    append(ann, conversation_id, idempotency_key="k1")

    assert append(ann, conversation_id, idempotency_key="k1") == first
    assert ann.get(conversation_id) == before


def test_a_key_is_looked_up_before_expected_seq(ann, conversation_id):
    append(ann, conversation_id, idempotency_key="k1", expected_seq=0)
    ann.say(conversation_id, 5)

    row = append(ann, conversation_id, idempotency_key="k1", expected_seq=0)
    assert row["seq"] == 1


def test_a_key_gives_the_row_as_it_is_now(ann, conversation_id):
    append(ann, conversation_id, idempotency_key="k1")
    ann.row("edit_message", conversation_id=conversation_id, seq=1, content="new")
    ann.row("delete_message", conversation_id=conversation_id, seq=1)

    row = append(ann, conversation_id, idempotency_key="k1")
    assert (row["content"], row["revision"]) == ("new", 2)
    assert row["deleted_at"] is not None


@pytest.mark.parametrize(
    "other", [{"content": "sesame!"}, {"role": "assistant"}, {"content": ""}]
)
def test_a_key_with_other_content_is_an_error(ann, conversation_id, fails, other):
    append(ann, conversation_id, idempotency_key="k1")

    with fails("PC011", conversation_id=conversation_id, first_seq=1, last_seq=1):
        append(ann, conversation_id, idempotency_key="k1", **other)


@pytest.mark.parametrize(
    "other", [{"tokens": 9}, {"model": "x"}, {"metadata": '{"a": 1}'}]
)
def test_a_key_compares_role_and_content_alone(ann, conversation_id, other):
    first = append(ann, conversation_id, idempotency_key="k1")

    assert append(ann, conversation_id, idempotency_key="k1", **other) == first


def test_a_key_of_another_format_is_an_error(ann, conversation_id, fails):
    append(ann, conversation_id, idempotency_key="k1")

    with fails("PC011"):
        ann.append(
            conversation_id,
            {"role": "user", "content": "sesame"},
            idempotency_key="k1",
        )


def test_a_key_is_of_one_conversation(ann, conversation_id):
    append(ann, conversation_id, idempotency_key="k1")

    assert append(ann, ann.create(), idempotency_key="k1", content="other")["seq"] == 1


def test_without_key_the_same_text_is_stored_twice(ann, conversation_id):
    append(ann, conversation_id)

    assert append(ann, conversation_id)["seq"] == 2


def test_a_refused_append_leaves_the_key_free(ann, conversation_id, fails):
    with fails("PC010"):
        append(ann, conversation_id, idempotency_key="k1", expected_seq=7)

    assert append(ann, conversation_id, idempotency_key="k1", content="b")["seq"] == 1


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_a_key_that_is_empty_or_too_long_is_refused(ann, conversation_id, fails, key):
    with fails("22023", argument="idempotency_key"):
        append(ann, conversation_id, idempotency_key=key)


# Who


def test_the_service_appends_for_the_owner(service, ann, conversation_id):
    append(service, conversation_id)

    assert len(ann.live(conversation_id)) == 1


def test_a_held_conversation_takes_messages(ann, service, conversation_id):
    service.row("hold_conversation", conversation_id=conversation_id, reason="case 7")

    assert append(ann, conversation_id)["seq"] == 1


@pytest.mark.parametrize("key", [None, "k1"])
def test_an_unknown_id_is_an_error(ann, fails, key):
    unknown_id = uuid4()

    with fails("PC001", conversation_id=unknown_id):
        append(ann, unknown_id, idempotency_key=key)


@pytest.mark.parametrize("key", [None, "k1"])
def test_a_deleted_conversation_is_an_error(ann, conversation_id, fails, key):
    ann.value("delete_conversation", conversation_id=conversation_id)

    with fails("PC012", conversation_id=conversation_id):
        append(ann, conversation_id, idempotency_key=key)


@pytest.mark.parametrize("key", [None, "k1"])
def test_outsiders_find_nothing(outsider, ann, conversation_id, fails, key):
    append(ann, conversation_id, idempotency_key="k1")

    with fails("PC001", conversation_id=conversation_id):
        append(outsider, conversation_id, idempotency_key=key)
    assert len(ann.live(conversation_id)) == 1


def test_needs_a_context(unknown, conversation_id, fails):
    with fails("PC030"):
        append(unknown, conversation_id)


def test_is_not_for_readers(reader, conversation_id):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        append(reader, conversation_id)


@pytest.mark.parametrize("metadata", ["[]", "1", '"text"', "null"])
def test_metadata_that_is_no_object_is_refused(ann, conversation_id, fails, metadata):
    with fails("22023", argument="metadata", reason="not an object"):
        append(ann, conversation_id, metadata=metadata)
