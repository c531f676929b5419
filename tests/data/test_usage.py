"""The bill of recorded calls is the one that is worked out by hand."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from pgconvo import Client

from .test_streams import recordings

Usage = dict[str, Any]

PRICES = [Decimal(price) for price in ("3", "0.3", "3.75", "6", "15", "15.5")]
# What tells a response with an answer from others, and where its usage is.
MEMBERS = {
    "choices": ("openai", "usage"),
    "output": ("openai_responses", "usage"),
    "content": ("anthropic", "usage"),
    "candidates": ("gemini", "usageMetadata"),
}
# How many answers with a usage each source must have.
SOURCES = {
    "pydantic-ai/anthropic.tar.gz": 149,
    "pydantic-ai/openai-responses.tar.gz": 112,
    "pydantic-ai/openai-chat.tar.gz": 66,
    "pydantic-ai/gemini.tar.gz": 116,
}


def format_of(usage: Usage) -> str:
    """Some were recorded through a client of another provider."""
    if "prompt_tokens" in usage:
        return "openai"
    if "promptTokenCount" in usage or "totalTokenCount" in usage:
        return "gemini"
    return "openai_responses" if "input_tokens_details" in usage else "anthropic"


def by_hand(usage: Usage) -> tuple[int, ...]:
    """The tokens of a recorded usage, as its provider documents them."""

    def count(*path: str) -> int:
        value: Any = usage
        for name in path:
            value = (value or {}).get(name)
        return value or 0

    if format_of(usage) == "anthropic":
        hour = count("cache_creation", "ephemeral_1h_input_tokens")
        thinking = count("output_tokens_details", "thinking_tokens")
        return (
            count("input_tokens"),
            count("cache_read_input_tokens"),
            count("cache_creation_input_tokens") - hour,
            hour,
            count("output_tokens") - thinking,
            thinking,
        )
    if format_of(usage) == "gemini":
        cached = count("cachedContentTokenCount")
        prompt = count("promptTokenCount") + count("toolUsePromptTokenCount")
        output = count("candidatesTokenCount")
        return (prompt - cached, cached, 0, 0, output, count("thoughtsTokenCount"))
    is_chat = format_of(usage) == "openai"
    into, out = ("prompt", "completion") if is_chat else ("input", "output")
    cached = count(f"{into}_tokens_details", "cached_tokens")
    written = count(f"{into}_tokens_details", "cache_write_tokens")
    reasoning = count(f"{out}_tokens_details", "reasoning_tokens")
    prompt, output = count(f"{into}_tokens"), count(f"{out}_tokens")
    if apart := count("total_tokens") - prompt - output:
        # Gemini's models behind OpenAI's API.
        assert reasoning == 0
        reasoning, output = apart, output + apart
    return (prompt - cached - written, cached, written, 0, output - reasoning,
            reasoning)  # fmt: skip


def bill(usage: Usage) -> Decimal:
    """Tokens times the price of a million of them."""
    return sum(
        (
            tokens * price / 1_000_000
            for tokens, price in zip(by_hand(usage), PRICES, strict=True)
        ),
        Decimal(0),
    )


@pytest.fixture
def ann(db: psycopg.Connection, connect: Any) -> Client:
    """A user; what she asks is m-1, which has a price."""
    with db.transaction():
        db.execute("set local role convo_owner")
        db.execute(
            "insert into convo.model_price values"
            " ('m-1', '2020-01-01', %s, %s, %s, %s, %s, %s)",
            PRICES,
        )
    return Client(connect("test_app", tenant="acme", user="ann"))


@pytest.fixture
def recorded(connect: Any) -> Callable[[], Any]:
    """How many calls the tenant made, what they cost, and how many have no cost."""
    reader = connect("test_reader", tenant="acme")
    return lambda: reader.execute(
        "select calls, cost, unpriced_calls from convo.usage_by_tenant"
    ).fetchone()


def prepare(ann: Client, format: str) -> UUID:
    made = ann.create_conversation()
    ann.append_message(made, "user", "Hi")
    return ann.prepare_request(made, format, "m-1").request_id


def advice(usages: list[Usage]) -> int:
    """How many calls of other models there were within the calls."""
    inner = [i for usage in usages for i in usage.get("iterations") or []]
    return sum(i["type"] != "message" for i in inner)


def test_the_bill_of_recorded_usages(ann, recorded, shared_data):
    path = shared_data / "multilingual/provider_usage_observations.jsonl.gz"
    with gzip.open(path, "rt") as lines:
        usages = [json.loads(line)["usage"] for line in lines]
    assert len(usages) == 459 and advice(usages) == 3
    requests = {format: prepare(ann, format) for format, _ in MEMBERS.values()}
    for usage in usages:
        ann.fail_request(requests[format_of(usage)], "an error", usage)
    total = sum(map(bill, usages))
    assert recorded() == (len(usages) + advice(usages), total, advice(usages))


def test_each_token_that_a_provider_counts_is_in_the_bill(shared_data):
    path = shared_data / "multilingual/provider_usage_observations.jsonl.gz"
    with gzip.open(path, "rt") as lines:
        usages = [json.loads(line)["usage"] for line in lines]
    totals = [
        (sum(by_hand(usage)), usage.get("total_tokens", usage.get("totalTokenCount")))
        for usage in usages
    ]
    assert sum(total is not None for _, total in totals) > 300
    # One of a stream that was cut off doesn't say what its total is made of.
    assert [pair for pair in totals if pair[1] not in (None, pair[0])] == [(0, 3512)]


def read(folder: Path, source: str) -> Iterator[tuple[str, dict[str, Any], Usage]]:
    """The answers of a recording that weren't streamed, with format and usage."""
    for recording in recordings(folder / "wire-formats" / source):
        for exchange in recording["interactions"]:
            response = exchange["response"].get("parsed_body") or {}
            # Neither is an answer that is stored: one has a call without an id.
            if response.get("object") == "response.compaction" or any(
                call["id"] == ""
                for choice in response.get("choices", ())
                for call in choice["message"].get("tool_calls") or ()
            ):
                continue
            for member in MEMBERS.keys() & response.keys():
                format, usage = MEMBERS[member]
                if response.get(usage):
                    yield format, response, response[usage]


@pytest.mark.parametrize("source", SOURCES)
def test_the_bill_of_recorded_responses(ann, recorded, shared_data, source):
    usages = []
    for format, response, usage in read(shared_data, source):
        # Then it is of the model that was asked for, which has a price.
        response |= {"model": None, "modelVersion": None}
        ann.complete_request(prepare(ann, format), response)
        usages.append(usage)
    assert len(usages) == SOURCES[source]
    total = sum(map(bill, usages))
    assert recorded() == (len(usages) + advice(usages), total, advice(usages))
