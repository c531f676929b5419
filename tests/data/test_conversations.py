"""Real conversations go in and come out unchanged, and windows of them are right."""

from __future__ import annotations

import gzip
import json
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.string import TextLoader

Conversation = list[dict[str, Any]]


def read_tau_bench(folder: Path) -> Iterator[Conversation]:
    """200 conversations with tool calls."""
    path = folder / "wire-formats/tau-bench/gpt-4o-airline.json.gz"
    for task in json.loads(gzip.decompress(path.read_bytes())):
        yield task["traj"]


def is_valid(answer: dict[str, Any]) -> bool:
    """Whether each call has an id; one recorded provider leaves that to the client."""
    return all(call["id"] for call in answer.get("tool_calls") or [])


def read_pydantic_ai(folder: Path) -> Iterator[Conversation]:
    """What was sent to providers of the OpenAI chat format, and what they answered."""
    yaml = pytest.importorskip("yaml", reason="the recordings are YAML")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with tarfile.open(folder / "wire-formats/pydantic-ai/openai-chat.tar.gz") as tar:
        for member in tar:
            if not member.name.endswith(".yaml"):
                continue
            for exchange in yaml.load(tar.extractfile(member), loader)["interactions"]:
                sent = exchange["request"].get("parsed_body") or {}
                got = exchange["response"].get("parsed_body") or {}
                if "messages" in sent:
                    answers = [choice["message"] for choice in got.get("choices", [])]
                    yield sent["messages"] + [a for a in answers[:1] if is_valid(a)]


def read_beam(folder: Path) -> Iterator[Conversation]:
    """Long chats of plain text, 200 to 400 messages each."""
    for path in sorted((folder / "recall/beam-100k").glob("*.chat.json.gz")):
        sessions = json.loads(gzip.decompress(path.read_bytes()))
        yield [
            message
            for session in sessions
            for turn in session["turns"]
            for message in turn
        ]


def read_exports(folder: Path) -> Iterator[Conversation]:
    """Exports of chat programs that keep this format."""
    for chat in json.loads(
        (folder / "trees/librechat/chatbotui-export.json").read_bytes()
    )["history"]:
        yield chat["messages"]
    for name in ("webui-json", "expected_chatgpt_output", "expected_claude_output"):
        path = folder / f"trees/openwebui-importer/{name}.json"
        export = json.loads(path.read_bytes())
        yield export["messages"]


# Each source, and how many conversations it must have, so that none is lost unseen.
SOURCES: dict[str, tuple[Callable[[Path], Iterator[Conversation]], int]] = {
    "tau-bench": (read_tau_bench, 200),
    "pydantic-ai": (read_pydantic_ai, 73),
    "beam": (read_beam, 20),
    "exports": (read_exports, 5),
}


@cache
def read(folder: Path, source: str) -> list[Conversation]:
    return list(SOURCES[source][0](folder))


@pytest.fixture
def conn(connect: Callable[..., psycopg.Connection]) -> psycopg.Connection:
    """A connection of one user that gives payloads as their exact text."""
    conn = connect("test_app", "acme", "ann")
    conn.adapters.register_loader("json", TextLoader)
    return conn


def store(conn: psycopg.Connection, texts: list[str]) -> UUID:
    """Store messages as they are written in one append, and return the id."""
    (conversation_id,) = conn.execute("select convo.create_conversation()").fetchone()
    conn.execute(
        "select count(*) from convo.append_messages(%s, %s)",
        [conversation_id, "[" + " ,\n".join(texts) + "]"],
    )
    return conversation_id


def text_of(message: dict[str, Any]) -> str | None:
    """The text of a message by the provider's documentation."""
    content = message.get("content")
    if isinstance(content, list):
        texts = [part["text"] for part in content if part["type"] == "text"]
        return "\n".join(texts) if texts else None
    return content if content is not None else message.get("refusal")


def group(messages: Conversation) -> list[int]:
    """The group of each message: a result joins the nearest open call before it."""
    groups: list[int] = []
    waiting: list[tuple[str, int]] = []
    for seq, message in enumerate(messages, 1):
        found = seq
        for place in range(len(waiting) - 1, -1, -1):
            if waiting[place][0] == message.get("tool_call_id"):
                found = waiting.pop(place)[1]
                break
        waiting += [(call["id"], seq) for call in message.get("tool_calls") or []]
        groups.append(found)
    return groups


def reference_window(rows: list[tuple[int, int, int]], budget: int) -> list[int]:
    """The seqs of the newest groups that fit, from rows of (seq, group_seq, tokens)."""
    kept: list[int] = []
    for group_seq in sorted({row[1] for row in rows}, reverse=True):
        members = [row for row in rows if row[1] == group_seq]
        budget -= sum(row[2] for row in members)
        if budget < 0:
            break
        kept = [row[0] for row in members] + kept
    return kept


def unpaired(messages: Conversation) -> Counter[str]:
    """Ids by how many calls there are more than results; negative: results more."""
    count: Counter[str] = Counter()
    for message in messages:
        count.update(call["id"] for call in message.get("tool_calls") or [])
        if message["role"] == "tool":
            count[message["tool_call_id"]] -= 1
    return Counter({call_id: n for call_id, n in count.items() if n})


@pytest.mark.parametrize("source", SOURCES)
def test_every_conversation_of_the_source_is_read(shared_data, source):
    conversations = read(shared_data, source)

    assert len(conversations) == SOURCES[source][1]
    assert all(conversations)


@pytest.mark.parametrize("source", SOURCES)
def test_every_message_comes_back_byte_for_byte_and_in_order(conn, shared_data, source):
    for number, conversation in enumerate(read(shared_data, source)):
        # Both ways to write what isn't ASCII; and spaces as JSON allows them.
        texts = [
            json.dumps(message, ensure_ascii=number % 2 == 0, indent=number % 3 or None)
            for message in conversation
        ]
        conversation_id = store(conn, texts)
        rows = conn.execute(
            "select seq, payload from convo.last_messages(%s, 10000)", [conversation_id]
        ).fetchall()

        assert rows == list(enumerate(texts, 1))


@pytest.mark.parametrize("source", SOURCES)
def test_every_message_has_its_role_text_and_group(conn, shared_data, source):
    roles = {"developer": "system", "function": "tool"}
    for conversation in read(shared_data, source):
        conversation_id = store(conn, [json.dumps(m) for m in conversation])
        rows = conn.execute(
            "select role, content, group_seq from convo.last_messages(%s, 10000)",
            [conversation_id],
        ).fetchall()

        assert [row[0] for row in rows] == [
            roles.get(m["role"], m["role"]) for m in conversation
        ]
        assert [row[1] for row in rows] == [
            text and text.replace("\0", "\ufffd") for text in map(text_of, conversation)
        ]
        assert [row[2] for row in rows] == group(conversation)


@pytest.mark.parametrize("source", SOURCES)
def test_the_parts_of_a_message_say_what_its_reader_says(conn, shared_data, source):
    for conversation in read(shared_data, source):
        different = conn.execute(
            """
            select r.payload
            from json_array_elements(%s) as m (payload)
            cross join convo._read_openai(m.payload, 0) as r
            cross join convo._parsed_message(
                r.role, convo._openai_parts(convo._readable(m.payload)), m.payload
            ) as p
            where r::text <> p::text
            """,
            [json.dumps(conversation)],
        ).fetchall()

        assert different == []


def test_messages_that_come_one_by_one_get_the_same_groups(conn, shared_data):
    for conversation in read(shared_data, "tau-bench")[::10]:
        (conversation_id,) = conn.execute(
            "select convo.create_conversation()"
        ).fetchone()
        with conn.pipeline():
            for message in conversation:
                conn.execute(
                    "select count(*) from convo.append_messages(%s, %s)",
                    [conversation_id, json.dumps(message)],
                )
        rows = conn.execute(
            "select group_seq from convo.last_messages(%s, 10000)", [conversation_id]
        ).fetchall()

        assert [row[0] for row in rows] == group(conversation)


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_windows_equal_the_reference_and_hold_no_call_without_its_result(
    conn, shared_data, data
):
    source = data.draw(st.sampled_from(list(SOURCES)))
    conversation = data.draw(st.sampled_from(read(shared_data, source)))
    conversation_id = store(conn, [json.dumps(message) for message in conversation])
    rows = conn.execute(
        "select seq, group_seq, tokens, role from convo.last_messages(%s, 10000)",
        [conversation_id],
    ).fetchall()
    body = [row[:3] for row in rows if row[3] != "system"]
    total = sum(row[2] for row in body)

    limit = data.draw(st.integers(0, len(rows) + 1), label="N")
    last = conn.execute(
        "select seq from convo.last_messages(%s, %s)", [conversation_id, limit]
    ).fetchall()
    assert [seq for (seq,) in last] == [row[0] for row in rows][
        max(len(rows) - limit, 0) :
    ]

    budgets = data.draw(st.lists(st.integers(0, total + 10), min_size=5, max_size=10))
    for budget in budgets:
        window = conn.execute(
            "select seq from convo.token_window(%s, %s)", [conversation_id, budget]
        ).fetchall()
        seqs = [seq for (seq,) in window]
        assert seqs == reference_window(body, budget)
        inside = [conversation[seq - 1] for seq in seqs]
        # What is unpaired in the whole conversation was so before it came here.
        assert unpaired(inside).keys() <= unpaired(conversation).keys()


def test_one_system_prompt_of_200_conversations_is_stored_once(conn, shared_data, db):
    prompts = {c[0]["content"] for c in read(shared_data, "tau-bench")}
    assert len(prompts) == 1
    for _ in range(200):
        conn.execute(
            "select convo.create_conversation(system_prompt => %s)", [*prompts]
        )

    assert db.execute("select content from convo.prompt").fetchall() == [(*prompts,)]
