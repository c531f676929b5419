"""What Anthropic's messages take, written from their documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

BLOCKS = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "tool_use", "thinking", "redacted_thinking"},
}


def problems(request: Any, may_be_open: bool = False) -> list[str]:
    """Return what a request with this system and messages would be refused for."""
    if not isinstance(request, dict) or request.keys() - {"system", "messages"}:
        return ["not an object of system and messages"]
    if not isinstance(request.get("messages"), list) or not request["messages"]:
        return ["messages is not an array with elements"]
    return [
        *_system_problems(request),
        *_problems(request["messages"], may_be_open),
    ]


def _blocks(message: dict[str, Any]) -> list[Any]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def _system_problems(request: dict[str, Any]) -> Iterator[str]:
    if "system" not in request:
        return
    blocks = _blocks({"content": request["system"]})
    if not blocks:
        yield "system is not valid"
    for block in blocks:
        if block.get("type") != "text" or not block.get("text", "").strip():
            yield "system has a block that is not a text"


def _problems(messages: list[Any], may_be_open: bool) -> Iterator[str]:
    waiting: set[str] = set()
    used: set[str] = set()
    for place, message in enumerate(messages):
        role = message.get("role")
        blocks = _blocks(message)
        expected = "assistant" if place % 2 else "user"
        if role != expected:
            yield f"{place}: {role} where {expected} has its turn"
        if not blocks:
            yield f"{place}: no content"
        answered = []
        for number, block in enumerate(blocks):
            kind = block.get("type")
            if kind not in BLOCKS.get(role, set()):
                yield f"{place}: a block {kind} in a message of {role}"
            yield from (f"{place}: {text}" for text in _block_problems(block))
            if kind == "tool_result":
                if number > len(answered):
                    yield f"{place}: a result after other content"
                answered.append(block.get("tool_use_id"))
        if sorted(answered) != sorted(waiting) and not (
            may_be_open and place >= len(messages) - 1 and waiting.issuperset(answered)
        ):
            yield f"{place}: results {answered} for calls {sorted(waiting)}"
        calls = [block["id"] for block in blocks if block.get("type") == "tool_use"]
        if used.intersection(calls) or len(set(calls)) < len(calls):
            yield f"{place}: ids {calls} were used before"
        waiting = set(calls)
        used |= waiting
    if waiting and not may_be_open:
        yield f"calls {sorted(waiting)} have no result"
    if messages[-1].get("role") == "assistant":
        last = (_blocks(messages[-1]) or [{}])[-1]
        if last.get("type") == "text" and last["text"] != last["text"].rstrip():
            yield "the last message ends in white space"


def _block_problems(block: dict[str, Any]) -> Iterator[str]:
    kind = block.get("type")
    if kind == "text" and not block.get("text", "").strip():
        yield "a text is empty"
    elif kind == "tool_use":
        if not re.fullmatch(r"[a-zA-Z0-9_-]+", block.get("id", "")):
            yield f"id {block.get('id')}"
        if not block.get("name") or not isinstance(block.get("input"), dict):
            yield "a call without name or input"
    elif kind == "tool_result":
        for part in _blocks(block):
            if part.get("type") not in ("text", "image", "document"):
                yield f"a part {part.get('type')} in a result"
            yield from _block_problems(part)
    elif kind == "thinking" and not block.get("signature"):
        yield "thinking without a signature"
    elif kind in ("image", "document"):
        source = block.get("source", {})
        if source.get("type") == "base64":
            allowed = {
                "image": r"image/(png|jpeg|gif|webp)",
                "document": "application/pdf",
            }[kind]
            if not source.get("data") or not re.fullmatch(
                allowed, source.get("media_type", "")
            ):
                yield f"{kind} of type {source.get('media_type')}"
        elif source.get("type") != "url" or not re.match(
            "https?://", source.get("url", "")
        ):
            yield f"{kind} without data"
