"""How much a request adds to the database.

    python bench/requests/size.py

1,000 requests over a conversation of 1,000 messages, with a system prompt and a list of
tools, on a server of its own; also with edits between them. Bytes a request, by table.
"""

from __future__ import annotations

import json
from uuid import UUID

import psycopg

from pgconvo import server
from pgconvo.migrate import migrate

MESSAGES = REQUESTS = 1000
TABLES = ("request", "request_frame", "request_prompt", "prompt")
TOOLS = [
    {"type": "function", "function": {"name": f"f{n}", "description": "x" * 300}}
    for n in range(20)
]


def sizes(conn: psycopg.Connection) -> dict[str, int]:
    """Bytes of each table with its indexes and its long values."""
    query = "select pg_total_relation_size(%s::regclass)"
    return {t: conn.execute(query, (f"convo.{t}",)).fetchone()[0] for t in TABLES}


def talk(conn: psycopg.Connection) -> UUID:
    """Make a conversation of 1,000 messages with a system prompt."""
    (conversation,) = conn.execute(
        "select convo.create_conversation(null, %s)", ("prompt " * 700,)
    ).fetchone()
    for number in range(MESSAGES):
        conn.execute(
            "select convo.append_message(%s, %s, %s)",
            (conversation, ("user", "assistant")[number % 2], f"text {number} " * 10),
        )
    return conversation


def send(conn: psycopg.Connection, conversation: UUID, edits: int) -> float:
    """Prepare 1,000 requests with so many edits between; bytes sent by each."""
    sent = 0
    for number in range(REQUESTS):
        if number * edits // REQUESTS != (number + 1) * edits // REQUESTS:
            conn.execute(
                "select convo.edit_message(%s, %s, 'edited')",
                (conversation, MESSAGES - number % 50),
            )
        (body,) = conn.execute(
            "select body from convo.prepare_request(%s, 'openai', 'gpt-x', null, 8000,"
            " %s)",
            (conversation, json.dumps({"temperature": 0, "tools": TOOLS})),
        ).fetchone()
        sent += len(body.encode())
    return sent / REQUESTS


def main() -> None:
    """Measure with tables that aren't empty, whose first pages cost each one less."""
    with (
        server.running() as running,
        psycopg.connect(running.dsn(), autocommit=True) as conn,
    ):
        migrate(conn)
        conn.execute(
            "select set_config('convo.tenant_id', 'acme', false),"
            " set_config('convo.user_id', 'ann', false)"
        )
        send(conn, talk(conn), 0)
        print("| edits | " + " | ".join(TABLES) + " | all | sent |")
        print("| ---: |" + " ---: |" * (len(TABLES) + 2))
        for edits in (0, 200):
            conversation = talk(conn)
            before = sizes(conn)
            sent = send(conn, conversation, edits)
            after = sizes(conn)
            added = [(after[t] - before[t]) / REQUESTS for t in TABLES]
            cells = [edits, *added, sum(added), sent]
            print("| " + " | ".join(f"{cell:,.0f}" for cell in cells) + " |")


if __name__ == "__main__":
    main()
