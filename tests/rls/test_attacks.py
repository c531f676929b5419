"""Ways around the policies: planted objects, leaky functions, errors that tell."""

from __future__ import annotations

import re

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from .test_functions import MAY_CALL, call, functions  # noqa: F401  (a fixture)
from .world import NOBODY, TENANT_WIDE, VICTIM, attempt, name_of, secret, whose

ANN, BOB, OTHER = ("a", "ann"), ("a", "bob"), ("b", "ann")


@pytest.fixture
def notices(sessions):
    heard = []

    def listen(notice):
        heard.append(notice.message_primary)

    conn = sessions("test_app")
    conn.add_notice_handler(listen)
    yield heard
    conn.remove_notice_handler(listen)


# Planted objects ----------------------------------------------------------------------


def plant_tables(conn, world):
    """Empty tables of the same names, first in every path that isn't pinned."""
    for table in [*world.tables, "convo_private.tenant_login"]:
        name = table.split(".")[1]
        conn.execute(
            sql.SQL("create table {0} (like {1}); grant all on {0} to public").format(
                sql.Identifier("pg_temp", name), name_of(table)
            )
        )
    conn.execute("set local search_path = pg_temp, pg_catalog, convo, convo_private")
    assert conn.execute("select from message").rowcount == 0


STABLE = re.compile(r"UUID\('[^']*'\)|datetime\(.*?\)\)?|timedelta\(.*?\)")


@pytest.mark.parametrize("login", ["test_app", "test_service", "test_reader"])
def test_what_is_planted_in_pg_temp_is_not_found(world, act, functions, login):  # noqa: F811
    """S28: every function, as if nothing were there."""
    conversation = world.things[VICTIM].live
    for name in sorted(MAY_CALL[login]):
        query = call(functions, name, conversation)
        with act("postgres", *VICTIM) as conn:
            conn.execute(f"set local role {login}")
            expected = attempt(conn, query)
            conn.execute("reset role")
            plant_tables(conn, world)
            conn.execute(f"set local role {login}")
            got = attempt(conn, query)
        assert STABLE.sub("", str(got)) == STABLE.sub("", str(expected)), name


def test_what_is_planted_does_not_reach_a_definer(world, act):
    """S28: convo_private._has_tombstone and _audit use the real tables."""
    ann = world.things[VICTIM]
    with act("postgres", *VICTIM) as conn:
        plant_tables(conn, world)
        conn.execute("set local role test_service")
        asked = "select convo_private._has_tombstone(%s)"
        assert conn.execute(asked, (ann.gone,)).fetchall() == [(True,)]
        assert conn.execute(asked, (ann.live,)).fetchall() == [(False,)]
        conn.execute("select convo.hold_conversation(%s, 'planted')", (ann.live,))
        assert conn.execute("select from pg_temp.audit").rowcount == 0
        noted = "select from convo.audit where reason = 'planted'"
        assert conn.execute(noted).rowcount == 1


@pytest.mark.parametrize("login", ["test_app", "test_service", "test_maintainer"])
def test_planted_operators_and_functions_change_nothing(world, act, functions, login):  # noqa: F811
    """S30: policies are stored parsed, functions are pinned or bound."""
    with act("postgres") as conn:
        conn.execute(
            """
            create function public.yes(text, text) returns boolean
                language sql as 'select true';
            create function public.yes(uuid, uuid) returns boolean
                language sql as 'select true';
            create function public.no(integer, integer) returns boolean
                language plpgsql as $$ begin raise 'planted'; end $$;
            create function public.sha256(bytea) returns bytea
                language plpgsql as $$ begin raise 'planted'; end $$;
            create function public.length(text) returns integer
                language plpgsql as $$ begin raise 'planted'; end $$;
            create operator public.= (leftarg = text, rightarg = text, function = yes);
            create operator public.= (leftarg = uuid, rightarg = uuid, function = yes);
            create operator public.< (
                leftarg = integer, rightarg = integer, function = no
            );
            create operator public.= (
                leftarg = integer, rightarg = integer, function = no
            );
            set local search_path = public, pg_catalog;
            """
        )
        assert conn.execute("select 'x'::text = 'y'::text").fetchone() == (True,)
        conn.execute(f"set local role {login}")
        if login != "test_maintainer":
            conn.execute("select convo.set_context('b', 'ann')")
            seen = conn.execute(
                "select distinct tenant_id from convo.message"
            ).fetchall()
            assert seen == [("b",)]
        for name in sorted(MAY_CALL[login]):
            got = attempt(conn, call(functions, name, world.things[VICTIM].live))
            assert secret(*VICTIM) not in str(got)
            assert "planted" not in str(got)


# Leaky functions and errors -----------------------------------------------------------


def test_a_leaky_function_sees_own_rows_only(act, notices):
    """S33: it costs nothing, but is no leakproof one, so the policies come first."""
    with act("test_app", *BOB) as conn:
        conn.execute(
            "create function pg_temp.leak(text) returns boolean language plpgsql"
            " cost 0.0000000001 as $$ begin raise notice '%', $1; return true; end $$"
        )
        for table, column in [
            ("message", "content"),
            ("message", "payload::text"),
            ("message_revision", "content"),
            ("conversation", "title"),
            ("conversation", "metadata::text"),
            ("prompt", "content"),
            ("idempotency_key", "key"),
        ]:
            conn.execute(f"select from convo.{table} where pg_temp.leak({column})")
            conn.execute(f"select from convo.{table} order by pg_temp.leak({column})")
        conn.execute("select convo.list_conversations() where pg_temp.leak('own')")
    heard = "\n".join(str(text) for text in notices)
    assert secret(*BOB) in heard
    assert secret(*ANN) not in heard
    assert secret(*OTHER) not in heard


@pytest.mark.parametrize(
    "condition",
    [
        "content::int = 1",
        "content::json is null",
        "content::inet is null",
        "1 / (case when content like '%secret-a-ann%' then 0 else 1 end) = 1",
        "content ~ '('",
    ],
)
def test_an_error_below_the_policies_tells_of_own_rows_only(act, condition):
    with act("test_app", *BOB) as conn:
        for table in ("message", "message_revision", "prompt"):
            got = attempt(conn, f"select from convo.{table} where {condition}")
            assert got.code != "22012"  # a division by zero on somebody else's row
            assert secret(*ANN) not in str(got)
            assert secret(*OTHER) not in str(got)


@pytest.mark.parametrize("login", ["test_app", "test_service"])
def test_errors_hold_no_values(world, act, login):
    """S45: of a CHECK, a unique key, a foreign key, NOT NULL and row security."""
    ann = world.things[VICTIM]
    broken = {
        "23514": [
            "insert into convo.prompt select tenant_id, user_id, 'x', content, tokens"
            " from convo.prompt limit 1",
            "update convo.conversation set title = repeat(title, 100)",
            "update convo.message set tokens = -1",
            "update convo.conversation set policy = repeat(title, 9)",
        ],
        "23505": [
            f"insert into convo.{table} select * from convo.{table}"
            for table in ("message", "prompt", "idempotency_key")
        ]
        + [
            "insert into convo.conversation (tenant_id, conversation_id, user_id,"
            " retention_class, created_at, updated_at)"
            " select tenant_id, conversation_id, user_id, retention_class, created_at,"
            " updated_at from convo.conversation"
        ],
        "23503": [
            "insert into convo.idempotency_key"
            " select tenant_id, gen_random_uuid(), key, user_id, first_seq, last_seq,"
            " sha256, created_at"
            " from convo.idempotency_key limit 1",
            "update convo.conversation set system_prompt_sha256 = sha256('x')",
            "delete from convo.prompt",
        ],
        "23502": ["update convo.conversation set retention_class = null"],
        "42501": [
            "insert into convo.prompt select 'b', user_id, sha256, content, tokens"
            " from convo.prompt limit 1",
        ],
    }
    with act(login, *VICTIM) as conn:
        for code, statements in broken.items():
            for statement in statements:
                got = attempt(conn, statement)
                assert got.code == code, (statement, got)
                assert "secret" not in str(got), statement
                assert str(ann.live) not in str(got), statement


def test_errors_of_functions_hold_ids_and_numbers_only(world, act):
    ann = world.things[VICTIM]
    text = secret(*VICTIM)
    failing = [
        ("append_message(%s, 'tool', %s)", (ann.live, text)),
        ("append_message(%s, %s, 'x')", (ann.live, text)),
        ("append_message(%s, 'user', %s, -1)", (ann.live, text)),
        ("append_message(%s, 'user', %s, expected_seq => 99)", (ann.live, text)),
        (
            "append_message(%s, 'user', 'other', idempotency_key => %s)",
            (ann.live, text),
        ),
        ("append_messages(%s, to_json(%s::text))", (ann.live, text)),
        ("append_messages(%s, json_build_object('role', %s::text))", (ann.live, text)),
        ("append_message(%s, 'user', 'x', model => repeat(%s, 99))", (ann.live, text)),
        ("update_conversation(%s, title => repeat(%s, 999))", (ann.live, text)),
        ("update_conversation(%s, policy => repeat(%s, 99))", (ann.live, text)),
        ("edit_message(%s, 1, %s, expected_revision => 99)", (ann.live, text)),
        ("edit_message(%s, 99, %s)", (ann.live, text)),
        ("create_conversation(conversation_id => %s, title => %s)", (ann.gone, text)),
        ("create_conversation(title => repeat(%s, 999))", (text,)),
    ]
    with act("test_app", *VICTIM) as conn:
        for query, parameters in failing:
            got = attempt(conn, f"select convo.{query}", *parameters)
            assert got.code, query
            assert text not in str(got), (query, got)


# Oracles ------------------------------------------------------------------------------


def test_another_tenants_keys_are_free(world, act):
    """S39, S41: the same id, prompt and key are no conflict, so they tell nothing."""
    with act("postgres") as conn:
        rows = {
            table: conn.execute(
                sql.SQL(
                    "select row_to_json(t)::text from {} as t where {} limit 1"
                ).format(name_of(table), whose(world, table, *VICTIM))
            ).fetchone()[0]
            for table in world.tables
        }
    insert = """
        insert into {table} ({columns}) select {columns} from json_populate_record(
            null::{table}, ({row}::jsonb || '{{"tenant_id": "b"}}')::json
        ) as r {conflict}
    """
    free = []
    for table, row in rows.items():
        with act("test_service", "b", "ann") as conn:
            columns = sql.SQL(", ").join(
                sql.Identifier(name)
                for (name,) in conn.execute(
                    "select attname from pg_attribute where attrelid = %s::regclass"
                    " and attnum > 0 and not attisdropped"
                    " and has_column_privilege(attrelid, attnum, 'insert')",
                    [table],
                )
            )
            if not columns.as_string():
                continue
            if table == "convo.conversation":  # with the prompt that it names
                prompt = sql.SQL(insert).format(
                    table=name_of("convo.prompt"),
                    columns=sql.SQL("tenant_id, user_id, sha256, content, tokens"),
                    row=rows["convo.prompt"],
                    conflict=sql.SQL("on conflict do nothing"),
                )
                conn.execute("set constraints all deferred")
                conn.execute(prompt)
                row = re.sub(
                    r'"system_prompt_sha256":"[^"]*"',
                    '"system_prompt_sha256":null',
                    row,
                )
            for conflict in ("", "on conflict do nothing"):
                query = sql.SQL(insert).format(
                    table=name_of(table),
                    columns=columns,
                    row=row,
                    conflict=sql.SQL(conflict),
                )
                got = attempt(conn, query)
                assert got.code in ("", "42501", "23503", "23505"), (table, got)
                if got.code == "23505":
                    # The tenant's own row of that name, like a rule for 'short'.
                    assert table in ("convo.retention_policy", *TENANT_WIDE)
                elif not got.code:
                    free.append(table)
    assert {"convo.conversation", "convo.prompt", "convo.tombstone"} <= set(free)


def test_an_uncommitted_key_blocks_no_other_tenant(world):
    """S40"""
    service = make_conninfo(world.dsn, user="test_service")
    create = "select convo.create_conversation('t', 'p', conversation_id => %s)"
    with psycopg.connect(service) as first, psycopg.connect(service) as second:
        for conn, tenant in ((first, "a"), (second, "b")):
            conn.execute("set local lock_timeout = '500ms'")
            conn.execute("select convo.set_context(%s, 'ann')", (tenant,))
        first.execute(create, (NOBODY,))
        assert second.execute(create, (NOBODY,)).fetchall() == [(NOBODY,)]
        first.rollback()
        second.rollback()


def test_a_parent_is_kept_by_rows_of_its_own_tenant_only(world, act):
    """S48: a prompt with the same text in another tenant doesn't hold this one back."""
    with act("postgres") as conn:
        for person in (ANN, BOB, OTHER):
            conn.execute("select convo.set_context(%s, %s)", person)
            conn.execute("select convo.create_conversation(system_prompt => 'shared')")
        hashes = "select distinct sha256 from convo.prompt where content = 'shared'"
        assert conn.execute(hashes).rowcount == 1
        conn.execute("set local role test_app")
        conn.execute("select convo.set_context('a', 'ann')")
        delete = "delete from convo.prompt where content = 'shared'"
        assert attempt(conn, delete).code == "23503"  # used by her own conversation
        clear = "update convo.conversation set system_prompt_sha256 = null"
        conn.execute(clear)
        assert conn.execute(delete).rowcount == 1


@pytest.mark.parametrize("login", ["test_app", "test_service", "test_reader"])
def test_ids_and_keys_don_t_count_what_others_do(world, act, login):
    """S49: no number goes up when another tenant writes; ids are random."""
    with act(login, "b", "ann") as conn:
        assert conn.execute("select from pg_sequences").rowcount == 0
        made = [
            conn.execute("select convo._uuid_v7()").fetchone()[0].int & (2**62 - 1)
            for _ in range(2 if login != "test_reader" else 0)
        ]
    assert len(made) == len(set(made))


def test_functions_hold_no_advisory_locks(world, act, functions):  # noqa: F811
    """S60: a lock that any session can take would let any session stop them."""
    with act("test_service", *VICTIM) as conn:
        for name in MAY_CALL["test_service"] - {"set_context"}:
            conn.execute("savepoint s")
            try:
                conn.execute(call(functions, name, world.things[VICTIM].live))
            except psycopg.Error:
                conn.execute("rollback to s")
            locks = conn.execute(
                "select from pg_locks"
                " where locktype = 'advisory' and pid = pg_backend_pid()"
            )
            assert locks.rowcount == 0, name
