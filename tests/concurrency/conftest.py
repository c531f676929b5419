"""Many connections at once, and what must be true of the tables whatever they did."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Barrier
from typing import Any

import psycopg
import pytest

TENANT, USER = "acme", "ann"
PATIENCE = 20  # seconds that anything may take

# Each query lists what is wrong.
INVARIANTS = {
    "counters are what they count": """
        select c.conversation_id
        from convo.conversation as c
        left join lateral (
            select
                count(*) as messages,
                max(m.seq) as last_seq,
                count(*) filter (where deleted_at is null) as live,
                sum(tokens) filter (where deleted_at is null) as tokens,
                count(*) filter (where deleted_at is null and role <> 'system') as body,
                sum(tokens) filter (where deleted_at is null and role <> 'system')
                    as body_tokens
            from convo.message as m
            where (m.tenant_id, m.conversation_id) = (c.tenant_id, c.conversation_id)
        ) as m on true
        where (
            c.last_seq, c.last_seq, c.message_count, c.token_total, c.body_count,
            c.body_tokens
        ) is distinct from (
            m.messages, coalesce(m.last_seq, 0), m.live, coalesce(m.tokens, 0), m.body,
            coalesce(m.body_tokens, 0)
        )
    """,
    "times follow the order": """
        select m.conversation_id, m.seq
        from (
            select m.*, lag(m.created_at) over (
                partition by m.tenant_id, m.conversation_id order by m.seq
            ) as earlier
            from convo.message as m
        ) as m
        where m.created_at < m.earlier
    """,
    "revisions have no gaps": """
        select m.conversation_id, m.seq
        from convo.message as m
        where m.revision <> 1 + (
            select count(*)
            from convo.message_revision as r
            where (r.tenant_id, r.conversation_id, r.seq)
                = (m.tenant_id, m.conversation_id, m.seq)
        )
    """,
    "keys name messages that are there": """
        select k.conversation_id, k.key
        from convo.idempotency_key as k
        where k.last_seq - k.first_seq + 1 <> (
            select count(*)
            from convo.message as m
            where (m.tenant_id, m.conversation_id) = (k.tenant_id, k.conversation_id)
                and m.seq between k.first_seq and k.last_seq
        )
    """,
    "nothing came back to life": """
        select c.conversation_id
        from convo.conversation as c
        join convo.tombstone as t using (tenant_id, conversation_id)
    """,
    "each prompt is in use": """
        select p.user_id, p.content
        from convo.prompt as p
        where not exists (
            select
            from convo.conversation as c
            where (c.tenant_id, c.user_id, c.system_prompt_sha256)
                = (p.tenant_id, p.user_id, p.sha256)
        )
            and not exists (
                select
                from convo.request_prompt as r
                where (r.tenant_id, r.user_id, r.sha256)
                    = (p.tenant_id, p.user_id, p.sha256)
            )
    """,
    "each request has its frame and its answer": """
        select r.request_id
        from convo.request as r
        left join convo.request_frame as f using (tenant_id, conversation_id, frame_id)
        where f.frame_id is null
            or f.user_id <> r.user_id
            or r.last_answer_seq - r.first_answer_seq + 1 <> (
                select count(*)
                from convo.message as m
                where (m.tenant_id, m.conversation_id)
                    = (r.tenant_id, r.conversation_id)
                    and m.seq between r.first_answer_seq and r.last_answer_seq
            )
    """,
    "each completed request has its usage once": """
        select r.request_id
        from convo.request as r
        where r.response_sha256 is not null and 1 < (
            select count(*)
            from convo.usage as u
            where (u.tenant_id, u.request_id) = (r.tenant_id, r.request_id)
                and not u.is_failed
        )
    """,
}


@pytest.fixture
def check_invariants() -> Callable[[psycopg.Connection], None]:
    """Fail if counters, order, keys, tombstones or prompts contradict each other."""

    def check(conn: psycopg.Connection) -> None:
        for name, query in INVARIANTS.items():
            assert conn.execute(query).fetchall() == [], name

    return check


@pytest.fixture
def app(connect: Callable[..., psycopg.Connection]) -> psycopg.Connection:
    """The application, for one user."""
    return connect("test_app", TENANT, USER)


@pytest.fixture
def apps(connect: Callable[..., psycopg.Connection]) -> Callable[[int], list[Any]]:
    """Connect several times as the same user."""

    def apps(count: int) -> list[psycopg.Connection]:
        return [connect("test_app", TENANT, USER) for _ in range(count)]

    return apps


@pytest.fixture
def service(connect: Callable[..., psycopg.Connection]) -> psycopg.Connection:
    """A worker of the same tenant."""
    return connect("test_service", TENANT)


@pytest.fixture
def make_conversation(app: psycopg.Connection) -> Callable[..., Any]:
    """Make a conversation with some messages of one token, and return its id."""

    def make(messages: int = 0) -> Any:
        (made,) = app.execute("select convo.create_conversation()").fetchone()
        for number in range(messages):
            app.execute(
                "select convo.append_message(%s, 'user', %s, 1)", (made, str(number))
            )
        return made

    return make


class Crew:
    """Threads that the tests give work to."""

    def __init__(self, db: psycopg.Connection, pool: ThreadPoolExecutor) -> None:
        self.db = db
        self.pool = pool

    def at_once(self, jobs: Sequence[Callable[[], Any]]) -> list[Any]:
        """Start the jobs together. Give each one's result, or its database error."""
        barrier = Barrier(len(jobs))

        def run(job: Callable[[], Any]) -> Any:
            barrier.wait(PATIENCE)
            try:
                return job()
            except psycopg.Error as error:
                return error

        return list(self.pool.map(run, jobs, timeout=PATIENCE * 3))

    def blocked(self, conn: psycopg.Connection, query: str, *args: Any) -> Future[Any]:
        """Start a query that has to wait for a lock. Return when it does wait."""
        future = self.pool.submit(lambda: conn.execute(query, args).fetchone()[0])
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if future.done():
                pytest.fail(f"it didn't wait: {future.exception() or future.result()}")
            (pids,) = self.db.execute(
                "select pg_blocking_pids(%s)", (conn.info.backend_pid,)
            ).fetchone()
            if pids:
                return future
            time.sleep(0.005)
        pytest.fail("it neither waited nor ended")


@pytest.fixture
def crew(db: psycopg.Connection) -> Iterator[Crew]:
    """Run things at once."""
    with ThreadPoolExecutor(32) as pool:
        yield Crew(db, pool)


def code(result: Any) -> str | None:
    """Return the SQLSTATE of an error, None for any other result."""
    return result.sqlstate if isinstance(result, psycopg.Error) else None


@pytest.fixture
def codes() -> Callable[[Sequence[Any]], list[str | None]]:
    """Give the SQLSTATEs of results, None for what is no error."""
    return lambda results: [code(result) for result in results]


@pytest.fixture
def rng() -> random.Random:
    """Random numbers that are the same in each run."""
    return random.Random(7)
