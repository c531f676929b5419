"""append_messages: messages in a provider's own shape, byte for byte, all or none."""

from __future__ import annotations

import json
from uuid import uuid4

import psycopg
import pytest

USER = {"role": "user", "content": "sesame"}


def call(call_id, name="f", arguments="{}"):
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def calls(*ids, content=None):
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [call(call_id) for call_id in ids],
    }


def test_one_message_is_a_batch_of_one(ann, conversation_id):
    (row,) = ann.append(conversation_id, USER)

    assert (row["seq"], row["role"], row["content"]) == (1, "user", "sesame")
    assert row["format"] == "openai"


def test_gives_the_stored_rows_in_order(ann, conversation_id):
    rows = ann.append(
        conversation_id, [USER, {"role": "assistant", "content": "answer"}]
    )

    assert [row["seq"] for row in rows] == [1, 2]
    assert rows == ann.live(conversation_id)


def test_goes_on_after_what_is_there(ann, conversation_id):
    ann.say(conversation_id, 1, 1)

    assert [row["seq"] for row in ann.append(conversation_id, [USER, USER])] == [3, 4]


@pytest.mark.parametrize(
    ("role", "stored"),
    [
        ("system", "system"),
        ("developer", "system"),
        ("user", "user"),
        ("assistant", "assistant"),
    ],
)
def test_knows_the_providers_roles(ann, conversation_id, role, stored):
    (row,) = ann.append(conversation_id, {"role": role, "content": "x"})

    assert row["role"] == stored
    assert json.loads(row["payload"])["role"] == role


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ({"role": "user", "content": ""}, ""),
        ({"role": "assistant", "content": None}, None),
        ({"role": "assistant"}, None),
        ({"role": "assistant", "content": None, "refusal": "No."}, "No."),
        (
            {"role": "user", "content": [{"type": "text", "text": "a"}]},
            "a",
        ),
        (
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "a"},
                    {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
                    {"type": "text", "text": "b"},
                ],
            },
            "a\nb",
        ),
        (
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            "No.",
        ),
        (
            {
                "role": "user",
                "content": [{"type": "input_audio", "input_audio": {"data": "QQ=="}}],
            },
            None,
        ),
        ({"role": "system", "content": [{"type": "text", "text": "s"}]}, "s"),
    ],
)
def test_content_is_the_text_of_the_message(ann, conversation_id, message, content):
    (row,) = ann.append(conversation_id, message)

    assert row["content"] == content


@pytest.mark.parametrize("no_calls", ["null", "[]"])
def test_null_and_an_empty_array_are_no_calls(ann, conversation_id, no_calls):
    text = '{"role":"assistant","content":"x","tool_calls":' + no_calls + "}"
    rows = ann.append(conversation_id, f"[{text}]")

    assert [(row["content"], row["payload"]) for row in rows] == [("x", text)]
    assert rows[0]["tokens"] == ann.value("estimate_tokens", content="x")


def test_null_and_empty_content_stay_distinct(ann, conversation_id):
    rows = ann.append(conversation_id, [calls("a"), calls("b", content="")])

    assert [row["content"] for row in rows] == [None, ""]


@pytest.mark.parametrize(
    "text",
    [
        '{"role":"user","content":"x"}',
        '{ "content" : "x" ,\n\t"role":"user" }',
        '{"role":"user","content":"x","n":[1.0,1e400,-0.0,12345678901234567890.10]}',
        '{"role":"user","content":"x","content":"y"}',
        '{"role":"user","content":"a\\u0000b"}',
        '{"role":"user","content":"\\ud83d\\ude00 \\ud83d \\ude00"}',
        '{"role":"user","content":"literal \\\\u0000 and \\\\ud800"}',
        '{"role":"user","content":"\\/ \\u00e9 é \\"quoted\\""}',
        '{"role":"user","content":"x","\\u0000":{"\\ud800":"\\udfff"}}',
        '{"role":"user","content":"עברית 🚀 日本語 \u202e"}',
        '{"r\\u006fle":"user","content":"x"}',
    ],
)
def test_the_payload_is_the_text_byte_for_byte(ann, conversation_id, text):
    (alone,) = ann.append(conversation_id, text)
    (_, among) = ann.append(conversation_id, f"[ {json.dumps(USER)} ,\n{text}\n]")

    assert alone["payload"] == text
    assert among["payload"] == text
    assert [row["payload"] for row in ann.live(conversation_id)][::2] == [text, text]


@pytest.mark.parametrize(
    ("escaped", "content"),
    [
        (r"a\u0000b", "a\ufffdb"),
        (r"\ud83d\ude00", "😀"),
        (r"\ud83d", "\ufffd"),
        (r"\ude00", "\ufffd"),
        (r"\ud83d\ud83d\ude00\ude00", "\ufffd😀\ufffd"),
        (r"\ude00\ud83d", "\ufffd\ufffd"),
        (r"\uD83Dx\uDE00", "\ufffdx\ufffd"),
        (r"\\u0000", r"\u0000"),
        (r"\\\u0000", "\\\ufffd"),
        (r"\\\\u0000", r"\\u0000"),
        (r"\\ud800", r"\ud800"),
        (r"\ud83d\\ude00", "\ufffd\\ude00"),
        (r"\u005cu0000", r"\u0000"),
        (r"\"\u0000\"", '"\ufffd"'),
    ],
)
def test_what_text_can_not_hold_is_replaced_in_content(
    ann, conversation_id, escaped, content
):
    (row,) = ann.append(conversation_id, f'{{"role":"user","content":"{escaped}"}}')

    assert row["content"] == content


def test_of_duplicate_keys_the_last_counts(ann, conversation_id):
    (row,) = ann.append(
        conversation_id, '{"role":"system","content":"a","role":"user","content":"b"}'
    )

    assert (row["role"], row["content"]) == ("user", "b")


def test_a_text_of_1_mb_comes_back_as_it_was(ann, conversation_id):
    content = "".join(f"w{n} \\ud800 \\u0000" for n in range(60_000))
    text = f'{{"role":"user","content":"{content}"}}'
    ann.append(conversation_id, text)

    assert len(text) > 1_000_000
    assert ann.live(conversation_id)[0]["payload"] == text


def test_nesting_that_can_be_read_is_kept(ann, conversation_id):
    text = '{"role":"user","content":"x","a":' + "[" * 999 + "]" * 999 + "}"
    ann.append(conversation_id, text)

    assert ann.live(conversation_id)[0]["payload"] == text


@pytest.mark.parametrize("depth", [1_001, 3_000, 6_000])
def test_nesting_over_a_thousand_levels_is_refused(ann, conversation_id, fails, depth):
    text = '{"role":"user","content":"x","a":' + "[" * depth + "1" + "]" * depth + "}"
    with fails("PC050") as detail:
        ann.append(conversation_id, text)
    assert detail == {"index": 0, "reason": "nested over 1000 levels"}
    assert ann.live(conversation_id) == []


def test_nesting_beyond_the_stack_has_postgres_own_code(ann, conversation_id):
    text = '{"role":"user","content":"x","a":' + "[" * 100_000 + "]" * 100_000 + "}"
    with pytest.raises(psycopg.errors.StatementTooComplex):
        ann.append(conversation_id, text)
    assert ann.live(conversation_id) == []


@pytest.mark.parametrize(
    "text", ["", "{", "NaN", '{"role":"user","content":NaN}', "{'role': 'user'}"]
)
def test_what_is_not_json_has_postgres_own_code(ann, conversation_id, text):
    with pytest.raises(psycopg.errors.InvalidTextRepresentation):
        ann.append(conversation_id, text)


# What is not valid

INVALID = {
    "a string": '"text"',
    "a number": "1",
    "null": "null",
    "an array in the array": "[]",
    "no role": '{"content":"sesame"}',
    "null role": '{"role":null,"content":"sesame"}',
    "role number": '{"role":1,"content":"sesame"}',
    "unknown role": '{"role":"bot","content":"sesame"}',
    "role in capitals": '{"role":"User","content":"sesame"}',
    "empty role": '{"role":"","content":"sesame"}',
    "user without content": '{"role":"user"}',
    "user with null": '{"role":"user","content":null}',
    "system without content": '{"role":"system"}',
    "tool without content": '{"role":"tool","tool_call_id":"a"}',
    "content number": '{"role":"user","content":1}',
    "content object": '{"role":"user","content":{"text":"sesame"}}',
    "content true": '{"role":"assistant","content":true}',
    "content empty array": '{"role":"user","content":[]}',
    "part string": '{"role":"user","content":["sesame"]}',
    "part null": '{"role":"user","content":[null]}',
    "part without type": '{"role":"user","content":[{"text":"sesame"}]}',
    "part type number": '{"role":"user","content":[{"type":1,"text":"sesame"}]}',
    "text part without text": '{"role":"user","content":[{"type":"text"}]}',
    "text part null": '{"role":"user","content":[{"type":"text","text":null}]}',
    "text part number": '{"role":"user","content":[{"type":"text","text":1}]}',
    "refusal part without": '{"role":"assistant","content":[{"type":"refusal"}]}',
    "refusal number": '{"role":"assistant","content":null,"refusal":1}',
    "refusal object": '{"role":"assistant","content":null,"refusal":{"a":"sesame"}}',
    "tool without id": '{"role":"tool","content":"sesame"}',
    "tool null id": '{"role":"tool","tool_call_id":null,"content":"sesame"}',
    "tool empty id": '{"role":"tool","tool_call_id":"","content":"sesame"}',
    "tool id number": '{"role":"tool","tool_call_id":1,"content":"sesame"}',
    "tool id object": '{"role":"tool","tool_call_id":{},"content":"sesame"}',
    "function without name": '{"role":"function","content":"sesame"}',
    "function name number": '{"role":"function","name":1,"content":"sesame"}',
    "user with calls": '{"role":"user","content":"sesame","tool_calls":'
    '[{"id":"a","function":{"name":"f","arguments":"{}"}}]}',
    "user with function_call": '{"role":"user","content":"sesame",'
    '"function_call":{"name":"f","arguments":"{}"}}',
    "calls object": '{"role":"assistant","tool_calls":{}}',
    "calls string": '{"role":"assistant","tool_calls":"sesame"}',
    "call string": '{"role":"assistant","tool_calls":["sesame"]}',
    "call null": '{"role":"assistant","tool_calls":[null]}',
    "call without id": '{"role":"assistant","tool_calls":'
    '[{"function":{"name":"f","arguments":"{}"}}]}',
    "call empty id": '{"role":"assistant","tool_calls":'
    '[{"id":"","function":{"name":"f","arguments":"{}"}}]}',
    "call id number": '{"role":"assistant","tool_calls":'
    '[{"id":1,"function":{"name":"f","arguments":"{}"}}]}',
    "call without function": '{"role":"assistant","tool_calls":[{"id":"a"}]}',
    "call function string": '{"role":"assistant","tool_calls":'
    '[{"id":"a","function":"sesame"}]}',
    "call without name": '{"role":"assistant","tool_calls":'
    '[{"id":"a","function":{"arguments":"{}"}}]}',
    "call empty name": '{"role":"assistant","tool_calls":'
    '[{"id":"a","function":{"name":"","arguments":"{}"}}]}',
    "call without arguments": '{"role":"assistant","tool_calls":'
    '[{"id":"a","function":{"name":"f"}}]}',
    "call arguments object": '{"role":"assistant","tool_calls":'
    '[{"id":"a","function":{"name":"f","arguments":{"a":"sesame"}}}]}',
    "second call bad": '{"role":"assistant","tool_calls":'
    '[{"id":"a","function":{"name":"f","arguments":"{}"}},{}]}',
    "custom call without input": '{"role":"assistant","tool_calls":'
    '[{"id":"a","custom":{"name":"f"}}]}',
    "function_call string": '{"role":"assistant","function_call":"sesame"}',
    "function_call empty": '{"role":"assistant","function_call":{}}',
    "function_call without name": '{"role":"assistant","function_call":'
    '{"arguments":"{}"}}',
    "function_call empty name": '{"role":"assistant","function_call":'
    '{"name":"","arguments":"{}"}}',
    "function_call without arguments": '{"role":"assistant","function_call":'
    '{"name":"f"}}',
    "function_call arguments object": '{"role":"assistant","function_call":'
    '{"name":"f","arguments":{}}}',
    "a number out of range": '{"role":"user","content":"sesame","n":1e999999}',
}


@pytest.mark.parametrize("message", INVALID.values(), ids=INVALID)
def test_an_invalid_message_is_an_error_with_its_index(
    ann, conversation_id, fails, message
):
    before = ann.get(conversation_id)
    with fails("PC050", index=1) as detail:
        ann.append(conversation_id, f"[{json.dumps(USER)}, {message}]")

    assert set(detail) == {"index", "reason"}
    assert detail["reason"]
    assert ann.live(conversation_id) == []
    assert ann.get(conversation_id) == before


def test_the_first_invalid_message_is_named(ann, conversation_id, fails):
    with fails("PC050", index=2):
        ann.append(conversation_id, [USER, USER, {}, USER, {}])


def test_an_invalid_message_is_named_before_the_conversation_is_looked_up(ann, fails):
    with fails("PC050", index=0):
        ann.append(uuid4(), {})


@pytest.mark.parametrize("options", [{"idempotency_key": "k1"}, {"expected_seq": 0}])
def test_after_an_invalid_message_the_next_try_stores_all(
    ann, conversation_id, fails, options
):
    with fails("PC050"):
        ann.append(conversation_id, [USER, {}], **options)

    assert len(ann.append(conversation_id, [USER, USER], **options)) == 2


def test_null_messages_are_refused(ann, conversation_id, fails):
    with fails("22023", argument="messages"):
        ann.rows("append_messages", conversation_id=conversation_id, messages=None)


@pytest.mark.parametrize("name", [None, "", "OpenAI", "markdown"])
def test_an_unknown_format_is_refused(ann, conversation_id, fails, name):
    with fails("22023", argument="format"):
        ann.append(conversation_id, USER, format=name)


# Tokens and model


def test_estimates_tokens_that_are_not_given(ann, conversation_id):
    (row,) = ann.append(conversation_id, {"role": "user", "content": "Hello, world"})

    assert row["tokens"] == ann.value("estimate_tokens", content="Hello, world")
    assert row["is_estimated"] is True


def test_calls_cost_tokens_too(ann, conversation_id):
    short, long = ann.append(
        conversation_id,
        [
            {"role": "assistant", "tool_calls": [call("a", arguments="{}")]},
            {"role": "assistant", "tool_calls": [call("b", arguments="word " * 200)]},
        ],
    )

    assert 0 < short["tokens"] < 30
    assert long["tokens"] > 100


def test_takes_tokens_for_each_message(ann, conversation_id):
    rows = ann.append(conversation_id, [USER, USER, USER], tokens=[7, None, 0])

    assert [row["tokens"] for row in rows][::2] == [7, 0]
    assert [row["is_estimated"] for row in rows] == [False, True, False]
    assert rows[1]["tokens"] > 0


@pytest.mark.parametrize("tokens", [[], [1], [1, 2, 3], [1, -1]])
def test_tokens_of_another_length_or_negative_are_refused(
    ann, conversation_id, fails, tokens
):
    with fails("22023", argument="tokens"):
        ann.append(conversation_id, [USER, USER], tokens=tokens)


def test_the_model_is_that_of_the_assistants_messages(ann, conversation_id):
    rows = ann.append(
        conversation_id, [USER, {"role": "assistant", "content": "x"}], model="gpt-x"
    )

    assert [row["model"] for row in rows] == [None, "gpt-x"]


def test_counts_what_it_stored(ann, conversation_id):
    ann.append(
        conversation_id,
        [{"role": "system", "content": "s"}, USER, USER],
        tokens=[1, 2, 4],
    )

    row = ann.get(conversation_id)
    assert (row["last_seq"], row["message_count"], row["token_total"]) == (3, 3, 7)


# expected_seq and idempotency_key


def test_an_empty_array_stores_nothing_and_gives_no_row(ann, conversation_id):
    ann.say(conversation_id, 5)
    before = ann.get(conversation_id)

    assert ann.append(conversation_id, []) == []
    assert ann.append(conversation_id, [], tokens=[]) == []
    after = ann.get(conversation_id)
    assert after["last_seq"] == before["last_seq"] == 1


def test_an_empty_array_checks_expected_seq(ann, conversation_id, fails):
    ann.say(conversation_id, 5)

    assert ann.append(conversation_id, [], expected_seq=1) == []
    with fails("PC010", expected_seq=0, last_seq=1):
        ann.append(conversation_id, [], expected_seq=0)


def test_an_empty_array_of_an_outsider_finds_nothing(outsider, conversation_id, fails):
    with fails("PC001"):
        outsider.append(conversation_id, [])


def test_an_empty_array_with_a_key_can_be_repeated(ann, conversation_id):
    assert ann.append(conversation_id, [], idempotency_key="k1") == []
    ann.say(conversation_id, 5)

    assert ann.append(conversation_id, [], idempotency_key="k1") == []


def test_another_last_seq_is_an_error_and_stores_nothing(ann, conversation_id, fails):
    ann.say(conversation_id, 5)

    with fails("PC010", expected_seq=0, last_seq=1):
        ann.append(conversation_id, [USER, USER], expected_seq=0)
    assert len(ann.live(conversation_id)) == 1


def test_the_expected_last_seq_is_the_one_before_the_batch(ann, conversation_id):
    ann.append(conversation_id, [USER, USER], expected_seq=0)

    rows = ann.append(conversation_id, [USER, USER], expected_seq=2)
    assert [row["seq"] for row in rows] == [3, 4]


def test_a_key_given_again_stores_nothing_and_gives_the_stored_rows(
    ann, conversation_id
):
    ann.say(conversation_id, 5)
    first = ann.append(conversation_id, [USER, USER], idempotency_key="k1")
    ann.say(conversation_id, 5)
    before = ann.get(conversation_id)

    again = ann.append(
        conversation_id, [USER, USER], idempotency_key="k1", expected_seq=1
    )
    assert again == first
    assert ann.get(conversation_id) == before


def test_a_key_gives_the_rows_as_they_are_now(ann, conversation_id):
    ann.append(conversation_id, [USER, USER], idempotency_key="k1")
    ann.row("edit_message", conversation_id=conversation_id, seq=1, content="new")
    ann.row("delete_message", conversation_id=conversation_id, seq=2)

    edited, deleted = ann.append(conversation_id, [USER, USER], idempotency_key="k1")
    assert edited["content"] == "new"
    assert deleted["deleted_at"] is not None


@pytest.mark.parametrize(
    "other",
    [[USER], [USER, USER, USER], [USER, {"role": "user", "content": "sesame!"}], []],
)
def test_a_key_with_other_messages_is_an_error(ann, conversation_id, fails, other):
    ann.append(conversation_id, [USER, USER], idempotency_key="k1")

    with fails("PC011", first_seq=1, last_seq=2):
        ann.append(conversation_id, other, idempotency_key="k1")


# Tool calls: group_seq


def groups(rows):
    return [row["group_seq"] for row in rows]


def result(call_id, content="sesame"):
    return {"role": "tool", "tool_call_id": call_id, "content": content}


@pytest.fixture
def append(ann, conversation_id):
    """Append messages, in one batch or one by one, and get the group of each."""

    def append(messages, one_by_one=False):
        if not one_by_one:
            return groups(ann.append(conversation_id, messages))
        return [groups(ann.append(conversation_id, m))[0] for m in messages]

    return append


# Conversations with the group_seq that each message must get.
GROUPS = {
    "plain messages": ([USER, {"role": "assistant", "content": "x"}], [1, 2]),
    "a call and its result": ([USER, calls("a"), result("a")], [1, 2, 2]),
    "parallel calls": (
        [calls("a", "b", "c"), result("a"), result("b"), result("c")],
        [1, 1, 1, 1],
    ),
    "results out of order": (
        [calls("a", "b", "c"), result("c"), result("a"), result("b")],
        [1, 1, 1, 1],
    ),
    "a message between": (
        [calls("a", "b"), result("a"), USER, result("b")],
        [1, 1, 3, 1],
    ),
    "two open calls": (
        [calls("a"), calls("b"), result("a"), result("b")],
        [1, 2, 1, 2],
    ),
    "an id that comes again": (
        [calls("a"), result("a"), USER, calls("a"), result("a")],
        [1, 1, 3, 4, 4],
    ),
    "an id that comes again while open: the nearest first": (
        [calls("a"), USER, calls("a"), result("a"), result("a")],
        [1, 2, 3, 3, 1],
    ),
    "an id twice in one message": (
        [calls("a", "a"), result("a"), result("a")],
        [1, 1, 1],
    ),
    "an id in parallel calls that comes again": (
        [calls("a", "b"), result("b"), calls("b"), result("b"), result("a")],
        [1, 1, 3, 3, 1],
    ),
    "a result without call": ([USER, result("a")], [1, 2]),
    "a result before its call": ([result("a"), calls("a"), result("a")], [1, 2, 2]),
    "a result too many": ([calls("a"), result("a"), result("a")], [1, 1, 3]),
    "a result with another id": ([calls("a"), result("b"), result("a")], [1, 2, 1]),
    "a function call": (
        [
            {
                "role": "assistant",
                "content": None,
                "function_call": {"name": "f", "arguments": "{}"},
            },
            {"role": "function", "name": "f", "content": "x"},
            {"role": "function", "name": "f", "content": "y"},
        ],
        [1, 1, 3],
    ),
    "a function call is not answered by a tool message of its name": (
        [
            {
                "role": "assistant",
                "function_call": {"name": "f", "arguments": "{}"},
            },
            result("f"),
        ],
        [1, 2],
    ),
    "a custom call": (
        [
            {
                "role": "assistant",
                "tool_calls": [
                    {"id": "a", "type": "custom", "custom": {"name": "f", "input": ""}}
                ],
            },
            result("a"),
        ],
        [1, 1],
    ),
    "ids with what text can't hold": ([calls("a\0"), result("a\0")], [1, 1]),
    "ids differ in case and space": (
        [calls("a"), result("A"), result("a ")],
        [1, 2, 3],
    ),
}


@pytest.mark.parametrize("one_by_one", [False, True], ids=["one batch", "one by one"])
@pytest.mark.parametrize(("messages", "expected"), GROUPS.values(), ids=GROUPS)
def test_a_result_joins_the_nearest_open_call_before_it(
    append, messages, expected, one_by_one
):
    assert append(messages, one_by_one) == expected


def test_results_in_one_append_after_their_calls(append):
    append([calls("a", "b")])

    assert append([result("b"), result("a")]) == [1, 1]


def test_results_of_one_id_in_one_append_after_its_calls(append):
    append([calls("a"), USER, calls("a")])

    assert append([result("a"), result("a")]) == [3, 1]


def test_results_of_an_id_twice_in_one_message_in_one_append_after_it(append):
    append([calls("a"), USER, calls("a", "a")])

    assert append([result("a"), result("a"), result("a")]) == [3, 3, 1]


def test_a_stored_call_is_answered_before_the_batch_repeats_its_id(append):
    append([calls("a")])

    assert append([result("a"), calls("a"), result("a")]) == [1, 3, 3]


def test_a_deleted_call_takes_no_result(append, ann, conversation_id):
    append([calls("a"), calls("a")])
    ann.row("delete_message", conversation_id=conversation_id, seq=2)

    assert append([result("a"), result("a")]) == [1, 4]


def test_a_call_whose_result_was_deleted_takes_another(append, ann, conversation_id):
    append([calls("a"), result("a")])
    ann.row("delete_message", conversation_id=conversation_id, seq=2)

    assert append([result("a")]) == [1]


def test_a_result_has_role_tool(ann, conversation_id):
    rows = ann.append(
        conversation_id,
        [
            calls("a"),
            result("a"),
            {
                "role": "assistant",
                "function_call": {"name": "f", "arguments": "{}"},
            },
            {"role": "function", "name": "f", "content": "x"},
        ],
    )

    assert [row["role"] for row in rows] == ["assistant", "tool", "assistant", "tool"]


def test_calls_of_another_conversation_are_not_answered(append, ann):
    append([calls("a")])

    assert groups(ann.append(ann.create(), [USER, result("a")])) == [1, 2]


def test_a_batch_of_2000_messages_is_stored(ann, conversation_id):
    batch = [m for n in range(1000) for m in (calls(f"c{n}"), result(f"c{n}"))]
    rows = ann.append(conversation_id, batch)

    assert groups(rows) == [n for n in range(1, 2001, 2) for _ in range(2)]


# Who


def test_the_service_appends_for_the_owner(service, ann, conversation_id):
    service.append(conversation_id, [USER, USER])

    assert len(ann.live(conversation_id)) == 2


def test_a_held_conversation_takes_messages(ann, service, conversation_id):
    service.row("hold_conversation", conversation_id=conversation_id, reason="case 7")

    assert len(ann.append(conversation_id, [USER])) == 1


@pytest.mark.parametrize("key", [None, "k1"])
def test_an_unknown_id_is_an_error(ann, fails, key):
    with fails("PC001"):
        ann.append(uuid4(), USER, idempotency_key=key)


@pytest.mark.parametrize("key", [None, "k1"])
def test_a_deleted_conversation_is_an_error(ann, conversation_id, fails, key):
    ann.value("delete_conversation", conversation_id=conversation_id)

    with fails("PC012", conversation_id=conversation_id):
        ann.append(conversation_id, USER, idempotency_key=key)


@pytest.mark.parametrize("key", [None, "k1"])
def test_outsiders_find_nothing(outsider, ann, conversation_id, fails, key):
    ann.append(conversation_id, USER, idempotency_key="k1")

    with fails("PC001", conversation_id=conversation_id):
        outsider.append(conversation_id, USER, idempotency_key=key)
    assert len(ann.live(conversation_id)) == 1


def test_needs_a_context(unknown, conversation_id, fails):
    with fails("PC030"):
        unknown.append(conversation_id, USER)


def test_is_not_for_readers(reader, conversation_id):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reader.append(conversation_id, USER)


@pytest.mark.parametrize("tokens", ["{{1}}", "[0:0]={7}", "[5:5]={7}", "{1,2}", "{-1}"])
def test_tokens_of_another_shape_are_refused(ann, conversation_id, fails, tokens):
    with fails("22023", argument="tokens"):
        ann.append(conversation_id, {"role": "user", "content": "x"}, tokens=tokens)


@pytest.mark.parametrize("image", ["5", "null", "{}", '{"url": 5}', '{"url": ""}'])
def test_an_image_without_an_address_is_refused(ann, conversation_id, fails, image):
    part = '{"type": "image_url", "image_url": ' + image + "}"
    with fails("PC050", index=0):
        ann.append(conversation_id, '{"role": "user", "content": [' + part + "]}")
