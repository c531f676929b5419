"""The same schema, whoever applies the migrations and however."""

from __future__ import annotations

import psycopg
import pytest

from pgconvo import migrate, server


@pytest.fixture
def expected(dsn, facts):
    return facts(dsn)


def test_psql_dbmate_and_pgconvo_agree(
    empty, copy, apply_all, facts, expected, is_vector_available
):
    apply_all(empty, copy.path)
    if is_vector_available:
        apply_all(empty, copy.path, track="vector")
    assert facts(empty) == expected


def test_a_further_migration_works_each_way(empty, copy, apply_all):
    added = copy.add("add_x", "create table convo.x (a integer)")
    apply_all(empty, copy.path)
    with psycopg.connect(empty) as conn:
        owner = conn.execute(
            "select relowner::regrole::text from pg_class"
            " where oid = 'convo.x'::regclass"
        ).fetchone()
        ledger = conn.execute(
            "select track, version, name, applied_by"
            " from convo.schema_migration order by 1, 2"
        ).fetchall()
    assert owner == ("convo_owner",)
    names = [*(migration.name for migration in migrate.available()), added.stem]
    assert ledger == [
        ("core", version, name, "postgres") for version, name in enumerate(names, 1)
    ]


def test_the_sources_make_the_same(
    empty, copy, psql, facts, expected, is_vector_available
):
    for folder in ["sql"] + ["sql/vector"] * is_vector_available:
        install = copy.path.parent / folder / "install.sql"
        done = psql(empty, "-1", "-v", "ON_ERROR_STOP=1", "-f", install)
        assert (done.returncode, done.stderr) == (0, "")
    assert facts(empty) == expected


def test_a_createrole_user_can_install_and_upgrade(
    bindir, copy, facts, expected, is_vector_available
):
    """As on managed PostgreSQL, where nobody is superuser."""
    with server.running(bindir=bindir) as fresh:
        with psycopg.connect(fresh.dsn(), autocommit=True) as conn:
            conn.execute("create role installer login createrole createdb")
            conn.execute("create database app owner installer")
        if is_vector_available:  # an extension that only a superuser makes
            with psycopg.connect(fresh.dsn("app"), autocommit=True) as conn:
                conn.execute("create extension vector")
        with psycopg.connect(fresh.dsn("app", "installer"), autocommit=True) as conn:
            migrate.migrate(conn)
            if is_vector_available:
                migrate.migrate(conn, track="vector")
            assert facts(fresh.dsn("app")) == expected
            added = copy.add("add_x", "create table convo.x (a integer)")
            done = migrate.migrate(conn, directory=copy.path)
            assert [migration.path for migration in done] == [added]
            assert migrate.migrate(conn, directory=copy.path) == []


def test_only_a_member_of_the_owner_may_upgrade(dsn, copy, psql):
    path = copy.add("add_x", "create table convo.x (a integer)")
    done = psql(dsn.replace("postgres@", "test_nobody@"), "-1", "-f", path)
    assert "only a member of the owner may migrate" in done.stderr


def test_the_catalog_query_sees_each_kind_of_change(dsn, db, facts):
    before = set(facts(dsn))
    changes = [
        "grant select on convo.message to public",
        "alter table convo.message no force row level security",
        "alter table convo.message alter content set default 'x'",
        "alter policy message_tenant on convo.message using (true)",
        "alter table convo.message add constraint extra check (seq < 5)",
        "create index extra on convo.message (role)",
        "comment on policy message_tenant on convo.message is 'x'",
        "grant execute on function convo.version() to public",
        "alter function convo.version() owner to postgres",
        "create view convo.extra_view as select 1 as x",
        "alter default privileges for role convo_owner grant usage on types to public",
        "create domain convo.extra_domain as text check (value <> '')",
        "create sequence convo.extra_sequence",
        "grant update (seq) on convo.message to convo_reader",
    ]
    for change in changes:
        db.execute(change)
        after = set(facts(dsn))
        assert after != before, change
        assert all("\n" not in line for line in after)
        before = after
