"""Callers, one a role and person, and what an error of the toolkit must look like."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.string import TextLoader

Row = dict[str, Any]
Fails = Callable[..., AbstractContextManager[Row]]

# Everything that a test stores contains this word, so that an error can't repeat it
# unnoticed.
SECRET = "sesame"
MESSAGES = {
    "PC001": "conversation not found",
    "PC002": "message not found",
    "PC003": "request not found",
    "PC010": "changed by somebody else",
    "PC011": "idempotency key or request id used for other content",
    "PC012": "conversation was deleted",
    "PC013": "conversation id is taken",
    "PC020": "what must be kept does not fit the budget",
    "PC030": "no tenant or user set",
    "PC031": "context token not valid",
    "PC040": "conversation is on legal hold",
    "PC050": "message not valid in its format",
    "PC060": "request can not be replayed exactly any more",
    "0A000": "not available without the vector track",
    "22023": "invalid argument",
    "42501": "not allowed",
}


def vector(parts: Any) -> str | None:
    """Write numbers as an array of SQL, whose type the function decides."""
    if parts is None or isinstance(parts, str):
        return parts
    return "{" + ",".join("null" if p is None else str(p) for p in parts) + "}"


class Caller:
    """Somebody who calls the functions in schema convo through a login role."""

    def __init__(self, conn: psycopg.Connection) -> None:
        # The exact text of a payload, not what Python makes of it.
        conn.adapters.register_loader("json", TextLoader)
        self.conn = conn

    def rows(self, function: str, **arguments: Any) -> list[Row]:
        """Return all rows of a function, each with its columns by name."""
        names = ", ".join(f"{name} => %({name})s" for name in arguments)
        with self.conn.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(
                f"select * from convo.{function}({names})", arguments
            ).fetchall()

    def row(self, function: str, **arguments: Any) -> Row:
        """Return the one row of a function."""
        (row,) = self.rows(function, **arguments)
        return row

    def value(self, function: str, **arguments: Any) -> Any:
        """Return what a function gives that has one row of one column."""
        (value,) = self.row(function, **arguments).values()
        return value

    def create(self, **arguments: Any) -> UUID:
        """Create a conversation and return its id."""
        return self.value("create_conversation", **arguments)

    def say(self, conversation_id: UUID, *tokens: int, role: str = "user") -> None:
        """Append a text message of each number of tokens."""
        for number, count in enumerate(tokens, 1):
            self.row(
                "append_message",
                conversation_id=conversation_id,
                role=role,
                content=f"{SECRET} {number}",
                tokens=count,
            )

    def append(self, conversation_id: UUID, messages: Any, **options: Any) -> list[Row]:
        """Append messages of the OpenAI format, as objects or as JSON text."""
        if not isinstance(messages, str):
            messages = json.dumps(messages)
        return self.rows(
            "append_messages",
            conversation_id=conversation_id,
            messages=messages,
            **options,
        )

    def get(self, conversation_id: UUID) -> Row:
        """Return the conversation's row."""
        return self.row("get_conversation", conversation_id=conversation_id)

    def live(self, conversation_id: UUID) -> list[Row]:
        """Return all live messages, oldest first."""
        return self.rows(
            "last_messages", conversation_id=conversation_id, message_limit=10000
        )

    def window(self, conversation_id: UUID, token_budget: int) -> list[Row]:
        """Return the token window."""
        return self.rows(
            "token_window", conversation_id=conversation_id, token_budget=token_budget
        )

    def context(self, conversation_id: UUID, **options: Any) -> list[Row]:
        """Return the context."""
        return self.rows("get_context", conversation_id=conversation_id, **options)

    def summarise(
        self, conversation_id: UUID, through_seq: int, previous: int = 0, **options: Any
    ) -> Row:
        """Save a summary of 10 tokens."""
        return self.row(
            "save_summary",
            conversation_id=conversation_id,
            **{
                "content": f"{SECRET} summary",
                "through_seq": through_seq,
                "previous_through_seq": previous,
                "tokens": 10,
                **options,
            },
        )


@contextmanager
def _fails(code: str, **detail: Any) -> Iterator[Row]:
    found: Row = {}
    with pytest.raises(psycopg.Error) as caught:
        yield found
    error = caught.value.diag
    assert error.sqlstate == code, caught.value
    assert error.message_primary == MESSAGES[code]
    assert error.message_hint
    assert SECRET not in str(caught.value)
    found.update(json.loads(error.message_detail or ""))
    assert {name: found.get(name) for name in detail} == json.loads(
        json.dumps(detail, default=str)
    )


@pytest.fixture
def fails() -> Fails:
    """Expect an error of the toolkit, `with fails("PC010", last_seq=3): ...`.

    Keywords are members of DETAIL; the context gives all of it.
    """
    return _fails


@pytest.fixture
def as_role(connect: Callable[..., psycopg.Connection]) -> Callable[..., Caller]:
    """Become somebody, `as_role("test_app", "acme", "ann")`."""
    return lambda *who, **options: Caller(connect(*who, **options))


@pytest.fixture
def ann(as_role: Callable[..., Caller]) -> Caller:
    """The user ann of tenant acme, whose conversations the tests are about."""
    return as_role("test_app", "acme", "ann")


@pytest.fixture
def ben(as_role: Callable[..., Caller]) -> Caller:
    """Another user of the same tenant."""
    return as_role("test_app", "acme", "ben")


@pytest.fixture
def hostile(as_role: Callable[..., Caller]) -> Caller:
    """A user of another tenant with the same name as ann."""
    return as_role("test_app", "evil", "ann")


@pytest.fixture
def hostile_service(as_role: Callable[..., Caller]) -> Caller:
    """The service of another tenant."""
    return as_role("test_service", "evil")


@pytest.fixture
def service(as_role: Callable[..., Caller]) -> Caller:
    """The service of tenant acme, for all of its users."""
    return as_role("test_service", "acme")


@pytest.fixture
def reader(as_role: Callable[..., Caller]) -> Caller:
    """Reads all of tenant acme."""
    return as_role("test_reader", "acme")


@pytest.fixture
def maintainer(as_role: Callable[..., Caller]) -> Caller:
    """Purges, and needs no context."""
    return as_role("test_maintainer")


@pytest.fixture(params=["ben", "hostile", "hostile_service"])
def outsider(request: pytest.FixtureRequest) -> Caller:
    """Each of those who must not reach ann's conversations."""
    return request.getfixturevalue(request.param)


@pytest.fixture(params=["nothing", "no tenant", "no user", "service without tenant"])
def unknown(request: pytest.FixtureRequest, as_role: Callable[..., Caller]) -> Caller:
    """Each way not to say who is asking."""
    return as_role(
        *{
            "nothing": ("test_app",),
            "no tenant": ("test_app", None, "ann"),
            "no user": ("test_app", "acme"),
            "service without tenant": ("test_service",),
        }[request.param]
    )


@pytest.fixture
def conversation_id(ann: Caller) -> UUID:
    """An empty conversation of ann's."""
    return ann.create(title=f"{SECRET} title")
