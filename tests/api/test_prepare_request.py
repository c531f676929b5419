"""prepare_request: a body that a provider takes, and a small record of it."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from uuid import UUID, uuid4

import psycopg
import pytest

FORMATS = ["openai", "openai_responses", "anthropic", "gemini"]
TOOLS = [{"type": "function", "function": {"name": "sesame", "parameters": {}}}]


@pytest.fixture
def prepare(ann, conversation_id):
    """Prepare a request over ann's conversation, which holds one message."""
    ann.say(conversation_id, 5)

    def prepare(format="openai", **options):
        return ann.row(
            "prepare_request",
            conversation_id=conversation_id,
            format=format,
            **options,
        )

    return prepare


def test_gives_a_record(prepare, conversation_id):
    row = prepare(model="gpt-x")

    assert isinstance(row.pop("request_id"), UUID)
    assert isinstance(row.pop("created_at"), datetime)
    assert row.pop("body_sha256") == hashlib.sha256(row["body"].encode()).digest()
    assert row == {
        "conversation_id": conversation_id,
        "format": "openai",
        "model": "gpt-x",
        "policy": "default",
        "body": '{"model":"gpt-x","messages":[{"role":"user","content":"sesame 1"}]}',
        "token_count": 5,
        "first_seq": 1,
        "last_seq": 1,
        "status": "prepared",
        "finished_at": None,
        "renderer": 1,
    }


@pytest.mark.parametrize("format", FORMATS)
def test_the_context_is_the_one_that_render_context_gives(ann, prepare, format):
    row = prepare(format)
    rendered = ann.value(
        "render_context", conversation_id=row["conversation_id"], format=format
    )
    inner = {"openai": f'{{"messages":{rendered}}}'}
    inner["openai_responses"] = f'{{"input":{rendered}}}'
    assert row["body"] == inner.get(format, rendered)


def test_gemini_has_the_model_in_its_address_not_in_the_body(prepare):
    row = prepare("gemini", model="gemini-x")
    assert row["model"] == "gemini-x"
    assert set(json.loads(row["body"])) == {"contents"}


def test_parameters_join_the_body_byte_for_byte(prepare):
    row = prepare(
        parameters='{ "stop" : ["\\u0000", "\\ud800"],"n":1.50 , "tools":[ ]}'
    )
    assert row["body"].startswith(
        '{"stop":["\\u0000", "\\ud800"],"n":1.50,"tools":[ ],"messages":['
    )


@pytest.mark.parametrize("parameters", [None, "{}", " { } "])
def test_without_parameters_there_is_only_the_context(prepare, parameters):
    assert set(json.loads(prepare(parameters=parameters)["body"])) == {"messages"}


def test_tools_count_in_the_budget(prepare, fails, ann):
    tools = json.dumps(TOOLS)
    cost = ann.value("estimate_tokens", content=tools)
    parameters = f'{{"tools":{tools}}}'
    assert cost > 5
    assert prepare(parameters=parameters, token_budget=5 + cost)["token_count"] == (
        5 + cost
    )
    with fails("PC020", needed=5 + cost, available=4 + cost):
        prepare(parameters=parameters, token_budget=4 + cost)


def test_overhead_counts_in_tokens(prepare, service):
    service.row("set_policy", name="costly", message_overhead=3)
    row = prepare(policy="costly")
    assert (row["policy"], row["token_count"]) == ("costly", 8)


@pytest.mark.parametrize(
    "name",
    ["model", "messages", "input", "system", "contents", "systemInstruction",
     "system_instruction", "\\u006dodel"],
)  # fmt: skip
def test_parameters_may_not_hold_what_the_context_is(prepare, fails, name):
    member = name.replace("\\u006d", "m")
    with fails("22023", argument="parameters", member=member):
        prepare(parameters=f'{{"{name}": "sesame"}}')


@pytest.mark.parametrize("parameters", ["[]", '"sesame"', "1", "null"])
def test_parameters_are_an_object(prepare, fails, parameters):
    with fails("22023", argument="parameters", reason="not an object"):
        prepare(parameters=parameters)


@pytest.mark.parametrize("format", [None, "", "sesame", "OpenAI"])
def test_an_unknown_format_is_refused(prepare, fails, format):
    with fails("22023", argument="format", allowed=FORMATS):
        prepare(format)


def test_an_unknown_policy_is_refused(prepare, fails):
    with fails("22023", argument="policy"):
        prepare(policy="sesame")


def test_the_memories_in_it_count_as_accessed(ann, db, prepare):
    ann.rows("remember", facts='[{"key": "sesame", "value": "sesame seeds"}]')
    db.execute("update convo.memory set last_accessed_at = '2020-01-01'")
    assert "sesame seeds" in prepare()["body"]
    (row,) = ann.rows("recall")
    assert row["last_accessed_at"].year > 2020


def test_a_forgotten_memory_is_replayed_where_it_was_sent(ann, prepare):
    ann.rows("remember", facts='[{"key": "sesame", "value": "sesame seeds"}]')
    row = prepare()
    ann.value("forget", key="sesame")
    assert "sesame seeds" not in prepare()["body"]
    again = ann.value("replay_request", request_id=row["request_id"])
    assert again == row["body"]


def test_it_leaves_the_conversation_as_it_was(prepare, ann, conversation_id):
    before = ann.get(conversation_id)
    prepare()
    assert ann.get(conversation_id) == before


def test_texts_are_stored_once_for_all_of_a_users_conversations(ann, db):
    parameters = json.dumps({"temperature": 1, "tools": TOOLS})
    for _ in range(3):
        one = ann.create(system_prompt="sesame prompt")
        ann.say(one, 1)
        for format in ("openai", "anthropic"):
            ann.row(
                "prepare_request",
                conversation_id=one,
                format=format,
                parameters=parameters,
            )
    rows = db.execute("select content from convo.prompt order by 1").fetchall()
    assert rows == [
        ('"temperature":1',),
        (json.dumps(TOOLS),),
        ("sesame prompt",),
    ]


def test_texts_go_with_the_last_conversation_that_used_them(ann, db):
    made = [ann.create(system_prompt="sesame prompt") for _ in range(2)]
    for one in made:
        ann.say(one, 1)
        ann.row(
            "prepare_request",
            conversation_id=one,
            format="openai",
            parameters=json.dumps({"tools": TOOLS}),
        )
    for one, left in zip(made, [2, 0], strict=True):
        ann.value("delete_conversation", conversation_id=one)
        count = db.execute("select count(*) from convo.prompt").fetchone()
        assert count == (left,)


def test_a_replaced_system_prompt_stays_for_the_requests(ann, db):
    one = ann.create(system_prompt="sesame old")
    ann.say(one, 1)
    ann.row("prepare_request", conversation_id=one, format="openai")
    ann.row("update_conversation", conversation_id=one, system_prompt="sesame new")
    rows = db.execute("select content from convo.prompt order by 1").fetchall()
    assert rows == [("sesame new",), ("sesame old",)]


def test_what_is_not_theirs_is_not_there(prepare, outsider, fails, conversation_id):
    prepare()
    for one in (conversation_id, uuid4()):
        with fails("PC001", conversation_id=str(one)):
            outsider.row("prepare_request", conversation_id=one, format="openai")


def test_service_prepares_for_any_user_of_its_tenant(prepare, service, ann):
    row = prepare()
    other = service.row(
        "prepare_request", conversation_id=row["conversation_id"], format="openai"
    )
    assert ann.value("replay_request", request_id=other["request_id"]) == row["body"]


def test_readers_may_not(prepare, reader, conversation_id):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader.row("prepare_request", conversation_id=conversation_id, format="openai")


def test_without_a_context_there_is_an_error(unknown, fails, conversation_id):
    with fails("PC030"):
        unknown.row("prepare_request", conversation_id=conversation_id, format="openai")
