"""What each role can't do to get around the policies, and what the quiet roles see."""

from __future__ import annotations

import subprocess

import psycopg
import pytest
from psycopg import sql

from .world import VICTIM, attempt, name_of, secret

LOGINS = ["test_app", "test_service", "test_reader", "test_maintainer", "test_nobody"]
GROUPS = [
    "convo_owner", "convo_app", "convo_service", "convo_reader", "convo_maintainer",
    "convo_search", "convo_backup", "postgres", "pg_read_all_data",
]  # fmt: skip
TITLES = "select title from convo.conversation order by 1"


@pytest.mark.parametrize("login", LOGINS)
def test_no_login_becomes_another_role(act, login):
    """S15"""
    own = login.replace("test", "convo")
    with act(login, *VICTIM) as conn:
        for role in GROUPS:
            for change in (
                f"set role {role}",
                f"select set_config('role', '{role}', true)",
                f"set session authorization {role}",
                f"select set_config('session_authorization', '{role}', false)",
            ):
                got = attempt(conn, change)
                if role == own and "role" in change and "session" not in change:
                    assert got.code == ""
                else:
                    assert got.code == "42501", (change, got)
            assert attempt(conn, f"grant {role} to {login}").code in ("42501", "0LP01")


@pytest.mark.parametrize(
    "login", ["test_app", "test_service", "test_reader", "test_backup"]
)
def test_row_security_can_t_be_turned_off(world, act, login):
    """S17: then a query fails instead of giving more."""
    with act(login, *VICTIM) as conn:
        conn.execute("set local row_security = off")
        for table in world.tables:
            got = attempt(conn, sql.SQL("select * from {}").format(name_of(table)))
            assert got.code == "42501"


def test_the_owner_sees_nothing_and_changes_nothing(world, act):
    """S18"""
    with act("postgres", *VICTIM) as conn:
        conn.execute("set local role convo_owner")
        for table in world.tables:
            for query in ("select * from {}", "delete from {}"):
                assert attempt(conn, sql.SQL(query).format(name_of(table))).is_nothing
            got = attempt(
                conn, sql.SQL("update {} set tenant_id = 'z'").format(name_of(table))
            )
            assert got.is_nothing


def test_a_definer_function_of_the_owner_sees_nothing(act):
    """S19"""
    with act("postgres", *VICTIM) as conn:
        conn.execute(
            "set local role convo_owner;"
            "create function convo.extra() returns bigint language sql security definer"
            " as 'select count(*) from convo.message';"
            "grant execute on function convo.extra() to convo_app;"
            "set local role test_app"
        )
        assert conn.execute("select convo.extra()").fetchall() == [(0,)]


@pytest.mark.parametrize("role", ["convo_app", "convo_service", "convo_reader"])
def test_a_second_permissive_policy_stays_behind_the_fence(act, role):
    """S22: policies are added up; the fence is restrictive."""
    login = role.replace("convo", "test")
    with act("postgres", *VICTIM) as conn:
        conn.execute(f"create policy x on convo.conversation to {role} using (true)")
        conn.execute(f"set local role {login}")
        seen = {title for (title,) in conn.execute(TITLES)}
        assert seen == {secret("a", "ann"), secret("a", "bob")}
        got = attempt(conn, "delete from convo.conversation where tenant_id = 'b'")
        assert got.is_nothing or got.code == "42501"


def test_a_role_without_a_policy_sees_nothing(world, act):
    """S23: a grant alone gives no row."""
    with act("postgres", *VICTIM) as conn:
        conn.execute("grant usage on schema convo to test_nobody")
        conn.execute(
            "grant select, delete on all tables in schema convo to test_nobody"
        )
        conn.execute("grant execute on all functions in schema convo to test_nobody")
        conn.execute("set local role test_nobody")
        for table in world.tables:
            for query in ("select * from {}", "delete from {}"):
                assert attempt(conn, sql.SQL(query).format(name_of(table))).is_nothing


@pytest.mark.parametrize(
    ("owner", "options", "seen"),
    [
        ("convo_owner", "", []),
        ("convo_owner", "with (security_invoker = true)", [(secret("a", "ann"),)]),
        ("postgres", "with (security_invoker = true)", [(secret("a", "ann"),)]),
    ],
)
def test_a_view_shows_no_more_than_its_tables(act, owner, options, seen):
    """S24: a superuser's plain view would; a catalog rule keeps those out."""
    with act("postgres", *VICTIM) as conn:
        conn.execute(
            f"set local role {owner};"
            f"create view convo.extra {options} as select distinct title"
            " from convo.conversation;"
            "grant select on convo.extra to convo_app; set local role test_app"
        )
        assert conn.execute("select * from convo.extra").fetchall() == seen


def test_no_role_is_set_within_a_definer_function(act):
    """S31"""
    with act("postgres", *VICTIM) as conn:
        conn.execute("grant create on schema convo_private to convo_search")
        conn.execute(
            "set local role convo_search;"
            "create function convo_private.extra() returns text"
            " language sql security definer"
            " as $$ select set_config('role', 'convo_backup', true) $$;"
            "set local role test_app"
        )
        got = attempt(conn, "select convo_private.extra()")
    assert got.code == "42501"


def test_a_policy_needs_execute_on_the_functions_in_it(act):
    """S71: without it a query fails instead of giving more."""
    with act("postgres", *VICTIM) as conn:
        conn.execute(
            "revoke execute on function convo.current_tenant_id() from convo_app"
        )
        conn.execute("set local role test_app")
        assert attempt(conn, TITLES).code == "42501"


@pytest.mark.parametrize("login", LOGINS)
@pytest.mark.parametrize(
    "statement",
    [
        "create table convo.extra (x int)",
        "create function convo.extra() returns int language sql return 1",
        "create function convo_private.extra() returns int language sql return 1",
        "create schema extra",
        "create extension pg_trgm",
        "create role extra",
        "create policy extra on convo.message using (true)",
        "create trigger extra after insert on convo.message for each row"
        " execute function suppress_redundant_updates_trigger()",
        "create index on convo.message (content)",
        "alter table convo.message owner to current_user",
        "alter policy message_tenant on convo.message using (true)",
        "drop policy message_tenant on convo.message",
        "alter function convo.current_tenant_id() security definer",
        "create or replace function convo.current_tenant_id() returns text"
        " language sql return 'b'",
        "drop function convo.set_context(text, text)",
        "comment on table convo.message is 'x'",
        "alter role convo_app bypassrls",
        "alter role convo_app set row_security = off",
        "alter role convo_app in database postgres set search_path = public",
        "alter system set row_security = off",
        "create publication extra for table convo.message",
        "copy convo.message to program 'cat'",
        "copy convo.message to '/tmp/extra'",
        "copy (select 1) to program 'true'",
        "select pg_read_file('/etc/passwd')",
        "select lo_import('/etc/passwd')",
        "truncate convo.message cascade",
        "vacuum full convo.message",
        "cluster convo.message using message_pkey",
        "security label on table convo.message is 'x'",
    ],
)
def test_no_login_makes_or_changes_objects(act, login, statement):
    """S56, S82"""
    with act(login, *VICTIM) as conn:
        got = attempt(conn, statement)
    # 25001: not in a transaction; 22023: no provider of labels; both come first
    assert got.code in ("42501", "25001", "22023"), got


@pytest.mark.parametrize("login", LOGINS)
def test_no_login_passes_on_what_it_may(act, login):
    """Without the right to it GRANT is an error or a warning: here nothing changes."""
    privileges = "select relacl, (select array_agg(attacl::text) from pg_attribute"
    privileges += (
        " where attrelid = c.oid) from pg_class as c where relname = 'message'"
    )
    with act(login, *VICTIM) as conn:
        before = conn.execute(privileges).fetchall()
        for privilege in ("select", "insert", "update (content)", "all"):
            for role in ("public", login):
                conn.execute("savepoint s")
                try:
                    conn.execute(f"grant {privilege} on convo.message to {role}")
                except psycopg.errors.InsufficientPrivilege:
                    conn.execute("rollback to s")
        assert conn.execute(privileges).fetchall() == before


def test_statistics_tell_nothing(world, act):
    """S51: pg_stats leaves out tables under row security."""
    for login in LOGINS:
        with act(login, *VICTIM) as conn:
            got = attempt(
                conn,
                "select * from pg_stats"
                " where schemaname in ('convo', 'convo_private')"
                " union all select * from pg_stats where tablename = 'message'",
            )
            assert got.is_nothing
            for table in ("pg_statistic", "pg_statistic_ext_data"):
                assert attempt(conn, f"select * from {table}").code == "42501"


# The maintainer -----------------------------------------------------------------------


def test_the_maintainer_sees_keys_and_times_of_what_is_due(world, act):
    """S80"""
    with act("test_maintainer") as conn:
        got = conn.execute(
            "select tenant_id, conversation_id from convo.conversation order by 1, 2"
        ).fetchall()
        due = sorted(
            (tenant, things.due) for (tenant, _), things in world.things.items()
        )
        assert got == due
        assert conn.execute("delete from convo.conversation").rowcount == len(due)


def test_the_maintainer_reads_no_content(world, act):
    """Of no table: each column that it may read is named here."""
    allowed = {
        "convo.conversation": {
            "tenant_id", "conversation_id", "user_id", "system_prompt_sha256",
            "retention_class", "last_seq", "is_on_hold", "created_at", "updated_at",
        },
        "convo.prompt": {"tenant_id", "user_id", "sha256"},
        "convo.request_prompt": {"tenant_id", "conversation_id", "user_id", "sha256"},
        "convo.retention_policy": set(world.tables["convo.retention_policy"]),
    }  # fmt: skip
    with act("test_maintainer", *VICTIM) as conn:
        for table, columns in world.tables.items():
            for column in columns:
                got = attempt(
                    conn,
                    sql.SQL("select {} from {}").format(
                        sql.Identifier(column), name_of(table)
                    ),
                )
                is_allowed = column in allowed.get(table, set())
                assert (got.code == "") == is_allowed, f"{table}.{column}: {got}"
                assert secret(*VICTIM) not in str(got)
            assert (attempt(conn, f"select * from {table}").code == "") == (
                table == "convo.retention_policy"
            )


@pytest.mark.parametrize(
    "statement",
    [
        "update convo.conversation set archived_at = null",
        "update convo.conversation set title = ''",
        "insert into convo.conversation select * from convo.conversation",
        "delete from convo.message",
        "delete from convo.tombstone",
        "delete from convo.purge_run",
        "update convo.retention_policy set max_age = '0'",
        "insert into convo.retention_policy select * from convo.retention_policy",
        "insert into convo.audit select from convo.audit",
    ],
)
def test_the_maintainer_changes_nothing(act, statement):
    with act("test_maintainer") as conn:
        assert attempt(conn, statement).code == "42501"


def test_the_maintainer_deletes_no_prompt_in_use(world, act):
    with act("test_maintainer") as conn:
        assert conn.execute("select tenant_id from convo.prompt").rowcount > 0
        got = attempt(conn, "delete from convo.prompt")
    assert got.code == "23503"
    assert secret(*VICTIM) not in str(got)


# Nobody can stop the purge ------------------------------------------------------------


def test_a_tombstone_by_direct_sql_stops_neither_deletion_nor_purge(world, act):
    """A squatter's row with the id of a conversation that lives, and is due."""
    ann = world.things[VICTIM]
    with act("postgres", "a", "bob") as conn:
        conn.execute("set local role test_app")
        for victims in (ann.live, ann.due):
            conn.execute(
                "insert into convo.tombstone values ('a', %s, 'bob')", (victims,)
            )
        conn.execute("select convo.set_context('a', 'ann')")
        deleted = conn.execute("select convo.delete_conversation(%s)", (ann.live,))
        assert deleted.fetchall() == [(True,)]
        conn.execute("set local role test_maintainer")
        purged = conn.execute("select (convo.purge()).conversations").fetchall()
        assert purged == [(len(world.things),)]


@pytest.mark.parametrize(
    ("age", "code"),
    [
        ("1000 years", ""),
        ("0", ""),
        ("9999 years", "22023"),
        ("-1 day", "22023"),
        ("200000 years -72000000 days", "22023"),
        ("-200000 years 72000000 days", "22023"),
        ("72000000 days -1727000000 hours", "22023"),
    ],
)
def test_no_tenant_s_rule_stops_the_purge_of_all(act, age, code):
    """A time minus an age of 9,999 years is an error, in a policy of every tenant."""
    with act("postgres", "b", "ann") as conn:
        conn.execute("set local role test_service")
        got = attempt(conn, "select convo.set_retention('x', %s)", age)
        assert got.code == code
        if not code:
            conn.execute("select convo.set_retention('x', %s)", (age,))
        conn.execute("set local role test_maintainer")
        assert attempt(conn, "select convo.purge()").code == ""


# Backup -------------------------------------------------------------------------------


def test_backup_reads_everything_and_writes_nothing(world, act):
    everything = [*world.tables, "convo.schema_migration", "convo_private.tenant_login"]
    query = "select row_to_json(t)::text from {} as t order by 1"
    for table in everything:
        with act("postgres") as conn:
            expected = attempt(conn, sql.SQL(query).format(name_of(table)))
        with act("test_backup") as conn:
            assert attempt(conn, sql.SQL(query).format(name_of(table))) == expected
            for write in ("delete from {}", "insert into {} select * from {}"):
                names = [name_of(table)] * write.count("{}")
                assert attempt(conn, sql.SQL(write).format(*names)).code == "42501"
        assert expected.count > 0


def test_a_dump_by_the_backup_role_has_every_row(world, bindir):
    dsn = world.dsn.replace("postgres@", "test_backup@")
    options = ["--enable-row-security", "--data-only", "--inserts"]
    schemas = ["-n", "convo", "-n", "convo_private"]
    dump = subprocess.run(
        [bindir / "pg_dump", *options, *schemas, dsn],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    with psycopg.connect(world.dsn) as conn:
        for table in world.tables:
            ((count,),) = conn.execute(f"select count(*) from {table}").fetchall()
            assert dump.count(f"INSERT INTO {table} VALUES") == count
    assert "INSERT INTO convo_private.tenant_login" in dump


def test_a_dump_without_row_security_fails_loudly(world, bindir):
    """S73: the owner's dump would be empty, so it must not look like a success."""
    dsn = world.dsn.replace("postgres@", "test_backup@")
    done = subprocess.run(
        [bindir / "pg_dump", "-n", "convo", dsn], capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "row-level security" in done.stderr
