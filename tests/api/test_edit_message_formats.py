"""edit_message in the formats of OpenAI responses, Anthropic and Gemini."""

from __future__ import annotations

import json

import pytest

IMAGE = (
    '{"type":"image","source":{"type":"base64","media_type":"image/png","data":"A"}}'
)
CALL = '{ "type":"tool_use" , "id":"c","name":"f","input":{"n":1.00, "t":"a\\u0000"}}'
GEMINI_CALL = '{ "functionCall" : {"name":"f", "args":{"n":1.00, "t":"\\ud800"}} }'

# Format, message, the same with the text "new".
EDITS = {
    "responses: a string": (
        "openai_responses",
        '{"role": "user", "content": "old", "x": 1.00}',
        '{"role":"user","content":"new","x":1.00}',
    ),
    "responses: parts": (
        "openai_responses",
        '{"role":"user","content":[{"type":"input_image","image_url":"u"},'
        '{"type":"input_text","text":"old"},{ "type":"input_file","file_id":"f"},'
        '{"type":"input_text","text":"old too"}]}',
        '{"role":"user","content":[{"type":"input_image","image_url":"u"},'
        '{"type":"input_text","text":"new"},{ "type":"input_file","file_id":"f"}]}',
    ),
    "responses: an answer loses what is about its old text": (
        "openai_responses",
        '{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text",'
        '"text":"old","annotations":[{"start_index":0}],"logprobs":[1]}]}',
        '{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text",'
        '"text":"new","annotations":[]}]}',
    ),
    "responses: a refusal": (
        "openai_responses",
        '{"type":"message","role":"assistant",'
        '"content":[{"type":"refusal","refusal":"old"}]}',
        '{"type":"message","role":"assistant",'
        '"content":[{"type":"output_text","text":"new","annotations":[]}]}',
    ),
    "responses: a result": (
        "openai_responses",
        '{"type":"function_call_output","call_id":"c","output":"old"}',
        '{"type":"function_call_output","call_id":"c","output":"new"}',
    ),
    "responses: a result in parts": (
        "openai_responses",
        '{"type":"custom_tool_call_output","call_id":"c","output":'
        '[{"type":"input_text","text":"old"},{"type":"input_image","image_url":"u"}]}',
        '{"type":"custom_tool_call_output","call_id":"c","output":'
        '[{"type":"input_text","text":"new"},{"type":"input_image","image_url":"u"}]}',
    ),
    "responses: what a shell gave": (
        "openai_responses",
        '{"type":"shell_call_output","call_id":"c","output":['
        '{"stdout":"old","stderr":"e","outcome":{"type":"exit","exit_code":0}},'
        '{"stdout":"old","stderr":""}]}',
        '{"type":"shell_call_output","call_id":"c","output":['
        '{"stdout":"new","stderr":"","outcome":{"type":"exit","exit_code":0}}]}',
    ),
    "anthropic: a string": (
        "anthropic",
        '{"role":"system","content":"old"}',
        '{"role":"system","content":"new"}',
    ),
    "anthropic: text, media and a call": (
        "anthropic",
        '{"role":"assistant","content":[{"type":"text","text":"old",'
        f'"citations":[1],"cache_control":null}},{IMAGE},{CALL},'
        '{"type":"text","text":"old too"}]}',
        '{"role":"assistant","content":[{"type":"text","text":"new",'
        f'"cache_control":null}},{IMAGE},{CALL}]}}',
    ),
    "anthropic: thinking goes": (
        "anthropic",
        '{"role":"assistant","content":[{"type":"thinking","thinking":"hm",'
        '"signature":"s"},{"type":"redacted_thinking","data":"x"},'
        f'{{"type":"text","text":"old"}},{CALL}]}}',
        f'{{"role":"assistant","content":[{{"type":"text","text":"new"}},{CALL}]}}',
    ),
    "anthropic: results stay beside text": (
        "anthropic",
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c",'
        '"content":"r"},{"type":"text","text":"old"}]}',
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c",'
        '"content":"r"},{"type":"text","text":"new"}]}',
    ),
    "anthropic: the text of results": (
        "anthropic",
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c",'
        f'"content":[{IMAGE},{{"type":"text","text":"old"}}]}},'
        '{"type":"tool_result","tool_use_id":"d","content":"old too"},'
        '{"type":"tool_result","tool_use_id":"e",'
        f'"content":[{IMAGE},{{"type":"text","text":"old"}}]}}]}}',
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c",'
        f'"content":[{IMAGE},{{"type":"text","text":"new"}}]}},'
        '{"type":"tool_result","tool_use_id":"d"},'
        f'{{"type":"tool_result","tool_use_id":"e","content":[{IMAGE}]}}]}}',
    ),
    "anthropic: the first result with text takes it": (
        "anthropic",
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"},'
        '{"type":"tool_result","tool_use_id":"d","content":"old"}]}',
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c"},'
        '{"type":"tool_result","tool_use_id":"d","content":"new"}]}',
    ),
    "gemini: thoughts and signatures go": (
        "gemini",
        '{"role":"model","parts":[{"text":"hm","thought":true},'
        '{"text":"old","thoughtSignature":"s"},{"text":"old too"},'
        '{"thoughtSignature":"s"},'
        f'{GEMINI_CALL},{{"functionCall":{{"name":"g"}},"thought_signature":"s"}}]}}',
        '{"role":"model","parts":[{"text":"new"},'
        f'{GEMINI_CALL},{{"functionCall":{{"name":"g"}}}}]}}',
    ),
    "gemini: media": (
        "gemini",
        '{"parts":[{"inlineData": {"mimeType":"image/png","data":"A"}},'
        '{"text":"old"}]}',
        '{"parts":[{"inlineData": {"mimeType":"image/png","data":"A"}},'
        '{"text":"new"}]}',
    ),
    "gemini: results stay beside text": (
        "gemini",
        '{"parts":[{"functionResponse":{"name":"f","response":{"a": 1}}},'
        '{"text":"old"}]}',
        '{"parts":[{"functionResponse":{"name":"f","response":{"a": 1}}},'
        '{"text":"new"}]}',
    ),
    "gemini: the text of results": (
        "gemini",
        '{"parts":[{"functionResponse":{"name":"f","response":{"a":1}}},'
        '{"function_response":{"name":"g","response":{"a":1}}}]}',
        '{"parts":[{"functionResponse":{"name":"f","response":{"output":"new"}}},'
        '{"function_response":{"name":"g","response":{}}}]}',
    ),
}


def append(caller, conversation_id, provider, text):
    return caller.row(
        "append_messages",
        conversation_id=conversation_id,
        messages=text,
        format=provider,
    )


def edit(caller, conversation_id, content="new"):
    return caller.row(
        "edit_message", conversation_id=conversation_id, seq=1, content=content
    )


@pytest.mark.parametrize(("provider", "before", "after"), EDITS.values(), ids=EDITS)
def test_only_the_text_changes(ann, conversation_id, provider, before, after):
    old = append(ann, conversation_id, provider, before)
    row = edit(ann, conversation_id)

    assert row["payload"] == after
    assert row["content"] == "new"
    assert (row["role"], row["group_seq"]) == (old["role"], old["group_seq"])


@pytest.mark.parametrize(("provider", "before", "after"), EDITS.values(), ids=EDITS)
def test_the_edited_message_reads_as_if_it_had_come_so(
    ann, db, conversation_id, provider, before, after
):
    append(ann, conversation_id, provider, before)
    edited = edit(ann, conversation_id)
    other = append(ann, ann.create(), provider, edited["payload"])

    for name in ("role", "content", "tokens", "payload"):
        if (name, provider) != ("content", "gemini") or edited["role"] != "tool":
            assert other[name] == edited[name]
    rows = db.execute("select call_ids, result_ids, is_empty from convo.message")
    assert len({str(row) for row in rows}) == 1


@pytest.mark.parametrize(
    "content", ['"', "\\", "\\u0000", "a\nb", "😀", "", "\ue000\ue001"]
)
@pytest.mark.parametrize("edited", EDITS, ids=EDITS)
def test_any_text_is_taken_as_it_is(ann, conversation_id, edited, content):
    provider, before, after = EDITS[edited]
    append(ann, conversation_id, provider, before)
    row = edit(ann, conversation_id, content)

    assert row["content"] == content
    text = json.dumps(content, ensure_ascii=False)
    assert row["payload"] == after.replace('"new"', text)


@pytest.mark.parametrize(
    ("provider", "text"),
    [
        (
            "openai_responses",
            '{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}',
        ),
        ("openai_responses", '{"type":"reasoning","summary":[]}'),
        ("anthropic", f'{{"role":"assistant","content":[{CALL}]}}'),
        ("gemini", f'{{"role":"model","parts":[{GEMINI_CALL}]}}'),
    ],
)
def test_a_message_without_text_is_an_error(
    ann, conversation_id, fails, provider, text
):
    append(ann, conversation_id, provider, text)
    with fails("22023", argument="seq", reason="the message has no text"):
        edit(ann, conversation_id)
