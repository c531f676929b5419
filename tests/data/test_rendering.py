"""Recorded conversations as contexts: in their own format, in others, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.string import TextLoader

from ..formats import (
    validate_anthropic,
    validate_gemini,
    validate_openai,
    validate_openai_responses,
)
from ..formats.providers import as_object
from . import test_conversations, test_provider_messages

SOURCES = {
    **dict.fromkeys(test_conversations.SOURCES, "openai"),
    **{name: s[1] for name, s in test_provider_messages.SOURCES.items()},
}
PROBLEMS = {
    "openai": validate_openai.problems,
    "openai_responses": validate_openai_responses.problems,
    "anthropic": validate_anthropic.problems,
    "gemini": validate_gemini.problems,
}
LISTS = {"anthropic": "messages", "gemini": "contents"}
BUDGET = 100_000_000
# What stands for something that a format can't carry.
NOTE = re.compile(r"|\[(file|audio|continued|unsupported content).*\]")
SAMPLE = 12  # conversations of a source that go through other formats


def conversations(folder: Path, source: str) -> list[list[dict[str, Any]]]:
    """Return the conversations of a source that hold a user's message."""
    module = (
        test_conversations
        if source in test_conversations.SOURCES
        else test_provider_messages
    )
    return [messages for messages in module.read(folder, source) if messages]


@pytest.fixture
def conn(connect: Callable[..., psycopg.Connection]) -> psycopg.Connection:
    """A connection of one user that gives payloads as their exact text."""
    conn = connect("test_app", "acme", "ann")
    conn.adapters.register_loader("json", TextLoader)
    return conn


def store(conn: psycopg.Connection, provider: str, messages: str) -> UUID:
    """Store the JSON text of messages, and return the conversation's id."""
    (id,) = conn.execute("select convo.create_conversation()").fetchone()
    conn.execute(
        "select count(*) from convo.append_messages(%s, %s, %s)",
        [id, messages, provider],
    )
    return id


def render(conn: psycopg.Connection, id: UUID, provider: str) -> str | None:
    """Return the rendered context, or None where there is no user's message."""
    try:
        (text,) = conn.execute(
            "select convo.render_context(%s, %s, token_budget => %s)",
            [id, provider, BUDGET],
        ).fetchone()
    except psycopg.Error as error:
        assert error.sqlstate == "PC020", error
        assert json.loads(error.diag.message_detail)["has_user_message"] is False
        return None
    return text


def kept(conn: psycopg.Connection, id: UUID) -> list[tuple[str, str]]:
    """Return role and payload of the messages in the context, in its order."""
    return conn.execute(
        "select c.role, m.payload from convo.get_context(%s, token_budget => %s) as c"
        " join convo.last_messages(%s, 10000) as m on m.seq = c.seq order by c.ordinal",
        [id, BUDGET, id],
    ).fetchall()


def elements(conn: psycopg.Connection, provider: str, text: str) -> list[str]:
    """Return the exact texts of the messages in a rendered context."""
    path = f" -> '{LISTS[provider]}'" if provider in LISTS else ""
    return [
        value
        for (value,) in conn.execute(
            f"select e.value::text from json_array_elements(%s::json{path}) as e",
            [text],
        )
    ]


def has_blank_block(payload: str) -> bool:
    """Say whether a message has a text block that Anthropic would refuse."""
    content = json.loads(payload).get("content")
    return isinstance(content, list) and any(
        not block.get("text", "x").strip() for block in content
    )


@pytest.mark.parametrize("source", SOURCES)
def test_a_context_in_its_own_format_has_every_byte(conn, shared_data, source):
    provider = SOURCES[source]
    whole = checked = 0
    for messages in conversations(shared_data, source):
        id = store(conn, provider, json.dumps(messages, indent=1))
        text = render(conn, id, provider)
        if text is None:
            continue
        rows = kept(conn, id)
        checked += 1
        whole += len(rows) == len(messages)
        sent = elements(conn, provider, text)
        if provider in LISTS:
            rows = [row for row in rows if row[0] != "system"]
        if len(sent) == len(rows):
            for element, (_, payload) in zip(sent, rows, strict=True):
                assert element == payload or has_blank_block(payload)
        else:  # neighbours of one role are merged: their blocks are there
            assert provider in LISTS
            assert len(sent) < len(rows)
    assert checked
    assert whole >= 0.5 * checked, (whole, checked)


def flat(conn: psycopg.Connection, id: UUID, provider: str) -> list[tuple[Any, ...]]:
    """Return what a context says: texts, calls and results, in order."""
    said: list[tuple[Any, ...]] = []
    for role, payload in kept(conn, id):
        (parts,) = conn.execute(
            "select convo._payload_parts(%s, %s)", [provider, payload]
        ).fetchone()
        for part in parts:
            if part["kind"] == "text" and not NOTE.fullmatch(part["text"].strip()):
                side = "user" if role == "tool" else role
                said.append((side, part["text"].rstrip()))
            elif part["kind"] == "call":
                arguments = part.get("arguments", part.get("input", ""))
                said.append(("call", part["name"], as_object(arguments)))
            elif part["kind"] == "result":
                texts = [p["text"] for p in part["parts"] if p["kind"] == "text"]
                said.append(("result", "\n".join(texts).strip()))
    return said


def sample(found: list[Any]) -> list[Any]:
    """Return conversations evenly spread over a source."""
    return found[:: max(1, len(found) // SAMPLE)][:SAMPLE]


@pytest.mark.parametrize("source", SOURCES)
def test_every_provider_takes_it(conn, shared_data, source):
    for messages in sample(conversations(shared_data, source)):
        id = store(conn, SOURCES[source], json.dumps(messages))
        for target, problems in PROBLEMS.items():
            text = render(conn, id, target)
            if text is not None and target != SOURCES[source]:
                assert problems(json.loads(text)) == [], text


@pytest.mark.parametrize("source", SOURCES)
def test_through_another_format_it_says_the_same(conn, shared_data, source):
    provider = SOURCES[source]
    for messages in sample(conversations(shared_data, source)):
        id = store(conn, provider, json.dumps(messages))
        if render(conn, id, provider) is None:
            continue
        said = flat(conn, id, provider)
        for target in PROBLEMS:
            if target == provider:
                continue
            request = json.loads(render(conn, id, target))
            if target in LISTS:
                system = request.get("system") or request.get("systemInstruction")
                request = request[LISTS[target]]
                if system and target == "anthropic":
                    request = [{"role": "system", "content": system}, *request]
                elif system:
                    request = [{"role": "system", **system}, *request]
            other = store(conn, target, json.dumps(request))
            assert flat(conn, other, target) == said, target
