"""Who is asking: how long it holds, where it comes from, and what can't change it."""

from __future__ import annotations

import json

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from .world import GARBAGE, PEOPLE, VICTIM, attempt, secret

COUNT = "select count(*) from convo.message"
WHOSE = "select distinct tenant_id || '/' || user_id from convo.message order by 1"
SPOOFS = [
    "set convo.tenant_id = 'b'",
    "set local convo.tenant_id = 'b'",
    "select set_config('convo.tenant_id', 'b', true)",
    "select set_config('convo.tenant_id', 'b', false)",
    "select convo.set_context('b', 'ann')",
    "select convo.set_context(tenant_id => 'b')",
    'set local request.jwt.claims = \'{"tenant_id": "b", "sub": "ann"}\'',
]


@pytest.fixture
def autocommit(world):
    """A login whose transactions end with each statement."""
    opened = []

    def connect(login):
        conn = psycopg.connect(make_conninfo(world.dsn, user=login), autocommit=True)
        opened.append(conn)
        return conn

    yield connect
    for conn in opened:
        conn.close()


def value(conn, query, *parameters):
    return conn.execute(query, parameters or None).fetchone()[0]


def test_context_ends_with_its_transaction(autocommit):
    """S06: after COMMIT a setting is '' and no longer null; that is nobody too."""
    conn = autocommit("test_app")
    with conn.transaction():
        conn.execute("select convo.set_context('a', 'ann')")
        assert value(conn, COUNT) > 0
    assert value(conn, "select current_setting('convo.tenant_id')") == ""
    assert value(conn, COUNT) == 0
    assert value(conn, "select convo.current_tenant_id()") is None
    got = attempt(conn, "select convo.create_conversation()")
    assert got.code == "PC030"


def test_context_set_in_autocommit_is_gone_with_the_statement(autocommit):
    """S07"""
    conn = autocommit("test_app")
    conn.execute("select convo.set_context('a', 'ann')")
    assert value(conn, COUNT) == 0
    assert attempt(conn, "select convo.list_conversations()").code == "PC030"


@pytest.mark.parametrize("undo", ["rollback to before", "do", "exception"])
def test_undoing_a_change_of_context_brings_the_last_one_back(act, undo):
    """S08"""
    with act("test_app", "a", "bob") as conn:
        bobs = conn.execute(WHOSE).fetchall()
        if undo == "exception":
            conn.execute(
                "do $$ begin perform convo.set_context('b', 'ann'); perform 1 / 0;"
                " exception when division_by_zero then null; end $$"
            )
        else:
            conn.execute("savepoint before")
            conn.execute("select convo.set_context('b', 'ann')")
            assert conn.execute(WHOSE).fetchall() == [("b/ann",)]
            if undo == "do":
                with pytest.raises(psycopg.errors.DivisionByZero):
                    conn.execute("select 1 / 0")
            conn.execute("rollback to before")
        assert conn.execute(WHOSE).fetchall() == bobs == [("a/bob",)]


@pytest.mark.parametrize("garbage", [GARBAGE, "null", "*", "a,b", "{a}", "\\", "Ä"])
def test_garbage_is_nobodys_tenant(act, garbage):
    """S05: the tenant is a text that is compared, and nothing else."""
    for tenant, user in [(garbage, "ann"), ("a", garbage), (garbage, garbage)]:
        with act("test_app", tenant, user) as conn:
            assert value(conn, COUNT) == 0
            assert conn.execute("select convo.list_conversations()").rowcount == 0


def test_garbage_claims_are_an_error(act):
    """Falling back to another source would be a guess."""
    with act("test_app", *VICTIM) as conn:
        conn.execute("select set_config('request.jwt.claims', 'or 1=1', true)")
        assert attempt(conn, COUNT).code == "22P02"


@pytest.mark.parametrize("garbage", [["a"], {"a": 1}, True, "x" * 256])
@pytest.mark.parametrize("member", ["tenant_id", "sub"])
def test_claims_that_are_no_ids_are_an_error(act, member, garbage):
    claims = {"tenant_id": "a", "sub": "ann", member: garbage}
    with act("test_app", *VICTIM) as conn:
        text = json.dumps(claims)
        conn.execute("select set_config('request.jwt.claims', %s, true)", (text,))
        assert attempt(conn, COUNT).code == "22023"


def test_other_claims_may_hold_anything(act):
    text = '{"tenant_id": "a", "sub": "ann", "name": "\\u0000 \\ud800"}'
    with act("test_app") as conn:
        conn.execute("select set_config('request.jwt.claims', %s, true)", (text,))
        assert conn.execute(WHOSE).fetchall() == [("a/ann",)]


@pytest.mark.parametrize(
    ("claims", "seen"),
    [
        ({"tenant_id": "b", "sub": "ann"}, [("b/ann",)]),
        ({"tenant_id": "b"}, []),
        ({"tenant_id": "b", "sub": ""}, []),
        ({"tenant_id": "b", "sub": None}, []),
        ({"sub": "bob"}, [("a/ann",)]),
        ({"tenant_id": "", "sub": "bob"}, [("a/ann",)]),
        ([], [("a/ann",)]),
    ],
)
def test_tenant_and_user_come_from_one_source(act, claims, seen):
    with act("test_app", *VICTIM) as conn:
        text = json.dumps(claims)
        conn.execute("select set_config('request.jwt.claims', %s, true)", (text,))
        assert conn.execute(WHOSE).fetchall() == seen


# Anyone who can run any SQL can set a setting: what each level stops is documented ----


@pytest.mark.parametrize("spoof", SPOOFS)
def test_plain_settings_trust_who_writes_the_sql(act, spoof):
    """S09, S11: so by design; the application is trusted, or its login is pinned."""
    with act("test_app", *VICTIM) as conn:
        conn.execute(spoof)
        conn.execute("select set_config('convo.user_id', 'ann', true)")
        assert conn.execute(WHOSE).fetchall() == [("b/ann",)]
        conn.execute("reset convo.tenant_id")


def test_plain_settings_can_be_changed_within_one_statement(act):
    """S10: so by design, too."""
    with act("test_app", *VICTIM) as conn:
        conn.execute("set local plan_cache_mode = force_custom_plan")
        got = conn.execute(
            "select set_config('convo.tenant_id', 'b', true)"
            " union all select content from convo.message"
        ).fetchall()
    assert secret("b", "ann") in str(got)


@pytest.mark.parametrize("spoof", [*SPOOFS, "reset convo.tenant_id", "discard plans"])
def test_a_pinned_login_stays_in_its_tenant(world, act, spoof):
    with act("rls_pinned", "b", "ann") as conn:
        conn.execute(spoof)
        conn.execute("select set_config('convo.user_id', 'ann', true)")
        assert value(conn, "select convo.current_tenant_id()") == "a"
        assert set(conn.execute(WHOSE).fetchall()) <= {("a/ann",)}
        theirs = world.things["b", "ann"].live
        assert attempt(conn, "select convo.last_messages(%s, 9)", theirs).is_nothing
        got = attempt(conn, "select convo.append_message(%s, 'user', 'x')", theirs)
        assert got.code == "PC001"
        got = attempt(conn, "insert into convo.prompt values ('b', 'ann', '', 'x')")
        assert got.code == "42501"
        conn.execute("reset convo.tenant_id")


def test_a_pinned_login_says_which_user(act):
    for user in ("ann", "bob"):
        with act("rls_pinned", None, user) as conn:
            assert conn.execute(WHOSE).fetchall() == [(f"a/{user}",)]
        with act("rls_pinned") as conn:
            claims = json.dumps({"sub": user, "tenant_id": "b"})
            conn.execute("select set_config('request.jwt.claims', %s, true)", (claims,))
            assert conn.execute(WHOSE).fetchall() == [(f"a/{user}",)]
    with act("rls_pinned") as conn:
        assert value(conn, COUNT) == 0
        assert attempt(conn, "select convo.list_conversations()").code == "PC030"


def test_a_pinned_login_is_itself_in_every_role(act):
    """session_user decides, which SET ROLE doesn't change."""
    with act("rls_pinned", "b", "ann") as conn:
        conn.execute("set local role convo_app")
        assert conn.execute(WHOSE).fetchall() == [("a/ann",)]


@pytest.mark.parametrize(
    "statement",
    [
        "select set_config('convo.tenant_id', 'b', true), set_config('convo.user_id',"
        " 'ann', true) union all select tenant_id, content from convo.message",
        "with c as materialized (select convo.set_context('b', 'ann'))"
        " select m.tenant_id, m.content from c cross join convo.message as m",
        "select tenant_id, content from convo.message"
        " where set_config('convo.tenant_id', 'b', true) is not null",
    ],
)
def test_a_pinned_login_reads_no_other_tenant_in_one_statement(act, statement):
    with act("rls_pinned", "a", "ann") as conn:
        got = attempt(conn, statement)
        assert not got.code
        assert secret("b", "ann") not in str(got)
        assert secret("a", "bob") not in str(got)


def test_a_pinned_login_reads_no_other_tenant_by_stacked_statements(autocommit):
    conn = autocommit("rls_pinned")
    got = conn.execute(
        "commit; begin; set convo.tenant_id = 'b'; set convo.user_id = 'ann';"
        " select convo.set_context('b', 'ann'); select * from convo.message"
    )
    everything = []
    while got.nextset():
        if got.description:
            everything += got.fetchall()
    assert secret("a", "ann") in str(everything)
    assert secret("b", "ann") not in str(everything)


@pytest.mark.parametrize("login", ["rls_pinned", "test_app", "test_service"])
def test_no_login_changes_where_its_tenant_comes_from(act, login):
    with act(login, *VICTIM) as conn:
        table = "convo_private.tenant_login"
        for change in (
            f"update {table} set tenant_id = 'b'",
            f"delete from {table}",
            f"insert into {table} values (session_user, 'pinned', 'b')",
            f"truncate {table}",
        ):
            assert attempt(conn, change).code == "42501"
        seen = conn.execute(f"select role_name from {table}").fetchall()
        assert seen == ([(login,)] if login == "rls_pinned" else [])
        # A table of that name in pg_temp isn't it.
        conn.execute("create temp table tenant_login (role_name name, tenant_id text)")
        conn.execute("insert into tenant_login values (session_user, 'b')")
        assert value(conn, "select convo.current_tenant_id()") == "a"


# Plans --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
def test_a_cached_plan_asks_anew_who_is_asking(autocommit, mode):
    """S65"""
    conn = autocommit("test_app")
    conn.execute(f"set plan_cache_mode = {mode}")
    conn.execute(f"prepare whose as {WHOSE}")
    for person in PEOPLE * 3:
        with conn.transaction():
            conn.execute("select convo.set_context(%s, %s)", person)
            assert conn.execute("execute whose").fetchall() == [("/".join(person),)]
    assert conn.execute("execute whose").fetchall() == []


def test_a_cached_plan_is_made_anew_for_another_role(autocommit):
    """S65: CVE-2024-10976 was about a subquery, a CTE and a function below a policy."""
    conn = autocommit("rls_two")
    conn.execute("set plan_cache_mode = force_generic_plan")
    for number, query in enumerate(
        [
            WHOSE,
            "with c as (select * from convo.message) "
            + WHOSE.replace("convo.message", "c"),
            f"select * from ({WHOSE}) as s"
            " where exists (select from convo.conversation)",
        ]
    ):
        conn.execute(f"prepare q{number} as {query}")
        for role, seen in [
            ("convo_service", [("a/ann",), ("a/bob",)]),
            ("convo_app", [("a/ann",)]),
            ("convo_reader", [("a/ann",), ("a/bob",)]),
            ("convo_app", [("a/ann",)]),
        ]:
            with conn.transaction():
                conn.execute(f"set local role {role}")
                conn.execute("select convo.set_context('a', 'ann')")
                assert conn.execute(f"execute q{number}").fetchall() == seen


def test_parallel_workers_know_who_is_asking(act):
    """S68"""
    with act("test_app", *VICTIM) as conn:
        is_old = conn.info.server_version < 160000
        name = "force_parallel_mode" if is_old else "debug_parallel_query"
        for setting in (
            f"{name} = on",
            "min_parallel_table_scan_size = 0",
            "parallel_setup_cost = 0",
            "parallel_tuple_cost = 0",
        ):
            conn.execute(f"set local {setting}")
        plan = str(conn.execute(f"explain {WHOSE}").fetchall())
        assert "Gather" in plan
        assert conn.execute(WHOSE).fetchall() == [("a/ann",)]
