"""What Gemini's generateContent takes, written from its documentation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

DATA = ("text", "inlineData", "fileData", "functionCall", "functionResponse")


def problems(request: Any, may_be_open: bool = False) -> list[str]:
    """Return what a request with these contents would be refused for."""
    if not isinstance(request, dict) or request.keys() - {
        "systemInstruction",
        "contents",
    }:
        return ["not an object of systemInstruction and contents"]
    if not isinstance(request.get("contents"), list) or not request["contents"]:
        return ["contents is not an array with elements"]
    found = []
    if "systemInstruction" in request:
        parts = request["systemInstruction"].get("parts")
        if not parts or not all(part.get("text", "").strip() for part in parts):
            found.append("systemInstruction is not text")
    return found + list(_problems(request["contents"], may_be_open))


def _problems(contents: list[Any], may_be_open: bool) -> Iterator[str]:
    waiting: list[tuple[str, str]] = []
    for place, content in enumerate(contents):
        expected = "model" if place % 2 else "user"
        if content.get("role") != expected:
            yield f"{place}: {content.get('role')} where {expected} has its turn"
        parts = content.get("parts")
        if not isinstance(parts, list) or not parts:
            yield f"{place}: no parts"
            continue
        calls = []
        answered = []
        for part in parts:
            yield from (f"{place}: {text}" for text in _part_problems(part))
            if call := part.get("functionCall"):
                if content.get("role") != "model":
                    yield f"{place}: a call of {content.get('role')}"
                calls.append((call.get("name", ""), call.get("id", "")))
            if response := part.get("functionResponse"):
                if content.get("role") != "user":
                    yield f"{place}: a result of {content.get('role')}"
                answered.append((response.get("name", ""), response.get("id", "")))
        if sorted(answered) != sorted(waiting) and not (
            may_be_open and place >= len(contents) - 1
        ):
            yield f"{place}: results {answered} for calls {waiting}"
        waiting = calls
    if waiting and not may_be_open:
        yield f"calls {waiting} have no result"


def _part_problems(part: dict[str, Any]) -> Iterator[str]:
    kinds = [kind for kind in DATA if kind in part]
    if len(kinds) != 1:
        yield f"a part of {kinds}"
        return
    value = part[kinds[0]]
    if kinds == ["text"]:
        if not value and not part.get("thoughtSignature"):
            yield "a text is empty"
    elif kinds == ["inlineData"]:
        if not value.get("mimeType") or not value.get("data"):
            yield "inlineData without type or data"
    elif kinds == ["fileData"]:
        if not value.get("fileUri"):
            yield "fileData without a URI"
    elif not value.get("name"):
        yield f"{kinds[0]} without a name"
    elif kinds == ["functionCall"]:
        if not isinstance(value.get("args", {}), dict):
            yield "args is not an object"
    elif not isinstance(value.get("response"), dict):
        yield "response is not an object"
