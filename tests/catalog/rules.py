"""What must hold for everything in the schemas, read from the catalogs.

A rule takes a connection and returns its offenders, one line each: none is well. A new
table, policy or function is under every rule from the day it appears.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

from psycopg import Connection

from . import bodies

Rule = Callable[[Connection], list[str]]

RULES: dict[str, Rule] = {}

SCHEMAS = "('convo'::regnamespace, 'convo_private'::regnamespace)"
# The ledger of migrations, the rules for logins, keys and prices belong to no tenant.
UNFENCED = (
    "('convo.schema_migration'::regclass, 'convo_private.tenant_login'::regclass,"
    " 'convo_private.context_key'::regclass, 'convo.model_price'::regclass)"
)
TENANT_TABLES = f"""
    select c.oid, c.oid::regclass::text as name
    from pg_class as c
    where c.relkind in ('r', 'p', 'f')
        and c.relnamespace in {SCHEMAS}
        and c.oid not in {UNFENCED}
"""
FENCE = "(tenant_id = ( SELECT convo.current_tenant_id() AS current_tenant_id))"


def rule(function: Rule) -> Rule:
    RULES[function.__name__] = function
    return function


def lines(conn: Connection, query: str) -> list[str]:
    rows = conn.execute(query).fetchall()
    return sorted(" ".join(str(value) for value in row) for row in rows)


# Row security ------------------------------------------------------------------------


@rule
def row_security_is_on_and_forced(conn: Connection) -> list[str]:
    return lines(
        conn,
        f"""
        select c.oid::regclass
        from pg_class as c
        where c.relkind in ('r', 'p')
            and c.relnamespace in {SCHEMAS}
            and not (c.relrowsecurity and c.relforcerowsecurity)
        """,
    )


@rule
def every_tenant_table_has_the_fence(conn: Connection) -> list[str]:
    return lines(
        conn,
        f"""
        select t.name
        from ({TENANT_TABLES}) as t
        where not exists (
            select
            from pg_policy as p
            where p.polrelid = t.oid
                and not p.polpermissive
                and p.polcmd = '*'
                and p.polroles @> array[
                    'convo_app'::regrole, 'convo_service'::regrole,
                    'convo_reader'::regrole
                ]::oid[]
                and pg_get_expr(p.polqual, p.polrelid) = '{FENCE}'
                and pg_get_expr(p.polwithcheck, p.polrelid) = '{FENCE}'
        )
        """,
    )


@rule
def tenant_id_comes_first_in_every_table(conn: Connection) -> list[str]:
    return lines(
        conn,
        f"""
        select t.name
        from ({TENANT_TABLES}) as t
        where not exists (
            select
            from pg_attribute as a
            where a.attrelid = t.oid
                and a.attnum = 1
                and a.attname = 'tenant_id'
                and a.attnotnull
                and a.attcollation = '"C"'::regcollation
        )
        """,
    )


def policies(conn: Connection) -> list[tuple[str, str, bool, str, list[str], str, str]]:
    """Name, table, is permissive, command, roles, using, with check."""
    return conn.execute(
        f"""
        select
            p.polname, p.polrelid::regclass::text, p.polpermissive, p.polcmd::text,
            array(
                select case r.oid when 0 then 'public' else r.oid::regrole::text end
                from unnest(p.polroles) as r (oid)
            ),
            coalesce(pg_get_expr(p.polqual, p.polrelid), ''),
            coalesce(pg_get_expr(p.polwithcheck, p.polrelid), '')
        from pg_policy as p
        join pg_class as c on c.oid = p.polrelid and c.relnamespace in {SCHEMAS}
        order by 2, 1
        """
    ).fetchall()


@rule
def policies_read_the_context_once_a_statement(conn: Connection) -> list[str]:
    bare = re.compile(
        r"(?<!SELECT )convo\.current_(tenant|user)_id\(\)|current_setting"
    )
    return [
        f"{table} {name}"
        for name, table, _, _, _, using, check in policies(conn)
        if bare.search(f"{using} {check}")
    ]


@rule
def policies_that_write_have_an_explicit_check(conn: Connection) -> list[str]:
    return [
        f"{table} {name}"
        for name, table, _, command, _, _, check in policies(conn)
        if command in "aw*" and not check
    ]


@rule
def only_search_and_backup_see_all_tenants(conn: Connection) -> list[str]:
    """And the purge, which may read nothing here, notes what it did in all of them."""
    fenced = {name for (_, name) in conn.execute(TENANT_TABLES)}
    return [
        f"{table} {name}"
        for name, table, permissive, _, roles, using, check in policies(conn)
        if permissive
        and table in fenced
        and (
            (using == "true" and not {"convo_search", "convo_backup"}.issuperset(roles))
            or (check == "true" and roles != ["convo_maintainer"])
        )
    ]


@rule
def what_can_be_changed_can_be_seen(conn: Connection) -> list[str]:
    """UPDATE and DELETE rules are as wide as SELECT's, or narrower by the hold."""
    found = []
    permissive = [policy for policy in policies(conn) if policy[2]]
    for name, table, _, command, roles, using, _ in permissive:
        if command not in "wd":
            continue
        for role in roles:
            seen = [
                other[5]
                for other in permissive
                if other[1] == table and other[3] in "r*" and role in other[4]
            ]
            allowed = itertools.chain(
                seen, (f"((NOT is_on_hold) AND {expression})" for expression in seen)
            )
            if squeeze(using) not in map(squeeze, allowed):
                found.append(f"{table} {name} {role}")
    return found


def squeeze(expression: str) -> str:
    return re.sub(r"\s+", "", expression)


@rule
def a_held_conversation_is_deleted_by_nobody(conn: Connection) -> list[str]:
    """Every table with a hold has a restrictive delete rule for PUBLIC."""
    held = conn.execute(
        f"""
        select a.attrelid::regclass::text
        from pg_attribute as a
        join pg_class as c on c.oid = a.attrelid and c.relkind in ('r', 'p')
        where a.attname = 'is_on_hold' and c.relnamespace in {SCHEMAS}
        """
    ).fetchall()
    kept = [
        table
        for _, table, permissive, command, roles, using, _ in policies(conn)
        if not permissive
        and command == "d"
        and roles == ["public"]
        and using == "(NOT is_on_hold)"
    ]
    return [table for (table,) in held if table not in kept]


# Grants and roles ---------------------------------------------------------------------

GRANTS = f"""
    select 'schema' as kind, n.oid::regnamespace::text as name, null as column_name,
        n.nspowner as owner, x.grantee, x.privilege_type, x.is_grantable
    from pg_namespace as n
    cross join aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) as x
    where n.oid in {SCHEMAS}
    union all
    select 'relation', c.oid::regclass::text, null, c.relowner, x.grantee,
        x.privilege_type, x.is_grantable
    from pg_class as c
    cross join aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) as x
    where c.relnamespace in {SCHEMAS} and c.relkind in ('r', 'p', 'v', 'm', 'f')
    union all
    select 'column', c.oid::regclass::text, a.attname, c.relowner, x.grantee,
        x.privilege_type, x.is_grantable
    from pg_class as c
    join pg_attribute as a on a.attrelid = c.oid
    cross join aclexplode(a.attacl) as x
    where c.relnamespace in {SCHEMAS}
    union all
    select 'function', p.oid::regprocedure::text, null, p.proowner, x.grantee,
        x.privilege_type, x.is_grantable
    from pg_proc as p
    cross join aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as x
    where p.pronamespace in {SCHEMAS}
    union all
    select 'type', t.oid::regtype::text, null, t.typowner, x.grantee,
        x.privilege_type, x.is_grantable
    from pg_type as t
    join pg_class as c on c.oid = t.typrelid and c.relkind = 'c'
    cross join aclexplode(coalesce(t.typacl, acldefault('T', t.typowner))) as x
    where t.typnamespace in {SCHEMAS}
"""


@rule
def public_may_nothing(conn: Connection) -> list[str]:
    return lines(
        conn,
        f"""
        select g.privilege_type, g.kind, g.name, coalesce(g.column_name, '')
        from ({GRANTS}) as g
        where g.grantee = 0
        """,
    )


@rule
def new_functions_of_the_owner_are_not_for_public(conn: Connection) -> list[str]:
    """The global default, since one for a schema can't take anything away."""
    return lines(
        conn,
        """
        select 'no default privileges on', k.objtype
        from (values ('f'), ('T')) as k (objtype)
        where not exists (
            select
            from pg_default_acl as d
            where d.defaclrole = 'convo_owner'::regrole
                and d.defaclnamespace = 0
                and d.defaclobjtype::text = k.objtype
                and not exists (
                    select from aclexplode(d.defaclacl) as x where x.grantee = 0
                )
        )
        """,
    )


@rule
def only_group_roles_have_grants(conn: Connection) -> list[str]:
    """And none may pass on what it has, or make objects."""
    return lines(
        conn,
        f"""
        select g.privilege_type, g.kind, g.name, r.rolname
        from ({GRANTS}) as g
        join pg_roles as r on r.oid = g.grantee
        where g.grantee <> g.owner
            and (
                r.rolname not like 'convo\\_%'
                or r.rolname = 'convo_owner'
                or g.is_grantable
                or g.privilege_type = 'CREATE'
            )
        """,
    )


@rule
def no_truncate_references_or_trigger(conn: Connection) -> list[str]:
    return lines(
        conn,
        f"""
        select g.privilege_type, g.name, g.grantee::regrole
        from ({GRANTS}) as g
        where g.kind in ('relation', 'column')
            and g.grantee <> g.owner
            and g.privilege_type not in ('SELECT', 'INSERT', 'UPDATE', 'DELETE')
        """,
    )


@rule
def keys_and_holds_are_not_updatable(conn: Connection) -> list[str]:
    """Nobody moves a row to a tenant; service changes its owner, a definer a hold."""
    return lines(
        conn,
        f"""
        select g.name, coalesce(g.column_name, 'every column'), g.grantee::regrole
        from ({GRANTS}) as g
        where g.privilege_type = 'UPDATE'
            and g.grantee <> g.owner
            and (
                g.kind = 'relation'
                or g.column_name in (
                    'tenant_id', 'conversation_id', 'seq', 'group_seq', 'sha256',
                    'created_at'
                )
                -- a row lock needs a column; it is the one that matters least
                and not (g.name = 'convo.prompt' and g.column_name = 'created_at')
                or g.column_name = 'user_id'
                and g.grantee <> 'convo_service'::regrole
                or g.column_name = 'is_on_hold'
                and g.grantee <> 'convo_search'::regrole
            )
        """,
    )


@rule
def literals_mean_the_same_in_any_session(conn: Connection) -> list[str]:
    """A body is parsed with the caller's standard_conforming_strings."""
    bodies = conn.execute(
        f"""
        select p.oid::regproc::text, p.prosrc
        from pg_proc as p
        inner join pg_language as l on l.oid = p.prolang
        where p.pronamespace in {SCHEMAS} and l.lanname = 'plpgsql'
        """
    ).fetchall()
    token = re.compile(r"--[^\n]*|([eE]?)'((?:[^'\\]|\\.|'')*)'", re.DOTALL)
    return [
        name
        for name, body in bodies
        if any(
            "\\" in (found[2] or "") and not found[1] for found in token.finditer(body)
        )
    ]


@rule
def roles_are_harmless(conn: Connection) -> list[str]:
    return lines(
        conn,
        r"""
        select r.rolname
        from pg_roles as r
        where r.rolname like 'convo\_%'
            and (
                r.rolsuper or r.rolbypassrls or r.rolcreaterole or r.rolcreatedb
                or r.rolreplication or r.rolcanlogin
            )
        """,
    )


@rule
def roles_are_members_of_nothing(conn: Connection) -> list[str]:
    return lines(
        conn,
        r"""
        select m.member::regrole, 'in', m.roleid::regrole
        from pg_auth_members as m
        join pg_roles as r on r.oid = m.member and r.rolname like 'convo\_%'
        """,
    )


@rule
def no_role_changes_how_names_or_rows_are_found(conn: Connection) -> list[str]:
    return lines(
        conn,
        """
        select coalesce(nullif(s.setrole, 0)::regrole::text, 'all'), c.setting
        from pg_db_role_setting as s
        cross join unnest(s.setconfig) as c (setting)
        where split_part(c.setting, '=', 1) in ('search_path', 'row_security', 'role')
            and s.setdatabase in (
                0,
                (
                    select d.oid
                    from pg_database as d
                    where d.datname = current_database()
                )
            )
        """,
    )


@rule
def the_owner_owns_everything(conn: Connection) -> list[str]:
    """Except the definer functions, which convo_search owns."""
    return lines(
        conn,
        f"""
        select c.oid::regclass::text, c.relowner::regrole
        from pg_class as c
        where c.relnamespace in {SCHEMAS} and c.relowner <> 'convo_owner'::regrole
        union all
        select n.nspname, n.nspowner::regrole
        from pg_namespace as n
        where n.oid in {SCHEMAS} and n.nspowner <> 'convo_owner'::regrole
        union all
        select p.oid::regprocedure::text, p.proowner::regrole
        from pg_proc as p
        where p.pronamespace in {SCHEMAS}
            and p.proowner <> case
                when p.prosecdef then 'convo_search' else 'convo_owner'
            end::regrole
        """,
    )


# Functions ----------------------------------------------------------------------------

FUNCTIONS = f"""
    select p.*, p.oid::regprocedure::text as name, l.lanname
    from pg_proc as p
    join pg_language as l on l.oid = p.prolang
    where p.pronamespace in {SCHEMAS}
"""


@rule
def definers_find_only_what_was_meant(conn: Connection) -> list[str]:
    """A path that doesn't end in pg_temp has it first."""
    return lines(
        conn,
        f"""
        select f.name
        from ({FUNCTIONS}) as f
        where f.prosecdef
            and not exists (
                select
                from unnest(f.proconfig) as c (setting)
                where c.setting ~ '^search_path=.*, ?pg_temp$'
            )
        """,
    )


@rule
def definers_belong_to_no_powerful_role(conn: Connection) -> list[str]:
    return lines(
        conn,
        f"""
        select f.name, r.rolname
        from ({FUNCTIONS}) as f
        join pg_roles as r on r.oid = f.proowner
        where f.prosecdef
            and (
                r.rolsuper or r.rolbypassrls or r.rolcreaterole
                or exists (
                    select
                    from pg_class as c
                    where c.relowner = r.oid and c.relnamespace in {SCHEMAS}
                )
            )
        """,
    )


@rule
def plpgsql_is_pinned_and_prefers_columns(conn: Connection) -> list[str]:
    """A procedure that commits can't have settings: it writes schemas out."""
    return lines(
        conn,
        f"""
        select f.name
        from ({FUNCTIONS}) as f
        where f.lanname = 'plpgsql'
            and (
                f.prokind <> 'p'
                and not coalesce(
                    'search_path=pg_catalog, pg_temp' = any (f.proconfig), false
                )
                or f.prosrc !~ '^\\s*#variable_conflict use_column\\n'
            )
        """,
    )


@rule
def sql_is_bound_at_creation_and_can_be_inlined(conn: Connection) -> list[str]:
    return lines(
        conn,
        f"""
        select f.name, f.lanname
        from ({FUNCTIONS}) as f
        where f.lanname = 'sql' and (f.prosqlbody is null or f.proconfig is not null)
            or f.lanname not in ('sql', 'plpgsql')
        """,
    )


@rule
def context_is_stable(conn: Connection) -> list[str]:
    """An immutable function would keep another tenant's value in a plan."""
    reads = (
        r"current_setting|current_(tenant|user)_id|_require_tenant|session_user|now\("
    )
    return lines(
        conn,
        f"""
        select f.name, f.provolatile
        from ({FUNCTIONS}) as f
        where f.provolatile <> 's'
                and f.proname in (
                    'current_tenant_id', 'current_user_id', '_require_tenant'
                )
            or f.provolatile = 'i'
                and pg_get_functiondef(f.oid) ~ '{reads}'
        """,
    )


@rule
def nothing_is_leakproof(conn: Connection) -> list[str]:
    return lines(conn, f"select f.name from ({FUNCTIONS}) as f where f.proleakproof")


@rule
def public_names_are_not_overloaded(conn: Connection) -> list[str]:
    return lines(
        conn,
        f"""
        select f.pronamespace::regnamespace, f.proname
        from ({FUNCTIONS}) as f
        group by f.pronamespace, f.proname
        having count(*) > 1
        """,
    )


@rule
def no_body_uses_what_is_forbidden(conn: Connection) -> list[str]:
    return bodies.forbidden(conn)


@rule
def every_statement_names_the_tenant(conn: Connection) -> list[str]:
    return bodies.unfenced_statements(conn)


@rule
def columns_are_qualified(conn: Connection) -> list[str]:
    return bodies.unqualified_columns(conn)


@rule
def arguments_are_qualified(conn: Connection) -> list[str]:
    return bodies.unqualified_arguments(conn)


# Objects ------------------------------------------------------------------------------


@rule
def views_are_invokers(conn: Connection) -> list[str]:
    return lines(
        conn,
        f"""
        select c.oid::regclass
        from pg_class as c
        where c.relkind = 'v'
            and c.relnamespace in {SCHEMAS}
            and not coalesce(c.reloptions @> array['security_invoker=true'], false)
        """,
    )


@rule
def there_is_nothing_that_leaks_beside_the_policies(conn: Connection) -> list[str]:
    """Sequences tell volumes, the others hold or send rows without row security."""
    return lines(
        conn,
        f"""
        select 'relation', c.oid::regclass::text
        from pg_class as c
        where c.relnamespace in {SCHEMAS} and c.relkind not in ('r', 'v', 'i', 'c')
        union all
        select 'identity', format('%s.%s', c.oid::regclass, a.attname)
        from pg_attribute as a
        join pg_class as c on c.oid = a.attrelid and c.relnamespace in {SCHEMAS}
        where a.attidentity <> ''
        union all
        select 'inheritance', i.inhrelid::regclass::text
        from pg_inherits as i
        join pg_class as c on c.oid = i.inhparent and c.relnamespace in {SCHEMAS}
        union all
        select 'trigger', t.tgname
        from pg_trigger as t
        join pg_class as c on c.oid = t.tgrelid and c.relnamespace in {SCHEMAS}
        where not t.tgisinternal
        union all
        select 'rule', w.rulename
        from pg_rewrite as w
        join pg_class as c on c.oid = w.ev_class and c.relnamespace in {SCHEMAS}
        where w.rulename <> '_RETURN'
        union all
        select 'large object', m.oid::text from pg_largeobject_metadata as m
        union all
        select 'publication', p.pubname
        from pg_publication_tables as p
        where p.schemaname in ('convo', 'convo_private')
        """,
    )


@rule
def keys_begin_with_the_tenant(conn: Connection) -> list[str]:
    """Foreign keys on both sides, and whatever is unique."""
    return lines(
        conn,
        f"""
        select k.conname
        from pg_constraint as k
        where k.contype = 'f'
            and k.connamespace in {SCHEMAS}
            and exists (
                select
                from (values (k.conrelid, k.conkey[1]), (k.confrelid, k.confkey[1]))
                    as side (relation, column_number)
                join pg_attribute as a
                    on a.attrelid = side.relation and a.attnum = side.column_number
                where a.attname <> 'tenant_id'
            )
        union all
        select i.indexrelid::regclass::text
        from pg_index as i
        join pg_class as c on c.oid = i.indrelid and c.relnamespace in {SCHEMAS}
        where (i.indisunique or i.indisexclusion)
            and i.indrelid not in {UNFENCED}
            and not exists (
                select
                from pg_attribute as a
                where a.attrelid = i.indrelid
                    and a.attnum = i.indkey[0]
                    and a.attname = 'tenant_id'
            )
        """,
    )


@rule
def foreign_keys_are_indexed(conn: Connection) -> list[str]:
    """By an index that begins with the columns of the parent's primary key."""
    return lines(
        conn,
        f"""
        select k.conname
        from pg_constraint as k
        where k.contype = 'f'
            and k.connamespace in {SCHEMAS}
            and not exists (
                select
                from pg_index as i
                where i.indrelid = k.conrelid
                    and i.indisvalid
                    and i.indpred is null
                    and (
                        select array_agg(c.child order by c.child)
                        from pg_constraint as parent
                        cross join unnest(k.conkey, k.confkey) as c (child, parent)
                        where parent.conrelid = k.confrelid
                            and parent.contype = 'p'
                            and c.parent = any (parent.conkey)
                    ) = (
                        select array_agg(c.child order by c.child)
                        from unnest(i.indkey::int2[]) with ordinality as c (child, n)
                        where c.n <= (
                            select cardinality(parent.conkey)
                            from pg_constraint as parent
                            where parent.conrelid = k.confrelid and parent.contype = 'p'
                        )
                    )
            )
        """,
    )


@rule
def text_is_bounded(conn: Connection) -> list[str]:
    """By a CHECK, or by a foreign key to a column that is."""
    columns = conn.execute(
        f"""
        select c.oid::regclass::text, a.attname, t.typname, array(
            select pg_get_constraintdef(k.oid)
            from pg_constraint as k
            where k.contype = 'c' and k.conrelid = c.oid and a.attnum = any (k.conkey)
        ), (
            select format('%s.%s', f.attrelid::regclass, f.attname)
            from pg_constraint as k
            cross join unnest(k.conkey, k.confkey) as pair (child, parent)
            join pg_attribute as f
                on f.attrelid = k.confrelid and f.attnum = pair.parent
            where k.contype = 'f' and k.conrelid = c.oid and pair.child = a.attnum
            limit 1
        )
        from pg_class as c
        join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0
        join pg_type as t on t.oid = a.atttypid
        where c.relnamespace in {SCHEMAS}
            and c.relkind in ('r', 'p')
            and not a.attisdropped
            and t.typlen = -1
            and t.typname <> 'numeric'
        """
    ).fetchall()
    bounded: set[str] = set()
    references: dict[str, str] = {}
    for table, column, _, checks, reference in columns:
        measured = rf"(length|pg_column_size)\(\(?{column}\)?(::text)?\)+"
        limit = re.compile(
            rf"{measured} <?= \d|{measured} >= \d+\) AND \(+{measured} <= \d"
            rf"|\b{column} = ANY \(|\b{column} = '"
        )
        if any(limit.search(check) for check in checks):
            bounded.add(f"{table}.{column}")
        elif reference:
            references[f"{table}.{column}"] = reference
    while more := {c for c, r in references.items() if r in bounded} - bounded:
        bounded |= more
    return sorted({f"{table}.{column}" for table, column, *_ in columns} - bounded)


@rule
def everything_has_a_comment(conn: Connection) -> list[str]:
    return lines(
        conn,
        rf"""
        select 'schema', n.nspname
        from pg_namespace as n
        where n.oid in {SCHEMAS} and obj_description(n.oid, 'pg_namespace') is null
        union all
        select 'relation', c.oid::regclass::text
        from pg_class as c
        where c.relnamespace in {SCHEMAS}
            and c.relkind not in ('i', 'I', 'c')
            and obj_description(c.oid, 'pg_class') is null
        union all
        select 'index', c.oid::regclass::text
        from pg_class as c
        where c.relnamespace in {SCHEMAS}
            and c.relkind in ('i', 'I')
            and not exists (select from pg_constraint as k where k.conindid = c.oid)
            and obj_description(c.oid, 'pg_class') is null
        union all
        select 'column', format('%s.%s', c.oid::regclass, a.attname)
        from pg_class as c
        join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0
        where c.relnamespace in {SCHEMAS}
            and c.relkind not in ('i', 'I', 'c')
            and not a.attisdropped
            and col_description(c.oid, a.attnum) is null
        union all
        select 'type', t.oid::regtype::text
        from pg_type as t
        left join pg_class as c on c.oid = t.typrelid
        where t.typnamespace in {SCHEMAS}
            and t.typelem = 0
            and coalesce(c.relkind, 'c') = 'c'
            and obj_description(t.oid, 'pg_type') is null
        union all
        select 'function', p.oid::regprocedure::text
        from pg_proc as p
        where p.pronamespace in {SCHEMAS}
            and obj_description(p.oid, 'pg_proc') is null
        union all
        select 'policy', format('%s on %s', p.polname, c.oid::regclass)
        from pg_policy as p
        join pg_class as c on c.oid = p.polrelid and c.relnamespace in {SCHEMAS}
        where obj_description(p.oid, 'pg_policy') is null
        union all
        select 'role', r.rolname
        from pg_roles as r
        where r.rolname like 'convo\_%'
            and shobj_description(r.oid, 'pg_authid') is null
        """,
    )


@rule
def names_say_what_they_belong_to(conn: Connection) -> list[str]:
    """Constraints <table>_..._pkey, _key, _fkey, _check; indexes _idx; policies."""
    return lines(
        conn,
        f"""
        select c.relname, k.conname
        from pg_constraint as k
        join pg_class as c on c.oid = k.conrelid and c.relnamespace in {SCHEMAS}
        where k.contype in ('p', 'u', 'f', 'c', 'x')
            and k.conname !~ format('^%s_(.*_)?%s$', c.relname, case k.contype
                when 'p' then 'pkey'
                when 'u' then 'key'
                when 'f' then 'fkey'
                when 'c' then 'check'
                else 'excl'
            end)
        union all
        select t.relname, c.relname
        from pg_index as i
        join pg_class as t on t.oid = i.indrelid and t.relnamespace in {SCHEMAS}
        join pg_class as c on c.oid = i.indexrelid
        where not exists (select from pg_constraint as k where k.conindid = c.oid)
            and c.relname !~ format('^%s_.*_idx$', t.relname)
        union all
        select c.relname, p.polname
        from pg_policy as p
        join pg_class as c on c.oid = p.polrelid and c.relnamespace in {SCHEMAS}
        where p.polname !~ format('^%s_', c.relname)
        """,
    )
