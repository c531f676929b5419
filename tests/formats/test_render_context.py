"""render_context: a context as each provider's own JSON."""

from __future__ import annotations

import json

import psycopg
import pytest

from .conftest import Chat
from .providers import FORMATS, IMAGE, assistant, results, said, user
from .test_render_histories import PROBLEMS

CALLS = [("a", "f", '{"x": 1}'), ("b", "g", "{}")]
ANSWERS = [("a", "f", "one", False), ("b", "g", "two", False)]


def bodies(format, rendered):
    """The messages of a request without the system's."""
    if format in ("anthropic", "gemini"):
        return rendered[{"anthropic": "messages", "gemini": "contents"}[format]]
    return rendered


def tool_turn(chat, format):
    chat.append(format, user(format, "do it"))
    chat.append(format, *assistant(format, "I will.", CALLS))
    chat.append(format, *results(format, ANSWERS))


@pytest.mark.parametrize("format", ["mistral", "", "OPENAI", None])
def test_refuses_a_format_that_is_not_known(chat, format):
    with pytest.raises(psycopg.Error) as caught:
        chat.text(format)
    assert caught.value.sqlstate == "22023"
    detail = json.loads(caught.value.diag.message_detail)
    assert detail["allowed"] == list(FORMATS)


def test_of_another_user_is_not_found(chat, connect):
    chat.say("user", "hi")
    ben = connect("test_app", "acme", "ben")
    with pytest.raises(psycopg.Error) as caught:
        ben.execute("select convo.render_context(%s, 'openai')", (chat.id,))
    assert caught.value.sqlstate == "PC001"


def test_openai_from_plain_messages(app):
    chat = Chat(app, system_prompt="Be brief.")
    chat.say("user", "hi")
    chat.say("system", "No jokes.")
    chat.say("assistant", "hello")
    assert chat.render("openai") == [
        {"role": "system", "content": "Be brief."},
        {"role": "system", "content": "No jokes."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "hello"},
    ]
    assert chat.render("anthropic") == {
        "system": [
            {"type": "text", "text": "Be brief."},
            {"type": "text", "text": "No jokes."},
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "hello"}]},
        ],
    }
    assert chat.render("gemini")["systemInstruction"] == {
        "parts": [{"text": "Be brief."}, {"text": "No jokes."}]
    }


def test_one_system_text_is_a_string_and_none_is_left_out(app, chat):
    chat.say("user", "hi")
    assert chat.render("anthropic").keys() == {"messages"}
    assert chat.render("gemini").keys() == {"contents"}
    prompted = Chat(app, system_prompt="Be brief.")
    prompted.say("user", "hi")
    assert prompted.render("anthropic")["system"] == "Be brief."


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_a_tool_turn_goes_from_any_format_to_any(chat, source, target):
    tool_turn(chat, source)
    rendered = chat.render(target)
    assert PROBLEMS[target](rendered) == []
    found = said(target, rendered)
    assert found.texts == [("user", "do it"), ("assistant", "I will.")]
    assert found.calls == [("f", {"x": 1}, "one"), ("g", {}, "two")]


@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_through_another_format_and_back_it_says_the_same(app, chat, source, target):
    tool_turn(chat, source)
    chat.append(source, user(source, "and this?", True))
    there = Chat(app)
    there.append(target, *map(json.dumps, bodies(target, chat.render(target))))
    assert said(source, there.render(source)) == said(source, chat.render(source))


# Each value in a message that stands alone: no neighbour of its role.
VALUES = [
    r'"a\u0000b"',
    r'"half \ud83d pair"',
    r'"literal \\u0000 and \/ slash"',
    '"שלום ‮abc 👩‍👩‍👧 é"',
]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("format", FORMATS)
def test_its_own_format_is_kept_byte_for_byte(chat, format, value):
    content = {
        "openai": '"content" :[{"type":"text","text":%s,"n":1.50e400}]',
        "openai_responses": '"content": %s, "type":"message","n":1.50e400',
        "anthropic": '"content":[{"text":%s, "type":"text","n":1.50e400}]',
        "gemini": '"parts":  [ {"text":%s,"n":1.50e400}]',
    }[format].replace("e400", "0" * 30)
    message = '{ "role":"user", ' + content % value + "}"
    chat.append(format, message)
    assert message in chat.text(format)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("format", ["anthropic", "gemini"])
def test_merged_neighbours_keep_their_blocks_byte_for_byte(chat, format, value):
    if format == "gemini":
        head, kind = '{"role":"user","parts":[', ""
    else:
        head, kind = '{"role":"user","content":[', '"type" : "text",'
    first = "{" + kind + '"text":' + value + "}"
    second = "{" + kind + ' "text" :' + value + ',  "n":12345678901234567890123}'
    chat.append(format, head + first + "]}", head + second + "]}")
    assert f"{head}{first},{second}]}}" in chat.text(format)


def test_a_text_is_a_block_where_anthropic_neighbours_merge(chat):
    first = r'{"role":"user","content":"a\u0000"}'
    chat.append("anthropic", first, user("anthropic", "b"))
    blocks = r'[{"type":"text","text":"a\u0000"},{"type":"text","text":"b"}]'
    assert blocks in chat.text("anthropic").replace('"text": ', '"text":')


@pytest.mark.parametrize("target", ["anthropic", "gemini"])
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"b":1.0,"a":12345678901234567890}', '{"b":1.0,"a":12345678901234567890}'),
        ("", "{}"),
        ("[1]", '{"input" : "[1]"}'),
        ("not json", '{"input" : "not json"}'),
    ],
)
def test_arguments_become_an_object(chat, target, arguments, expected):
    chat.append("openai", user("openai", "x"))
    chat.append("openai", *assistant("openai", "", [("a", "f", arguments)]))
    chat.append("openai", *results("openai", [("a", "f", "ok", False)]))
    member = {"anthropic": "input", "gemini": "args"}[target]
    assert f'"{member}":{expected}' in chat.text(target)


def test_ids_of_other_makers_are_replaced_pair_by_pair(chat):
    for n in range(2):
        chat.append("openai", user("openai", "x"))
        chat.append("openai", *assistant("openai", "", [("functions.f:0", "f", "{}")]))
        chat.append(
            "openai", *results("openai", [("functions.f:0", "f", f"{n}", False)])
        )
    rendered = chat.render("anthropic")
    assert PROBLEMS["anthropic"](rendered) == []
    assert [result for _, _, result in said("anthropic", rendered).calls] == ["0", "1"]
    assert "functions.f:0" not in json.dumps(rendered)
    assert "functions.f:0" in chat.text("openai")
    assert "functions.f:0" not in chat.text("openai_responses")


def test_ids_that_anthropic_would_refuse_twice_are_replaced(chat):
    for _ in range(2):
        tool_turn(chat, "anthropic")
    rendered = chat.render("anthropic")
    assert PROBLEMS["anthropic"](rendered) == []
    assert rendered["messages"][1]["content"][1]["id"] == "a"


def test_signatures_go_to_their_maker_only(chat):
    thinking = {"type": "thinking", "thinking": "hidden", "signature": "secret"}
    chat.append("anthropic", user("anthropic", "x"))
    chat.append(
        "anthropic",
        {"role": "assistant", "content": [thinking, {"type": "text", "text": "y"}]},
    )
    chat.append("gemini", user("gemini", "x"))
    chat.append(
        "gemini",
        {"role": "model", "parts": [{"text": "y", "thoughtSignature": "Z2Vt"}]},
    )
    chat.append("openai_responses", user("openai_responses", "x"))
    chat.append(
        "openai_responses",
        {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "crypt"},
        *assistant("openai_responses", "y", []),
    )
    marks = {"anthropic": "secret", "gemini": "Z2Vt", "openai_responses": "crypt"}
    for format in FORMATS:
        text = chat.text(format)
        for maker, mark in marks.items():
            assert (mark in text) == (maker == format)
        assert ("hidden" in text) == (format == "anthropic")


def test_an_error_is_marked_where_it_can_be(chat):
    chat.append("anthropic", user("anthropic", "x"))
    chat.append("anthropic", *assistant("anthropic", "", CALLS[:1]))
    chat.append("anthropic", *results("anthropic", [("a", "f", "broken", True)]))
    assert chat.render("gemini")["contents"][2]["parts"][0]["functionResponse"] == {
        "name": "f",
        "response": {"error": "broken"},
    }
    assert chat.render("openai")[2]["content"] == "broken"


def test_a_duplicate_result_goes_and_the_rest_of_its_message_stays(app):
    """No context holds one now; a renderer still never lets it out."""
    messages = [
        user("anthropic", "x"),
        *assistant("anthropic", "", CALLS),
        *results("anthropic", [*ANSWERS, ("a", "f", "again", False)], "so?"),
    ]
    roles = ["user", "assistant", "tool"]
    rows = [
        (n, min(n, 2), roles[n - 1], json.dumps(message))
        for n, message in enumerate(messages, 1)
    ]
    items = ", ".join(
        "row('message', %s, %s, %s, '', 'anthropic', %s)::convo._render_item"
        for _ in rows
    )
    for format in FORMATS:
        (text,) = app.execute(
            f"select convo._render_{format}(array[{items}])",
            [value for row in rows for value in row],
        ).fetchone()
        rendered = json.loads(text)
        assert PROBLEMS[format](rendered) == []
        assert said(format, rendered).calls == [
            ("f", {"x": 1}, "one"),
            ("g", {}, "two"),
        ]
        assert said(format, rendered).texts == [("user", "x"), ("user", "so?")]


def test_images_and_files_are_converted_or_named(chat):
    chat.append("anthropic", user("anthropic", "see", True))
    pdf = {"mimeType": "application/pdf", "data": "JVBERi0="}
    audio = {"mimeType": "audio/ogg", "data": "T2dnUw=="}
    chat.append(
        "gemini",
        {"role": "user", "parts": [{"inlineData": pdf}, {"inlineData": audio}]},
    )
    chat.append(
        "openai",
        {
            "role": "user",
            "content": [
                {"type": "image_url", "image_url": {"url": "https://x.org/a.png"}}
            ],
        },
    )
    for format in FORMATS:
        rendered = chat.render(format)
        assert PROBLEMS[format](rendered) == []
        assert IMAGE in chat.text(format)
        assert "https://x.org/a.png" in chat.text(format)
        assert "JVBERi0=" in chat.text(format)
        assert ("[audio]" in chat.text(format)) == (format != "gemini")


def test_the_newest_user_message_is_never_left_out(chat):
    chat.say("user", "first")
    chat.say("assistant", "answer")
    chat.append(
        "anthropic",
        {"role": "user", "content": [{"type": "container_upload", "file_id": "f"}]},
    )
    assert chat.render("openai")[-1] == {
        "role": "user",
        "content": "[unsupported content]",
    }


def test_white_space_at_the_end_goes_where_anthropic_refuses_it(chat):
    chat.say("user", "x")
    chat.append("anthropic", {"role": "assistant", "content": "It is \n"})
    assert chat.render("anthropic")["messages"][-1]["content"] == [
        {"type": "text", "text": "It is"}
    ]
    chat.say("user", "y")
    assert chat.render("anthropic")["messages"][1]["content"] == "It is \n"


@pytest.mark.parametrize("target", FORMATS)
def test_custom_tools_and_older_function_calls_are_carried(chat, target):
    chat.append("openai", user("openai", "x"))
    chat.append(
        "openai",
        {
            "role": "assistant",
            "content": None,
            "function_call": {"name": "f", "arguments": "{}"},
        },
        {"role": "function", "name": "f", "content": "old"},
    )
    chat.append(
        "openai_responses",
        {"type": "custom_tool_call", "call_id": "c", "name": "run", "input": "ls"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "files"},
    )
    assert PROBLEMS[target](chat.render(target)) == []
    for word in ("old", "run", "ls", "files"):
        assert word in chat.text(target)


def test_a_summary_comes_first(chat):
    for text in ("one", "two"):
        chat.say("user", text)
        chat.say("assistant", f"{text}!")
    chat.on("save_summary", content="short", through_seq=2, previous_through_seq=0)
    assert [message["content"] for message in chat.render("openai")][1:] == [
        "short",
        "two",
        "two!",
    ]


@pytest.mark.parametrize("format", ["anthropic", "gemini"])
def test_what_a_user_says_beside_the_results_stays_when_a_call_is_open(chat, format):
    chat.append(format, user(format, "q"))
    chat.append(format, *assistant(format, "", CALLS))
    chat.append(format, *results(format, ANSWERS[:1], "STOP, do X instead"))
    for target in FORMATS:
        rendered = chat.render(target)
        assert PROBLEMS[target](rendered) == []
        heard = said(target, rendered)
        assert heard.texts == [("user", "q"), ("user", "STOP, do X instead")]
        assert heard.calls == []


@pytest.mark.parametrize("format", ["anthropic", "gemini"])
def test_what_a_user_says_beside_a_result_stays_without_the_call(chat, format):
    chat.append(format, user(format, "q"))
    chat.append(format, *assistant(format, "", CALLS[:1]))
    chat.append(format, *results(format, ANSWERS[:1], "also do X"))
    chat.on("delete_message", seq=2)
    for target in FORMATS:
        heard = said(target, chat.render(target))
        assert heard.texts == [("user", "q"), ("user", "also do X")]


@pytest.mark.parametrize("blank", ["\u00a0", "\u3000", "\u0085", " \n", ""])
def test_a_blank_message_is_no_turn(chat, blank):
    chat.say("user", "real question")
    chat.say("assistant", "answer")
    chat.say("user", blank)
    for target in FORMATS:
        assert said(target, chat.render(target)).texts == [
            ("user", "real question"),
            ("assistant", "answer"),
        ]


@pytest.mark.parametrize("target", ["openai", "openai_responses", "anthropic"])
def test_a_name_that_gemini_alone_allows_is_made_to_fit(chat, target):
    chat.append("gemini", user("gemini", "q"))
    call = ("a", "maps.find:near" + "r" * 80, "{}")
    chat.append("gemini", *assistant("gemini", "", [call]))
    chat.append("gemini", *results("gemini", [("a", call[1], "one", False)]))
    ((name, _, result),) = said(target, chat.render(target)).calls
    assert name == "maps_find_near" + "r" * 50
    assert result == "one"


def test_a_message_with_every_private_character_is_rendered_and_edited(chat):
    text = "".join(map(chr, range(0xE000, 0xF900))) + " \n line \x00"
    message = json.dumps({"role": "user", "content": text}, ensure_ascii=False)
    message = message.replace("\x00", "\\u0000")
    chat.append("openai", message)
    chat.append("openai", {"role": "assistant", "content": "b\nc"})
    assert message in chat.text("openai", token_budget=10**6)
    assert len(chat.render("anthropic", token_budget=10**6)["messages"]) == 2
    chat.on("edit_message", seq=2, content=text.replace("\x00", ""))
    edited = chat.render("openai", token_budget=10**6)[1]
    assert edited["content"] == text.replace("\x00", "")


def test_the_string_setting_of_a_session_changes_nothing(chat):
    chat.conn.execute("set standard_conforming_strings = off")
    chat.say("user", "hello")
    chat.append("openai", '{"role": "assistant", "content": "a\\n\\u0000 b"}')
    chat.on("edit_message", seq=1, content="hello again")
    assert chat.text("openai") == (
        '[{"role":"user","content":"hello again"},'
        '{"role": "assistant", "content": "a\\n\\u0000 b"}]'
    )


def test_budgets_beyond_an_integer_are_no_error(chat, connect):
    service = connect("test_service", "acme")
    service.execute("select convo.set_policy('dear', message_overhead => 1000)")
    chat.conn.execute(
        "select convo.append_message(%s, 'system', 's', 2147483647)", (chat.id,)
    )
    chat.conn.execute(
        "select convo.append_message(%s, 'user', 'u', 2147483647)", (chat.id,)
    )
    tool_turn(chat, "openai")
    with pytest.raises(psycopg.Error) as caught:
        chat.text("openai", policy="dear")
    assert caught.value.sqlstate == "PC020"
