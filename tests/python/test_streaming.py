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


def test_anthropic_a_call_whose_arguments_were_cut_off_has_none(stand_ins):
    options = {"tools": [{"name": "weather"}]}
    _, events = whole_and_events(stand_ins, "anthropic", **options)
    last = [e for e in events if e["type"] == "content_block_delta"][-1]
    events.remove(last)

    assert streamed("anthropic", events)["content"][0]["input"] == {}


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
