"""Each rule holds; and each rule reports what breaks it."""

from __future__ import annotations

import psycopg
import pytest

from . import bodies
from .rules import RULES

UNFENCED_TABLE = "create table convo.extra (tenant_id text not null, note text)"
OWN = "set local role convo_owner;"
# What is wrong in one object, and how each rule that sees it says so.
BREAKS = [
    (
        "literals_mean_the_same_in_any_session",
        "create function convo.f() returns text language plpgsql as"
        " $$ begin return replace('a', '\\', e'\\b'); end $$",
        "convo.f",
    ),
    ("row_security_is_on_and_forced", UNFENCED_TABLE, "convo.extra"),
    (
        "row_security_is_on_and_forced",
        "alter table convo.message no force row level security",
        "convo.message",
    ),
    ("every_tenant_table_has_the_fence", UNFENCED_TABLE, "convo.extra"),
    (
        "every_tenant_table_has_the_fence",
        "alter policy message_tenant on convo.message to convo_app, convo_service",
        "convo.message",
    ),
    (
        "every_tenant_table_has_the_fence",
        "alter policy message_tenant on convo.message with check (true)",
        "convo.message",
    ),
    ("tenant_id_comes_first_in_every_table", UNFENCED_TABLE, "convo.extra"),
    (
        "policies_read_the_context_once_a_statement",
        "alter policy message_own on convo.message"
        " using (user_id = convo.current_user_id())",
        "convo.message message_own",
    ),
    (
        "policies_that_write_have_an_explicit_check",
        "create policy message_x on convo.message for update to convo_app"
        " using (user_id = 'x')",
        "convo.message message_x",
    ),
    (
        "only_search_and_backup_see_all_tenants",
        "create policy message_share on convo.message for select to convo_app"
        " using (true)",
        "convo.message message_share",
    ),
    (
        "only_search_and_backup_see_all_tenants",
        "create policy message_share on convo.message for insert to convo_app"
        " with check (true)",
        "convo.message message_share",
    ),
    (
        "what_can_be_changed_can_be_seen",
        "create policy conversation_wide on convo.conversation for delete"
        " to convo_maintainer using (not is_on_hold)",
        "convo.conversation conversation_wide convo_maintainer",
    ),
    (
        "a_held_conversation_is_deleted_by_nobody",
        "drop policy conversation_hold on convo.conversation",
        "convo.conversation",
    ),
    (
        "public_may_nothing",
        "create function convo.extra() returns int language sql return 1",
        "EXECUTE function convo.extra() ",
    ),
    (
        "public_may_nothing",
        "grant create on schema convo to public",
        "CREATE schema convo ",
    ),
    (
        "public_may_nothing",
        "grant select (content) on convo.message to public",
        "SELECT column convo.message content",
    ),
    (
        "new_functions_of_the_owner_are_not_for_public",
        "alter default privileges for role convo_owner"
        " grant execute on functions to public",
        "no default privileges on f",
    ),
    (
        "only_group_roles_have_grants",
        "grant create on schema convo to convo_search",
        "CREATE schema convo convo_search",
    ),
    (
        "only_group_roles_have_grants",
        "grant select on convo.audit to test_nobody",
        "SELECT relation convo.audit test_nobody",
    ),
    (
        "no_truncate_references_or_trigger",
        "grant truncate on convo.message to convo_maintainer",
        "TRUNCATE convo.message convo_maintainer",
    ),
    (
        "keys_and_holds_are_not_updatable",
        "grant update (tenant_id) on convo.message to convo_service",
        "convo.message tenant_id convo_service",
    ),
    (
        "keys_and_holds_are_not_updatable",
        "grant update (is_on_hold) on convo.conversation to convo_app",
        "convo.conversation is_on_hold convo_app",
    ),
    (
        "keys_and_holds_are_not_updatable",
        "grant update on convo.prompt to convo_app",
        "convo.prompt every column convo_app",
    ),
    ("roles_are_harmless", "alter role convo_backup bypassrls", "convo_backup"),
    ("roles_are_harmless", "alter role convo_app login", "convo_app"),
    (
        "roles_are_members_of_nothing",
        "grant convo_owner to convo_service",
        "convo_service in convo_owner",
    ),
    (
        "no_role_changes_how_names_or_rows_are_found",
        "alter role test_app set search_path = public",
        "test_app search_path=public",
    ),
    ("the_owner_owns_everything", UNFENCED_TABLE, "convo.extra postgres"),
    (
        "definers_find_only_what_was_meant",
        "alter function convo_private._audit(text, uuid, text)"
        " set search_path = pg_catalog",
        "convo_private._audit(text,uuid,text)",
    ),
    (
        "definers_belong_to_no_powerful_role",
        "alter function convo_private._audit(text, uuid, text) owner to convo_owner",
        "convo_private._audit(text,uuid,text) convo_owner",
    ),
    (
        "plpgsql_is_pinned_and_prefers_columns",
        "alter function convo.set_context(text, text) reset search_path",
        "convo.set_context(text,text)",
    ),
    (
        "sql_is_bound_at_creation_and_can_be_inlined",
        "create function convo.extra() returns int language sql as 'select 1'",
        "convo.extra() sql",
    ),
    (
        "context_is_stable",
        "alter function convo.current_tenant_id() immutable",
        "convo.current_tenant_id() i",
    ),
    (
        "nothing_is_leakproof",
        "alter function convo.estimate_tokens(text) leakproof",
        "convo.estimate_tokens(text)",
    ),
    (
        "public_names_are_not_overloaded",
        "create function convo.version(x int) returns int language sql return 1",
        "convo version",
    ),
    (
        "no_body_uses_what_is_forbidden",
        "create function convo.extra() returns timestamptz language sql return now()",
        "extra: now",
    ),
    (
        "no_body_uses_what_is_forbidden",
        "create function convo.extra() returns setof convo.message language sql"
        " begin atomic select * from convo.message offset 5; end",
        "extra: OFFSET",
    ),
    (
        "no_body_uses_what_is_forbidden",
        "create function convo.extra() returns void language plpgsql as"
        " $$ begin execute 'select 1'; perform pg_advisory_lock(1); end $$",
        "extra: EXECUTE",
    ),
    (
        "every_statement_names_the_tenant",
        "create function convo.extra() returns void language plpgsql as $$ begin"
        " update convo.message as m set content = '' where m.seq = 1; end $$",
        "extra: message",
    ),
    (
        "every_statement_names_the_tenant",
        "create function convo.extra() returns bigint language sql begin atomic"
        " select count(*) from convo.message as m join convo.conversation as c"
        " on m.tenant_id = c.tenant_id; end",
        "extra: conversation",
    ),
    (
        "columns_are_qualified",
        "create function convo.extra() returns void language plpgsql as $$"
        " declare seq integer; begin"
        " perform from convo.message as m where m.seq = seq; end $$",
        "extra: seq",
    ),
    (
        "arguments_are_qualified",
        "create function convo.not_in_sources() returns int language sql return 1",
        "not_in_sources: not in sql/functions",
    ),
    (
        "views_are_invokers",
        "create view convo.extra_view as select 1 as x",
        "convo.extra_view",
    ),
    (
        "there_is_nothing_that_leaks_beside_the_policies",
        "create materialized view convo.extra_view as select 1 as x",
        "relation convo.extra_view",
    ),
    (
        "there_is_nothing_that_leaks_beside_the_policies",
        "create sequence convo.extra_sequence",
        "relation convo.extra_sequence",
    ),
    (
        "there_is_nothing_that_leaks_beside_the_policies",
        "create publication extra for table convo.message",
        "publication extra",
    ),
    (
        "there_is_nothing_that_leaks_beside_the_policies",
        "select lo_create(4711)",
        "large object 4711",
    ),
    (
        "keys_begin_with_the_tenant",
        "create unique index message_x_idx on convo.message (conversation_id, seq)",
        "convo.message_x_idx",
    ),
    (
        "foreign_keys_are_indexed",
        "drop index convo.conversation_user_id_system_prompt_sha256_idx",
        "conversation_prompt_fkey",
    ),
    (
        "text_is_bounded",
        "alter table convo.message add extra jsonb",
        "convo.message.extra",
    ),
    (
        "text_is_bounded",
        "alter table convo.prompt drop constraint prompt_tenant_id_check",
        "convo.prompt.tenant_id",
    ),
    (
        "text_is_bounded",
        "alter table convo.audit add extra text"
        " constraint audit_extra_check check (length(extra) > 0)",
        "convo.audit.extra",
    ),
    (
        "everything_has_a_comment",
        "alter table convo.message add extra int",
        "column convo.message.extra",
    ),
    (
        "everything_has_a_comment",
        "comment on policy message_own on convo.message is null",
        "policy message_own on convo.message",
    ),
    (
        "names_say_what_they_belong_to",
        "create index extra on convo.message (tenant_id, created_at)",
        "message extra",
    ),
    (
        "names_say_what_they_belong_to",
        "alter table convo.message add constraint message_x check (seq > 0)",
        "message message_x",
    ),
]


@pytest.fixture(scope="module")
def catalog(pg_template, make_database):
    """A database to look at; what a test does to it is undone."""
    with psycopg.connect(make_database(pg_template.template_dbname)) as conn:
        yield conn


@pytest.fixture(autouse=True)
def undo(request):
    yield
    if "catalog" in request.fixturenames:
        request.getfixturevalue("catalog").rollback()


@pytest.mark.parametrize("name", RULES)
def test_rule_holds(catalog, name):
    assert RULES[name](catalog) == []


@pytest.mark.parametrize(
    ("name", "change", "offender"),
    BREAKS,
    ids=[f"{name}-{offender.split()[0]}" for name, _, offender in BREAKS],
)
def test_rule_reports_what_breaks_it(catalog, name, change, offender):
    catalog.execute(change)
    assert offender in RULES[name](catalog)


def test_every_rule_was_seen_to_report():
    assert RULES.keys() == {name for name, _, _ in BREAKS}


@pytest.mark.parametrize(
    "body",
    [
        "language sql return seq",
        "language sql begin atomic select seq; end",
        "language plpgsql as $$ begin return seq; end $$",
        "language plpgsql as $$ declare x int := seq; begin return x; end $$",
        "language plpgsql as $$ declare x int; begin x := seq; return x; end $$",
    ],
)
def test_a_bare_argument_is_reported(catalog, body):
    head = "create function convo.extra(seq integer) returns integer "
    assert bodies.unqualified_arguments(catalog, head + body) == ["extra: seq"]
    qualified = body.replace("seq", "extra.seq")
    assert bodies.unqualified_arguments(catalog, head + qualified) == []


def test_the_tenant_of_an_insert_is_named(catalog):
    catalog.execute(
        "create function convo.extra() returns void language plpgsql as $$ begin"
        " insert into convo.tombstone (conversation_id) values (null); end $$"
    )
    found = bodies.unfenced_statements(catalog)
    assert found == ["extra: insert into tombstone"]
