"""Recorded streams add up to answers that are stored whole."""

from __future__ import annotations

import gzip
import json
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from pgconvo import Client, StreamedResponse

from .test_provider_messages import read_yaml

Events = list[dict[str, Any]]

# Each source, its format, and how many streams it must have.
SOURCES = {
    "pydantic-ai/anthropic.tar.gz": ("anthropic", 8),
    "pydantic-ai/openai-responses.tar.gz": ("openai_responses", 16),
    "pydantic-ai/openai-chat.tar.gz": ("openai", 3),
    "pydantic-ai/gemini.tar.gz": ("gemini", 16),
    "llm-anthropic": ("anthropic", 4),
}
FINAL = ("response.completed", "response.incomplete")


def recordings(path: Path) -> Iterator[Any]:
    if path.is_dir():
        for file in sorted(path.glob("*.yaml.gz")):
            yield read_yaml(gzip.decompress(file.read_bytes()))
    else:
        with tarfile.open(path) as tar:
            for member in tar:
                # Mistral's chat isn't OpenAI's: its content is a list.
                if member.name.endswith(".yaml") and "mistral" not in member.name:
                    yield read_yaml(tar.extractfile(member).read())


def read_events(exchange: Any) -> Events:
    """The events of a response, none if it wasn't streamed."""
    text = (exchange["response"].get("body") or {}).get("string") or ""
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    lines = [line[5:].strip() for line in text.splitlines() if line[:5] == "data:"]
    return [json.loads(line) for line in lines if line and line != "[DONE]"]


@cache
def read(folder: Path, source: str) -> list[Events]:
    return [
        events
        for recording in recordings(folder / "wire-formats" / source)
        for exchange in recording["interactions"]
        if (events := read_events(exchange))
        # One of the recordings of the chat is of the other protocol.
        and not (source.endswith("chat.tar.gz") and "type" in events[0])
    ]


def add_up(format: str, events: Events) -> dict[str, Any]:
    answer = StreamedResponse(format)
    for event in events:
        answer.add(event)
    return answer.response


@pytest.mark.parametrize("source", SOURCES)
def test_recorded_streams_are_stored_whole(shared_data, connect, source):
    format, count = SOURCES[source]
    streams = read(shared_data, source)
    assert len(streams) == count
    ann = Client(connect("test_app", tenant="acme", user="ann"))
    for events in streams:
        conversation_id = ann.create_conversation()
        ann.append_message(conversation_id, "user", "Hi")
        with ann.turn(conversation_id, format) as turn:
            answer = turn.complete(add_up(format, events))
        assert answer
        assert not any("is_truncated" in message.metadata for message in answer)
        assert all("finish_reason" in message.metadata for message in answer)


def test_without_its_last_event_a_response_has_the_same_text(shared_data):
    def texts(response):
        items = response["output"]
        parts = [part for item in items for part in item.get("content") or []]
        return [part["text"] for part in parts if part["type"] == "output_text"]

    for events in read(shared_data, "pydantic-ai/openai-responses.tar.gz"):
        rest = [event for event in events if event["type"] not in FINAL]
        response = add_up("openai_responses", rest)
        assert response["status"] == "incomplete"
        assert texts(response) == texts(add_up("openai_responses", events))
