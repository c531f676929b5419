"""What pgconvo does, shown on one conversation in a database of the kept server.

`run` yields one `Step` after another, each with the SQL exactly as it was sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from . import transcript as transcripts
from .errors import InvalidMessage, converted
from .migrate import migrate
from .server import Server
from .transcript import Transcript, TranscriptError

DATABASE = "pgconvo_demo"
LOGINS = {
    "demo_app": "convo_app",
    "demo_worker": "convo_service",
    "demo_cron": "convo_maintainer",
}
SHOWN = 30  # messages in the table of the window
_ANN = "select convo.set_context(tenant_id => 'acme', user_id => 'ann');"
_BOB = "select convo.set_context(tenant_id => 'globex', user_id => 'bob');"


@dataclass(frozen=True)
class Step:
    """One thing shown: who did it, the SQL that was sent, and the rows it gave.

    ``budget`` is the token budget in the step that shows a window, else None.
    """

    title: str
    login: str
    sql: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: list[str] = field(default_factory=list)
    budget: int | None = None


def builtin() -> Transcript:
    """Return the support chat that the demo tells without a file."""
    path = Path(__file__).with_name("demo.json")
    return transcripts.parse("Where is my order?", path.read_text("utf-8"))


def create_database(server: Server) -> None:
    """Make the demo's database and logins anew; what an earlier demo left goes."""
    with psycopg.connect(server.dsn(), autocommit=True) as conn:
        name = sql.Identifier(DATABASE)
        conn.execute(sql.SQL("drop database if exists {} with (force)").format(name))
        conn.execute(sql.SQL("create database {}").format(name))
    with psycopg.connect(server.dsn(DATABASE), autocommit=True) as conn:
        migrate(conn)
        for login, group in LOGINS.items():
            conn.execute(
                sql.SQL("drop role if exists {}").format(sql.Identifier(login))
            )
            conn.execute(
                sql.SQL("create role {} login in role {}").format(
                    sql.Identifier(login), sql.Identifier(group)
                )
            )
        # So that psql as demo_app is ann of acme from the start.
        for setting in ("tenant_id = 'acme'", "user_id = 'ann'"):
            conn.execute(
                f"alter role demo_app in database {DATABASE} set convo.{setting}"
            )


def run(server: Server, transcript: Transcript, budget: int) -> Iterator[Step]:
    """Store the transcript in the demo's database and show what can be done with it.

    Raises TranscriptError when a message of it isn't valid.
    """
    with ExitStack() as stack:
        conns = {
            login: stack.enter_context(
                psycopg.connect(
                    server.dsn(DATABASE, login),
                    autocommit=True,
                    cursor_factory=psycopg.RawCursor,
                )
            )
            for login in LOGINS
        }
        yield from _steps(conns, transcript, budget)


def _steps(
    conns: dict[str, psycopg.Connection], transcript: Transcript, budget: int
) -> Iterator[Step]:
    app = conns["demo_app"]

    create = f"""\
select convo.create_conversation(
    title => {sql.Literal(transcript.name).as_string(app)},
    system_prompt => 'You help customers of a small shop.',
    retention_class => 'demo');"""
    conversation_id = str(_send(app, "begin;", _ANN, create)[0][0])
    append = f"""\
select count(*) as messages, sum(tokens) as tokens
  from convo.append_messages('{conversation_id}', $1);"""
    try:
        with converted():
            cursor = app.execute(append, [transcript.messages])
    except InvalidMessage as error:
        raise transcript.error(error) from error
    except psycopg.DataError as error:
        raise TranscriptError(
            f"{transcript.name}: {error.diag.message_primary}"
        ) from error
    stored = cursor.fetchall()
    _send(app, "commit;")
    yield Step(
        "Store a conversation",
        "demo_app",
        "\n".join(["begin;", _ANN, create, append, "commit;"]),
        ["messages", "tokens"],
        stored,
        [
            f"$1 is a JSON array of {transcript.count:,} messages "
            f"({len(transcript.messages.encode()):,} bytes)."
        ],
    )

    yield _query(
        "List the conversations",
        app,
        _ANN,
        """\
select title, message_count, token_total, updated_at
  from convo.list_conversations();""",
    )

    yield _query(
        "Read the last 4 messages",
        app,
        _ANN,
        f"""\
select seq, role, content, payload, tokens
  from convo.last_messages('{conversation_id}', 4);""",
    )

    window = _query(
        f"Read what fits in {budget:,} tokens",
        app,
        _ANN,
        f"""\
select m.seq, m.role, m.content, m.payload, m.tokens,
       sum(m.tokens) over (order by m.group_seq desc) as total,
       w.seq is not null as "in"
  from convo.last_messages('{conversation_id}', {SHOWN}) as m
  left join convo.token_window('{conversation_id}', {budget}) as w
    on w.seq = m.seq
 where m.role <> 'system'
 order by m.seq;""",
        budget,
    )
    window.notes.extend(_about_window(window.rows, stored[0][0], budget))
    yield window

    yield _query(
        "Look from another tenant",
        app,
        _BOB,
        f"""\
select (select count(*) from convo.message) as in_the_table,
       (select count(*) from convo.list_conversations()) as conversations,
       (select count(*)
          from convo.token_window('{conversation_id}', {budget})
       ) as in_the_window;""",
        notes=["Row security answers, also to the plain select on the table."],
    )

    yield _delete(app, conversation_id)

    yield _query(
        "Say how long a tenant keeps its conversations",
        conns["demo_worker"],
        "select convo.set_context(tenant_id => 'acme');",
        """\
select retention_class, max_age, basis, action
  from convo.set_retention('demo', max_age => interval '0');""",
    )

    yield _query(
        "Purge what is older, here as a dry run",
        conns["demo_cron"],
        None,
        """\
select conversations, messages, held, is_dry_run
  from convo.purge(is_dry_run => true);""",
        notes=[
            "This role works across tenants. It sees keys and times, never content."
        ],
    )


def _about_window(
    rows: Sequence[Sequence[Any]], stored: int, budget: int
) -> Iterator[str]:
    inside = [row for row in rows if row[-1]]
    if inside:
        yield (
            f"{len(inside)} messages, {inside[0][-2]:,} tokens. total adds up from the"
            " newest message back; a tool call and its result share one total."
        )
    elif rows:
        yield (
            f"The newest message alone has {rows[-1][-2]:,} tokens, so nothing fits: "
            "try a larger --budget."
        )
    if stored > SHOWN:
        yield f"Only the newest {SHOWN} of {stored:,} messages are shown."


def _delete(app: psycopg.Connection, conversation_id: str) -> Step:
    """Delete a fork, so that the conversation itself stays for the user to try."""
    fork = f"select convo.fork_conversation('{conversation_id}');"
    fork_id = str(_send(app, "begin;", _ANN, fork)[0][0])
    append = f"""\
select seq from convo.append_message(
    '{fork_id}',
    role => 'user', content => 'Thnaks!', idempotency_key => 'k1');"""
    seq = _send(app, append)[0][0]
    edit = f"""\
select revision from convo.edit_message(
    '{fork_id}', {seq}, content => 'Thanks!');"""
    tables = (
        "conversation",
        "message",
        "message_revision",
        "idempotency_key",
        "tombstone",
    )
    count = "select '{0}', count(*) from convo.{0}\n where conversation_id = $1"
    prepare = "prepare row_counts as\n"
    prepare += "\nunion all\n".join(map(count.format, tables)) + ";"
    execute = f"execute row_counts('{fork_id}');"
    delete = f"select convo.delete_conversation('{fork_id}');"
    before = dict(_send(app, edit, prepare, execute))
    after = dict(_send(app, delete, execute))
    _send(app, "commit;")
    sent = ["begin;", _ANN, fork, append, edit, prepare]
    sent += [execute, delete, execute, "commit;"]
    return Step(
        "Delete a conversation, here a fork of it",
        "demo_app",
        "\n".join(sent),
        ["rows in", "before", "after"],
        [(table, before[table], after[table]) for table in tables],
        ["The tombstone holds the id, so that no late writer brings it back."],
    )


def _query(
    title: str,
    conn: psycopg.Connection,
    context: str | None,
    query: str,
    budget: int | None = None,
    notes: Sequence[str] = (),
) -> Step:
    """Send one query, in a transaction if it needs a context, and tell about it."""
    if context:
        _send(conn, "begin;", context)
    cursor = conn.execute(query)
    rows = cursor.fetchall()
    columns = [column.name for column in cursor.description or ()]
    if context:
        _send(conn, "commit;")
    sent = f"begin;\n{context}\n{query}\ncommit;" if context else query
    return Step(title, conn.info.user, sent, columns, rows, list(notes), budget)


def _send(conn: psycopg.Connection, *statements: str) -> list[tuple[Any, ...]]:
    """Send the statements one by one and return the rows of the last."""
    for statement in statements:
        cursor = conn.execute(statement.encode())
    return cursor.fetchall() if cursor.description else []
