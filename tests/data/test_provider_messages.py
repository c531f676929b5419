"""What was recorded of other providers goes in and comes out unchanged."""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.types.string import TextLoader

Messages = list[dict[str, Any]]
Exchange = tuple[dict[str, Any], dict[str, Any]]


def read_yaml(text: bytes) -> Any:
    yaml = pytest.importorskip("yaml", reason="the recordings are YAML")
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def exchanges(folder: Path, name: str) -> Iterator[Exchange]:
    """The bodies of all requests in an archive, with their responses'."""
    with tarfile.open(folder / f"wire-formats/pydantic-ai/{name}.tar.gz") as tar:
        for member in tar:
            if member.name.endswith(".yaml"):
                recording = read_yaml(tar.extractfile(member).read())
                for exchange in recording["interactions"]:
                    yield (
                        exchange["request"].get("parsed_body") or {},
                        exchange["response"].get("parsed_body") or {},
                    )


def anthropic_messages(sent: dict[str, Any], got: dict[str, Any]) -> Messages:
    """The messages of an exchange, the system text first."""
    system = [{"role": "system", "content": s} for s in [sent.get("system")] if s]
    answer = {"role": "assistant", "content": got.get("content")}
    return system + sent["messages"] + [answer] * (answer["content"] is not None)


def read_anthropic(folder: Path) -> Iterator[Messages]:
    for sent, got in exchanges(folder, "anthropic"):
        if "messages" in sent:
            yield anthropic_messages(sent, got)


def read_responses(folder: Path) -> Iterator[Messages]:
    for sent, got in exchanges(folder, "openai-responses"):
        items = sent.get("input", [])
        if isinstance(items, str):
            items = [{"role": "user", "content": items}]
        if items or got.get("output"):
            yield items + got.get("output", [])


def read_gemini(folder: Path) -> Iterator[Messages]:
    for sent, got in exchanges(folder, "gemini"):
        if "contents" in sent:
            system = [
                content | {"role": "system"}
                for content in [sent.get("systemInstruction")]
                if content
            ]
            answers = [
                candidate["content"]
                for candidate in got.get("candidates", [])
                if candidate.get("content")
            ]
            yield system + sent["contents"] + answers


def read_llm_anthropic(folder: Path) -> Iterator[Messages]:
    for path in sorted((folder / "wire-formats/llm-anthropic").glob("*.yaml.gz")):
        recording = read_yaml(gzip.decompress(path.read_bytes()))
        for exchange in recording["interactions"]:
            yield anthropic_messages(json.loads(exchange["request"]["body"]), {})


def is_message(value: Any) -> bool:
    """Whether a line of a session holds one; some are broken on purpose."""
    content = isinstance(value, dict) and value.get("content")
    return bool(content) and all(isinstance(b, dict) for b in blocks(value))


def read_claude_code(folder: Path) -> Iterator[Messages]:
    for path in sorted((folder / "trees/claude-code").glob("*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        found = [line.get("message") for line in lines if isinstance(line, dict)]
        yield [message for message in found if is_message(message)]


# Each source, its format, and how many conversations it must have.
SOURCES: dict[str, tuple[Callable[[Path], Iterator[Messages]], str, int]] = {
    "anthropic": (read_anthropic, "anthropic", 164),
    "openai-responses": (read_responses, "openai_responses", 140),
    "gemini": (read_gemini, "gemini", 133),
    "llm-anthropic": (read_llm_anthropic, "anthropic", 4),
    "claude-code": (read_claude_code, "anthropic", 5),
}


@cache
def read(folder: Path, source: str) -> list[Messages]:
    return list(SOURCES[source][0](folder))


@pytest.fixture
def conn(connect: Callable[..., psycopg.Connection]) -> psycopg.Connection:
    """A connection of one user that gives payloads as their exact text."""
    conn = connect("test_app", "acme", "ann")
    conn.adapters.register_loader("json", TextLoader)
    return conn


def store(
    conn: psycopg.Connection, provider: str, texts: list[str]
) -> list[tuple[Any, ...]]:
    """Store messages in one append; give role, content, payload and group of each."""
    (conversation_id,) = conn.execute("select convo.create_conversation()").fetchone()
    conn.execute(
        "select count(*) from convo.append_messages(%s, %s, %s)",
        [conversation_id, "[" + " ,\n".join(texts) + "]", provider],
    )
    return conn.execute(
        "select role, content, payload, group_seq from convo.last_messages(%s, 10000)",
        [conversation_id],
    ).fetchall()


@pytest.mark.parametrize("source", SOURCES)
def test_every_message_comes_back_byte_for_byte_and_in_order(conn, shared_data, source):
    _, provider, count = SOURCES[source]
    conversations = read(shared_data, source)
    assert len(conversations) == count
    for number, messages in enumerate(conversations):
        texts = [
            json.dumps(message, ensure_ascii=number % 2 == 0, indent=number % 3 or None)
            for message in messages
        ]

        assert [row[2] for row in store(conn, provider, texts)] == texts


def blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The parts of a message of any of the formats, a lone string as a text."""
    content = message.get("content", message.get("parts"))
    if isinstance(content, str):
        return [{"text": content}]
    return content or []


def calls(message: dict[str, Any]) -> set[str]:
    """The ids of the calls that wait for a result."""
    found = {b["id"] for b in blocks(message) if b.get("type") == "tool_use"}
    found |= {
        b["functionCall"].get("id") or b["functionCall"]["name"]
        for b in blocks(message)
        if "functionCall" in b
    }
    if message.get("type") == "function_call":
        found.add(message["call_id"])
    return found


def results(message: dict[str, Any]) -> set[str]:
    """The ids of the calls that are answered."""
    found = {
        b["tool_use_id"] for b in blocks(message) if b.get("type") == "tool_result"
    }
    found |= {
        b["functionResponse"].get("id") or b["functionResponse"]["name"]
        for b in blocks(message)
        if "functionResponse" in b
    }
    if message.get("type") == "function_call_output":
        found.add(message["call_id"])
    return found


@pytest.mark.parametrize("source", SOURCES)
def test_every_message_has_its_role_and_text_and_results_join_their_calls(
    conn, shared_data, source
):
    roles = {"developer": "system", "model": "assistant", None: "assistant"}
    for messages in read(shared_data, source):
        rows = store(conn, SOURCES[source][1], [json.dumps(m) for m in messages])
        for message, (role, content, _, group_seq) in zip(messages, rows, strict=True):
            if results(message):
                assert role == "tool"
                made = calls(messages[group_seq - 1])
                for other, row in zip(messages, rows, strict=True):
                    if row[3] == group_seq:
                        made |= calls(other)
                before = [calls(m) for m in messages[: messages.index(message)]]
                if results(message) <= set().union(*before):
                    assert results(message) <= made
                continue
            assert role == roles.get(message.get("role"), message.get("role"))
            texts = [
                block.get("text", block.get("refusal"))
                for block in blocks(message)
                if not block.get("thought")
                and block.get("type") != "reasoning_text"
                and ("text" in block or "refusal" in block)
            ]
            assert content == ("\n".join(texts) if texts else None)
