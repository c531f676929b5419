"""A turn of a conversation: what `Client.turn` and `AsyncClient.turn` give."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg

from ._calls import JsonObject, Response
from ._models import plain
from .errors import IdempotencyMismatch, PgconvoError
from .records import Message, Request

if TYPE_CHECKING:
    from .client import AsyncClient, Client

_NO_ANSWER = "the turn ended without an answer"


class _Turn:
    """What a turn knows, whether it is asynchronous or not.

    request: the request as it was prepared.
    status: `prepared` until it was `completed` or `failed` through this turn.
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.status = request.status
        self._response: Response | None = None

    @property
    def request_id(self) -> UUID:
        """The id of the request."""
        return self.request.request_id

    @property
    def body(self) -> str:
        """The exact text to send, in UTF-8."""
        return self.request.body or ""

    def json(self) -> dict[str, Any]:
        """The body as Python objects, for SDKs that take it by keywords."""
        body: dict[str, Any] = json.loads(self.body)
        return body

    def _failure(self, error: BaseException | None) -> tuple[str, JsonObject | None]:
        """What to record of a turn that ends with this exception, and what it cost."""
        if error is None:
            return _NO_ANSWER, None
        # `completion` is openai's, for an answer that it got and refuses to give.
        response = self._response or getattr(error, "completion", None)
        return f"{type(error).__name__}: {error}", _usage(response)


class Turn(_Turn):
    """A turn that is going on, in a `with client.turn(...)` block."""

    def __init__(
        self,
        client: Client,
        request: Request,
        transaction: Callable[[], AbstractContextManager[None]],
    ) -> None:
        super().__init__(request)
        self._client = client
        self._transaction = transaction

    def complete(
        self, response: Response, expected_seq: int | None = None
    ) -> list[Message]:
        """Store the answer, as `complete_request` does, and commit."""
        self._response = response
        with self._transaction():
            answer = self._client.complete_request(
                self.request_id, response, expected_seq
            )
        self.status = "completed"
        return answer

    def fail(self, error: str, usage: JsonObject | None = None) -> None:
        """Record a try that gave no answer, as `fail_request` does, and commit."""
        with self._transaction():
            self._client.fail_request(self.request_id, _storable(error), usage)
        self.status = "failed"

    def _end(self, error: BaseException | None = None) -> None:
        if self.status == "prepared":
            try:
                self.fail(*self._failure(error))
            except IdempotencyMismatch:
                pass  # somebody else completed it
            except (PgconvoError, psycopg.Error) as second:
                _note(error, second)


class AsyncTurn(_Turn):
    """A turn that is going on, in an `async with client.turn(...)` block."""

    def __init__(
        self,
        client: AsyncClient,
        request: Request,
        transaction: Callable[[], AbstractAsyncContextManager[None]],
    ) -> None:
        super().__init__(request)
        self._client = client
        self._transaction = transaction

    async def complete(
        self, response: Response, expected_seq: int | None = None
    ) -> list[Message]:
        """Do what `Turn.complete` does."""
        self._response = response
        async with self._transaction():
            answer = await self._client.complete_request(
                self.request_id, response, expected_seq
            )
        self.status = "completed"
        return answer

    async def fail(self, error: str, usage: JsonObject | None = None) -> None:
        """Do what `Turn.fail` does."""
        async with self._transaction():
            await self._client.fail_request(self.request_id, _storable(error), usage)
        self.status = "failed"

    async def _end(self, error: BaseException | None = None) -> None:
        if self.status == "prepared":
            try:
                await self.fail(*self._failure(error))
            except IdempotencyMismatch:
                pass  # somebody else completed it
            except (PgconvoError, psycopg.Error) as second:
                _note(error, second)


def _note(error: BaseException | None, second: Exception) -> None:
    """Keep the exception of the block; that it couldn't be recorded is a note on it."""
    if error is None:
        raise second
    error.add_note(f"and it could not be recorded: {second}")


def _storable(text: str) -> str:
    return text.encode(errors="replace").decode().replace("\0", "\ufffd")


def _usage(response: Any) -> JsonObject | None:
    """The usage in a response, if it is to be found there."""
    try:
        if isinstance(response, str | bytes):
            response = json.loads(response)
        elif response is not None and not isinstance(response, Mapping):
            response = plain(response)
    except (TypeError, ValueError):
        return None
    if not isinstance(response, Mapping):
        return None
    usage = response.get("usage") or response.get("usageMetadata")
    return usage if isinstance(usage, Mapping) else None
