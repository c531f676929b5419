"""Two tenants, two users in one of them, and a row of theirs in every table.

Everything that a person stores contains secret(tenant, user), so that a leak is seen
wherever it turns up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg
from psycopg import Connection, sql
from psycopg.types.json import Json, Jsonb

Act = Callable[..., AbstractContextManager[Connection]]

PEOPLE = [("a", "ann"), ("a", "bob"), ("b", "ann")]
VICTIM = ("a", "ann")
# What every user of a tenant may read: it holds nobody's content.
TENANT_WIDE = {"convo.context_policy", "convo.embedding_model"}
NOBODY = UUID(int=7)  # the id of a conversation that never was


def secret(tenant: str, user: str) -> str:
    return f"secret-{tenant}-{user}"


@dataclass
class Things:
    """The conversations of one person, and two requests of the live one."""

    live: UUID
    held: UUID
    due: UUID
    gone: UUID
    prepared: UUID = NOBODY
    completed: UUID = NOBODY

    @property
    def conversations(self) -> dict[str, UUID]:
        """The conversations by their state."""
        return {name: getattr(self, name) for name in ("live", "held", "due", "gone")}

    @property
    def requests(self) -> dict[str, UUID]:
        """The requests by their state."""
        return {"prepared": self.prepared, "completed": self.completed}


@dataclass
class World:
    dsn: str
    tables: dict[str, list[str]] = field(default_factory=dict)
    """The columns of each table that belongs to tenants."""
    things: dict[tuple[str, str], Things] = field(default_factory=dict)


@dataclass(frozen=True)
class Attacker:
    """A login with a context; no tenant or user: none is set."""

    name: str
    login: str
    tenant: str | None = None
    user: str | None = None

    @property
    def has_context(self) -> bool:
        return (self.tenant, self.user) in PEOPLE or (
            self.login != "test_app" and self.tenant in ("a", "b")
        )

    def may_read(self, table: str) -> bool:
        """Whether it is a table of the victim's tenant that all its users may read."""
        is_colleague = self.login == "test_app" and self.tenant == VICTIM[0]
        return table in TENANT_WIDE and is_colleague and bool(self.user)


GARBAGE = "' or 1=1 --"
APP_ATTACKERS = [
    Attacker("another tenant's user of the same name", "test_app", "b", "ann"),
    Attacker("another user of the tenant", "test_app", "a", "bob"),
    Attacker("app without context", "test_app"),
    Attacker("app with empty context", "test_app", "", ""),
    Attacker("app with a tenant only", "test_app", "a"),
    Attacker("app with a tenant and an empty user", "test_app", "a", ""),
    Attacker("app with a user only", "test_app", None, "ann"),
    Attacker("app with a garbage tenant", "test_app", GARBAGE, "ann"),
    Attacker("app with a garbage user", "test_app", "a", GARBAGE),
    Attacker("app with a tenant in capitals", "test_app", "A", "ann"),
    Attacker("app with a space after the tenant", "test_app", "a ", "ann"),
    Attacker("app with a pattern", "test_app", "%", "%"),
]
ATTACKERS = [
    *APP_ATTACKERS,
    Attacker("another tenant's service", "test_service", "b"),
    Attacker("another tenant's service for a user", "test_service", "b", "ann"),
    Attacker("service without context", "test_service"),
    Attacker("service with empty context", "test_service", "", ""),
    Attacker("service with a garbage tenant", "test_service", GARBAGE),
    Attacker("another tenant's reader", "test_reader", "b"),
    Attacker("reader without context", "test_reader"),
    Attacker("reader with a garbage tenant", "test_reader", GARBAGE),
    Attacker("a login without a group", "test_nobody", "a", "ann"),
]


@dataclass
class Outcome:
    """What a statement gave: rows and how many, or an error."""

    rows: list[tuple[Any, ...]] = field(default_factory=list)
    count: int = 0
    code: str = ""
    words: tuple[str | None, ...] = ()
    """MESSAGE, DETAIL and HINT of the error, and the places in its CONTEXT."""

    def __str__(self) -> str:
        return f"{self.code} {self.words}" if self.code else f"{self.rows}"

    @property
    def is_nothing(self) -> bool:
        return not self.code and self.count == 0


def attempt(conn: Connection, query: Any, *parameters: Any) -> Outcome:
    """Run a statement and undo it."""
    try:
        with conn.transaction(force_rollback=True):
            cursor = conn.execute(query, parameters or None)
            rows = cursor.fetchall() if cursor.description else []
            return Outcome(rows, cursor.rowcount)
    except psycopg.Error as error:
        diag = error.diag
        # The places in the code. An expression is named as well when it runs again.
        places = re.findall(r"^PL/pgSQL function .*$", diag.context or "", re.MULTILINE)
        words = (diag.message_primary, diag.message_detail, diag.message_hint, *places)
        return Outcome(code=error.sqlstate or "?", words=words)


def create(dsn: str) -> World:
    """Fill a migrated database."""
    world = World(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn:
        rows = conn.execute(
            """
            select c.oid::regclass::text, array_agg(a.attname::text order by a.attnum)
            from pg_class as c
            join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0
            where c.relnamespace in (
                    'convo'::regnamespace, 'convo_private'::regnamespace
                )
                and c.relkind in ('r', 'p')
                and not a.attisdropped
            group by c.oid
            having 'tenant_id' = any (array_agg(a.attname::text))
            """
        ).fetchall()
        world.tables = dict(sorted(rows))
        del world.tables["convo_private.tenant_login"]
        for tenant, user in PEOPLE:
            with conn.transaction():
                world.things[tenant, user] = create_things(conn, tenant, user)
        conn.execute("analyze")
    return world


def create_things(conn: Connection, tenant: str, user: str) -> Things:
    text = secret(tenant, user)

    def call(query: str, *parameters: Any) -> Any:
        row = conn.execute(f"select convo.{query}", parameters).fetchone()
        assert row is not None
        return row[0]

    def conversation(retention_class: str = "standard") -> UUID:
        made = call(
            "create_conversation(%s, %s, %s, null, %s, %s)",
            text, f"{text} {retention_class}", Jsonb({"note": text}), retention_class,
            text,
        )  # fmt: skip
        call(
            "append_message(%s, 'user', %s, null, %s, null, %s, %s)",
            made, text, text, text, Jsonb({"note": text}),
        )  # fmt: skip
        assert isinstance(made, UUID)
        return made

    call("set_context(%s, %s)", tenant, user)
    things = Things(
        conversation(), conversation(), conversation("short"), conversation()
    )
    function = {"name": "f", "arguments": f'"{text}"'}
    calls = [{"id": text, "type": "function", "function": function}]
    batch = [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": text, "content": text},
    ]
    call("append_messages(%s, %s)", things.live, Json(batch))
    call("edit_message(%s, 1, %s)", things.live, f"{text} edited")
    for one in (things.live, things.held):
        call("append_message(%s, 'user', %s)", one, text)
    call("save_summary(%s, %s, 1, 0, null, %s)", things.held, text, text)
    parameters = Json({"user": text, "tools": [text]})
    things.prepared, things.completed = (
        conn.execute(
            "select request_id"
            " from convo.prepare_request(%s, 'openai', %s, null, null, %s)",
            (things.live, text, parameters),
        ).fetchall()[0][0]
        for _ in range(2)
    )
    answer = {"message": {"role": "assistant", "content": text}}
    response = Json({"choices": [answer], "usage": {"prompt_tokens": 1, "note": text}})
    call("complete_request(%s, %s)", things.completed, response)
    call("delete_message(%s, 1)", things.held)
    call("restore_message(%s, 1)", things.held)
    for value in (text, f"{text} again"):
        call("remember(%s, %s)", Json([{"key": text, "value": value}]), things.live)
    if conn.execute("select to_regclass('convo.embedding')").fetchone() != (None,):
        call("store_embedding(%s, 1, 'a model', '{1, 0, 0}')", things.live)
        conn.execute(
            "insert into convo.embedding_progress values (%s, %s, 'a model', 1, now())",
            (tenant, things.held),
        )
    call("set_policy('a policy')")
    call("set_policy('default', summary_threshold => 1)")
    call("hold_conversation(%s, %s)", things.held, text)
    call("delete_conversation(%s)", things.gone)
    call("set_retention('short', '1 year')")
    call("set_retention('for ever', null)")
    conn.execute(
        "update convo.conversation set created_at = '2001-01-01',"
        " updated_at = '2001-01-01' where conversation_id = %s",
        (things.due,),
    )
    conn.execute(
        "insert into convo.purge_run values"
        " (%s, gen_random_uuid(), 1, 1, '2001-01-01', '2001-01-01')",
        (tenant,),
    )
    return things


def whose(
    world: World, table: str, tenant: str, user: str, alias: str | None = None
) -> sql.Composed:
    """A condition: the rows of a person, or of the tenant where rows have no owner."""

    def column(name: str) -> sql.Identifier:
        return sql.Identifier(alias, name) if alias else sql.Identifier(name)

    condition = sql.SQL("{} = {}").format(column("tenant_id"), tenant)
    if "user_id" in world.tables[table]:
        condition += sql.SQL(" and {} = {}").format(column("user_id"), user)
    return condition


def name_of(table: str) -> sql.Identifier:
    return sql.Identifier(*table.split("."))
