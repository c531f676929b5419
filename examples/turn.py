"""Whole turns with the real SDKs, against a stand-in for the providers on localhost.

Run it with `make example`, or `python examples/turn.py` where pgconvo is installed with
its extras `examples` and `embedded`. To talk to the providers themselves, leave out
`base_url` and set OPENAI_API_KEY and ANTHROPIC_API_KEY.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from uuid import UUID

import anthropic
import openai
import psycopg
import stand_in
from anthropic.types import Message, RawMessageStreamEvent
from openai.types.chat import ChatCompletion
from openai.types.responses import Response, ResponseStreamEvent

from pgconvo import AsyncClient, Client, StreamedResponse, server
from pgconvo.migrate import migrate

TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather of today.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


def tool_loop(client: Client, conversation_id: UUID, url: str) -> None:
    """OpenAI's chat completions: turns until the model has called all it wants."""
    sdk = openai.OpenAI(base_url=f"{url}/v1", api_key="none")
    while True:
        with client.turn(
            conversation_id, "openai", "gpt-5", parameters={"tools": [TOOL]}
        ) as turn:
            # The SDK retries a 429 by itself, with the same bytes.
            completion = sdk.post(
                "/chat/completions",
                content=turn.body.encode(),
                cast_to=ChatCompletion,
            )
            turn.complete(completion)
        message = completion.choices[0].message
        if not message.tool_calls:
            print("openai:", message.content)
            return
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": "21 degrees, sunny"}
            for call in message.tool_calls
        ]
        print("openai: calls a tool")
        client.append_messages(conversation_id, results)


def streamed(client: Client, conversation_id: UUID, url: str) -> None:
    """Anthropic's messages, streamed; what came before is converted for it."""
    sdk = anthropic.Anthropic(base_url=url, api_key="none")
    answer = StreamedResponse("anthropic")
    with client.turn(
        conversation_id,
        "anthropic",
        "claude-sonnet-4-5",
        parameters={"max_tokens": 500, "stream": True},
    ) as turn:
        events = sdk.post(
            "/v1/messages",
            content=turn.body.encode(),
            cast_to=Message,
            stream=True,
            stream_cls=anthropic.Stream[RawMessageStreamEvent],
        )
        print("anthropic: ", end="")
        for event in events:
            answer.add(event)
            if event.type == "content_block_delta" and event.delta.type == "text_delta":
                print(event.delta.text, end="", flush=True)
        print()
        turn.complete(answer.response)


async def broken_off(dsn: str, conversation_id: UUID, url: str) -> None:
    """OpenAI's responses, asynchronous; the line breaks, and what came is kept."""
    sdk = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
    answer = StreamedResponse("openai_responses")
    parameters = {"stream": True}
    async with (
        await psycopg.AsyncConnection.connect(dsn) as connection,
        AsyncClient(connection).turn(
            conversation_id, "openai_responses", "gpt-5", parameters=parameters
        ) as turn,
    ):
        events = await sdk.post(
            "/responses",
            content=turn.body.encode(),
            cast_to=Response,
            stream=True,
            stream_cls=openai.AsyncStream[ResponseStreamEvent],
        )
        try:
            async for event in events:
                answer.add(event)
        except openai.APIConnectionError as error:
            print("openai responses broke off:", type(error).__name__)
        (message,) = await turn.complete(answer.response)
    print(f"kept: {message.content!r} {json.dumps(message.metadata)}")


def replay_all(client: Client, conversation_id: UUID, received: list[str]) -> None:
    """Each request gives the bytes again that the provider got."""
    for request in reversed(client.list_requests(conversation_id)):
        body = client.replay_request(request.request_id)
        sha256 = hashlib.sha256(body.encode()).hexdigest()
        times = received.count(sha256)
        print(
            f"{request.format:16} {request.status:9} sha256 {sha256[:12]}... "
            f"received {times} {'time' if times == 1 else 'times'}"
        )


def main() -> None:
    """Make a database for a user of an application with one tenant, and take turns."""
    with server.running() as database, stand_in.running() as provider:
        with psycopg.connect(database.dsn(), autocommit=True) as connection:
            migrate(connection)
            connection.execute("create role chat_app login in role convo_app")
            connection.execute("alter role chat_app set convo.tenant_id = 'main'")
            connection.execute("alter role chat_app set convo.user_id = 'ann'")
        dsn = database.dsn(user="chat_app")
        with psycopg.connect(dsn, autocommit=True) as connection:
            client = Client(connection)
            conversation_id = client.create_conversation()
            client.append_message(conversation_id, "user", "Paris: how is the weather?")

            provider.refusals = 1
            tool_loop(client, conversation_id, provider.url)
            client.append_message(conversation_id, "user", "And what shall I take?")
            streamed(client, conversation_id, provider.url)
            client.append_message(conversation_id, "user", "In one sentence?")
            provider.breaks_after = 8
            asyncio.run(broken_off(dsn, conversation_id, provider.url))
            replay_all(client, conversation_id, provider.received)


if __name__ == "__main__":
    main()
