"""A large, skewed database, and what a statement reads in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

BIG, TAIL, LONG = (UUID(int=n) for n in (1, 2, 3))

# One conversation of 100,000 messages; one whose last 20,000 of 60,000 are softly
# deleted; one of 2,000 messages whose content lies in the TOAST table; 5,000 small ones
# of another user of the tenant, and 2,000 of 50 other tenants.
DATA = """
set session_replication_role = replica;  -- no foreign key checks
create temporary table made as
select 'acme' as tenant_id, '{big}'::uuid as conversation_id, 'ann' as user_id,
    100000 as messages, 0 as deleted
union all select 'acme', '{tail}', 'ann', 60000, 20000
union all select 'acme', '{long}', 'ann', 2000, 0
union all select 'acme', gen_random_uuid(), 'ann', 2, 0 from generate_series(1, 20)
union all select 'acme', gen_random_uuid(), 'bob', 4, 0 from generate_series(1, 5000)
union all
select 'tenant ' || n % 50, gen_random_uuid(), 'user ' || n % 7, 5, 1
from generate_series(1, 2000) as n;

insert into convo.conversation (
    tenant_id, conversation_id, user_id, retention_class, last_seq, message_count,
    token_total, body_count, body_tokens, created_at, updated_at
)
select
    tenant_id, conversation_id, user_id, 'standard', messages, messages - deleted,
    100 * (messages - deleted), messages - deleted, 100 * (messages - deleted), now(),
    now()
from made;

insert into convo.message (
    tenant_id, conversation_id, seq, user_id, role, content, tokens, is_estimated,
    is_empty, group_seq, created_at, deleted_at
)
select
    c.tenant_id, c.conversation_id, n, c.user_id,
    (array['user', 'assistant'])[1 + n % 2],
    case
        when c.conversation_id = '{long}' then (
            select string_agg(md5(n::text || part), '')
            from generate_series(1, 100) as part
        )
        else repeat('word ', 20)
    end,
    100, false, false, n, now(), case when n > c.messages - c.deleted then now() end
from made as c
cross join lateral generate_series(1, c.messages) as n;
"""


@pytest.fixture(scope="session")
def plans_dsn(
    pg_server: Any, pg_template: Any, make_database: Callable[..., str]
) -> str:
    """The database, as superuser. Tests change nothing in it, or roll back."""
    dsn = make_database(pg_template.template_dbname)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(DATA.format(big=BIG, tail=TAIL, long=LONG))
        conn.execute("vacuum analyze")
    return dsn


@pytest.fixture
def plans_db(plans_dsn: str) -> Iterator[psycopg.Connection]:
    """A superuser's connection, whose transaction is rolled back."""
    with psycopg.connect(plans_dsn) as conn:
        yield conn
        conn.rollback()


@pytest.fixture
def log_in(plans_dsn: str) -> Iterator[Callable[..., psycopg.Connection]]:
    """Connect as a login; its transaction is rolled back."""
    opened = []

    def log_in(
        login: str = "test_app", tenant: str = "acme", user: str = "ann", **options: Any
    ) -> psycopg.Connection:
        conn = psycopg.connect(
            make_conninfo(plans_dsn, user=login),
            **{"prepare_threshold": None, **options},
        )
        opened.append(conn)
        if login != "test_maintainer":
            conn.execute("select convo.set_context(%s, %s)", (tenant, user))
        return conn

    yield log_in
    for conn in opened:
        conn.close()


class Plan:
    """The plan of a statement that was run, as nodes."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.nodes = list(self._walk(root))
        self.rows = root["Actual Rows"]

    def _walk(self, node: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield node
        for child in node.get("Plans", ()):
            yield from self._walk(child)

    def read(self, table: str) -> float:
        """Count the rows that scans of a table read, those they threw away too."""
        return sum(
            node["Actual Loops"]
            * (
                node["Actual Rows"]
                + node.get("Rows Removed by Filter", 0)
                + node.get("Rows Removed by Index Recheck", 0)
            )
            for node in self.nodes
            if node.get("Relation Name") == table
        )

    def kinds(self, table: str) -> set[str]:
        """Return the kinds of scans of a table."""
        return {
            node["Node Type"]
            for node in self.nodes
            if node.get("Relation Name") == table
        }

    def largest_sort(self) -> float:
        """Return the most rows that were sorted."""
        return max(
            (
                node["Actual Rows"] * node["Actual Loops"]
                for node in self.nodes
                if "Sort" in node["Node Type"]
            ),
            default=0,
        )

    def is_inlined(self) -> bool:
        return all(node["Node Type"] != "Function Scan" for node in self.nodes)


@pytest.fixture
def explain() -> Callable[..., Plan]:
    """Prepare `select * from call`, run it and return its plan.

    `mode` is generic or custom, as plan_cache_mode has it.
    """

    def explain(
        conn: psycopg.Connection,
        call: str,
        types: str,
        *args: Any,
        mode: str = "custom",
    ) -> Plan:
        conn.execute(f"set local plan_cache_mode = force_{mode}_plan")
        conn.execute(f"prepare it ({types}) as select * from {call}")
        values = sql.SQL(", ").join(map(sql.Literal, args))
        query = sql.SQL("explain (analyze, buffers, format json) execute it ({})")
        ((plan,),) = conn.execute(query.format(values)).fetchone()
        conn.execute("deallocate it")
        return Plan(plan["Plan"])

    return explain


@pytest.fixture
def reads() -> Callable[..., Any]:
    """Count the rows that each table gave to what runs in a `with reads(conn)`."""
    query = """
        select relid::regclass::text, seq_tup_read, coalesce(idx_tup_fetch, 0)
        from pg_stat_xact_all_tables
        where schemaname = 'convo'
        union all
        select 'toast', coalesce(sum(seq_tup_read), 0), coalesce(sum(idx_tup_fetch), 0)
        from pg_stat_xact_all_tables
        where schemaname = 'pg_toast'
            and relid = (
                select reltoastrelid from pg_class where oid = 'convo.message'::regclass
            )
    """

    @contextmanager
    def reads(conn: psycopg.Connection) -> Iterator[dict[str, dict[str, int]]]:
        def count() -> dict[str, tuple[int, int]]:
            return {name: tuple(counts) for name, *counts in conn.execute(query)}

        counted: dict[str, dict[str, int]] = {}
        before = count()
        yield counted
        for name, after in count().items():
            differences = [b - a for a, b in zip(before[name], after, strict=True)]
            counted[name.removeprefix("convo.")] = dict(
                zip(("sequential", "index"), differences, strict=True)
            )

    return reads
