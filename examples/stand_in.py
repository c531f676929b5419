"""A stand-in for OpenAI and Anthropic on localhost, for the example and its tests.

It speaks three protocols, streamed or not: chat completions, responses and messages.
Asked with tools it calls the first one; given a result, or without tools, it answers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Json = dict[str, Any]

ANSWER = "In Paris it is 21 degrees and sunny, so leave the umbrella at home."
ARGUMENTS = '{"city": "Paris"}'
LIMITS = ("max_completion_tokens", "max_output_tokens", "max_tokens")


class StandIn(ThreadingHTTPServer):
    """The server. `url` is its address without the `/v1`.

    received: the SHA-256 of each body that came, in hex.
    refusals: how many of the next requests get a 429.
    breaks_after: streams end without warning after so many events; None: they don't.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.received: list[str] = []
        self.refusals = 0
        self.breaks_after: int | None = None


@contextmanager
def running() -> Iterator[StandIn]:
    """Run one in a thread, for the block."""
    with StandIn() as server:
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


class Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    server: StandIn

    def do_POST(self) -> None:
        """Answer a request."""
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received.append(hashlib.sha256(data).hexdigest())
        if self.server.refusals:
            self.server.refusals -= 1
            self._send(429, _error("rate_limit_error", "Too many requests."))
            return
        protocol = PROTOCOLS.get(self.path)
        if protocol is None:
            self._send(404, _error("not_found_error", f"No {self.path} here."))
            return
        body = json.loads(data)
        response = protocol[0](body, len(data))
        if body.get("stream"):
            self._stream(protocol[1](response, body))
        else:
            self._send(200, response)

    def _send(self, status: int, response: Json) -> None:
        data = json.dumps(response).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("retry-after-ms", "10")
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[Json]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, event in enumerate(events):
            if number == self.server.breaks_after:
                self.close_connection = True
                return
            name = f"event: {event['type']}\n" if "type" in event else ""
            self._write_chunk(f"{name}data: {json.dumps(event)}\n\n")
        if self.path.endswith("/chat/completions"):
            self._write_chunk("data: [DONE]\n\n")
        self._write_chunk("")

    def _write_chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _error(kind: str, message: str) -> Json:
    return {"type": "error", "error": {"type": kind, "message": message}}


def _tool(body: Json, last: Json) -> str | None:
    """The name of the tool to call, or None where an answer is due."""
    is_result = (
        last.get("role") == "tool"
        or last.get("type") == "function_call_output"
        or '"tool_result"' in json.dumps(last)
    )
    if is_result or not body.get("tools"):
        return None
    tool: Json = body["tools"][0]
    name: str = tool.get("function", tool)["name"]
    return name


def _words(body: Json) -> tuple[list[str], bool]:
    """The answer in words, as many as the limit allows, and whether that cut it off."""
    words = re.findall(r"\S+\s?", ANSWER)
    limit = next((body[name] for name in LIMITS if body.get(name)), len(words))
    return words[:limit], limit < len(words)


def _completion(body: Json, size: int) -> Json:
    words, is_cut = _words(body)
    tool = _tool(body, body["messages"][-1])
    message: Json = {"role": "assistant", "content": None, "refusal": None}
    if tool:
        function = {"name": tool, "arguments": ARGUMENTS}
        call = {"id": "call_1", "type": "function", "function": function}
        message["tool_calls"] = [call]
    else:
        message["content"] = "".join(words)
    reason = "tool_calls" if tool else "length" if is_cut else "stop"
    tokens = {"prompt_tokens": size // 4, "completion_tokens": len(words)}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": body["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {
            **tokens,
            "total_tokens": sum(tokens.values()),
            "prompt_tokens_details": {"cached_tokens": size // 8},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _completion_chunks(response: Json, body: Json) -> Iterator[Json]:
    (choice,) = response["choices"]
    message = choice["message"]
    empty = None if message["content"] is None else ""
    deltas: list[Json] = [{"role": "assistant", "content": empty, "refusal": None}]
    deltas += [
        {"content": word} for word in re.findall(r"\S+\s?", message["content"] or "")
    ]
    for call in message.get("tool_calls", []):
        function = {"name": call["function"]["name"], "arguments": ""}
        deltas.append({"tool_calls": [{"index": 0, **call, "function": function}]})
        for part in re.findall(".{1,6}", call["function"]["arguments"]):
            function = {"arguments": part}
            deltas.append({"tool_calls": [{"index": 0, "function": function}]})
    head = {**response, "object": "chat.completion.chunk", "usage": None}
    for delta in deltas:
        choices = [{"index": 0, "delta": delta, "finish_reason": None}]
        yield {**head, "choices": choices}
    reason = choice["finish_reason"]
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": response["usage"]}


def _response(body: Json, size: int) -> Json:
    words, is_cut = _words(body)
    tool = _tool(body, body["input"][-1])
    status = "incomplete" if is_cut and not tool else "completed"
    item: Json = {
        "type": "message",
        "id": "msg_1",
        "status": status,
        "role": "assistant",
        "content": [{"type": "output_text", "text": "".join(words), "annotations": []}],
    }
    if tool:
        item = {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": tool,
            "arguments": ARGUMENTS,
            "status": status,
        }
    tokens = {"input_tokens": size // 4, "output_tokens": len(words)}
    reason = {"reason": "max_output_tokens"} if status == "incomplete" else None
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_790_000_000,
        "status": status,
        "incomplete_details": reason,
        "model": body["model"],
        "output": [item],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools", []),
        "usage": {
            **tokens,
            "total_tokens": sum(tokens.values()),
            "input_tokens_details": {"cached_tokens": size // 8},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def _response_events(response: Json, body: Json) -> Iterator[Json]:
    for number, event in enumerate(_unnumbered_events(response)):
        yield {**event, "sequence_number": number}


def _unnumbered_events(response: Json) -> Iterator[Json]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    (item,) = response["output"]
    place: Json = {"output_index": 0, "item_id": item["id"]}
    empty: Json = {"content": []} if item["type"] == "message" else {"arguments": ""}
    added = {**item, **empty, "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": 0, "item": added}
    if item["type"] == "message":
        (part,) = item["content"]
        inside = {**place, "content_index": 0}
        new = {**part, "text": ""}
        yield {"type": "response.content_part.added", **inside, "part": new}
        for word in re.findall(r"\S+\s?", part["text"]):
            delta = {"delta": word, "logprobs": []}
            yield {"type": "response.output_text.delta", **inside, **delta}
        done = {"text": part["text"], "logprobs": []}
        yield {"type": "response.output_text.done", **inside, **done}
        yield {"type": "response.content_part.done", **inside, "part": part}
    else:
        kind = "response.function_call_arguments"
        yield {"type": f"{kind}.delta", **place, "delta": item["arguments"]}
        done = {"arguments": item["arguments"], "name": item["name"]}
        yield {"type": f"{kind}.done", **place, **done}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


def _message(body: Json, size: int) -> Json:
    words, is_cut = _words(body)
    tool = _tool(body, body["messages"][-1])
    block: Json = {"type": "text", "text": "".join(words)}
    if tool:
        arguments = json.loads(ARGUMENTS)
        block = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": arguments}
    reason = "tool_use" if tool else "max_tokens" if is_cut else "end_turn"
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [block],
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": size // 4,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": size // 8,
            "output_tokens": len(words),
        },
    }


def _message_events(response: Json, body: Json) -> Iterator[Json]:
    begun: Json = {**response, "content": [], "stop_reason": None}
    begun["usage"] = {**response["usage"], "output_tokens": 1}
    yield {"type": "message_start", "message": begun}
    yield {"type": "ping"}
    (block,) = response["content"]
    empty: Json = {"text": ""} if block["type"] == "text" else {"input": {}}
    start = {"index": 0, "content_block": {**block, **empty}}
    yield {"type": "content_block_start", **start}
    deltas: list[Json] = [
        {"type": "text_delta", "text": word}
        for word in re.findall(r"\S+\s?", block.get("text", ""))
    ]
    if block["type"] == "tool_use":
        deltas = [
            {"type": "input_json_delta", "partial_json": part}
            for part in re.findall(".{1,6}", ARGUMENTS)
        ]
    for delta in deltas:
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    delta = {"stop_reason": response["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": response["usage"]["output_tokens"]}
    yield {"type": "message_delta", "delta": delta, "usage": usage}
    yield {"type": "message_stop"}


PROTOCOLS = {
    "/v1/chat/completions": (_completion, _completion_chunks),
    "/v1/responses": (_response, _response_events),
    "/v1/messages": (_message, _message_events),
}
