"""StreamedResponse: events add up to the response, whole or as far as they came."""

from __future__ import annotations

import json

import pytest
from anthropic import Anthropic
from google.genai import types as gemini
from openai import OpenAI

from pgconvo import Client, InvalidMessage, StreamedResponse

PATHS = {
    "openai": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "anthropic": "/v1/messages",
}
CHUNKS = [
    {"candidates": [{"content": {"parts": [{"text": "Hm", "thought": True}],
                                 "role": "model"}, "index": 0}],
     "usageMetadata": {"promptTokenCount": 3}, "modelVersion": "gemini-x"},
    {"candidates": [{"content": {"parts": [{"text": "It is "}]}, "index": 0}]},
    {"candidates": [{"content": {"parts": [{"text": "sunny"}]}, "index": 0}]},
    {"candidates": [{"content": {"parts": [{"text": "", "thoughtSignature": "AA=="}]},
                     "index": 0}]},
    {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f"}}]},
                     "finishReason": "STOP", "index": 0}],
     "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4}},
]  # fmt: skip
GEMINI = {
    "candidates": [{
        "content": {
            "parts": [
                {"text": "Hm", "thought": True},
                {"text": "It is sunny"},
                {"text": "", "thoughtSignature": "AA=="},
                {"functionCall": {"name": "f"}},
            ],
            "role": "model",
        },
        "index": 0, "finishReason": "STOP",
    }],
    "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 4},
    "modelVersion": "gemini-x",
}  # fmt: skip


def request(format, **options):
    """A request as the stand-in wants it."""
    question = [{"role": "user", "content": "What is the weather?"}]
    name = "input" if format == "openai_responses" else "messages"
    return {"model": "a-model", name: question, **options}


def whole_and_events(stand_ins, format, **options):
    body = request(format, stream_options={"include_usage": True}, **options)
    whole, events = stand_ins.PROTOCOLS[PATHS[format]]
    response = whole(body, 100)
    return response, list(events(response, body))


def streamed(format, events):
    answer = StreamedResponse(format)
    for event in events:
        answer.add(event)
    return answer.response


@pytest.fixture
def store(connect):
    """Store what events add up to, as the answer to a question of ann's."""
    ann = Client(connect("test_app", tenant="acme", user="ann"))
    conversation_id = ann.create_conversation()
    ann.append_message(conversation_id, "user", "What is the weather?")

    def store(format, events):
        request_id = ann.prepare_request(conversation_id, format).request_id
        return ann.complete_request(request_id, streamed(format, events))

    return store


@pytest.mark.parametrize("format", PATHS)
@pytest.mark.parametrize(
    "options", [{}, {"tools": [{"name": "weather"}]}, {"max_tokens": 4}]
)
def test_events_add_up_to_the_response(stand_ins, format, options):
    response, events = whole_and_events(stand_ins, format, **options)

    assert streamed(format, events) == response


@pytest.mark.parametrize("format", PATHS)
@pytest.mark.parametrize("options", [{}, {"tools": [{"name": "weather"}]}])
def test_the_events_of_the_sdks_add_up_to_the_same(
    stand_in, stand_ins, format, options
):
    response, _ = whole_and_events(stand_ins, format, **options)
    openai = OpenAI(base_url=f"{stand_in.url}/v1", api_key="-")
    anthropic = Anthropic(base_url=stand_in.url, api_key="-")
    create = {
        "openai": openai.chat.completions.create,
        "openai_responses": openai.responses.create,
        "anthropic": anthropic.messages.create,
    }[format]
    if format == "anthropic":
        options = {"max_tokens": 100, **options}
    answer = streamed(format, create(**request(format, stream=True, **options)))

    for one in (answer, response):
        one.pop("usage", None)
    assert answer == response


def test_the_chunks_of_gemini_add_up():
    assert streamed("gemini", CHUNKS) == GEMINI


def test_the_chunks_of_geminis_sdk_add_up():
    objects = map(gemini.GenerateContentResponse.model_validate, CHUNKS)

    assert streamed("gemini", objects) == GEMINI


def test_the_callers_events_stay_as_they_are(stand_ins):
    for format in PATHS:
        _, events = whole_and_events(stand_ins, format)
        before = json.dumps(events)
        streamed(format, events)
        assert json.dumps(events) == before


def test_openai_calls_are_told_apart_by_index():
    def chunk(*calls):
        delta = {"role": "assistant", "tool_calls": list(calls)}
        return {"choices": [{"index": 0, "delta": delta}]}

    def call(index, name, arguments):
        function = {"name": name, "arguments": arguments}
        return {"index": index, "id": f"c{index}", "function": function}

    response = streamed(
        "openai",
        [
            chunk(call(0, "f", '{"a"')),
            chunk(call(1, "g", "{"), call(0, "f", ":1}")),
            chunk(call(1, None, "}")),
        ],
    )

    (choice,) = response["choices"]
    assert choice["message"]["role"] == "assistant"
    assert [tuple(c["function"].values()) for c in choice["message"]["tool_calls"]] == [
        ("f", '{"a":1}'),
        ("g", "{}"),
    ]


def test_anthropic_thinking_has_its_signature_and_text_its_citations():
    def block(index, **fields):
        return {"type": "content_block_start", "index": index, "content_block": fields}

    def delta(index, **fields):
        return {"type": "content_block_delta", "index": index, "delta": fields}

    response = streamed(
        "anthropic",
        [
            {"type": "message_start", "message": {"content": [], "usage": {}}},
            block(0, type="thinking", thinking="", signature=""),
            delta(0, type="thinking_delta", thinking="Let "),
            delta(0, type="thinking_delta", thinking="me see"),
            delta(0, type="signature_delta", signature="EqQ="),
            block(1, type="text", text="", citations=None),
            delta(1, type="citations_delta", citation={"cited_text": "x"}),
            delta(1, type="text_delta", text="So."),
        ],
    )

    assert response["content"] == [
        {"type": "thinking", "thinking": "Let me see", "signature": "EqQ="},
        {"type": "text", "text": "So.", "citations": [{"cited_text": "x"}]},
    ]


def openai_chunk(finish_reason=None, **delta):
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"choices": [choice]}


def test_openai_what_is_empty_later_replaces_nothing():
    def call(**fields):
        return openai_chunk(tool_calls=[{"index": 0, **fields}])

    response = streamed(
        "openai",
        [
            call(id="c1", type="function", function={"name": "f", "arguments": "{"}),
            call(id="", type=None, function={"name": "", "arguments": "}"}),
            call(id=None, function={"name": None, "arguments": ""}),
            openai_chunk(tool_calls=None, role="", function_call=None),
        ],
    )

    function = {"name": "f", "arguments": "{}"}
    assert response["choices"][0]["message"] == {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }


def test_openai_members_that_are_null_are_left_out():
    response = streamed("openai", [openai_chunk(content="Hi", tool_calls=None)])

    message = {"role": "assistant", "content": "Hi"}
    assert response["choices"][0]["message"] == message


@pytest.mark.parametrize("end", [None, "stop", "error"])
def test_openai_an_error_leaves_what_came_and_cuts_it_off(store, end):
    failed = {**openai_chunk(end, content=""), "error": {"message": "overloaded"}}
    (message,) = store("openai", [openai_chunk(content="Hi"), failed])

    assert message.content == "Hi"
    assert message.metadata == {"is_truncated": True}


def test_gemini_an_error_leaves_what_came_and_cuts_it_off(store):
    (message,) = store("gemini", [*CHUNKS[:3], {"error": {"code": 503}}])

    assert message.content == "It is sunny"
    assert message.metadata == {"is_truncated": True}


def responses_failed(**fields):
    error = {"code": "server_error", "message": "overloaded"}
    response = {"status": "failed", "error": error, "output": [], **fields}
    return {"type": "response.failed", "response": response}


def test_responses_a_failure_leaves_the_text_that_came(stand_ins, store):
    _, events = whole_and_events(stand_ins, "openai_responses")
    (message,) = store("openai_responses", [*events[:5], responses_failed()])

    assert message.content == "In Paris "
    assert message.metadata["is_truncated"]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_responses_a_failure_without_text_is_an_error(stand_ins, store, count):
    _, events = whole_and_events(stand_ins, "openai_responses")
    with pytest.raises(InvalidMessage, match="an error, not an answer"):
        store("openai_responses", [*events[:count], responses_failed()])


def test_responses_a_failure_leaves_calls_that_are_whole(stand_ins, store):
    options = {"tools": [{"name": "weather"}]}
    _, events = whole_and_events(stand_ins, "openai_responses", **options)
    (message,) = store("openai_responses", [*events[:-1], responses_failed()])

    assert json.loads(message.payload)["name"] == "weather"
    with pytest.raises(InvalidMessage, match="an error, not an answer"):
        store("openai_responses", [*events[:-2], responses_failed()])


def test_responses_the_items_that_came_are_enough(stand_ins):
    whole, events = whole_and_events(stand_ins, "openai_responses")
    last = {**events[-1], "response": {**whole, "output": []}}

    assert (
        streamed("openai_responses", [*events[:-1], last])["output"] == whole["output"]
    )


def test_responses_before_the_first_item_there_is_no_answer(stand_ins, store):
    _, events = whole_and_events(stand_ins, "openai_responses")
    with pytest.raises(InvalidMessage, match="there is no answer in it"):
        store("openai_responses", [events[0], {"type": "error", "code": "x"}])


@pytest.mark.parametrize(
    ("format", "event", "response"),
    [
        ("openai", {"choices": None}, {"choices": [], "object": "chat.completion"}),
        (
            "anthropic",
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"},
             "usage": {"output_tokens": 1}},
            {"stop_reason": "end_turn", "usage": {"output_tokens": 1}},
        ),
        (
            "anthropic",
            {"type": "content_block_delta", "index": 0,
             "delta": {"type": "text_delta", "text": "Hi"}},
            {},
        ),
        ("anthropic", {"type": "content_block_stop", "index": 0}, {}),
        ("anthropic", {"type": "ping"}, {}),
        ("openai_responses", {"type": "error"}, {}),
        (
            "openai_responses",
            {"type": "response.output_text.delta", "output_index": 0,
             "content_index": 0, "delta": "Hi"},
            {"output": [{"type": "message", "role": "assistant",
                         "status": "incomplete",
                         "content": [{"type": "output_text", "text": "Hi"}]}]},
        ),
    ],
)  # fmt: skip
def test_events_without_their_beginning(format, event, response):
    assert streamed(format, [event]) == response


def anthropic_call(*parts, index=0, is_stopped=True):
    call = {"type": "tool_use", "id": f"t{index}", "name": "f", "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
    return [
        {"type": "content_block_start", "index": index, "content_block": call},
        *({"type": "content_block_delta", "index": index, "delta": d} for d in deltas),
        *[{"type": "content_block_stop", "index": index}][: int(is_stopped)],
    ]


def anthropic_end(stop_reason):
    return {"type": "message_delta", "delta": {"stop_reason": stop_reason}}


ANTHROPIC_START = [
    {"type": "message_start",
     "message": {"role": "assistant", "content": [], "stop_reason": None,
                 "usage": {}}},
    {"type": "content_block_start", "index": 0,
     "content_block": {"type": "text", "text": "So:"}},
    {"type": "content_block_stop", "index": 0},
]  # fmt: skip


@pytest.mark.parametrize("parts", [(), ("",), ("", "{}")])
def test_anthropic_a_call_without_arguments_is_whole(store, parts):
    (message,) = store(
        "anthropic",
        [
            *ANTHROPIC_START,
            *anthropic_call(*parts, index=1),
            anthropic_end("tool_use"),
        ],
    )

    assert json.loads(message.payload)["content"][1]["input"] == {}
    assert message.metadata == {"finish_reason": "tool_use"}


@pytest.mark.parametrize(
    ("stop_reason", "metadata"),
    [
        ("tool_use", {"is_truncated": True}),
        ("max_tokens", {"finish_reason": "max_tokens", "is_truncated": True}),
    ],
)
@pytest.mark.parametrize("is_last", [True, False])
def test_anthropic_a_call_that_isnt_json_cuts_the_answer_off(
    store, stop_reason, metadata, is_last
):
    (message,) = store(
        "anthropic",
        [
            *ANTHROPIC_START,
            *anthropic_call('{"a":1}', index=1),
            *anthropic_call('{"b":', index=2),
            *([] if is_last else anthropic_call('{"c":1}', index=3)),
            anthropic_end(stop_reason),
        ],
    )

    content = json.loads(message.payload)["content"]
    assert [block.get("input") for block in content] == [None, {"a": 1}]
    assert message.metadata == metadata


def test_an_unknown_format():
    with pytest.raises(KeyError):
        StreamedResponse("grok")


@pytest.mark.parametrize("format", [*PATHS, "gemini"])
def test_wherever_it_breaks_off_what_is_whole_can_be_stored(stand_ins, format, connect):
    ann = Client(connect("test_app", tenant="acme", user="ann"))
    conversation_id = ann.create_conversation()
    ann.append_message(conversation_id, "user", "What is the weather?")
    events = CHUNKS if format == "gemini" else whole_and_events(stand_ins, format)[1]
    text = ""
    for count in range(1, len(events)):
        request_id = ann.prepare_request(conversation_id, format).request_id
        response = streamed(format, events[:count])
        try:
            answer = ann.complete_request(request_id, response)
        except InvalidMessage:
            assert not text  # nothing had come yet
            continue
        for message in answer:
            content = message.content or ""
            assert content.startswith(text)
            text = content
            if count < len(events) - 3:
                assert message.metadata["is_truncated"]
    assert text
