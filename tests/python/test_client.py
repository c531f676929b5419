"""The synchronous client, as an application uses it: through the group roles."""

from __future__ import annotations

import dataclasses
import json
import tomllib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from psycopg.rows import dict_row

import pgconvo
from pgconvo import (
    BudgetExceeded,
    Client,
    Conflict,
    ContextItem,
    ExplainedItem,
    Policy,
    PurgeResult,
    RetentionPolicy,
    Summary,
    WindowMessage,
)

ROOT = Path(__file__).parents[2]
NASTY_JSON = (
    '{ "role":"user",  "content":"a\\u0000b \\ud800 \\\\u0000 \\u00e9",'
    ' "b": 1, "a": 1.0, "b": 2 }'
)
CONTEXT = (
    "select current_user::text,"
    " nullif(current_setting('convo.tenant_id', true), ''),"
    " nullif(current_setting('convo.user_id', true), '')"
)


@pytest.fixture
def ann(connect: Callable[..., psycopg.Connection]) -> Client:
    """The user ann of tenant acme."""
    return Client(connect("test_app", tenant="acme", user="ann"))


@pytest.fixture
def service(connect: Callable[..., psycopg.Connection]) -> Client:
    """A service of tenant acme."""
    return Client(connect("test_service", tenant="acme"))


@pytest.fixture
def maintainer(connect: Callable[..., psycopg.Connection]) -> Client:
    """The maintainer, who needs no tenant."""
    return Client(connect("test_maintainer"))


@pytest.fixture
def conversation_id(ann: Client) -> UUID:
    """A conversation of ann's."""
    return ann.create_conversation(title="Trip")


# Connections and transactions


@pytest.mark.parametrize("autocommit", [True, False])
@pytest.mark.parametrize("prepare_threshold", [None, 0, 5])
def test_it_works_with_autocommit_and_prepared_statements_on_or_off(
    connect, autocommit, prepare_threshold
):
    conn = connect(
        "test_app", autocommit=autocommit, prepare_threshold=prepare_threshold
    )
    with Client(conn).acting_as("acme", "ann") as client:
        conversation_id = client.create_conversation()
        for n in range(7):
            client.append_message(conversation_id, "user", f"m{n}", expected_seq=n)

        assert [m.seq for m in client.last_messages(conversation_id, 2)] == [6, 7]


def test_it_works_with_client_side_cursors(ann):
    ann.connection.cursor_factory = psycopg.ClientCursor
    conversation_id = ann.create_conversation(metadata={"it's": "%s"})
    (message,) = ann.append_messages(conversation_id, NASTY_JSON, tokens=[3])

    assert message.payload == NASTY_JSON


def test_the_callers_row_factory_changes_nothing(ann, conversation_id):
    ann.connection.row_factory = dict_row

    assert ann.get_conversation(conversation_id).title == "Trip"


def test_the_callers_connection_still_parses_json(ann, conversation_id):
    ann.append_messages(conversation_id, NASTY_JSON)
    ann.connection.row_factory = dict_row

    assert ann.connection.execute("""select '{"a": 1}'::json""").fetchone() == {
        "json": {"a": 1}
    }


def test_without_autocommit_the_transaction_stays_the_callers(connect):
    conn = connect("test_app", tenant="acme", user="ann", autocommit=False)
    client = Client(conn)
    conversation_id = client.create_conversation()
    assert conn.info.transaction_status is TransactionStatus.INTRANS
    conn.rollback()

    assert client.get_conversation(conversation_id) is None


def test_version_is_the_projects_and_needs_no_context(connect):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert Client(connect("test_app")).version() == project["version"]


# acting_as


def test_acting_as_sets_role_tenant_and_user(connect):
    with Client(connect("test_app")).acting_as("acme", "ann") as client:
        assert client.connection.execute(CONTEXT).fetchone() == (
            "convo_app",
            "acme",
            "ann",
        )
        assert client.current_tenant_id() == "acme"
        assert client.current_user_id() == "ann"


@pytest.mark.parametrize("autocommit", [True, False])
def test_after_acting_as_nothing_stays_set(connect, autocommit):
    client = Client(connect("test_app", autocommit=autocommit))
    with client.acting_as("acme", "ann"):
        client.create_conversation()

    assert client.connection.info.transaction_status is TransactionStatus.IDLE
    assert client.connection.execute(CONTEXT).fetchone() == ("test_app", None, None)


@pytest.mark.parametrize("autocommit", [True, False])
def test_after_an_exception_in_acting_as_nothing_stays_set(connect, autocommit):
    client = Client(connect("test_app", autocommit=autocommit))
    with pytest.raises(ZeroDivisionError), client.acting_as("acme", "ann"):
        raise ZeroDivisionError

    assert client.connection.info.transaction_status is TransactionStatus.IDLE
    assert client.connection.execute(CONTEXT).fetchone() == ("test_app", None, None)


def test_acting_as_commits(connect):
    with Client(connect("test_app")).acting_as("acme", "ann") as client:
        conversation_id = client.create_conversation()

    with Client(connect("test_app")).acting_as("acme", "ann") as client:
        assert client.get_conversation(conversation_id) is not None


def test_acting_as_rolls_back_on_an_exception(connect):
    client = Client(connect("test_app"))
    with pytest.raises(ZeroDivisionError), client.acting_as("acme", "ann"):
        conversation_id = client.create_conversation()
        raise ZeroDivisionError

    with client.acting_as("acme", "ann"):
        assert client.get_conversation(conversation_id) is None


def test_acting_as_keeps_tenants_apart_on_one_connection(connect):
    client = Client(connect("test_app"))
    with client.acting_as("acme", "ann"):
        conversation_id = client.create_conversation()

    with client.acting_as("other", "ann"):
        assert client.get_conversation(conversation_id) is None


def test_acting_as_refuses_a_connection_inside_a_transaction(connect):
    client = Client(connect("test_app"))
    with (
        client.connection.transaction(),
        pytest.raises(pgconvo.AlreadyInTransaction, match="outside any transaction"),
        client.acting_as("acme", "ann"),
    ):
        pass


def test_acting_as_refuses_a_transaction_that_a_query_began(connect):
    client = Client(connect("test_app", autocommit=False))
    client.connection.execute("select 1")
    with pytest.raises(pgconvo.AlreadyInTransaction), client.acting_as("acme", "ann"):
        pass


def test_acting_as_refuses_a_failed_transaction(connect):
    client = Client(connect("test_app", autocommit=False))
    with pytest.raises(psycopg.errors.DivisionByZero):
        client.connection.execute("select 1 / 0")
    with pytest.raises(pgconvo.AlreadyInTransaction), client.acting_as("acme", "ann"):
        pass


def test_acting_as_refuses_to_nest(connect):
    client = Client(connect("test_app"))
    with (
        client.acting_as("acme", "ann"),
        pytest.raises(pgconvo.AlreadyInTransaction),
        client.acting_as("other", "ann"),
    ):
        pass


def test_acting_as_without_a_role_keeps_the_logins(connect):
    with Client(connect("test_app")).acting_as("acme", "ann", role=None) as client:
        assert client.connection.execute(CONTEXT).fetchone()[0] == "test_app"


def test_acting_as_quotes_the_role(connect):
    client = Client(connect("test_app"))
    role = 'convo_app"; select 1'
    with (
        pytest.raises(pgconvo.InvalidArgument, match=role),
        client.acting_as("acme", "ann", role),
    ):
        pass


def test_acting_as_a_role_of_others_is_not_allowed(connect):
    client = Client(connect("test_app"))
    with (
        pytest.raises(pgconvo.NotAllowed),
        client.acting_as("acme", "ann", role="convo_service"),
    ):
        pass


# Conversations


def test_a_conversation_comes_as_a_record(ann):
    conversation_id = ann.create_conversation(
        title="Trip", system_prompt="Be brief.", metadata={"tags": ["a", None]}
    )
    conversation = ann.get_conversation(conversation_id)

    assert conversation.conversation_id == conversation_id
    assert conversation.user_id == "ann"
    assert conversation.title == "Trip"
    assert conversation.system_prompt == "Be brief."
    assert conversation.metadata == {"tags": ["a", None]}
    assert conversation.last_seq == 0
    assert conversation.is_on_hold is False
    assert conversation.forked_from is None


def test_a_record_is_immutable(ann, conversation_id):
    conversation = ann.get_conversation(conversation_id)
    with pytest.raises(dataclasses.FrozenInstanceError):
        conversation.title = "Other"


def test_times_are_aware(ann, conversation_id):
    assert ann.get_conversation(conversation_id).created_at.utcoffset() is not None


def test_an_unknown_conversation_is_none(ann):
    assert ann.get_conversation(uuid4()) is None


def test_an_id_may_be_text(ann, conversation_id):
    assert ann.get_conversation(str(conversation_id)).title == "Trip"


def test_an_id_of_ones_own_makes_creation_idempotent(ann):
    conversation_id = uuid4()

    for _ in range(2):
        created = ann.create_conversation(conversation_id=conversation_id)
        assert created == conversation_id


def test_update_keeps_what_is_none(ann, conversation_id):
    ann.update_conversation(conversation_id, metadata={"a": 1})
    conversation = ann.update_conversation(conversation_id, title="Journey")

    assert (conversation.title, conversation.metadata) == ("Journey", {"a": 1})


def test_archive_and_unarchive(ann, conversation_id):
    assert ann.archive_conversation(conversation_id).archived_at is not None
    assert ann.list_conversations() == []
    assert ann.unarchive_conversation(conversation_id).archived_at is None
    assert len(ann.list_conversations()) == 1


def test_delete_says_whether_there_was_one(ann, conversation_id):
    assert ann.delete_conversation(conversation_id) is True
    assert ann.delete_conversation(conversation_id) is False


def test_a_fork_names_its_origin(ann, conversation_id):
    ann.append_message(conversation_id, "user", "Hi")
    ann.append_message(conversation_id, "assistant", "Hello")
    fork = ann.get_conversation(ann.fork_conversation(conversation_id, through_seq=1))

    assert (fork.forked_from, fork.forked_at_seq) == (conversation_id, 1)


def test_a_service_transfers_a_conversation(service, conversation_id):
    moved = service.transfer_conversation(conversation_id, "bob")

    assert moved.user_id == "bob"


@pytest.mark.parametrize("page_size", [1, 2, 3, 100])
def test_iter_conversations_reads_each_once_newest_first(ann, page_size):
    ids = {ann.create_conversation() for _ in range(5)}
    ann.archive_conversation(ids.pop())
    read = list(ann.iter_conversations(page_size=page_size))
    places = [(c.updated_at, c.conversation_id) for c in read]

    assert {c.conversation_id for c in read} == ids
    assert places == sorted(set(places), reverse=True)


def test_iter_conversations_takes_archived_ones_on_demand(ann, conversation_id):
    ann.archive_conversation(conversation_id)

    assert len(list(ann.iter_conversations(include_archived=True))) == 1


# Messages


def test_a_message_comes_as_a_record(ann, conversation_id):
    message = ann.append_message(
        conversation_id, "user", "Hi", tokens=3, model="m", metadata={"a": 1}
    )

    assert (message.seq, message.role, message.content) == (1, "user", "Hi")
    assert (message.tokens, message.is_estimated) == (3, False)
    assert (message.model, message.metadata) == ("m", {"a": 1})
    assert (message.payload, message.format, message.deleted_at) == (None, None, None)


def test_a_retry_with_a_key_stores_once(ann, conversation_id):
    first = ann.append_message(conversation_id, "user", "Hi", idempotency_key="k")

    assert first == ann.append_message(
        conversation_id, "user", "Hi", idempotency_key="k"
    )
    assert ann.get_conversation(conversation_id).message_count == 1


@pytest.mark.parametrize("messages", [NASTY_JSON, NASTY_JSON.encode()])
def test_a_payload_comes_back_byte_for_byte(ann, conversation_id, messages):
    ann.append_messages(conversation_id, messages)
    (message,) = ann.last_messages(conversation_id, 1)

    assert message.payload == NASTY_JSON


def test_what_text_cant_hold_is_replaced_in_content(ann, conversation_id):
    (message,) = ann.append_messages(conversation_id, NASTY_JSON)

    assert (
        message.content
        == "a\N{REPLACEMENT CHARACTER}b \N{REPLACEMENT CHARACTER} \\u0000 é"
    )


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "\udc00\ud800", "\\u0000", "日本"])
def test_python_objects_survive_whole(ann, conversation_id, text):
    sent = {"role": "user", "content": text}
    (message,) = ann.append_messages(conversation_id, [sent])

    assert json.loads(message.payload) == sent


def test_a_list_is_stored_in_order(ann, conversation_id):
    messages = ann.append_messages(
        conversation_id,
        [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}],
        tokens=(1, 2),
    )

    assert [(m.seq, m.role, m.tokens) for m in messages] == [
        (1, "user", 1),
        (2, "assistant", 2),
    ]


def test_an_empty_list_stores_nothing(ann, conversation_id):
    assert ann.append_messages(conversation_id, [], expected_seq=0) == []


def test_an_edit_keeps_the_old_version(ann, conversation_id):
    ann.append_message(conversation_id, "user", "Hi")
    edited = ann.edit_message(conversation_id, 1, "Hello", expected_revision=1)
    revisions = ann.message_revisions(conversation_id, 1)

    assert (edited.content, edited.revision) == ("Hello", 2)
    assert {(m.revision, m.content) for m in revisions} >= {(1, "Hi")}


def test_delete_and_restore_a_message(ann, conversation_id):
    ann.append_message(conversation_id, "user", "Hi")

    assert ann.delete_message(conversation_id, 1).deleted_at is not None
    assert ann.last_messages(conversation_id, 10) == []
    assert ann.restore_message(conversation_id, 1).deleted_at is None
    assert len(ann.last_messages(conversation_id, 10)) == 1


def test_delete_messages_says_how_many(ann, conversation_id):
    for n in range(3):
        ann.append_message(conversation_id, "user", f"m{n}")

    assert ann.delete_messages(conversation_id, from_seq=2) == 2


@pytest.mark.parametrize("page_size", [1, 2, 3, 100])
def test_iter_messages_reads_each_once_in_order(ann, conversation_id, page_size):
    for n in range(5):
        ann.append_message(conversation_id, "user", f"m{n}")
    ann.delete_message(conversation_id, 3)
    read = [m.seq for m in ann.iter_messages(conversation_id, page_size)]

    assert read == [1, 2, 4, 5]


def test_tokens_are_estimated_without_context(connect):
    assert Client(connect("test_app")).estimate_tokens("Hello, world") > 0


def test_a_token_window_comes_as_records(ann, conversation_id):
    for tokens in (5, 3, 2):
        ann.append_message(conversation_id, "user", f"{tokens}", tokens=tokens)

    assert ann.token_window(conversation_id, 5) == [
        WindowMessage(2, "user", "3", 3, 5),
        WindowMessage(3, "user", "2", 2, 2),
    ]


def test_a_context_and_its_explanation_come_as_records(ann, conversation_id):
    for tokens in (5, 3):
        ann.append_message(conversation_id, "user", f"{tokens}", tokens=tokens)

    assert ann.get_context(conversation_id, token_budget=7) == [
        ContextItem(1, "message", 2, "user", "3", 3, 3)
    ]
    assert ann.explain_context(conversation_id, token_budget=7) == [
        ExplainedItem(1, "user", "message", 5, None, False, "over the budget"),
        ExplainedItem(2, "user", "message", 3, 3, True, "kept"),
    ]


def test_a_context_that_does_not_fit_is_an_error_with_numbers(ann, conversation_id):
    ann.append_message(conversation_id, "user", "Hi", tokens=9)

    with pytest.raises(BudgetExceeded) as caught:
        ann.get_context(conversation_id, token_budget=8)

    assert caught.value.detail == {
        "conversation_id": str(conversation_id),
        "needed": 9,
        "available": 8,
        "has_user_message": True,
    }


def test_a_rendered_context_has_the_bytes_that_were_stored(ann, conversation_id):
    ann.append_messages(conversation_id, NASTY_JSON)

    assert ann.render_context(conversation_id, "openai") == f"[{NASTY_JSON}]"


def test_policies_come_as_records(ann, service):
    policy = service.set_policy("short", token_budget=100, summary_share=0.5)

    assert policy == Policy(
        "short", "summary", 100, None, 0, 0, True, True, "drop", "exchange", 20000,
        0.5, 15, 0,
    )  # fmt: skip
    assert ann.get_policy("short") == policy
    assert ann.list_policies() == [policy]
    assert ann.get_policy("long") is None
    assert service.delete_policy("short") is True
    assert service.delete_policy("short") is False


# Summaries


def test_a_summary_comes_as_a_record(ann, conversation_id):
    for _ in range(3):
        ann.append_message(conversation_id, "user", "Hi")

    summary = ann.save_summary(conversation_id, "They greet.", 2, 0, tokens=4)

    assert summary == Summary(2, "They greet.", 4, None, summary.created_at)
    with pytest.raises(Conflict) as caught:
        ann.save_summary(conversation_id, "They greet.", 2, 0)
    assert caught.value.detail["through_seq"] == 2


# Retention


def test_a_retention_policy_comes_as_a_record(service):
    policy = service.set_retention("short", timedelta(days=30), basis="creation")

    assert policy == RetentionPolicy("short", timedelta(days=30), "creation", "delete")


def test_a_retention_without_an_age_is_for_ever(service):
    assert service.set_retention("standard", None).max_age is None


def test_hold_and_release(service, conversation_id):
    assert service.hold_conversation(conversation_id, "case 7").is_on_hold is True
    assert service.release_conversation(conversation_id, "closed").is_on_hold is False


@pytest.fixture
def due(ann: Client, service: Client, db: psycopg.Connection) -> list[UUID]:
    """Three conversations with a message each, due for the purge."""
    service.set_retention("short", timedelta(days=30))
    ids = [ann.create_conversation(retention_class="short") for _ in range(3)]
    for conversation_id in ids:
        ann.append_message(conversation_id, "user", "Hi")
    db.execute(
        "update convo.conversation set created_at = created_at - interval '31 days',"
        " updated_at = updated_at - interval '31 days'"
    )
    return ids


def test_a_dry_run_of_the_purge_only_counts(maintainer, ann, due):
    result = maintainer.purge(is_dry_run=True)

    assert isinstance(result, PurgeResult)
    assert (result.conversations, result.messages, result.held) == (3, 3, 0)
    assert result.is_dry_run is True
    assert len(ann.list_conversations()) == 3


def test_purge_deletes_one_batch_and_counts_what_is_held(maintainer, service, ann, due):
    service.hold_conversation(due[0], "case 7")
    result = maintainer.purge()

    assert (result.conversations, result.messages, result.held) == (2, 2, 1)
    assert [c.conversation_id for c in ann.list_conversations()] == due[:1]


def test_purge_all_goes_on_to_the_end(maintainer, ann, due):
    maintainer.purge_all(page_size=1)

    assert ann.list_conversations() == []


def test_purge_all_stops_after_max_batches(maintainer, ann, due):
    maintainer.purge_all(page_size=1, max_batches=2)

    assert len(ann.list_conversations()) == 1


def test_purge_all_needs_autocommit(connect, due):
    client = Client(connect("test_maintainer", autocommit=False))
    with pytest.raises(psycopg.errors.InvalidTransactionTermination):
        client.purge_all()
