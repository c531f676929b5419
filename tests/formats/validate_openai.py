"""What OpenAI's chat completions take, written from their documentation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

PARTS = {
    "system": {"text"},
    "developer": {"text"},
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
}


def problems(messages: Any, may_be_open: bool = False) -> list[str]:
    """Return what a request with these messages would be refused for."""
    if not isinstance(messages, list) or not messages:
        return ["messages is not an array with elements"]
    return list(_problems(messages, may_be_open))


def _problems(messages: list[Any], may_be_open: bool) -> Iterator[str]:
    waiting: list[str] = []
    has_left_system = False
    for place, message in enumerate(messages):
        role = message.get("role")
        if role == "function":
            before = messages[place - 1] if place else {}
            if before.get("function_call", {}).get("name") != message.get("name"):
                yield f"{place}: a function result without its call"
            continue
        if role not in PARTS:
            yield f"{place}: role {role}"
            continue
        if role in ("system", "developer"):
            if has_left_system:
                yield f"{place}: a system message after others"
        else:
            has_left_system = True
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                yield f"{place}: a result without a call that waits for it"
            else:
                waiting.remove(message["tool_call_id"])
        elif waiting:
            yield f"{place}: calls {waiting} have no result"
            waiting = []
        yield from (f"{place}: {text}" for text in _content_problems(message, role))
        if "tool_calls" in message:
            if role != "assistant":
                yield f"{place}: calls of {role}"
            yield from (f"{place}: {text}" for text in _call_problems(message))
            waiting = [call.get("id") for call in message["tool_calls"] or []]
    if waiting and not may_be_open:
        yield f"calls {waiting} have no result"


def _content_problems(message: dict[str, Any], role: str) -> Iterator[str]:
    content = message.get("content")
    if content is None:
        if role != "assistant":
            yield "content is missing"
        elif not (
            message.get("tool_calls")
            or message.get("function_call")
            or message.get("refusal")
            or message.get("audio")
        ):
            yield "neither content nor calls"
    elif isinstance(content, str):
        if not content and role != "tool" and not message.get("tool_calls"):
            yield "content is empty"
    elif not isinstance(content, list) or not content:
        yield "content is not valid"
    else:
        for part in content:
            if part.get("type") not in PARTS[role]:
                yield f"a part {part.get('type')} in a message of {role}"
            elif part["type"] == "text" and not isinstance(part.get("text"), str):
                yield "a text part without text"
            elif part["type"] == "image_url" and not part["image_url"].get(
                "url", ""
            ).startswith(("http://", "https://", "data:image/")):
                yield "an image without a URL"
            elif part["type"] == "file" and not (
                part["file"].get("file_id")
                or (
                    part["file"].get("filename")
                    and part["file"].get("file_data", "").startswith("data:")
                )
            ):
                yield "a file without data"
            elif part["type"] == "input_audio" and (
                part["input_audio"].get("format") not in ("wav", "mp3")
                or not part["input_audio"].get("data")
            ):
                yield "audio in another format"


def _call_problems(message: dict[str, Any]) -> Iterator[str]:
    calls = message["tool_calls"]
    if not isinstance(calls, list) or not calls:
        yield "tool_calls is not an array with elements"
        return
    ids = [call.get("id") for call in calls]
    for call in calls:
        if not isinstance(call.get("id"), str) or not 0 < len(call["id"]) <= 64:
            yield f"a call with the id {call.get('id')}"
        target = call.get(call.get("type"))
        text = "arguments" if call.get("type") == "function" else "input"
        if call.get("type") not in ("function", "custom") or not (
            target and target.get("name") and isinstance(target.get(text), str)
        ):
            yield f"a call that is not valid: {call}"
    if len(set(ids)) < len(ids):
        yield "two calls with one id"
