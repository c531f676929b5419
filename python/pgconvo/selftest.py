"""Check an installed pgconvo on the database that it is in.

Everything happens in one transaction that is rolled back, as the group roles and in
tenants with random names, so what is stored there plays no part and doesn't change.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from .errors import AlreadyInTransaction, NotAllowed, PgconvoError

ROLES = ("convo_app", "convo_service", "convo_maintainer")
_BULK = 3000  # messages in the conversation whose plan is looked at


@dataclass(frozen=True)
class Result:
    """What one check found.

    ``expected`` and ``seen`` are None when it passed. ``seconds`` is how long it took.
    """

    name: str
    seconds: float
    expected: str | None = None
    seen: str | None = None

    @property
    def passed(self) -> bool:
        """Tell whether it passed."""
        return self.expected is None


class Mismatch(Exception):
    """A check saw something else than it expected."""

    def __init__(self, expected: object, seen: object) -> None:
        super().__init__(expected, seen)
        self.expected, self.seen = str(expected), str(seen)


class Scene:
    """The tenants of one check, and how it acts as one of them."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self.conn = conn
        self.tenant, self.other = (f"selftest-{uuid4()}" for _ in range(2))

    def act(
        self, role: str = "convo_app", tenant: str | None = None, user: str = "ann"
    ) -> None:
        """Go on as this role, tenant (by default the scene's own) and user."""
        self.conn.execute("reset role")
        self.conn.execute(sql.SQL("set local role {}").format(sql.Identifier(role)))
        self.conn.execute(
            "select set_config('convo.tenant_id', %s, true),"
            " set_config('convo.user_id', %s, true),"
            " set_config('request.jwt.claims', '', true)",
            (self.tenant if tenant is None else tenant, user),
        )

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Send a query and return its rows."""
        with self.conn.cursor(row_factory=tuple_row) as cursor:
            return cursor.execute(query.encode(), values).fetchall()

    def value(self, query: str, *values: object) -> Any:
        """Send a query and return its one value."""
        return self.rows(query, *values)[0][0]

    def sqlstate(self, query: str, *values: object) -> str | None:
        """Send a query and return the code of its error, None if it had none."""
        try:
            with self.conn.transaction():
                self.conn.execute(query.encode(), values)
        except psycopg.Error as error:
            return error.sqlstate
        return None

    def conversation(self, *tokens: int) -> Any:
        """Make a conversation whose messages have these tokens, and return its id."""
        conversation_id = self.value("select convo.create_conversation()")
        for number, count in enumerate(tokens):
            self.rows(
                "select seq from convo.append_message(%s, %s, %s, %s)",
                conversation_id,
                ("user", "assistant")[number % 2],
                f"message {number + 1}",
                count,
            )
        return conversation_id


def expect(expected: object, seen: object) -> None:
    """Raise Mismatch when the two differ."""
    if expected != seen:
        raise Mismatch(expected, seen)


def run(conn: psycopg.Connection[Any]) -> Iterator[Result]:
    """Run all checks, one result after another. Nothing of them stays.

    The login must be allowed to SET ROLE to each of `ROLES`.
    Raises AlreadyInTransaction, NotAllowed, and PgconvoError when nothing is installed.
    """
    if conn.info.transaction_status != TransactionStatus.IDLE:
        raise AlreadyInTransaction("the self-test needs a connection outside any")
    with conn.transaction(force_rollback=True):
        _require_installed(conn)
        _require_roles(conn)
        for check in CHECKS:
            started = time.perf_counter()
            mismatch: tuple[str | None, str | None] = (None, None)
            try:
                with conn.transaction(force_rollback=True):
                    scene = Scene(conn)
                    scene.act()
                    check(scene)
            except Mismatch as found:
                mismatch = found.expected, found.seen
            except psycopg.OperationalError:
                raise  # the connection is gone or the server is out of something
            except psycopg.Error as error:
                mismatch = "no error", f"{error.sqlstate} {error.diag.message_primary}"
            name = (check.__doc__ or check.__name__).rstrip(".")
            yield Result(name, time.perf_counter() - started, *mismatch)


def _require_installed(conn: psycopg.Connection[Any]) -> None:
    query = "select from pg_namespace where nspname = 'convo'"
    if conn.execute(query).rowcount == 0:
        raise PgconvoError(
            f"pgconvo isn't installed in database {conn.info.dbname}",
            hint="Run `pgconvo migrate` first.",
        )


def _require_roles(conn: psycopg.Connection[Any]) -> None:
    refused = [role for role in ROLES if not _may_become(conn, role)]
    if refused:
        roles = ", ".join(refused)
        raise NotAllowed(
            f"{conn.info.user} may not SET ROLE to {roles}",
            hint="Run it as a superuser, or first as one:"
            f" grant {roles} to {conn.info.user}",
        )


def _may_become(conn: psycopg.Connection[Any], role: str) -> bool:
    try:
        with conn.transaction(force_rollback=True):
            conn.execute(sql.SQL("set local role {}").format(sql.Identifier(role)))
    except (
        psycopg.errors.InsufficientPrivilege,
        psycopg.errors.InvalidParameterValue,
    ):
        return False
    return True


def last_messages(scene: Scene) -> None:
    """The last 4 of 7 messages are 4 to 7."""
    conversation_id = scene.conversation(*[10] * 7)
    rows = scene.rows("select seq from convo.last_messages(%s, 4)", conversation_id)
    expect([4, 5, 6, 7], [seq for (seq,) in rows])


def window_of_150(scene: Scene) -> None:
    """A window of 150 tokens ends before the message that goes over."""
    conversation_id = scene.conversation(40, 75, 8, 90)
    rows = scene.rows(
        "select seq, running_tokens from convo.token_window(%s, 150)", conversation_id
    )
    expect([(3, 98), (4, 90)], rows)


def window_of_1460(scene: Scene) -> None:
    """Of six turns, a window of 1,460 tokens keeps four with 1,371."""
    conversation_id = scene.conversation(310, 295, 402, 388, 517, 64)
    rows = scene.rows(
        "select seq, running_tokens from convo.token_window(%s, 1460)", conversation_id
    )
    expect([(3, 1371), (4, 969), (5, 581), (6, 64)], rows)


def tool_call_and_result(scene: Scene) -> None:
    """A tool call and its result are kept or dropped together."""
    conversation_id = scene.value("select convo.create_conversation()")
    function = {"name": "look_up", "arguments": "{}"}
    call = {"id": "call_1", "type": "function", "function": function}
    messages = [
        {"role": "user", "content": "Look it up."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "42"},
        {"role": "assistant", "content": "It is 42."},
    ]
    scene.rows(
        "select seq from convo.append_messages(%s, %s, tokens => %s)",
        conversation_id,
        json.dumps(messages),
        [10, 20, 30, 40],
    )
    query = "select array_agg(seq) from convo.token_window(%s, %s)"
    windows = [scene.value(query, conversation_id, budget) for budget in (89, 90)]
    expect([[4], [2, 3, 4]], windows)


def other_tenant(scene: Scene) -> None:
    """Another tenant sees nothing and can't write."""
    _is_hidden_from(scene, "convo_app", scene.other, "ann")


def other_user(scene: Scene) -> None:
    """Another user of the tenant sees nothing and can't write."""
    _is_hidden_from(scene, "convo_app", scene.tenant, "bob")


def other_service(scene: Scene) -> None:
    """Another tenant's workers see nothing and can't write."""
    _is_hidden_from(scene, "convo_service", scene.other, "")


def _is_hidden_from(scene: Scene, role: str, tenant: str, user: str) -> None:
    conversation_id = scene.conversation(10, 20)
    scene.act(role, tenant, user)
    seen = [
        scene.value(query, conversation_id)
        for query in (
            "select count(*) from convo.get_conversation(%s)",
            "select count(*) from convo.last_messages(%s, 10)",
            "select count(*) from convo.token_window(%s, 1000)",
            "select count(*) from convo.message where conversation_id = %s",
        )
    ]
    append = "select seq from convo.append_message(%s, 'user', 'Hi')"
    expect([0, 0, 0, 0, "PC001"], [*seen, scene.sqlstate(append, conversation_id)])


def no_context(scene: Scene) -> None:
    """Without a tenant functions raise PC030 and tables show no row."""
    conversation_id = scene.conversation(10)
    scene.act(tenant="", user="")
    code = scene.sqlstate(
        "select count(*) from convo.last_messages(%s, 1)", conversation_id
    )
    count = scene.value("select count(*) from convo.message")
    expect(("PC030", 0), (code, count))


def idempotency_key(scene: Scene) -> None:
    """A retry with its idempotency key stores nothing twice."""
    conversation_id = scene.conversation()
    append = (
        "select seq from convo.append_message(%s, 'user', %s, idempotency_key => 'k')"
    )
    seqs = [scene.value(append, conversation_id, "Hi") for _ in range(2)]
    code = scene.sqlstate(append, conversation_id, "Something else")
    count = scene.value(
        "select message_count from convo.get_conversation(%s)", conversation_id
    )
    expect(([1, 1], "PC011", 1), (seqs, code, count))


def expected_seq(scene: Scene) -> None:
    """A writer that missed a message is told so."""
    conversation_id = scene.conversation(10, 10)
    append = (
        "select seq from convo.append_message(%s, 'user', 'Hi', expected_seq => %s)"
    )
    codes = [scene.sqlstate(append, conversation_id, seq) for seq in (1, 2)]
    expect(["PC010", None], codes)


def legal_hold(scene: Scene) -> None:
    """On legal hold nobody deletes it, by function or by SQL."""
    conversation_id = scene.conversation(10)
    scene.act("convo_service", user="")
    scene.rows("select convo.hold_conversation(%s, 'selftest')", conversation_id)
    scene.act()
    code = scene.sqlstate("select convo.delete_conversation(%s)", conversation_id)
    with scene.conn.cursor() as cursor:
        cursor.execute(
            "delete from convo.conversation where conversation_id = %s",
            (conversation_id,),
        )
        expect(("PC040", 0), (code, cursor.rowcount))


def cascade(scene: Scene) -> None:
    """Deleting a conversation leaves its tombstone and nothing else."""
    conversation_id = scene.conversation(10, 20)
    scene.rows(
        "select seq from convo.append_message(%s, 'user', 'x', idempotency_key => 'k')",
        conversation_id,
    )
    scene.rows("select seq from convo.edit_message(%s, 1, 'y')", conversation_id)
    tables = (
        "conversation",
        "message",
        "message_revision",
        "idempotency_key",
        "tombstone",
    )

    def counts() -> list[int]:
        query = "select count(*) from convo.{} where conversation_id = %s"
        return [scene.value(query.format(table), conversation_id) for table in tables]

    before = counts()
    scene.rows("select convo.delete_conversation(%s)", conversation_id)
    expect(([1, 3, 1, 1, 0], [0, 0, 0, 0, 1]), (before, counts()))


def purge_dry_run(scene: Scene) -> None:
    """A dry run of the purge counts what is due and what is held."""
    dry_run = "select conversations, held from convo.purge(true, 1000)"
    scene.act("convo_maintainer", "", "")
    ((due, held),) = scene.rows(dry_run)
    scene.act()
    held_id, _ = scene.conversation(10), scene.conversation(10)
    scene.act("convo_service", user="")
    scene.rows("select convo.hold_conversation(%s, 'selftest')", held_id)
    scene.rows("select convo.set_retention('standard', interval '0')")
    scene.rows("select pg_sleep(0.002)")  # times are rounded to milliseconds
    scene.act("convo_maintainer", "", "")
    expect([(min(due + 1, 1000), held + 1)], scene.rows(dry_run))


def maintainer_content(scene: Scene) -> None:
    """The purge's role can't read messages."""
    scene.act("convo_maintainer", "", "")
    expect("42501", scene.sqlstate("select count(*) from convo.message"))


def window_plan(scene: Scene) -> None:
    """A window reads its own rows, not the conversation's."""
    conversation_id = scene.conversation()
    messages = [{"role": "user", "content": f"message {n}"} for n in range(_BULK)]
    scene.rows(
        "select count(*) from convo.append_messages(%s, %s, tokens => %s)",
        conversation_id,
        json.dumps(messages),
        [10] * _BULK,
    )
    # 50 rows fit. Two or so more are read to see that they don't.
    (plan,) = scene.value(
        "explain (analyze, timing off, format json)"
        " select * from convo.token_window(%s, 500)",
        conversation_id,
    )
    read = sum(_rows_read(plan["Plan"]))
    if not 50 <= read <= 60:
        raise Mismatch(f"50 to 60 of {_BULK} rows read", read)


def _rows_read(plan: dict[str, Any]) -> Iterator[int]:
    if "message" in plan.get("Relation Name", ""):
        removed = plan.get("Rows Removed by Filter", 0)
        yield round((plan["Actual Rows"] + removed) * plan["Actual Loops"])
    for child in plan.get("Plans", ()):
        yield from _rows_read(child)


CHECKS: tuple[Callable[[Scene], None], ...] = (
    last_messages,
    window_of_150,
    window_of_1460,
    tool_call_and_result,
    other_tenant,
    other_user,
    other_service,
    no_context,
    idempotency_key,
    expected_seq,
    legal_hold,
    cascade,
    purge_dry_run,
    maintainer_content,
    window_plan,
)
