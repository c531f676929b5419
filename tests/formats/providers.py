"""Messages in each provider's shape, and what a rendered context says."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

FORMATS = ("openai", "openai_responses", "anthropic", "gemini")
IMAGE = "iVBORw0KGgo="
FILLERS = ("[continued]", "[unsupported content]")

Call = tuple[str, str, str]  # id, name, arguments
Result = tuple[str, str, str, bool]  # id, name, text, whether an error


def user(format: str, text: str, has_image: bool = False) -> dict[str, Any]:
    """Return a user's message."""
    url = f"data:image/png;base64,{IMAGE}"
    if format == "gemini":
        image = [{"inlineData": {"mimeType": "image/png", "data": IMAGE}}]
        return {"role": "user", "parts": [{"text": text}] + image * has_image}
    if not has_image:
        return {"role": "user", "content": text}
    return {
        "role": "user",
        "content": {
            "openai": [
                {"type": "text", "text": text},
                {"type": "image_url", "image_url": {"url": url}},
            ],
            "openai_responses": [
                {"type": "input_text", "text": text},
                {"type": "input_image", "image_url": url, "detail": "auto"},
            ],
            "anthropic": [
                {"type": "text", "text": text},
                {
                    "type": "image",
                    "source": {
                        "type": "base64",
                        "media_type": "image/png",
                        "data": IMAGE,
                    },
                },
            ],
        }[format],
    }


def assistant(format: str, text: str, calls: list[Call]) -> list[dict[str, Any]]:
    """Return the assistant's messages with a text, calls or both."""
    if format == "openai":
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            message["tool_calls"] = [
                {
                    "id": id,
                    "type": "function",
                    "function": {"name": name, "arguments": arguments},
                }
                for id, name, arguments in calls
            ]
        return [message]
    if format == "openai_responses":
        return [{"role": "assistant", "content": text}] * bool(text) + [
            {
                "type": "function_call",
                "call_id": id,
                "name": name,
                "arguments": arguments,
            }
            for id, name, arguments in calls
        ]
    if format == "anthropic":
        return [
            {
                "role": "assistant",
                "content": [{"type": "text", "text": text}] * bool(text)
                + [
                    {
                        "type": "tool_use",
                        "id": id,
                        "name": name,
                        "input": as_object(arguments),
                    }
                    for id, name, arguments in calls
                ],
            }
        ]
    return [
        {
            "role": "model",
            "parts": [{"text": text}] * bool(text)
            + [
                {"functionCall": {"id": id, "name": name, "args": as_object(arguments)}}
                for id, name, arguments in calls
            ],
        }
    ]


def results(format: str, found: list[Result], text: str = "") -> list[dict[str, Any]]:
    """Return the messages with results; a text after them where one can hold both."""
    if format == "openai":
        return [
            {"role": "tool", "tool_call_id": id, "content": content}
            for id, _, content, _ in found
        ]
    if format == "openai_responses":
        return [
            {"type": "function_call_output", "call_id": id, "output": content}
            for id, _, content, _ in found
        ]
    if format == "anthropic":
        blocks: list[dict[str, Any]] = [
            {
                "type": "tool_result",
                "tool_use_id": id,
                "content": content,
                "is_error": is_error,
            }
            for id, _, content, is_error in found
        ]
        return [
            {
                "role": "user",
                "content": blocks + [{"type": "text", "text": text}] * bool(text),
            }
        ]
    parts: list[dict[str, Any]] = [
        {
            "functionResponse": {
                "id": id,
                "name": name,
                "response": {"error" if is_error else "output": content},
            }
        }
        for id, name, content, is_error in found
    ]
    return [{"role": "user", "parts": parts + [{"text": text}] * bool(text)}]


def as_object(arguments: str) -> dict[str, Any]:
    """Return the arguments of a call as an object."""
    try:
        value = json.loads(arguments)
    except ValueError:
        value = None
    if isinstance(value, dict):
        return value
    return {"input": arguments} if arguments.strip() else {}


class Said(NamedTuple):
    """What a request says, whatever its format."""

    system: list[str]
    texts: list[tuple[str, str]]  # role and text, in order
    images: int
    calls: list[tuple[str, dict[str, Any], str | None]]  # name, arguments, result


def said(format: str, request: Any) -> Said:
    """Read a rendered context. Texts that are blank or fillers don't count."""
    found = Said([], [], 0, [])
    ids: list[str] = []
    images = 0

    def call(id: str, name: str, arguments: dict[str, Any]) -> None:
        ids.append(id)
        found.calls.append((name, dict(sorted(arguments.items())), None))

    def result(id: str, content: Any) -> None:
        place = next(
            n
            for n, other in enumerate(ids)
            if other == id and found.calls[n][2] is None
        )
        if isinstance(content, list):
            content = "\n".join(part["text"] for part in content)
        found.calls[place] = (*found.calls[place][:2], content or "")

    def text(role: str, content: str) -> None:
        if content.strip() and content not in FILLERS:
            if role in ("system", "developer"):
                found.system.append(content)
            else:
                found.texts.append((role.replace("model", "assistant"), content))

    if format == "anthropic":
        messages = [{"role": "system", "content": request.get("system", [])}]
        messages += request["messages"]
    elif format == "gemini":
        messages = [{"role": "system", **request.get("systemInstruction", {})}]
        messages += request["contents"]
    else:
        messages = request
    for message in messages:
        kind = message.get("type", "message")
        if kind == "function_call":
            call(message["call_id"], message["name"], as_object(message["arguments"]))
        elif kind == "function_call_output":
            result(message["call_id"], message["output"])
        elif kind == "reasoning":
            continue
        elif message["role"] == "tool":
            result(message["tool_call_id"], message["content"])
        else:
            content = message.get("content", message.get("parts")) or []
            if isinstance(content, str):
                content = [{"type": "text", "text": content}]
            for part in content:
                if "text" in part:
                    text(message["role"], part["text"])
                elif part.get("type") == "tool_use":
                    call(part["id"], part["name"], part["input"])
                elif part.get("type") == "tool_result":
                    result(part["tool_use_id"], part.get("content"))
                elif function := part.get("functionCall"):
                    id = function.get("id", function["name"])
                    call(id, function["name"], function["args"])
                elif response := part.get("functionResponse"):
                    content = next(iter(response["response"].values()), "")
                    result(response.get("id", response["name"]), content)
                else:
                    images += 1
            for function in message.get("tool_calls") or []:
                target = function["function"]
                call(function["id"], target["name"], as_object(target["arguments"]))
    return found._replace(images=images)
