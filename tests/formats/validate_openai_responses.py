"""What OpenAI's responses take as input, written from their documentation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

INPUT_PARTS = {"input_text", "input_image", "input_file"}
OUTPUT_PARTS = {"output_text", "refusal"}
CALLS = {
    "function_call": ("function_call_output", "arguments"),
    "custom_tool_call": ("custom_tool_call_output", "input"),
}
OUTPUTS = {output for output, _ in CALLS.values()}


def problems(items: Any, may_be_open: bool = False) -> list[str]:
    """Return what a request with these input items would be refused for."""
    if not isinstance(items, list) or not items:
        return ["input is not an array with elements"]
    return list(_problems(items, may_be_open))


def _problems(items: list[Any], may_be_open: bool) -> Iterator[str]:
    waiting: list[tuple[str, str]] = []
    for place, item in enumerate(items):
        kind = item.get("type", "message")
        if kind == "message":
            yield from (f"{place}: {text}" for text in _message_problems(item))
        elif kind in CALLS:
            output, text = CALLS[kind]
            if not isinstance(item.get("call_id"), str) or not (
                0 < len(item["call_id"]) <= 64
            ):
                yield f"{place}: call_id {item.get('call_id')}"
            if not item.get("name") or not isinstance(item.get(text), str):
                yield f"{place}: a call without name or {text}"
            waiting.append((output, item.get("call_id")))
        elif kind in OUTPUTS:
            if (kind, item.get("call_id")) not in waiting:
                yield f"{place}: an output without its call"
            else:
                waiting.remove((kind, item["call_id"]))
            output = item.get("output")
            if isinstance(output, list):
                yield from (
                    f"{place}: a part {part.get('type')} in an output"
                    for part in output
                    if part.get("type") not in INPUT_PARTS
                )
            elif not isinstance(output, str):
                yield f"{place}: output is not valid"
        elif kind == "reasoning":
            after = items[place + 1] if place + 1 < len(items) else {}
            if after.get("type", "message") in OUTPUTS or (
                after.get("type", "message") == "message"
                and after.get("role") != "assistant"
            ):
                yield f"{place}: reasoning without the item that follows it"
        else:
            yield f"{place}: an item of type {kind}"
    if waiting and not may_be_open:
        yield f"calls {waiting} have no output"


def _message_problems(item: dict[str, Any]) -> Iterator[str]:
    role = item.get("role")
    content = item.get("content")
    if role not in ("system", "developer", "user", "assistant"):
        yield f"role {role}"
    if isinstance(content, str):
        if not content:
            yield "content is empty"
        return
    if not isinstance(content, list) or not content:
        yield "content is not valid"
        return
    for part in content:
        kind = part.get("type")
        if kind not in (OUTPUT_PARTS if role == "assistant" else INPUT_PARTS):
            yield f"a part {kind} in a message of {role}"
        elif kind.endswith("_text") and not isinstance(part.get("text"), str):
            yield "a text part without text"
        elif kind == "input_image" and not (
            part.get("image_url") or part.get("file_id")
        ):
            yield "an image without a URL"
        elif kind == "input_file" and not (
            part.get("file_id")
            or part.get("file_url")
            or (part.get("file_data") and part.get("filename"))
        ):
            yield "a file without data"
