"""append_messages in the formats of OpenAI responses, Anthropic and Gemini."""

from __future__ import annotations

import json

import pytest

FORMATS = ("openai_responses", "anthropic", "gemini")


def append(caller, conversation_id, provider, messages):
    """Append messages of a format, as objects or as JSON text, and give the rows."""
    text = messages if isinstance(messages, str) else json.dumps(messages)
    return caller.rows(
        "append_messages",
        conversation_id=conversation_id,
        messages=text,
        format=provider,
    )


def stored(db, seq=1):
    """What a row says that no record shows."""
    return db.execute(
        "select call_ids, result_ids, is_empty from convo.message where seq = %s", [seq]
    ).fetchone()


# A message of each format with a text, as JSON text.
PLAIN = {
    "openai_responses": '{"role": "user", "content": "%s"}',
    "anthropic": '{"role": "user", "content": "%s"}',
    "gemini": '{"role": "user", "parts": [{"text": "%s"}]}',
}
IMAGE = {"type": "base64", "media_type": "image/png", "data": "AAAA"}

# Format, message, role, content.
TEXTS = [
    ("openai_responses", {"role": "user", "content": "a"}, "user", "a"),
    ("openai_responses", {"role": "user", "content": "[]"}, "user", "[]"),
    ("anthropic", {"role": "user", "content": "[]"}, "user", "[]"),
    ("openai_responses", {"role": "developer", "content": "a"}, "system", "a"),
    ("openai_responses", {"role": "system", "content": "a"}, "system", "a"),
    ("openai_responses", {"role": "assistant", "content": []}, "assistant", None),
    (
        "openai_responses",
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "a"},
                {"type": "input_image", "image_url": "https://example.com/a.png"},
                {"type": "input_file", "file_id": "f1"},
                {"type": "input_text", "text": "b"},
            ],
        },
        "user",
        "a\nb",
    ),
    (
        "openai_responses",
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "a", "annotations": []},
                {"type": "refusal", "refusal": "no"},
            ],
        },
        "assistant",
        "a\nno",
    ),
    (
        "openai_responses",
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        "assistant",
        None,
    ),
    (
        "openai_responses",
        {"type": "function_call_output", "call_id": "c", "output": "a"},
        "tool",
        "a",
    ),
    (
        "openai_responses",
        {
            "type": "custom_tool_call_output",
            "call_id": "c",
            "output": [{"type": "input_text", "text": "a"}],
        },
        "tool",
        "a",
    ),
    (
        "openai_responses",
        {
            "type": "shell_call_output",
            "call_id": "c",
            "output": [{"stdout": "a", "stderr": "b"}, {"stdout": "c", "stderr": ""}],
        },
        "tool",
        "abc",
    ),
    (
        "openai_responses",
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "a"}]},
        "assistant",
        None,
    ),
    ("openai_responses", {"type": "web_search_call"}, "assistant", None),
    (
        "openai_responses",
        {"type": "additional_tools", "role": "developer", "tools": []},
        "system",
        None,
    ),
    ("anthropic", {"role": "user", "content": "a"}, "user", "a"),
    ("anthropic", {"role": "system", "content": "a"}, "system", "a"),
    ("anthropic", {"role": "assistant", "content": []}, "assistant", None),
    (
        "anthropic",
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "a"},
                {"type": "image", "source": IMAGE},
                {
                    "type": "document",
                    "source": {"type": "url", "url": "https://example.com/a.pdf"},
                },
                {"type": "text", "text": "b"},
            ],
        },
        "user",
        "a\nb",
    ),
    (
        "anthropic",
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "server_tool_use", "id": "s", "name": "f", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
                {"type": "text", "text": "a"},
                {"type": "tool_use", "id": "c", "name": "f", "input": {}},
            ],
        },
        "assistant",
        "a",
    ),
    (
        "anthropic",
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c", "content": "a"},
                {
                    "type": "tool_result",
                    "tool_use_id": "d",
                    "content": [
                        {"type": "text", "text": "b"},
                        {"type": "image", "source": IMAGE},
                    ],
                },
            ],
        },
        "tool",
        "a\nb",
    ),
    (
        "anthropic",
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c", "content": "a"},
                {"type": "text", "text": "and now?"},
            ],
        },
        "tool",
        "and now?",
    ),
    (
        "anthropic",
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]},
        "tool",
        None,
    ),
    ("gemini", {"role": "user", "parts": [{"text": "a"}]}, "user", "a"),
    ("gemini", {"parts": [{"text": "a"}, {"text": "b"}]}, "user", "a\nb"),
    ("gemini", {"role": "system", "parts": [{"text": "a"}]}, "system", "a"),
    ("gemini", {"role": "model"}, "assistant", None),
    (
        "gemini",
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True},
                {"text": "a", "thoughtSignature": "s"},
                {"executableCode": {"language": "PYTHON", "code": "1"}},
                {"functionCall": {"name": "f", "args": {}}},
            ],
        },
        "assistant",
        "a",
    ),
    (
        "gemini",
        {
            "role": "user",
            "parts": [
                {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                {"file_data": {"mime_type": "text/plain", "file_uri": "gs://a/b"}},
                {"text": "a"},
            ],
        },
        "user",
        "a",
    ),
    (
        "gemini",
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "f", "response": {"a": 1}}}],
        },
        "tool",
        '{"a": 1}',
    ),
    (
        "gemini",
        {
            "role": "function",
            "parts": [
                {"function_response": {"name": "f", "response": {"output": "a"}}}
            ],
        },
        "tool",
        "a",
    ),
]


@pytest.mark.parametrize(("provider", "message", "role", "content"), TEXTS)
def test_the_role_and_the_text(ann, conversation_id, provider, message, role, content):
    (row,) = append(ann, conversation_id, provider, message)

    assert (row["role"], row["content"]) == (role, content)
    assert (row["format"], row["payload"]) == (provider, json.dumps(message))


@pytest.mark.parametrize(
    ("provider", "message", "call_ids", "result_ids"),
    [
        *(
            (
                "openai_responses",
                {"type": kind, "call_id": "c", **members},
                ["c"],
                None,
            )
            for kind, members in {
                "function_call": {"name": "f", "arguments": "{}"},
                "custom_tool_call": {"name": "f", "input": "x"},
                "computer_call": {"action": {"type": "click"}},
                "local_shell_call": {"action": {"type": "exec"}},
                "shell_call": {"action": {"commands": ["ls"]}},
                "apply_patch_call": {"operation": {"type": "delete_file"}},
            }.items()
        ),
        *(
            (
                "openai_responses",
                {"type": kind, "call_id": "c", "output": output},
                None,
                ["c"],
            )
            for kind, output in {
                "function_call_output": "a",
                "custom_tool_call_output": "a",
                "computer_call_output": {
                    "type": "computer_screenshot",
                    "image_url": "https://example.com/a.png",
                },
                "shell_call_output": [],
                "apply_patch_call_output": "a",
            }.items()
        ),
        (
            "openai_responses",
            {"type": "local_shell_call_output", "id": "c", "output": "a"},
            None,
            ["c"],
        ),
        ("openai_responses", {"type": "web_search_call", "id": "w"}, None, None),
        (
            "anthropic",
            {
                "role": "assistant",
                "content": [
                    {"type": "tool_use", "id": "c", "name": "f", "input": {}},
                    {"type": "tool_use", "id": "d", "name": "f", "input": {}},
                    {"type": "server_tool_use", "id": "s", "name": "f", "input": {}},
                ],
            },
            ["c", "d"],
            None,
        ),
        (
            "anthropic",
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "d"},
                    {"type": "tool_result", "tool_use_id": "c"},
                ],
            },
            None,
            ["d", "c"],
        ),
        (
            "gemini",
            {
                "role": "model",
                "parts": [
                    {"functionCall": {"name": "f"}},
                    {"function_call": {"name": "f", "args": {}, "id": "c"}},
                ],
            },
            ["f", "c"],
            None,
        ),
        (
            "gemini",
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"name": "f", "response": {}}},
                    {"function_response": {"name": "f", "id": "c", "response": {}}},
                ],
            },
            None,
            ["f", "c"],
        ),
    ],
)
def test_the_ids_of_calls_and_results(
    ann, db, conversation_id, provider, message, call_ids, result_ids
):
    append(ann, conversation_id, provider, message)

    # What holds results only says nothing beside them.
    assert stored(db) == (call_ids, result_ids, result_ids is not None)


@pytest.mark.parametrize(
    ("provider", "message", "is_empty"),
    [
        ("openai_responses", {"role": "assistant", "content": ""}, True),
        ("openai_responses", {"type": "reasoning", "summary": []}, True),
        ("openai_responses", {"type": "compaction", "encrypted_content": "x"}, False),
        ("anthropic", {"role": "assistant", "content": []}, True),
        (
            "anthropic",
            {"role": "user", "content": [{"type": "image", "source": IMAGE}]},
            False,
        ),
        (
            "anthropic",
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}],
            },
            True,
        ),
        ("gemini", {"role": "model", "parts": [{"text": " "}]}, True),
        ("gemini", {"role": "model", "parts": [{"executableCode": {}}]}, False),
    ],
)
def test_a_message_that_says_nothing_is_empty(
    ann, db, conversation_id, provider, message, is_empty
):
    append(ann, conversation_id, provider, message)

    assert stored(db)[2] is is_empty


def responses_call(call_id):
    return {
        "type": "function_call",
        "call_id": call_id,
        "name": "f",
        "arguments": "{}",
    }


def responses_result(call_id):
    return {"type": "function_call_output", "call_id": call_id, "output": "sesame"}


def responses_text(role="assistant"):
    return {"role": role, "content": "sesame"}


def anthropic_calls(*ids):
    return {
        "role": "assistant",
        "content": [
            {"type": "tool_use", "id": one, "name": "f", "input": {}} for one in ids
        ],
    }


def anthropic_results(*ids):
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": one} for one in ids],
    }


def gemini_calls(*names):
    return {
        "role": "model",
        "parts": [{"functionCall": {"name": name}} for name in names],
    }


def gemini_results(*names):
    return {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": name, "response": {}}} for name in names
        ],
    }


REASONING = {"type": "reasoning", "summary": [], "encrypted_content": "x"}
GROUPS = {
    "parallel items of one response": (
        "openai_responses",
        [
            responses_text("user"),
            responses_call("a"),
            responses_call("b"),
            responses_result("b"),
            responses_result("a"),
            responses_text(),
        ],
        [1, 2, 2, 2, 2, 6],
    ),
    "reasoning and what follows it": (
        "openai_responses",
        [
            responses_text("user"),
            REASONING,
            responses_call("a"),
            responses_result("a"),
            REASONING,
            {"type": "web_search_call"},
            REASONING,
            responses_text(),
            responses_text("user"),
            responses_text(),
            responses_text(),
        ],
        [1, 2, 2, 2, 5, 5, 5, 5, 9, 10, 11],
    ),
    "an id again, later": (
        "openai_responses",
        [
            responses_call("a"),
            responses_result("a"),
            responses_call("a"),
            responses_result("a"),
            responses_result("a"),
        ],
        [1, 1, 3, 3, 5],
    ),
    "several results in one message": (
        "anthropic",
        [anthropic_calls("a", "b"), anthropic_results("b", "a")],
        [1, 1],
    ),
    "all results of a message are used up": (
        "anthropic",
        [
            anthropic_calls("a", "b"),
            anthropic_results("a", "b"),
            anthropic_results("b"),
        ],
        [1, 1, 3],
    ),
    "results in two messages": (
        "anthropic",
        [
            anthropic_calls("a", "b"),
            anthropic_results("b"),
            anthropic_results("a"),
            anthropic_calls("a"),
            anthropic_results("a"),
        ],
        [1, 1, 1, 4, 4],
    ),
    "the first result that has a call counts": (
        "anthropic",
        [anthropic_calls("a"), anthropic_results("x", "a")],
        [1, 1],
    ),
    "assistant messages of other formats stand alone": (
        "anthropic",
        [
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "", "signature": "s"}],
            },
            {"role": "assistant", "content": "sesame"},
        ],
        [1, 2],
    ),
    "equal names in one message": (
        "gemini",
        [
            gemini_calls("f", "f", "g"),
            gemini_results("f", "g", "f"),
            gemini_calls("f"),
            gemini_results("f"),
            gemini_results("f"),
        ],
        [1, 1, 3, 3, 5],
    ),
    "equal names in two messages": (
        "gemini",
        [gemini_calls("f", "f"), gemini_results("f"), gemini_results("f")],
        [1, 1, 1],
    ),
}


@pytest.mark.parametrize("one_by_one", [False, True], ids=["one batch", "one by one"])
@pytest.mark.parametrize(
    ("provider", "messages", "expected"), GROUPS.values(), ids=GROUPS
)
def test_what_belongs_together_is_a_group(
    ann, conversation_id, provider, messages, expected, one_by_one
):
    batches = [[m] for m in messages] if one_by_one else [messages]
    rows = [
        row
        for batch in batches
        for row in append(ann, conversation_id, provider, batch)
    ]

    assert [row["group_seq"] for row in rows] == expected


def test_deleted_reasoning_is_joined_by_nothing(ann, conversation_id):
    append(ann, conversation_id, "openai_responses", REASONING)
    ann.row("delete_message", conversation_id=conversation_id, seq=1)
    (row,) = append(ann, conversation_id, "openai_responses", responses_text())

    assert row["group_seq"] == 2


def estimate(ann, text):
    return ann.value("estimate_tokens", content=text)


@pytest.mark.parametrize(
    ("provider", "message", "fixed", "texts"),
    [
        (
            "openai_responses",
            responses_call("c") | {"arguments": '{"city": "Paris"}'},
            8,
            ['f{"city": "Paris"}'],
        ),
        (
            "openai_responses",
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What is this?"},
                    {"type": "input_image", "image_url": "x", "detail": "low"},
                    {"type": "input_image", "image_url": "x"},
                ],
            },
            85 + 765,
            ["What is this?"],
        ),
        (
            "openai_responses",
            {"type": "reasoning", "summary": [{"type": "t", "text": "Let me see."}]},
            0,
            ["Let me see."],
        ),
        (
            "anthropic",
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Let me see.", "signature": "s"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}},
                ],
            },
            8,
            ["Let me see.", "I look.", 'f{"a": 1}'],
        ),
        (
            "anthropic",
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c",
                        "content": [
                            {"type": "text", "text": "A long result"},
                            {"type": "image", "source": IMAGE},
                        ],
                    },
                    {"type": "text", "text": "And now?"},
                ],
            },
            765,
            ["A long result", "And now?"],
        ),
        (
            "gemini",
            {
                "role": "model",
                "parts": [
                    {"text": "Let me see.", "thought": True},
                    {"functionCall": {"name": "f", "args": {"a": 1}}},
                    {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
                ],
            },
            8 + 765,
            ["Let me see.", 'f{"a": 1}'],
        ),
    ],
)
def test_text_calls_images_and_reasoning_cost_tokens(
    ann, conversation_id, provider, message, fixed, texts
):
    (row,) = append(ann, conversation_id, provider, message)

    assert row["tokens"] == fixed + sum(estimate(ann, text) for text in texts)
    assert row["is_estimated"] is True


def block(**members):
    return {"role": "user", "content": [members]}


def answer(**members):
    return {"role": "assistant", "content": [members]}


def part(role="user", **members):
    return {"role": role, "parts": [members]}


INVALID = [
    *((provider, 1, "not an object") for provider in FORMATS),
    *((provider, [], "not an object") for provider in FORMATS),
    *((provider, None, "not an object") for provider in FORMATS),
    ("openai_responses", {}, "role is not a string"),
    ("openai_responses", {"role": 1, "content": "a"}, "role is not a string"),
    ("openai_responses", {"role": "model", "content": "a"}, "unknown role"),
    ("openai_responses", {"role": "tool", "content": "a"}, "unknown role"),
    ("openai_responses", {"type": 1}, "type is not a string"),
    ("openai_responses", {"role": "user"}, "content is missing or empty"),
    (
        "openai_responses",
        {"role": "user", "content": []},
        "content is missing or empty",
    ),
    (
        "openai_responses",
        {"role": "user", "content": 1},
        "content is neither a string nor an array",
    ),
    (
        "openai_responses",
        {"role": "user", "content": {}},
        "content is neither a string nor an array",
    ),
    ("openai_responses", block(), "a content part is not valid"),
    ("openai_responses", {"role": "user", "content": ["a"]}, "a content part"),
    ("openai_responses", block(type="input_text"), "a text is not a string"),
    (
        "openai_responses",
        block(type="input_image"),
        "an image, file or audio has no source",
    ),
    (
        "openai_responses",
        {"type": "function_call", "name": "f", "arguments": "{}"},
        "a call has no id, name or arguments",
    ),
    (
        "openai_responses",
        responses_call("c") | {"arguments": {}},
        "a call has no id, name or arguments",
    ),
    (
        "openai_responses",
        {"type": "function_call_output", "output": "a"},
        "a result has no call id",
    ),
    (
        "openai_responses",
        {"type": "function_call_output", "call_id": "c"},
        "output is missing or empty",
    ),
    ("anthropic", {}, "role is not a string"),
    ("anthropic", {"role": "tool", "content": "a"}, "unknown role"),
    ("anthropic", {"role": "user"}, "content is missing"),
    ("anthropic", {"role": "user", "content": None}, "content is missing"),
    ("anthropic", {"role": "user", "content": []}, "content is empty"),
    ("anthropic", {"role": "user", "content": 1}, "content is neither"),
    ("anthropic", block(text="a"), "a content part is not valid"),
    ("anthropic", block(type="text", text=1), "a text is not a string"),
    ("anthropic", block(type="image"), "an image, file or audio has no source"),
    ("anthropic", answer(type="tool_use", id="c", input={}), "a call has no"),
    ("anthropic", answer(type="tool_use", name="f", input={}), "a call has no"),
    ("anthropic", answer(type="tool_use", id="c", name="f"), "a call has no"),
    ("anthropic", answer(type="tool_use", id="c", name="f", input=1), "a call has no"),
    (
        "anthropic",
        block(type="tool_use", id="c", name="f", input={}),
        "only an assistant message has calls",
    ),
    ("anthropic", block(type="tool_result"), "a result has no call id"),
    (
        "anthropic",
        block(type="tool_result", tool_use_id="c", content=1),
        "the content of a result is neither a string nor an array",
    ),
    (
        "anthropic",
        block(type="tool_result", tool_use_id="c", content=[{"type": "text"}]),
        "a text is not a string",
    ),
    (
        "anthropic",
        answer(type="tool_result", tool_use_id="c"),
        "an assistant or system message has no results",
    ),
    ("gemini", {"role": 1, "parts": [{"text": "a"}]}, "role is not a string"),
    ("gemini", {"role": "assistant", "parts": [{"text": "a"}]}, "unknown role"),
    ("gemini", {"role": "user"}, "parts is missing or empty"),
    ("gemini", {"role": "user", "parts": []}, "parts is missing or empty"),
    ("gemini", {"role": "model", "parts": {}}, "parts is not an array"),
    ("gemini", {"role": "user", "parts": ["a"]}, "a content part is not valid"),
    ("gemini", part(text=1), "a text is not a string"),
    ("gemini", part(inlineData="x"), "an image, file or audio has no source"),
    ("gemini", part("model", functionCall={}), "a call has no"),
    ("gemini", part("model", functionCall="f"), "a call has no"),
    ("gemini", part("model", functionCall={"name": "f", "args": 1}), "a call has no"),
    ("gemini", part(functionCall={"name": "f"}), "only an assistant message has calls"),
    ("gemini", part(functionResponse={"response": {}}), "a result has no call id"),
    (
        "gemini",
        part(functionResponse={"name": "f", "response": "x"}),
        "a text is not a string",
    ),
    (
        "gemini",
        part("model", functionResponse={"name": "f", "response": {}}),
        "an assistant or system message has no results",
    ),
    ("gemini", part("function", text="a"), "a function message has no"),
]


@pytest.mark.parametrize(("provider", "message", "reason"), INVALID)
def test_an_invalid_message_is_an_error_with_its_index(
    ann, conversation_id, fails, provider, message, reason
):
    batch = f"[{PLAIN[provider] % 'sesame'}, {json.dumps(message)}]"
    with fails("PC050") as detail:
        append(ann, conversation_id, provider, batch)

    assert detail["index"] == 1
    assert detail["reason"].startswith(reason)
    assert ann.live(conversation_id) == []


@pytest.mark.parametrize("provider", FORMATS)
@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"a\u0000b", "a\ufffdb"),
        (r"a\ud800b", "a\ufffdb"),
        (r"a\udc00b", "a\ufffdb"),
        (r"a\\u0000b", r"a\u0000b"),
        (r"\ud83d\ude00", "😀"),
        (r"caf\u00e9", "café"),
    ],
)
def test_the_payload_is_the_text_byte_for_byte(
    ann, conversation_id, provider, text, content
):
    payload = PLAIN[provider] % text
    (row,) = append(ann, conversation_id, provider, f"[ {payload} ]")

    assert (row["payload"], row["content"]) == (payload, content)


@pytest.mark.parametrize("provider", FORMATS)
@pytest.mark.parametrize(
    "extra",
    ['"x": 1, "x": 2', '"x" : 1e400000', '"x": 1.00', '"x": -0', r'"\u0000": 1'],
)
def test_odd_members_are_kept_or_clearly_refused(
    ann, conversation_id, fails, provider, extra
):
    payload = PLAIN[provider].replace("{", "{" + extra + ",  ", 1) % "sesame"
    if "e400000" in extra:
        with fails("PC050") as detail:
            append(ann, conversation_id, provider, payload)
        assert detail == {"index": 0, "reason": "a number is out of range"}
    else:
        (row,) = append(ann, conversation_id, provider, payload)
        assert (row["payload"], row["content"]) == (payload, "sesame")


@pytest.mark.parametrize("provider", FORMATS)
@pytest.mark.parametrize("depth", [999, 1_001])
def test_a_payload_nests_a_thousand_levels_at_most(
    ann, conversation_id, fails, provider, depth
):
    deep = '{"x": ' + "[" * depth + "1" + "]" * depth + ", "
    payload = deep + (PLAIN[provider] % "sesame")[1:]
    if depth > 1_000:
        with fails("PC050"):
            append(ann, conversation_id, provider, payload)
    else:
        (row,) = append(ann, conversation_id, provider, payload)
        assert row["payload"] == payload


def test_the_formats_mix_in_one_conversation(ann, conversation_id):
    for provider in FORMATS:
        append(ann, conversation_id, provider, PLAIN[provider] % "sesame")

    assert [row["format"] for row in ann.live(conversation_id)] == list(FORMATS)
