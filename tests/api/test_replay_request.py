"""replay_request: the same bytes, whatever happened since; or PC060."""

from __future__ import annotations

import json
from uuid import uuid4

import pytest

FORMATS = ["openai", "openai_responses", "anthropic", "gemini"]


@pytest.fixture
def request_of(ann):
    """Prepare a request over a conversation."""

    def request_of(conversation_id, format="openai", **options):
        return ann.row(
            "prepare_request",
            conversation_id=conversation_id,
            format=format,
            **options,
        )

    return request_of


@pytest.fixture
def talk(ann):
    """A conversation with a system prompt, a system message, a summary, an edit."""
    one = ann.create(system_prompt="sesame prompt")
    ann.say(one, 1, 2, 3, 4)
    ann.say(one, 1, role="system")
    ann.summarise(one, 2)
    ann.row("edit_message", conversation_id=one, seq=3, content="sesame edited")
    return one


def replace_renderer(db):
    """Do what a later version does: it writes other bytes, under another number."""
    (definition,) = db.execute(
        "select pg_get_functiondef('convo._render'::regproc)"
    ).fetchone()
    earlier = definition.replace("convo._render(", "convo._earlier(")
    db.execute(earlier.replace("_render.", "_earlier."))
    db.execute(
        """
        create or replace function convo._render(
            renderer integer, format text, items convo._render_item[]
        ) returns text language sql as $$
            select case
                when $1 = 2 then '["sesame"]'
                else convo._earlier($1, $2, $3)
            end
        $$;
        create or replace function convo._renderer() returns integer
        language sql immutable as 'select 2';
        grant execute on function convo._earlier to public;
        """
    )


def replay(caller, request):
    return caller.value("replay_request", request_id=request["request_id"])


@pytest.mark.parametrize("format", FORMATS)
def test_gives_the_bytes_that_were_prepared(ann, talk, request_of, format):
    row = request_of(talk, format, model="m", parameters='{"a": 1}')
    assert "sesame summary" in row["body"] and "sesame edited" in row["body"]
    assert replay(ann, row) == row["body"]


def test_after_edits_deletions_and_summaries(ann, talk, request_of):
    row = request_of(talk)
    ann.row("edit_message", conversation_id=talk, seq=3, content="sesame again")
    ann.row("edit_message", conversation_id=talk, seq=4, content="sesame later")
    ann.row("update_conversation", conversation_id=talk, system_prompt="")
    ann.say(talk, 1)
    ann.summarise(talk, 4, 2)
    ann.value("delete_messages", conversation_id=talk)
    assert replay(ann, row) == row["body"]


def test_after_a_policy_changed_or_went(ann, service, talk, request_of):
    service.row("set_policy", name="p", summary_placement="system")
    row = request_of(talk, policy="p")
    service.row("set_policy", name="p", summary_placement="exchange")
    assert replay(ann, row) == row["body"]
    service.value("delete_policy", name="p")
    assert replay(ann, row) == row["body"]


def test_after_a_transfer_for_the_new_owner_only(
    ann, ben, service, talk, request_of, fails
):
    row = request_of(talk, parameters='{"tools": []}')
    service.row("transfer_conversation", conversation_id=talk, to_user_id="ben")
    assert replay(ben, row) == row["body"]
    with fails("PC003"):
        replay(ann, row)


def test_after_the_renderer_was_replaced(ann, db, talk, request_of):
    row = request_of(talk)
    replace_renderer(db)
    assert replay(ann, row) == row["body"]
    newer = request_of(talk)
    assert newer["renderer"] == 2
    assert replay(ann, newer) == newer["body"] == '{"messages":["sesame"]}'


def test_the_record_of_a_later_version_is_refused(ann, db, talk, request_of, fails):
    row = request_of(talk)
    db.execute("update convo.request_frame set renderer = 2")
    with fails("PC060", renderer=2):
        replay(ann, row)


@pytest.mark.parametrize(
    ("statement", "detail"),
    [
        ("delete from convo.message where seq = 4", {"messages": [4]}),
        ("delete from convo.message_revision", {"reason": "the bytes differ"}),
        ("delete from convo.summary", {"summary": 2}),
        ("delete from convo.request_prompt", {"texts": ["system"]}),
        ("update convo.message set content = 'x' where seq = 4",
         {"reason": "the bytes differ"}),
    ],
)  # fmt: skip
def test_what_is_gone_is_named_and_nothing_given(
    ann, db, talk, request_of, fails, statement, detail
):
    row = request_of(talk)
    ann.row("edit_message", conversation_id=talk, seq=3, content="sesame later")
    db.execute(statement)
    with fails("PC060", request_id=str(row["request_id"]), **detail):
        replay(ann, row)


def test_a_deleted_conversation_took_its_requests_along(ann, talk, request_of, fails):
    row = request_of(talk)
    ann.value("delete_conversation", conversation_id=talk)
    with fails("PC003", request_id=str(row["request_id"])):
        replay(ann, row)


def test_what_is_not_theirs_is_not_there(talk, request_of, outsider, fails):
    for one in (request_of(talk)["request_id"], uuid4()):
        with fails("PC003", request_id=str(one)):
            outsider.value("replay_request", request_id=one)


def test_readers_and_service_of_the_tenant_may(talk, request_of, reader, service):
    row = request_of(talk)
    assert replay(reader, row) == replay(service, row) == row["body"]


def test_without_a_context_there_is_an_error(unknown, fails):
    with fails("PC030"):
        unknown.value("replay_request", request_id=uuid4())


def test_a_fork_has_no_requests(ann, talk, request_of):
    request_of(talk)
    fork = ann.value("fork_conversation", conversation_id=talk)
    assert ann.rows("list_requests", conversation_id=fork) == []


def test_messages_without_text_are_replayed(ann, conversation_id, request_of):
    payload = (
        '{"role": "user", "content": [{"type": "image_url",'
        ' "image_url": {"url": "data:image/png;base64,AA=="}}]}'
    )
    ann.append(conversation_id, payload)
    row = request_of(conversation_id)
    assert payload in row["body"]
    assert replay(ann, row) == row["body"]
    assert json.loads(row["body"])["messages"][0]["role"] == "user"
