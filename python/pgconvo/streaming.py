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
# What is null in a message of OpenAI's; all else is left out then.
_NULLABLE = ("content", "refusal")
# What Anthropic says of an answer that was cut off.
_CUT_OFF = ("max_tokens", "model_context_window_exceeded", "refusal")


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
    for choice in chunk.pop("choices", None) or []:
        place = _place(choices, choice.get("index") or 0)
        place.setdefault("finish_reason", None)
        message = place.setdefault("message", {"role": "assistant"})
        _continue(message, choice.pop("delta", None) or {})
        place.update({k: v for k, v in choice.items() if v is not None})
    if chunk.pop("error", None):
        for choice in choices:
            choice["finish_reason"] = None
    response.update({k: v for k, v in chunk.items() if v is not None})
    response["object"] = "chat.completion"


def _continue(target: Json, delta: Json) -> None:
    """Continue the texts of a message, its calls among them, by their index."""
    for name, value in delta.items():
        if isinstance(value, dict):
            _continue(target.setdefault(name, {}), value)
        elif isinstance(value, list):
            target[name] = items = target.get(name) or []
            for item in value:
                if isinstance(item, dict) and item.get("index") is not None:
                    _continue(_place(items, item.pop("index")), item)
                else:
                    items.append(item)
        elif isinstance(value, str) and name not in _WHOLE:
            target[name] = (target.get(name) or "") + value
        elif value is None and name in _NULLABLE:
            target.setdefault(name, None)
        elif value not in (None, ""):
            target[name] = value


def _add_openai_responses(response: Json, event: Json) -> None:
    kind = event.get("type")
    output = response.get("output") or []
    if event.get("response"):
        response.update(event["response"])
        # As long as it goes on, and where it fails, the items that came are more.
        response["output"] = response.get("output") or output
        status = response.get("status")
        is_kept = status in ("failed", "cancelled") and any(map(_is_answer, output))
        if is_kept or status in ("in_progress", "queued"):
            # No output says that there is no answer, other than an empty one.
            response.update(status="incomplete", output=output or None)
            response.pop("error", None)
        return
    if kind == "response.output_item.added":
        _place(output, event["output_index"]).update(event["item"], status="incomplete")
    elif kind == "response.output_item.done":
        _place(output, event["output_index"])
        output[event["output_index"]] = event["item"]
    elif kind == "response.content_part.added":
        _part(output, event).update(event["part"])
    elif kind in ("response.output_text.delta", "response.refusal.delta"):
        name = "text" if kind == "response.output_text.delta" else "refusal"
        part = _part(output, event)
        part.setdefault("type", "output_text" if name == "text" else "refusal")
        part[name] = part.get(name, "") + event["delta"]
    if output:
        response["output"] = output


def _part(output: list[Any], event: Json) -> Json:
    """The part of a message that the event is about, made if there is none yet."""
    item = _place(output, event["output_index"])
    if not item:
        item.update(type="message", role="assistant", status="incomplete")
    return _place(item.setdefault("content", []), event["content_index"])


def _is_answer(item: Json) -> bool:
    """Whether an item can be kept of a response that failed."""
    if item.get("type") == "message":
        parts = item.get("content") or []
        return any(part.get("text") or part.get("refusal") for part in parts)
    return item.get("type") != "reasoning" and item.get("status") == "completed"


def _add_anthropic(response: Json, event: Json) -> None:
    kind = event.get("type")
    content = response.get("content") or []
    # The input of a call that isn't whole, or isn't JSON: there the answer is cut off.
    is_open = bool(content) and "input_json" in content[-1]
    index = event.get("index", 0)
    if kind == "message_start":
        response.update(event["message"])
    elif kind == "content_block_start" and not is_open:
        _place(content, index).update(event["content_block"])
        response["content"] = content
    elif kind == "content_block_delta" and index < len(content):
        _add_delta(content[index], event["delta"])
    elif kind == "content_block_stop" and is_open:
        with suppress(ValueError, RecursionError):
            content[-1]["input"] = json.loads(content[-1]["input_json"])
            del content[-1]["input_json"]
    elif kind == "message_delta":
        response.update(event["delta"])
        if is_open and response.get("stop_reason") not in _CUT_OFF:
            response["stop_reason"] = None
        usage = {k: v for k, v in (event.get("usage") or {}).items() if v is not None}
        response["usage"] = {**(response.get("usage") or {}), **usage}


def _add_delta(block: Json, delta: Json) -> None:
    kind = delta.pop("type")
    if kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or []), delta["citation"]]
    elif kind == "input_json_delta":
        # Without arguments there is an empty one only, and the input stays {}.
        if part := delta["partial_json"]:
            block["input_json"] = block.get("input_json", "") + part
    else:
        _continue(block, delta)


def _add_gemini(response: Json, chunk: Json) -> None:
    candidates = response.setdefault("candidates", [])
    for candidate in chunk.pop("candidates", None) or []:
        place = _place(candidates, candidate.get("index") or 0)
        content = place.setdefault("content", {"parts": [], "role": "model"})
        for part in (candidate.pop("content", None) or {}).get("parts") or []:
            _add_part(content["parts"], part)
        place.update(candidate)
    if chunk.pop("error", None):
        for candidate in candidates:
            candidate.pop("finishReason", None)
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
