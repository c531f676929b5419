"""A streamed response, put together from its events.

Providers stream an answer as events of their own kind; `complete_request` takes the
response that they add up to. The SDKs can do that for whole answers. Here it is also
done for one that breaks off, and nothing is added that a provider wouldn't take back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from ._models import Model, plain

Json = dict[str, Any]

# What is sent whole in each chunk of OpenAI's; all other text is continued.
_WHOLE = ("id", "type", "role", "name")


class StreamedResponse:
    """The response that a provider's events add up to.

        answer = StreamedResponse("openai")
        for event in stream:
            answer.add(event)
        turn.complete(answer.response)

    format: as for `prepare_request`.
    response: what there is of it so far, as the provider would have sent it unstreamed;
        before the first event `{}`.
    Errors: KeyError for an unknown format.
    """

    def __init__(self, format: str) -> None:
        self.response: Json = {}
        self._add: Callable[[Json, Json], None] = {
            "openai": _add_openai,
            "openai_responses": _add_openai_responses,
            "anthropic": _add_anthropic,
            "gemini": _add_gemini,
        }[format]

    def add(self, event: Mapping[str, Any] | Model) -> None:
        """Add an event: what the SDK's stream gave, or the JSON after `data:`."""
        # A copy, since parts of it become parts of the response.
        copy = json.loads(json.dumps(event, default=plain))
        self._add(self.response, copy)


def _add_openai(response: Json, chunk: Json) -> None:
    choices = response.setdefault("choices", [])
    for choice in chunk.pop("choices", []):
        place = _place(choices, choice.get("index", 0))
        place.setdefault("finish_reason", None)
        _continue(place.setdefault("message", {}), choice.pop("delta", None) or {})
        place.update({k: v for k, v in choice.items() if v is not None})
    response.update({k: v for k, v in chunk.items() if v is not None})
    response["object"] = "chat.completion"


def _continue(target: Json, delta: Json) -> None:
    """Continue the texts of a message, its calls among them, by their index."""
    for name, value in delta.items():
        if isinstance(value, dict):
            _continue(target.setdefault(name, {}), value)
        elif isinstance(value, list):
            items = target.setdefault(name, [])
            for item in value:
                if isinstance(item, dict) and "index" in item:
                    _continue(_place(items, item.pop("index")), item)
                else:
                    items.append(item)
        elif isinstance(value, str) and name not in _WHOLE:
            target[name] = (target.get(name) or "") + value
        elif value is not None or name not in target:
            target[name] = value


def _add_openai_responses(response: Json, event: Json) -> None:
    kind = event["type"]
    output = response.setdefault("output", [])
    if "response" in event:
        # As long as it goes on, the items that came are more than its own.
        is_final = event["response"].get("status") not in ("in_progress", "queued")
        response.update(event["response"])
        if not is_final:
            response.update(status="incomplete", output=output)
    elif kind == "response.output_item.added":
        _place(output, event["output_index"]).update(event["item"], status="incomplete")
    elif kind == "response.output_item.done":
        _place(output, event["output_index"])
        output[event["output_index"]] = event["item"]
    elif kind == "response.content_part.added":
        content = output[event["output_index"]].setdefault("content", [])
        _place(content, event["content_index"]).update(event["part"])
    elif kind in ("response.output_text.delta", "response.refusal.delta"):
        name = "text" if kind == "response.output_text.delta" else "refusal"
        part = output[event["output_index"]]["content"][event["content_index"]]
        part[name] += event["delta"]


def _add_anthropic(response: Json, event: Json) -> None:
    kind = event["type"]
    content = response.get("content", [])
    if kind == "message_start":
        response.update(event["message"])
    elif kind == "content_block_start":
        _place(content, event["index"]).update(event["content_block"])
    elif kind == "content_block_delta":
        _add_delta(content[event["index"]], event["delta"])
    elif kind == "content_block_stop":
        block = content[event["index"]]
        with suppress(ValueError):  # cut off by max_tokens
            block["input"] = json.loads(block.pop("input_json", ""))
    elif kind == "message_delta":
        response.update(event["delta"])
        usage = event.get("usage") or {}
        response["usage"].update({k: v for k, v in usage.items() if v is not None})


def _add_delta(block: Json, delta: Json) -> None:
    kind = delta.pop("type")
    if kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or []), delta["citation"]]
    elif kind == "input_json_delta":
        block["input_json"] = block.get("input_json", "") + delta["partial_json"]
    else:
        _continue(block, delta)


def _add_gemini(response: Json, chunk: Json) -> None:
    candidates = response.setdefault("candidates", [])
    for candidate in chunk.pop("candidates", None) or []:
        place = _place(candidates, candidate.get("index", 0))
        content = place.setdefault("content", {"parts": [], "role": "model"})
        for part in (candidate.pop("content", None) or {}).get("parts") or []:
            _add_part(content["parts"], part)
        place.update(candidate)
    response.update(chunk)


def _add_part(parts: list[Json], part: Json) -> None:
    last = parts[-1] if parts else {}
    # A part with a signature stays as it is.
    is_text = part.keys() <= {"text", "thought"} and last.keys() == part.keys()
    if is_text and last.get("thought") == part.get("thought"):
        last["text"] += part["text"]
    else:
        parts.append(part)


def _place(items: list[Any], index: int) -> Json:
    """The object with this index, made if there is none yet."""
    while len(items) <= index:
        items.append({})
    place: Json = items[index]
    return place
