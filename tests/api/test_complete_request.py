"""complete_request: the provider's own response, stored once with what it cost."""

from __future__ import annotations

import itertools
import json
from uuid import uuid4

import psycopg
import pytest

FORMATS = ["openai", "openai_responses", "anthropic", "gemini"]
TEXT = "sesame answer"
WHOLE = {
    "openai": {
        "id": "x", "object": "chat.completion", "model": "gpt-x-1",
        "choices": [{
            "index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": TEXT, "refusal": None},
        }],
        "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9},
    },
    "openai_responses": {
        "id": "x", "object": "response", "status": "completed", "model": "gpt-x-1",
        "output": [{
            "type": "message", "id": "msg_1", "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": TEXT, "annotations": []}],
        }],
        "usage": {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9},
    },
    "anthropic": {
        "id": "x", "type": "message", "role": "assistant", "model": "claude-x-1",
        "content": [{"type": "text", "text": TEXT, "citations": None}],
        "stop_reason": "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 7, "output_tokens": 2},
    },
    "gemini": {
        "candidates": [{
            "content": {"parts": [{"text": TEXT}], "role": "model"},
            "finishReason": "STOP", "index": 0,
        }],
        "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 2},
        "modelVersion": "gemini-x-1",
    },
}  # fmt: skip
MESSAGE = {
    "openai": {"role": "assistant", "content": TEXT},
    "openai_responses": WHOLE["openai_responses"]["output"],
    "anthropic": {"role": "assistant", "content": TEXT},
    "gemini": {"role": "model", "parts": [{"text": TEXT}]},
}
FINISH = {
    "openai": "stop", "openai_responses": "completed", "anthropic": "end_turn",
    "gemini": "STOP",
}  # fmt: skip


@pytest.fixture
def prepare(ann, conversation_id):
    """Prepare a request over ann's conversation, which holds one user message."""
    ann.say(conversation_id, 5)

    def prepare(format="openai", model="a-model"):
        return ann.row(
            "prepare_request",
            conversation_id=conversation_id,
            format=format,
            model=model,
        )

    return prepare


def complete(caller, request, response, **options):
    if not isinstance(response, str):
        response = json.dumps(response)
    return caller.rows(
        "complete_request",
        request_id=request["request_id"],
        response=response,
        **options,
    )


def cut(format, reason, **changes):
    """A whole response that ended for another reason."""
    response = json.loads(json.dumps(WHOLE[format]))
    if format == "openai":
        response["choices"][0]["finish_reason"] = reason
        response["choices"][0]["message"].update(changes)
    elif format == "openai_responses":
        response["status"] = "incomplete"
        response["incomplete_details"] = {"reason": reason}
        response.update(changes)
    elif format == "anthropic":
        response.update({"stop_reason": reason, **changes})
    else:
        response["candidates"][0]["finishReason"] = reason
        response["candidates"][0].update(changes)
    return response


@pytest.mark.parametrize("format", FORMATS)
def test_a_whole_response_is_stored(ann, prepare, format, conversation_id):
    (row,) = complete(ann, prepare(format), WHOLE[format])

    assert row == ann.live(conversation_id)[-1]
    assert (row["seq"], row["role"], row["content"]) == (2, "assistant", TEXT)
    assert row["format"] == format
    assert row["model"] in ("gpt-x-1", "claude-x-1", "gemini-x-1")
    assert row["metadata"] == {"finish_reason": FINISH[format]}


@pytest.mark.parametrize("format", FORMATS)
def test_the_message_of_a_response_is_enough(ann, prepare, format):
    (row,) = complete(ann, prepare(format), MESSAGE[format])

    assert (row["content"], row["model"]) == (TEXT, "a-model")
    assert row["metadata"] == {}


@pytest.mark.parametrize("format", FORMATS)
def test_the_request_is_closed(ann, prepare, format, conversation_id):
    (row,) = complete(ann, prepare(format), WHOLE[format])

    (request,) = ann.rows("list_requests", conversation_id=conversation_id)
    assert request["status"] == "completed"
    assert request["finished_at"] == row["created_at"]


@pytest.mark.parametrize("format", FORMATS)
def test_the_answer_can_be_sent_in_the_next_request(ann, prepare, format):
    (row,) = complete(ann, prepare(format), WHOLE[format])
    ann.say(prepare()["conversation_id"], 1)
    assert row["payload"].strip("[]") in prepare(format)["body"]


def test_the_message_keeps_its_bytes(ann, prepare):
    message = (
        '{ "role":"assistant",  "content" : "\\u0000 \\ud800 \\\\u0000", "n":1.0 }'
    )
    response = f'{{"choices":[{{"finish_reason":"stop","message":{message}}}]}}'
    (row,) = complete(ann, prepare(), response)
    assert row["payload"] == message
    assert row["content"] == "\ufffd \ufffd \\u0000"


def test_anthropic_takes_back_only_role_and_content(ann, prepare):
    (row,) = complete(ann, prepare("anthropic"), WHOLE["anthropic"])
    assert json.loads(row["payload"]) == {
        "role": "assistant",
        "content": WHOLE["anthropic"]["content"],
    }


def test_several_items_are_one_answer(ann, prepare, conversation_id):
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [],
                 "encrypted_content": "sesame"}  # fmt: skip
    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f",
            "arguments": "{}", "status": "completed"}  # fmt: skip
    request = prepare("openai_responses")
    response = {**WHOLE["openai_responses"], "output": [reasoning, call]}
    rows = complete(ann, request, response)
    assert [row["seq"] for row in rows] == [2, 3]
    assert {row["group_seq"] for row in rows} == {2}
    assert complete(ann, request, response) == rows


def test_results_of_the_providers_own_tools_are_part_of_the_answer(ann, prepare):
    output = [
        {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "c",
         "output": [{"stdout": "sesame", "stderr": ""}]},
        *WHOLE["openai_responses"]["output"],
    ]  # fmt: skip
    response = {**WHOLE["openai_responses"], "output": output}
    rows = complete(ann, prepare("openai_responses"), response)
    assert [(row["role"], row["group_seq"]) for row in rows] == [
        ("assistant", 2),
        ("tool", 2),
        ("assistant", 4),
    ]


def test_an_answer_of_nothing_closes_the_request(ann, prepare, conversation_id):
    response = {**WHOLE["openai_responses"], "output": []}
    request = prepare("openai_responses")
    assert complete(ann, request, response) == []
    assert complete(ann, request, response) == []
    (row,) = ann.rows("list_requests", conversation_id=conversation_id)
    assert row["status"] == "completed"


def test_a_long_name_of_a_model_is_cut(ann, prepare):
    (row,) = complete(ann, prepare(), {**WHOLE["openai"], "model": "x" * 300})
    assert row["model"] == "x" * 255


# Once


def test_the_same_response_again_stores_nothing(ann, prepare, db):
    request = prepare()
    first = complete(ann, request, WHOLE["openai"])
    assert complete(ann, request, WHOLE["openai"]) == first
    counts = "select count(*), (select count(*) from convo.usage) from convo.message"
    assert db.execute(counts).fetchone() == (2, 1)


def test_the_same_response_gives_the_messages_as_they_are_now(ann, prepare):
    request = prepare()
    (row,) = complete(ann, request, WHOLE["openai"])
    ann.row(
        "edit_message",
        conversation_id=request["conversation_id"],
        seq=row["seq"],
        content="sesame edited",
    )
    (again,) = complete(ann, request, WHOLE["openai"])
    assert (again["content"], again["revision"]) == ("sesame edited", 2)


def test_another_response_is_refused(ann, prepare, fails, conversation_id):
    request = prepare()
    complete(ann, request, WHOLE["openai"])
    with fails("PC011", request_id=str(request["request_id"]), first_seq=2, last_seq=2):
        complete(ann, request, MESSAGE["openai"])
    assert len(ann.live(conversation_id)) == 2


def test_nothing_is_another_response(ann, prepare, fails):
    request = prepare()
    complete(ann, request, WHOLE["openai"])
    with fails("PC011"):
        ann.rows("complete_request", request_id=request["request_id"], response=None)


def test_a_failed_request_may_still_be_completed(ann, prepare):
    request = prepare()
    ann.value("fail_request", request_id=request["request_id"], error="sesame")
    (row,) = complete(ann, request, WHOLE["openai"])
    assert row["content"] == TEXT


def test_expected_seq_is_checked_and_nothing_stored(ann, prepare, fails, db):
    request = prepare()
    ann.say(request["conversation_id"], 1)
    with fails("PC010", expected_seq=1, last_seq=2):
        complete(ann, request, WHOLE["openai"], expected_seq=1)
    assert db.execute(
        "select finished_at, (select count(*) from convo.usage) from convo.request"
    ).fetchone() == (None, 0)
    assert complete(ann, request, WHOLE["openai"], expected_seq=2)


# Cut off


@pytest.mark.parametrize(
    ("format", "reason"),
    [("openai", "length"), ("openai", "content_filter"), ("openai", None),
     ("openai_responses", "max_output_tokens"), ("anthropic", "max_tokens"),
     ("anthropic", "refusal"), ("anthropic", None), ("gemini", "MAX_TOKENS"),
     ("gemini", "SAFETY")],
)  # fmt: skip
def test_text_that_was_cut_off_is_kept_and_marked(ann, prepare, format, reason):
    (row,) = complete(ann, prepare(format), cut(format, reason))
    assert row["content"] == TEXT
    assert row["metadata"].pop("is_truncated") is True
    assert row["metadata"] == ({"finish_reason": reason} if reason else {})


def openai_call(call_id, arguments):
    function = {"name": "f", "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


@pytest.mark.parametrize(
    ("calls", "kept"),
    [
        ([openai_call("a", "{}"), openai_call("b", '{"x": 1')], ["a"]),
        ([openai_call("a", '{"x": 1')], []),
        ([openai_call("a", "{}"), openai_call("b", "{}")], ["a", "b"]),
    ],
)
def test_openai_a_call_that_was_cut_off_is_left_out(ann, prepare, calls, kept):
    (row,) = complete(ann, prepare(), cut("openai", "length", tool_calls=calls))
    message = json.loads(row["payload"])
    assert [call["id"] for call in message.get("tool_calls", [])] == kept
    assert message["content"] == TEXT


def test_openai_a_whole_answer_keeps_arguments_that_are_no_json(ann, prepare):
    response = cut("openai", "tool_calls", tool_calls=[openai_call("a", "{oops")])
    (row,) = complete(ann, prepare(), response)
    assert json.loads(row["payload"])["tool_calls"][0]["id"] == "a"
    assert "is_truncated" not in row["metadata"]


def test_responses_items_that_were_cut_off_are_left_out(ann, prepare):
    def item(kind, status, **more):
        return {"type": kind, "status": status, **more}

    call = {"call_id": "c", "name": "f", "arguments": '{"x'}
    message = WHOLE["openai_responses"]["output"][0]
    output = [
        item("reasoning", "completed", id="rs_1", summary=[]),
        {**message, "status": "incomplete"},
        item("reasoning", "completed", id="rs_2", summary=[]),
        item("function_call", "incomplete", **call),
    ]
    response = cut("openai_responses", "max_output_tokens", output=output)
    rows = complete(ann, prepare("openai_responses"), response)
    assert [json.loads(row["payload"])["type"] for row in rows] == [
        "reasoning",
        "message",
    ]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_use", "id": "c", "name": "f", "input": {}},
        {"type": "server_tool_use", "id": "c", "name": "f", "input": {}},
        {"type": "thinking", "thinking": "sesame", "signature": ""},
    ],
)
def test_anthropic_a_block_that_was_cut_off_is_left_out(ann, prepare, block):
    content = [*WHOLE["anthropic"]["content"], block]
    response = cut("anthropic", "max_tokens", content=content)
    (row,) = complete(ann, prepare("anthropic"), response)
    assert json.loads(row["payload"])["content"] == content[:1]


@pytest.mark.parametrize("calls", [None, 1, "x", {"a": 1}])
def test_openai_calls_that_are_no_array_lose_no_answer(ann, prepare, calls):
    response = cut("openai", "length", tool_calls=calls)
    if calls is None:
        (row,) = complete(ann, prepare(), response)
        assert row["content"] == TEXT
    else:
        with pytest.raises(psycopg.Error) as caught:
            complete(ann, prepare(), response)
        assert caught.value.sqlstate == "PC050"


@pytest.mark.parametrize("content", [None, 1, [], "x"])
def test_gemini_content_that_is_no_object_is_an_empty_answer(ann, prepare, content):
    response = cut("gemini", "SAFETY", content=content)
    (row,) = complete(ann, prepare("gemini"), response)
    assert json.loads(row["payload"]) == {"parts": [], "role": "model"}


def test_gemini_without_content_is_an_empty_answer(ann, prepare):
    response = cut("gemini", "MAX_TOKENS")
    del response["candidates"][0]["content"]
    (row,) = complete(ann, prepare("gemini"), response)
    assert json.loads(row["payload"]) == {"parts": [], "role": "model"}


# Refused


@pytest.mark.parametrize(("asked", "given"), itertools.permutations(FORMATS, 2))
def test_a_response_of_another_format_is_refused(ann, prepare, fails, asked, given):
    request = prepare(asked)
    with fails(
        "PC050", reason="a response of another format", format=given, expected=asked
    ):
        complete(ann, request, WHOLE[given])
    assert complete(ann, request, WHOLE[asked])


@pytest.mark.parametrize(
    ("format", "response", "reason"),
    [
        ("openai", None, "missing"),
        ("openai", "1", "not an object"),
        ("openai", '{"error": {"message": "sesame"}}',
         "an error, not an answer: see fail_request"),
        ("anthropic", '{"type": "error", "error": {"type": "sesame"}}',
         "an error, not an answer: see fail_request"),
        ("openai_responses", '{"status": "failed", "output": []}',
         "an error, not an answer: see fail_request"),
        ("openai", '{"choices": [], "n": 1e999999}', "a number out of range"),
        ("openai", '{"choices": []}', "there is no answer in it"),
        ("openai", '{"choices": 1}', "there is no answer in it"),
        ("openai", '{"choices": [{"delta": {"content": "sesame"}}]}',
         "there is no answer in it"),
        ("gemini", '{"promptFeedback": {"blockReason": "SAFETY"}}',
         "there is no answer in it"),
        ("openai_responses", '{"output": "sesame"}', "there is no answer in it"),
        ("openai", '{"choices": [{"message": {}}, {"message": {}}]}',
         "it has several answers: give the message to keep"),
        ("openai", '{"role": "user", "content": "sesame"}',
         "not a message of the assistant"),
        ("openai_responses",
         '[{"type": "function_call_output", "call_id": "c", "output": "sesame"}]',
         "not a message of the assistant"),
        ("gemini", '{"parts": [{"text": "sesame"}]}', "not a message of the assistant"),
        ("openai", '{"choices": [{"message": {"role": "nobody"}}]}', "unknown role"),
        ("anthropic", '{"stop_reason": "end_turn", "content": 1}',
         "content is neither a string nor an array"),
        ("anthropic", '{"stop_reason": "end_turn"}', "content is missing"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused_with_a_reason(
    ann, prepare, fails, format, response, reason, conversation_id
):
    request = prepare(format)
    with fails("PC050", reason=reason):
        ann.rows(
            "complete_request", request_id=request["request_id"], response=response
        )
    (row,) = ann.rows("list_requests", conversation_id=conversation_id)
    assert (row["status"], len(ann.live(conversation_id))) == ("prepared", 1)


def test_what_is_not_theirs_is_not_there(prepare, outsider, fails):
    for one in (prepare()["request_id"], uuid4()):
        with fails("PC003", request_id=str(one)):
            complete(outsider, {"request_id": one}, WHOLE["openai"])


def test_service_completes_for_the_user(ann, service, prepare, conversation_id):
    complete(service, prepare(), WHOLE["openai"])
    assert ann.live(conversation_id)[-1]["content"] == TEXT


def test_a_conversation_on_hold_goes_on(ann, service, prepare):
    request = prepare()
    service.row(
        "hold_conversation", conversation_id=request["conversation_id"], reason="x"
    )
    assert complete(ann, request, WHOLE["openai"])


def test_without_a_context_there_is_an_error(unknown, fails):
    with fails("PC030"):
        complete(unknown, {"request_id": uuid4()}, WHOLE["openai"])
