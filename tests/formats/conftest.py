"""A user whose conversations are rendered, as a login in convo_app."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.string import TextLoader


class Chat:
    """A conversation of ann's."""

    def __init__(self, conn: psycopg.Connection, **options: Any) -> None:
        self.conn = conn
        self.id: UUID = self.call("create_conversation", **options)

    def call(self, function: str, **arguments: Any) -> Any:
        """Return the first column of the first row of a function, or None."""
        names = ", ".join(f"{name} => %({name})s" for name in arguments)
        row = self.conn.execute(
            f"select * from convo.{function}({names})", arguments
        ).fetchone()
        return row[0] if row else None

    def on(self, function: str, **arguments: Any) -> Any:
        """Call a function of this conversation."""
        return self.call(function, conversation_id=self.id, **arguments)

    def rows(self, function: str, **arguments: Any) -> list[dict[str, Any]]:
        """Return the rows of a function of this conversation."""
        names = ", ".join(f"{name} => %({name})s" for name in arguments)
        with self.conn.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(
                f"select * from convo.{function}(%(id)s, {names or 'null'})",
                {"id": self.id, **arguments},
            ).fetchall()

    def append(self, format: str, *messages: Any) -> None:
        """Append messages, each an object or its JSON text."""
        texts = [m if isinstance(m, str) else json.dumps(m) for m in messages]
        self.on("append_messages", format=format, messages=f"[{','.join(texts)}]")

    def say(self, role: str, content: str) -> None:
        """Append a plain text message."""
        self.on("append_message", role=role, content=content)

    def text(self, format: str, **options: Any) -> str:
        """Return the rendered context, byte for byte."""
        return self.on("render_context", format=format, **options)

    def render(self, format: str, **options: Any) -> Any:
        """Return the rendered context."""
        return json.loads(self.text(format, **options))


@pytest.fixture
def app(connect) -> psycopg.Connection:
    conn = connect("test_app", "acme", "ann")
    conn.adapters.register_loader("json", TextLoader)
    return conn


@pytest.fixture
def chat(app) -> Chat:
    return Chat(app)
