"""A turn of a conversation: what `Client.turn` and `AsyncClient.turn` give."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
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
        # What `complete` didn't store, and isn't recorded yet: why, and what it cost.
        self._refused: tuple[str, JsonObject | None] | None = None
        self._recorded: JsonObject | None = None

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

    def _tried_before(
        self, usage: JsonObject | None
    ) -> tuple[str, JsonObject | None] | None:
        """What to record before a response with this usage is tried.

        The same usage is of the same call: its response again, in a better shape.
        """
        if self._refused is None or self._refused[1] in (None, usage):
            return None
        return self._refused

    def _failure(
        self, error: BaseException | None
    ) -> tuple[str, JsonObject | None] | None:
        """What to record of a turn that ends so, and what it cost."""
        if self.status == "completed":
            return None
        if error is None:
            if self.status == "failed":
                return self._refused
            return self._refused or (_NO_ANSWER, None)
        usage = self._refused[1] if self._refused else None
        if usage is None:
            # openai's, for an answer that it got and refuses to give.
            usage = _usage(getattr(error, "completion", None))
            if usage == self._recorded:
                usage = None
        return _text(error), usage

    def _failed(self, usage: JsonObject | None) -> None:
        self.status = "failed"
        self._refused = None
        self._recorded = _plain(usage)


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
        usage = _usage(response)
        if before := self._tried_before(usage):
            with suppress(IdempotencyMismatch):
                self.fail(*before)
        try:
            with self._transaction():
                answer = self._client.complete_request(
                    self.request_id, response, expected_seq
                )
        except BaseException as error:
            self._refused = _text(error), usage
            raise
        self.status = "completed"
        self._refused = None
        return answer

    def fail(self, error: str, usage: JsonObject | None = None) -> None:
        """Record a try that gave no answer, as `fail_request` does, and commit.

        usage: by default that of a response which `complete` refused.
        """
        if usage is None and self._refused:
            usage = self._refused[1]
        with self._transaction():
            self._client.fail_request(self.request_id, _storable(error), usage)
        self._failed(usage)

    def _end(self, error: BaseException | None = None) -> None:
        if failure := self._failure(error):
            try:
                self.fail(*failure)
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
        usage = _usage(response)
        if before := self._tried_before(usage):
            with suppress(IdempotencyMismatch):
                await self.fail(*before)
        try:
            async with self._transaction():
                answer = await self._client.complete_request(
                    self.request_id, response, expected_seq
                )
        except BaseException as error:
            self._refused = _text(error), usage
            raise
        self.status = "completed"
        self._refused = None
        return answer

    async def fail(self, error: str, usage: JsonObject | None = None) -> None:
        """Do what `Turn.fail` does."""
        if usage is None and self._refused:
            usage = self._refused[1]
        async with self._transaction():
            await self._client.fail_request(self.request_id, _storable(error), usage)
        self._failed(usage)

    async def _end(self, error: BaseException | None = None) -> None:
        if failure := self._failure(error):
            try:
                await self.fail(*failure)
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


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _usage(response: Response | None) -> JsonObject | None:
    """The usage in a response, if it is to be found there."""
    fields = _plain(response)
    if not isinstance(fields, Mapping):
        return None
    names = ("usage", "usageMetadata", "usage_metadata")
    usage = next((fields[name] for name in names if fields.get(name)), None)
    return usage if isinstance(usage, Mapping) else None


def _plain(value: Any) -> Any:
    """The Python objects that a JSON argument says; None if it can't be read."""
    try:
        if isinstance(value, str | bytes):
            return json.loads(value)
        if hasattr(value, "model_dump"):
            return plain(value)
    except (TypeError, ValueError, RecursionError):
        return None
    return value
