"""SIGKILL of the server: what was acknowledged is there, and nothing by halves."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from pgconvo import server
from pgconvo.migrate import migrate

WRITERS = 8
CONTEXT = "options=-cconvo.tenant_id%3Dacme%20-cconvo.user_id%3Dann"
BATCH = "select seq from convo.append_messages(%s, %s, idempotency_key => %s)"
ONE = "select (convo.append_message(%s, 'user', %s, idempotency_key => %s)).seq as seq"


@pytest.fixture(scope="module")
def durable(bindir: Path) -> Iterator[server.Server]:
    """A server of its own that syncs what it commits."""
    with server.running(bindir=bindir, durable=True) as running:
        with psycopg.connect(running.dsn(), autocommit=True) as conn:
            migrate(conn)
            conn.execute("create role app login in role convo_app")
            conn.execute("create role maintainer login in role convo_maintainer")
        yield running


def connect(running, login="postgres"):
    return psycopg.connect(
        running.dsn("postgres", login) + f"?{CONTEXT}", autocommit=True
    )


class Writer:
    """Appends until the server dies, and knows what was acknowledged."""

    def __init__(self, number: int, conversation) -> None:
        self.number = number
        self.conversation = conversation
        self.sent = 0
        self.acknowledged: dict[int, str] = {}

    def send(self, conn) -> None:
        """Append the next message, or three at once, under a key of its own."""
        text = f"{self.number}-{self.sent}"
        if self.number % 4 == 3:
            texts = [f"{text}-{part}" for part in "abc"]
            batch = [{"role": "user", "content": part} for part in texts]
            rows = conn.execute(
                BATCH, (self.conversation, psycopg.types.json.Json(batch), text)
            ).fetchall()
        else:
            texts = [text]
            rows = conn.execute(ONE, (self.conversation, text, text)).fetchall()
        self.acknowledged |= {
            seq: text for (seq,), text in zip(rows, texts, strict=True)
        }
        self.sent += 1

    def run(self, running) -> None:
        with connect(running, "app") as conn:
            try:
                while True:
                    self.send(conn)
            except psycopg.OperationalError:
                pass  # the server is gone


def test_what_was_acknowledged_survives(durable, rng, check_invariants):
    with connect(durable, "app") as conn:
        hot, *others = [
            conn.execute("select convo.create_conversation()").fetchone()[0]
            for _ in range(1 + WRITERS // 2)
        ]
    # Half of the writers share one conversation.
    writers = [Writer(n, others[n // 2] if n % 2 else hot) for n in range(WRITERS)]
    for _ in range(4):
        with ThreadPoolExecutor(WRITERS) as pool:
            running = [pool.submit(writer.run, durable) for writer in writers]
            time.sleep(rng.uniform(0.2, 0.5))
            durable.kill()
            for future in running:
                future.result(20)
        durable.start()
        with connect(durable) as db:
            check_invariants(db)
            stored = {
                (conversation, seq): content
                for conversation, seq, content in db.execute(
                    "select conversation_id, seq, content from convo.message"
                )
            }
        for writer in writers:
            for seq, content in writer.acknowledged.items():
                assert stored[writer.conversation, seq] == content
        # What was on its way is sent again, whether or not it had been stored.
        with connect(durable, "app") as conn:
            for writer in writers:
                writer.send(conn)
    with connect(durable) as db:
        check_invariants(db)
        contents = db.execute("select content from convo.message").fetchall()
    expected = {text for writer in writers for text in writer.acknowledged.values()}
    assert len(expected) > 200
    assert len(contents) == len(expected)
    assert {content for (content,) in contents} == expected


class Turns:
    """Takes turns until the server dies, and knows what was acknowledged."""

    def __init__(self, conversation) -> None:
        self.conversation = conversation
        self.prepared: dict[object, str] = {}
        self.completed: set[object] = set()

    def take(self, conn) -> None:
        """Append, prepare, complete; each call is a transaction of its own."""
        conn.execute(
            "select convo.append_message(%s, 'user', 'text', 1)", (self.conversation,)
        )
        request_id, body = conn.execute(
            "select request_id, body from convo.prepare_request(%s, 'openai')",
            (self.conversation,),
        ).fetchone()
        self.prepared[request_id] = body
        self.complete(conn, request_id)

    def complete(self, conn, request_id) -> None:
        answer = {"role": "assistant", "content": str(request_id)}
        conn.execute(
            "select convo.complete_request(%s, %s)",
            (request_id, psycopg.types.json.Json(answer)),
        )
        self.completed.add(request_id)

    def run(self, running) -> None:
        with (
            connect(running, "app") as conn,
            contextlib.suppress(psycopg.OperationalError),
        ):
            while True:
                self.take(conn)


def test_turns_go_on_where_they_were(durable, rng, check_invariants):
    with connect(durable, "app") as conn:
        workers = [
            Turns(conn.execute("select convo.create_conversation()").fetchone()[0])
            for _ in range(4)
        ]
    for _ in range(3):
        with ThreadPoolExecutor(len(workers)) as pool:
            running = [pool.submit(worker.run, durable) for worker in workers]
            time.sleep(rng.uniform(0.2, 0.5))
            durable.kill()
            for future in running:
                future.result(20)
        durable.start()
        with connect(durable) as db:
            check_invariants(db)
            stored = dict(
                db.execute(
                    "select request_id, response_sha256 is not null from convo.request"
                ).fetchall()
            )
        with connect(durable, "app") as conn:
            for worker in workers:
                assert stored.keys() >= worker.prepared.keys()
                assert all(stored[r] for r in worker.completed)
                # What was prepared, or completed unseen, is completed now.
                for request_id, body in worker.prepared.items():
                    worker.complete(conn, request_id)
                    assert conn.execute(
                        "select convo.replay_request(%s)", (request_id,)
                    ).fetchone() == (body,)
    with connect(durable) as db:
        check_invariants(db)
        answers = db.execute(
            "select content from convo.message"
            " where role = 'assistant' and conversation_id = any(%s)",
            ([worker.conversation for worker in workers],),
        ).fetchall()
    completed = {str(r) for worker in workers for r in worker.completed}
    assert len(answers) == len(completed) > len(workers)
    assert {answer for (answer,) in answers} == completed


def test_a_purge_survives(durable, rng, check_invariants):
    with connect(durable) as db:
        db.execute("truncate convo.conversation, convo.prompt cascade")
        db.execute(
            "insert into convo.retention_policy"
            " values ('acme', 'standard', '1 day', 'activity', 'delete')"
        )
        db.execute(
            """
            insert into convo.conversation (
                tenant_id, conversation_id, user_id, retention_class, last_seq,
                message_count, token_total, body_count, body_tokens, created_at,
                updated_at
            )
            select
                'acme', gen_random_uuid(), 'ann', 'standard', 20, 20, 20, 20, 20,
                now() - '2 days'::interval, now() - '2 days'::interval
            from generate_series(1, 2000)
            """
        )
        db.execute(
            """
            insert into convo.message (
                tenant_id, conversation_id, seq, user_id, role, content, tokens,
                is_estimated, is_empty, group_seq, created_at
            )
            select
                c.tenant_id, c.conversation_id, n, c.user_id, 'user', 'text', 1, false,
                false, n, c.created_at
            from convo.conversation as c
            cross join generate_series(1, 20) as n
            """
        )
    interrupted = 0
    for _ in range(4):
        with connect(durable, "maintainer") as conn:
            purging = threading.Thread(
                target=swallow, args=(conn, "call convo.purge_all(10)")
            )
            purging.start()
            time.sleep(rng.uniform(0.02, 0.08))
            durable.kill()
            purging.join(20)
        durable.start()
        with connect(durable) as db:
            check_invariants(db)
            left, gone, logged = db.execute(
                """
                select
                    (select count(*) from convo.conversation),
                    (select count(*) from convo.tombstone),
                    (select coalesce(sum(conversations), 0) from convo.purge_run)
                """
            ).fetchone()
        assert (left + gone, logged) == (2000, gone)
        interrupted += left > 0
    assert interrupted > 0
    with connect(durable, "maintainer") as conn:
        conn.execute("call convo.purge_all()")
    with connect(durable) as db:
        check_invariants(db)
        assert db.execute("select count(*) from convo.message").fetchone() == (0,)


def swallow(conn, query):
    with contextlib.suppress(psycopg.OperationalError):
        conn.execute(query)
