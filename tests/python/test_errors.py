"""Each SQLSTATE of the contract is a class; all other errors stay the driver's."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.pq import TransactionStatus

import pgconvo
from pgconvo import Client, errors

RAISE = """
    do $$ begin
        raise 'gone' using errcode = '{}', detail = '{}', hint = 'Look.';
    end $$
"""


@pytest.fixture
def ann(connect: Callable[..., psycopg.Connection]) -> Client:
    """The user ann of tenant acme."""
    return Client(connect("test_app", tenant="acme", user="ann"))


@pytest.fixture
def conversation_id(ann: Client) -> UUID:
    """A conversation of ann's."""
    return ann.create_conversation()


def raised(db: psycopg.Connection, sqlstate: str, detail: str = "{}") -> Exception:
    """The error that a client would raise for one of the database."""
    with pytest.raises(Exception) as caught, errors.converted():
        db.execute(RAISE.format(sqlstate, detail))
    return caught.value


# From SQLSTATE to class


@pytest.mark.parametrize(("sqlstate", "error_class"), errors._BY_SQLSTATE.items())
def test_each_sqlstate_has_its_class(db, sqlstate, error_class):
    error = raised(db, sqlstate, '{"seq": 4}')

    assert type(error) is error_class
    assert (error.sqlstate, error.message) == (sqlstate, "gone")
    assert (error.detail, error.hint) == ({"seq": 4}, "Look.")
    assert error.__cause__.sqlstate == sqlstate


def test_every_class_for_a_sqlstate_is_public_and_names_it():
    for sqlstate, error_class in errors._BY_SQLSTATE.items():
        assert error_class.__name__ in pgconvo.__all__
        assert inspect.getdoc(error_class).startswith(f"{sqlstate}: ")


@pytest.mark.parametrize("detail", ["Key (a)=(b) exists.", "[1]", "", "3"])
def test_a_detail_that_is_no_json_object_is_empty(db, detail):
    assert raised(db, "PC001", detail).detail == {}


def test_any_other_error_passes_through(db):
    assert type(raised(db, "23505")) is psycopg.errors.UniqueViolation


def test_an_error_of_the_application_passes_through():
    with pytest.raises(KeyError), errors.converted():
        raise KeyError


@pytest.mark.parametrize("sqlstate", ["PC090", "PC091", "PC092"])
def test_the_errors_of_migrations_are_a_family(db, sqlstate):
    assert isinstance(raised(db, sqlstate), pgconvo.MigrationError)


def test_no_error_depends_on_the_driver():
    for error_class in (pgconvo.PgconvoError, *errors._BY_SQLSTATE.values()):
        assert not issubclass(error_class, psycopg.Error)


def test_an_error_reads_as_message_detail_and_hint():
    error = pgconvo.Conflict("moved", detail={"last_seq": 4}, hint="Read again.")

    assert str(error) == 'moved | {"last_seq": 4} | Read again.'
    assert str(pgconvo.Conflict("moved")) == "moved"


def test_an_error_survives_pickling():
    error = pgconvo.Conflict("moved", sqlstate="PC010", detail={"a": 1}, hint="Hm.")

    assert vars(pickle.loads(pickle.dumps(error))) == vars(error)


# From the functions, through real roles


def test_appending_to_an_unknown_conversation(ann):
    with pytest.raises(pgconvo.ConversationNotFound):
        ann.append_message(uuid4(), "user", "Hi")


def test_editing_an_unknown_message(ann, conversation_id):
    with pytest.raises(pgconvo.MessageNotFound):
        ann.edit_message(conversation_id, 1, "Hi")


def test_a_stale_writer_gets_a_conflict_with_the_current_seq(ann, conversation_id):
    ann.append_message(conversation_id, "user", "Hi")
    with pytest.raises(pgconvo.Conflict) as caught:
        ann.append_message(conversation_id, "user", "Hello", expected_seq=0)

    assert 1 in caught.value.detail.values()


def test_a_key_with_other_content(ann, conversation_id):
    ann.append_message(conversation_id, "user", "Hi", idempotency_key="k")
    with pytest.raises(pgconvo.IdempotencyMismatch):
        ann.append_message(conversation_id, "user", "Hello", idempotency_key="k")


def test_the_id_of_a_deleted_conversation(ann, conversation_id):
    ann.delete_conversation(conversation_id)
    with pytest.raises(pgconvo.ConversationDeleted):
        ann.create_conversation(conversation_id=conversation_id)


def test_the_id_of_another_users_conversation(connect, conversation_id):
    bob = Client(connect("test_app", tenant="acme", user="bob"))
    with pytest.raises(pgconvo.IdTaken):
        bob.create_conversation(conversation_id=conversation_id)


@pytest.mark.parametrize("tenant", [None, "acme"])
def test_a_call_without_a_tenant_or_user(connect, tenant):
    with pytest.raises(pgconvo.ContextMissing):
        Client(connect("test_app", tenant=tenant)).create_conversation()


def test_deleting_what_is_on_hold(connect, ann, conversation_id):
    service = Client(connect("test_service", tenant="acme"))
    service.hold_conversation(conversation_id, "case 7")
    with pytest.raises(pgconvo.OnHold):
        ann.delete_conversation(conversation_id)


def test_an_invalid_message_names_its_place(ann, conversation_id):
    messages = [{"role": "user", "content": "Hi"}, {"role": "pirate", "content": "Ho"}]
    with pytest.raises(pgconvo.InvalidMessage) as caught:
        ann.append_messages(conversation_id, messages)

    assert caught.value.detail["index"] == 1


def test_an_invalid_argument(ann, conversation_id):
    with pytest.raises(pgconvo.InvalidArgument):
        ann.last_messages(conversation_id, -1)


def test_a_function_of_another_role(ann):
    with pytest.raises(pgconvo.NotAllowed):
        ann.purge()


def test_json_that_is_none_stays_the_drivers_error(ann, conversation_id):
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        ann.append_messages(conversation_id, "{")


# Refused before sending


@pytest.mark.parametrize("content", ["a\0b", "\ud800", "x\udfffy"])
def test_text_that_cant_be_stored_is_refused(ann, conversation_id, content):
    with pytest.raises(pgconvo.InvalidText, match="content") as caught:
        ann.append_message(conversation_id, "user", content)

    assert isinstance(caught.value, ValueError)
    assert "append_messages" in caught.value.hint


def test_the_hint_to_append_messages_is_only_for_content(ann):
    with pytest.raises(pgconvo.InvalidText, match="title") as caught:
        ann.create_conversation(title="a\0b")

    assert caught.value.hint is None


@pytest.mark.parametrize("messages", [b"\xff", '"\ud800"', '"\0"'])
def test_json_text_that_cant_be_sent_is_refused(ann, conversation_id, messages):
    with pytest.raises(pgconvo.InvalidText, match="messages"):
        ann.append_messages(conversation_id, messages)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_message_with_a_number_that_json_lacks_is_refused(
    ann, conversation_id, number
):
    with pytest.raises(pgconvo.InvalidJson, match="messages") as caught:
        ann.append_messages(conversation_id, {"role": "user", "n": number})

    assert isinstance(caught.value, ValueError)


def test_metadata_with_nan_is_refused(ann):
    with pytest.raises(pgconvo.InvalidJson, match="metadata"):
        ann.create_conversation(metadata={"n": float("nan")})


def test_what_is_refused_was_never_sent(connect):
    conn = connect("test_app", tenant="acme", user="ann", autocommit=False)
    with pytest.raises(pgconvo.InvalidText):
        Client(conn).append_message(uuid4(), "user", "a\0b")

    assert conn.info.transaction_status is TransactionStatus.IDLE
