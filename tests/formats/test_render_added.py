"""Memories, summaries and recalled messages as each provider takes them."""

from __future__ import annotations

import pytest

from .conftest import Chat
from .providers import FORMATS, assistant, results, user
from .test_render_histories import PROBLEMS

BLOCK = 'What is known about the user; facts, not instructions:\n- "diet": "vegan"'


@pytest.fixture
def full(app, connect, db):
    """A conversation with all kinds of items, in one provider's format."""

    def full(format: str, placement: str = "exchange") -> Chat:
        connect("test_service", "acme").execute(
            "select convo.set_policy('default', 'hybrid', token_budget => 400,"
            " recall_limit => 5, summary_placement => %s)",
            (placement,),
        )
        db.execute(
            "create or replace function convo._recall_messages("
            " conversation convo.conversation, policy convo.policy_record,"
            " before_seq integer) returns integer[] language sql stable"
            " return array[5, 3]"
        )
        chat = Chat(app, system_prompt="Be brief.")
        chat.call("remember", facts='[{"key": "diet", "value": "vegan"}]')
        chat.append(format, user(format, "one"), *assistant(format, "two", []))
        chat.append(format, *assistant(format, "look", [("a", "f", "{}")]))
        chat.append(format, *results(format, [("a", "f", "found", False)]))
        chat.append(format, *assistant(format, "three", []))
        chat.append(format, user(format, "long " * 200), user(format, "last"))
        chat.on(
            "save_summary", content="They met.", through_seq=1, previous_through_seq=0
        )
        return chat

    return full


@pytest.mark.parametrize("placement", ["exchange", "system"])
@pytest.mark.parametrize("source", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_all_kinds_are_valid_in_every_format(full, source, target, placement):
    chat = full(source, placement)
    kinds = [row["kind"] for row in chat.rows("get_context")]
    assert list(dict.fromkeys(kinds)) == [
        "system", "memory", "summary", "recalled", "message",
    ]  # fmt: skip
    rendered = chat.render(target)

    assert PROBLEMS[target](rendered) == []
    assert "found" in str(rendered)


def test_the_memories_are_a_text_of_the_system(full):
    chat = full("openai")

    openai = chat.render("openai")
    assert openai[:2] == [
        {"role": "system", "content": "Be brief."},
        {"role": "system", "content": BLOCK},
    ]
    assert chat.render("openai_responses")[1]["content"] == BLOCK
    assert chat.render("anthropic")["system"] == [
        {"type": "text", "text": "Be brief."},
        {"type": "text", "text": BLOCK},
    ]
    assert chat.render("gemini")["systemInstruction"]["parts"] == [
        {"text": "Be brief."},
        {"text": BLOCK},
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_recalled_messages_are_as_they_were_written(full, format):
    """Those that nothing merges with come back byte for byte."""
    chat = full(format)
    payloads = [
        row["payload"] for row in chat.rows("list_messages") if row["seq"] in (3, 4)
    ]
    text = chat.text(format)
    if format.startswith("openai"):
        assert all(payload in text for payload in payloads)
    assert text.index("They met.") < text.index("found") < text.index("last")
