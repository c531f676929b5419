"""Every table, against everybody who isn't its rows' owner.

Generated from the catalogs: a new table is under every test from the day it appears.
"""

from __future__ import annotations

import pytest
from psycopg import sql

from .world import (
    ATTACKERS,
    PEOPLE,
    TENANT_WIDE,
    VICTIM,
    Attacker,
    attempt,
    name_of,
    secret,
    whose,
)

by_name = pytest.mark.parametrize("attacker", ATTACKERS, ids=lambda a: a.name)


def test_every_table_has_rows_of_everyone(world, act):
    with act("postgres") as conn:
        empty = [
            f"{table} {person}"
            for table in world.tables
            for person in PEOPLE
            if attempt(
                conn,
                sql.SQL("select from {} where {}").format(
                    name_of(table), whose(world, table, *person)
                ),
            ).count
            == 0
        ]
    assert empty == [], "teach tests/rls/world.py to fill these tables"


def privileges(conn, table: str, columns: list[str], privilege: str) -> list[str]:
    rows = conn.execute(
        """
        select a.attname
        from pg_attribute as a
        join pg_class as c on c.oid = a.attrelid
        join pg_namespace as n on n.oid = c.relnamespace
        where format('%%s.%%s', n.nspname, c.relname) = %s
            and a.attname = any (%s)
            and has_column_privilege(a.attrelid, a.attnum, %s)
        """,
        (table, columns, privilege),
    )
    return [column for (column,) in rows]


def rows_of_victim(world, conn, table):
    """The rows as JSON and where they are."""
    return conn.execute(
        sql.SQL(
            "select row_to_json(t)::text, t.ctid::text from {} as t where {}"
        ).format(name_of(table), whose(world, table, *VICTIM))
    ).fetchall()


# Reading ------------------------------------------------------------------------------

ALL_ROWS = [
    "select t.* from {table} as t",
    "select t.* from {table} as t tablesample system (100)",
    "select row_to_json(t), t from only {table} as t",
    "select t.* from {table} as t where t.tableoid is not null or {victim}",
]
ROWS_OF_THE_VICTIM = [
    "select t.* from {table} as t where {victim}",
    "select t.* from {table} as t where t.ctid = any ({ctids})",
    "select t.* from {table} as t where {victim} for share",
    "with c as materialized (select * from {table}) select * from c where {victim}",
    "select count(*) from {table} as t where {victim} having count(*) > 0",
    "select max(tenant_id) from {table} where {victim} having count(*) > 0",
    "select t.* from {table} as t join {table} as o using (tenant_id) where {victim_o}",
]


@by_name
def test_nobody_else_reads_a_row(world, act, attacker):
    leaks = []
    for table in world.tables:
        if attacker.may_read(table):
            continue
        with act("postgres") as conn:
            ctids = [ctid for _, ctid in rows_of_victim(world, conn, table)]
        parts = {
            "table": name_of(table),
            "victim": whose(world, table, *VICTIM),
            "victim_o": whose(world, table, *VICTIM, alias="o"),
            "ctids": sql.SQL("{}::tid[]").format(ctids),
        }
        with act(attacker.login, attacker.tenant, attacker.user) as conn:
            for read in ALL_ROWS + ROWS_OF_THE_VICTIM:
                got = attempt(conn, sql.SQL(read).format(**parts))
                if read in ALL_ROWS and attacker.has_context and not got.code:
                    is_safe = secret(*VICTIM) not in str(got)  # they may have their own
                else:
                    is_safe = got.is_nothing or got.code == "42501"
                if not is_safe:
                    leaks.append(f"{table}: {read}: {got}")
    assert leaks == []


@by_name
def test_copy_gives_nobody_elses_rows(world, act, attacker):
    leaks = []
    for table in world.tables:
        for source in ("{table}", "(select * from {table})"):
            with act(attacker.login, attacker.tenant, attacker.user) as conn:
                try:
                    with conn.cursor().copy(
                        sql.SQL(f"copy {source} to stdout").format(table=name_of(table))
                    ) as copy:
                        text = b"".join(bytes(part) for part in copy).decode()
                except Exception as error:
                    if getattr(error, "sqlstate", None) != "42501":
                        leaks.append(f"{table}: {error}")
                    continue
            is_allowed = attacker.has_context or attacker.may_read(table)
            if secret(*VICTIM) in text or (text and not is_allowed):
                leaks.append(f"{table}: {text}")
    assert leaks == []


READERS = [
    *(Attacker(f"{t}/{u}", "test_app", t, u) for t, u in PEOPLE),
    Attacker("service of a", "test_service", "a"),
    Attacker("service of a for bob", "test_service", "a", "bob"),
    Attacker("service of b", "test_service", "b"),
    Attacker("reader of a", "test_reader", "a"),
    Attacker("reader of b for nobody", "test_reader", "b", "nobody"),
    Attacker("backup", "test_backup"),
    Attacker("backup in b", "test_backup", "b", "ann"),
]


@pytest.mark.parametrize("reader", READERS, ids=lambda r: r.name)
def test_everybody_reads_their_own_and_no_more(world, act, reader):
    wrong = []
    for table, columns in world.tables.items():
        if reader.login == "test_backup":
            condition = sql.SQL("true")
        elif reader.login == "test_app" and "user_id" in columns:
            condition = whose(world, table, str(reader.tenant), str(reader.user))
        else:
            condition = sql.SQL("tenant_id = {}").format(reader.tenant)
        query = sql.SQL("select row_to_json(t)::text from {} as t{} order by 1")
        with act("postgres") as conn:
            filtered = sql.SQL(" where {}").format(condition)
            expected = attempt(conn, query.format(name_of(table), filtered))
        with act(reader.login, reader.tenant, reader.user) as conn:
            got = attempt(conn, query.format(name_of(table), sql.SQL("")))
        is_hidden = "user_id" not in columns and table not in TENANT_WIDE
        if reader.login == "test_app" and is_hidden:
            is_right = got.code == "42501"
        else:
            is_right = expected.count > 0 and got == expected
        if not is_right:
            wrong.append(f"{table}: {got}, not {expected}")
    assert wrong == []


# Writing ------------------------------------------------------------------------------


def writes(world, table, updatable, row):
    """Statements that would change or plant the victim's rows; if each must fail."""
    columns = world.tables[table]
    populate = sql.SQL("select * from json_populate_record(null::{}, {})").format(
        name_of(table), row
    )
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    new = sql.SQL(", ").join(sql.Identifier("r", column) for column in columns)
    key = sql.SQL(", ").join(map(sql.Identifier, KEYS.get(table, ["tenant_id"])))
    # Any column will do where none is granted: the answer must be no.
    column = sql.Identifier(updatable[0] if updatable else columns[-1])
    parts = {
        "table": name_of(table),
        "victim": whose(world, table, *VICTIM),
        "victim_o": whose(world, table, *VICTIM, alias="o"),
        "victim_t": whose(world, table, *VICTIM, alias="t"),
        "populate": populate,
        "names": names,
        "new": new,
        "key": key,
        "column": column,
    }
    nothing = [
        "delete from {table} where {victim}",
        "delete from {table} as t using {table} as o"
        " where t.ctid = o.ctid and {victim_o}",
        "update {table} set {column} = {column} where {victim}",
        "update {table} as t set {column} = o.{column} from {table} as o"
        " where t.ctid = o.ctid and {victim_o}",
        "merge into {table} as t using (select 1) as s on {victim_t}"
        " when matched then update set {column} = t.{column}",
        "merge into {table} as t using (select 1) as s on {victim_t}"
        " when matched then delete",
        "merge into {table} as t using ({populate}) as s on t.ctid is null"
        " when matched then do nothing",
        "with d as (delete from {table} where {victim} returning 1)"
        " select count(*) from d having count(*) > 0",
    ]
    denied = [
        "insert into {table} {populate}",
        "insert into {table} {populate} returning *",
        "insert into {table} {populate} on conflict do nothing",
        "insert into {table} {populate} on conflict ({key})"
        " do update set {column} = excluded.{column}",
        "insert into {table} {populate} on conflict ({key})"
        " do update set tenant_id = excluded.tenant_id",
        "merge into {table} as t using ({populate}) as r on false"
        " when not matched then insert ({names}) values ({new})",
        "truncate {table} cascade",
        "alter table {table} disable row level security",
        "drop table {table} cascade",
    ]
    for statement in nothing:
        yield statement, sql.SQL(statement).format(**parts), False
    for statement in denied:
        yield statement, sql.SQL(statement).format(**parts), True
    for other in columns:
        if other not in updatable:
            statement = f"update {{table}} set {other} = {other}"
            yield statement, sql.SQL(statement).format(**parts), True


KEYS: dict[str, list[str]] = {}


@pytest.fixture(autouse=True)
def keys(world, act):
    if not KEYS:
        with act("postgres") as conn:
            rows = conn.execute(
                """
                select k.conrelid::regclass::text, array(
                    select a.attname::text
                    from pg_attribute as a
                    where a.attrelid = k.conrelid and a.attnum = any (k.conkey)
                )
                from pg_constraint as k
                where k.contype = 'p'
                """
            ).fetchall()
        KEYS.update(dict(rows))


WRITERS = [
    *ATTACKERS,
    Attacker("the tenant's reader", "test_reader", "a", "ann"),
    Attacker("backup", "test_backup", "a", "ann"),
]


@pytest.mark.parametrize("attacker", WRITERS, ids=lambda a: a.name)
def test_nobody_else_writes_a_row(world, act, attacker):
    done = []
    for table, columns in world.tables.items():
        with act("postgres") as conn:
            row = rows_of_victim(world, conn, table)[0][0]
        with act(attacker.login, attacker.tenant, attacker.user) as conn:
            updatable = privileges(conn, table, columns, "UPDATE")
            for statement, query, must_fail in writes(world, table, updatable, row):
                got = attempt(conn, query)
                is_safe = got.code == "42501" or (not must_fail and got.is_nothing)
                if not is_safe:
                    done.append(f"{table}: {statement}: {got}")
    assert done == []


@pytest.mark.parametrize(
    "attacker",
    [
        Attacker("another tenant", "test_app", "b", "ann"),
        Attacker("another user", "test_app", "a", "bob"),
        Attacker("another tenant's service", "test_service", "b", "ann"),
    ],
    ids=lambda a: a.name,
)
def test_no_row_of_ones_own_joins_a_conversation_of_somebody_else(world, act, attacker):
    """S36, S37: the foreign keys hold tenant and owner, and say the same of no parent.

    Within a tenant the key of a child that is there already is taken, as PC013 says of
    a conversation; ids can't be guessed.
    """
    with act("postgres") as conn:
        children = [
            table
            for (table,) in conn.execute(
                """
                select distinct k.conrelid::regclass::text
                from pg_constraint as k
                where k.contype = 'f' and k.confrelid = 'convo.conversation'::regclass
                """
            )
        ]
        rows = {table: rows_of_victim(world, conn, table)[0][0] for table in children}
    assert len(children) >= 3
    insert = """
        insert into {table}
        select r.* from json_populate_record(null::{table}, (
            {row}::jsonb || jsonb_build_object(
                'tenant_id', {tenant}::text, 'user_id', {user}::text,
                'conversation_id', {conversation}::uuid,
                'seq', 1000, 'key', 'a key not used before',
                'request_id', gen_random_uuid(), 'frame_id', gen_random_uuid()
            )
        )::json) as r
    """
    for table in children:
        with act(attacker.login, attacker.tenant, attacker.user) as conn:
            victims, missing = (
                attempt(
                    conn,
                    sql.SQL(insert).format(
                        table=name_of(table),
                        row=rows[table],
                        tenant=attacker.tenant,
                        user=attacker.user,
                        conversation=conversation,
                    ),
                )
                for conversation in (
                    world.things[VICTIM].live,
                    "00000000-0000-0000-0000-000000000007",
                )
            )
        # or it has no right to insert
        assert victims.code in ("23503", "42501"), table
        assert victims == missing


@pytest.mark.parametrize(
    ("login", "person"),
    [("test_app", VICTIM), ("test_service", VICTIM), ("test_app", ("b", "ann"))],
)
def test_no_row_moves_to_another_tenant_or_user(world, act, login, person):
    moved = []
    for table, columns in world.tables.items():
        with act(login, *person) as conn:
            changes = ["set tenant_id = 'z'"]
            if login == "test_app" and "user_id" in columns:
                changes += ["set user_id = 'bob'", "set user_id = user_id"]
            for change in changes:
                got = attempt(conn, f"update {table} {change}")
                if got.code != "42501":
                    moved.append(f"{table} {change}: {got}")
    assert moved == []


def test_the_owner_of_rows_can_write_what_is_granted(world, act):
    """The other side of the refusals above: they are not refusals of everything."""
    changed = {}
    for login in ("test_app", "test_service"):
        for table, columns in world.tables.items():
            with act(login, *VICTIM) as conn:
                for column in privileges(conn, table, columns, "UPDATE"):
                    got = attempt(conn, f"update {table} set {column} = {column}")
                    assert got.code == "" and got.count > 0, f"{table}.{column} {got}"
                    changed.setdefault((login, table), []).append(column)
    assert {"title", "last_seq"} <= set(changed["test_app", "convo.conversation"])
    assert "user_id" in changed["test_service", "convo.message"]
    with act("test_app", *VICTIM) as conn:
        held = conn.execute("select from convo.conversation where is_on_hold").rowcount
        all_rows = conn.execute("select from convo.conversation").rowcount
        gone = attempt(conn, "delete from convo.conversation")
        assert (gone.count, held) == (all_rows - 1, 1)


def test_copy_from_is_refused(world, act):
    for table in world.tables:
        for login in ("test_app", "test_service", "test_reader", "test_maintainer"):
            with act(login, *VICTIM) as conn:
                got = attempt(conn, f"copy {table} from stdin")
                assert got.code in ("0A000", "42501"), (table, login, got)
