-- catalog: one sorted line for each fact about the schema, from the catalogs alone.
-- Two databases of one major version that print the same have the same schema, however
-- each came to it. Run it with search_path = pg_catalog, so that expressions are
-- printed with every schema named. NOT NULL is told with the columns, since only
-- PostgreSQL 18 lists it as constraints.
with
schema as (
    select n.oid, n.nspname, n.nspowner, n.nspacl
    from pg_catalog.pg_namespace as n
    where n.nspname in ('convo', 'convo_private')
),

relation as (
    select
        c.*,
        format('%I.%I', s.nspname, c.relname) as name,
        case c.relkind
            when 'r' then 'table'
            when 'p' then 'partitioned table'
            when 'v' then 'view'
            when 'm' then 'materialized view'
            when 'S' then 'sequence'
            when 'c' then 'type'
            when 'f' then 'foreign table'
            else 'index'
        end as kind
    from pg_catalog.pg_class as c
    inner join schema as s on c.relnamespace = s.oid
    left join pg_catalog.pg_am as a on c.relam = a.oid
    -- an index for approximate search is for one tenant, made where one wants it
    where c.relkind <> 'i' or a.amname not in ('hnsw', 'ivfflat')
),

-- Types with a life of their own: no row types of tables, no arrays.
type as (
    select t.*, format('%I.%I', s.nspname, t.typname) as name
    from pg_catalog.pg_type as t
    inner join schema as s on t.typnamespace = s.oid
    where
        t.typelem = 0
        and (
            t.typrelid = 0
            or t.typrelid in (select r.oid from relation as r where r.relkind = 'c')
        )
),

function as (
    select
        p.*,
        p.oid::regprocedure::text as name,
        case p.prokind when 'p' then 'procedure' else 'function' end as kind
    from pg_catalog.pg_proc as p
    inner join schema as s on p.pronamespace = s.oid
),

-- The toolkit's own roles; a login whose name begins alike is the user's.
role as (
    select r.*
    from pg_catalog.pg_roles as r
    where r.rolname like 'convo\_%' and not r.rolcanlogin
),

owned (kind, name, owner, acl) as (
    select 'schema', quote_ident(s.nspname), s.nspowner,
        coalesce(s.nspacl, acldefault('n', s.nspowner))
    from schema as s
    union all
    select r.kind, r.name, r.relowner,
        coalesce(
            r.relacl,
            acldefault((case r.relkind when 'S' then 's' else 'r' end)::"char", r.relowner)
        )
    from relation as r
    where r.kind not in ('index', 'type')
    union all
    select 'type', t.name, t.typowner, coalesce(t.typacl, acldefault('T', t.typowner))
    from type as t
    union all
    select f.kind, f.name, f.proowner, coalesce(f.proacl, acldefault('f', f.proowner))
    from function as f
),

granted (kind, name, acl) as (
    select o.kind, o.name, o.acl from owned as o
    union all
    select 'column', format('%s.%I', r.name, a.attname), a.attacl
    from relation as r
    inner join pg_catalog.pg_attribute as a on r.oid = a.attrelid
    where a.attacl is not null
),

commentable (classid, objid) as (
    select 'pg_catalog.pg_namespace'::regclass, s.oid from schema as s
    union all
    select 'pg_catalog.pg_class'::regclass, r.oid from relation as r
    union all
    select 'pg_catalog.pg_type'::regclass, t.oid from type as t
    union all
    select 'pg_catalog.pg_proc'::regclass, f.oid from function as f
    union all
    select 'pg_catalog.pg_constraint'::regclass, c.oid
    from pg_catalog.pg_constraint as c
    inner join schema as s on c.connamespace = s.oid
    union all
    select 'pg_catalog.pg_policy'::regclass, p.oid
    from pg_catalog.pg_policy as p
    inner join relation as r on p.polrelid = r.oid
    union all
    select 'pg_catalog.pg_trigger'::regclass, t.oid
    from pg_catalog.pg_trigger as t
    inner join relation as r on t.tgrelid = r.oid
),

fact (line) as (
    select format('%s %s owner %s', o.kind, o.name, pg_get_userbyid(o.owner))
    from owned as o
    union all
    select concat_ws(
        ' ', 'grant', x.privilege_type, 'on', g.kind, g.name, 'to',
        case x.grantee when 0 then 'public' else pg_get_userbyid(x.grantee)::text end,
        case when x.is_grantable then 'with grant option' end
    )
    from granted as g
    cross join aclexplode(g.acl) as x
    union all
    select concat_ws(
        ' ', r.kind, r.name,
        case when r.relrowsecurity then 'row security' else 'no row security' end,
        case when r.relforcerowsecurity then 'forced' end,
        case when r.relpersistence <> 'p' then 'persistence ' || r.relpersistence::text end,
        case when r.relispartition then 'partition' end,
        'options ' || r.reloptions::text
    )
    from relation as r
    where r.relkind in ('r', 'p', 'f')
    union all
    select concat_ws(
        ' ', 'column', format('%s.%I', r.name, a.attname),
        row_number() over (partition by r.oid order by a.attnum),
        format_type(a.atttypid, a.atttypmod),
        case
            when a.attcollation <> t.typcollation
                then 'collate ' || a.attcollation::regcollation::text
        end,
        case when a.attnotnull then 'not null' end,
        case a.attgenerated when '' then 'default' else 'generated' end
        || ' ' || pg_get_expr(d.adbin, d.adrelid),
        'identity ' || nullif(a.attidentity::text, ''),
        case when a.attstorage <> t.typstorage then 'storage ' || a.attstorage::text end,
        'compression ' || nullif(a.attcompression::text, '')
    )
    from relation as r
    inner join pg_catalog.pg_attribute as a
        on r.oid = a.attrelid and a.attnum > 0 and not a.attisdropped
    inner join pg_catalog.pg_type as t on a.atttypid = t.oid
    left join pg_catalog.pg_attrdef as d
        on a.attrelid = d.adrelid and a.attnum = d.adnum
    where r.kind <> 'index'
    union all
    select format(
        'constraint %I on %s: %s%s',
        c.conname,
        coalesce(r.name, t.name),
        pg_get_constraintdef(c.oid),
        case when not c.convalidated then ' not valid' end
    )
    from pg_catalog.pg_constraint as c
    inner join schema as s on c.connamespace = s.oid
    left join relation as r on c.conrelid = r.oid
    left join type as t on c.contypid = t.oid
    where c.contype <> 'n'
    union all
    select format(
        'index %s: %s%s',
        r.name,
        pg_get_indexdef(i.indexrelid),
        case when not i.indisvalid then ' invalid' end
    )
    from pg_catalog.pg_index as i
    inner join relation as r on i.indexrelid = r.oid
    union all
    select concat_ws(
        ' ', 'policy', quote_ident(p.polname), 'on', r.name,
        case when p.polpermissive then 'permissive' else 'restrictive' end,
        'for',
        case p.polcmd
            when 'r' then 'select'
            when 'a' then 'insert'
            when 'w' then 'update'
            when 'd' then 'delete'
            else 'all'
        end,
        'to',
        (
            select string_agg(
                case u.oid when 0 then 'public' else pg_get_userbyid(u.oid)::text end,
                ', ' order by pg_get_userbyid(u.oid)::text collate "C"
            )
            from unnest(p.polroles) as u (oid)
        ),
        'using ' || pg_get_expr(p.polqual, p.polrelid),
        'with check ' || pg_get_expr(p.polwithcheck, p.polrelid)
    )
    from pg_catalog.pg_policy as p
    inner join relation as r on p.polrelid = r.oid
    union all
    select format('%s %s: %s', f.kind, f.name, pg_get_functiondef(f.oid))
    from function as f
    where f.prokind <> 'a'
    union all
    select concat_ws(
        ' ', 'type', t.name, 'kind', t.typtype,
        'over ' || nullif(format_type(t.typbasetype, t.typtypmod), '-'),
        case when t.typnotnull then 'not null' end,
        'default ' || t.typdefault,
        'values ' || (
            select string_agg(quote_literal(e.enumlabel), ', ' order by e.enumsortorder)
            from pg_catalog.pg_enum as e
            where e.enumtypid = t.oid
        )
    )
    from type as t
    union all
    select concat_ws(
        ' ', r.kind, r.name, 'options ' || r.reloptions::text, pg_get_viewdef(r.oid)
    )
    from relation as r
    where r.relkind in ('v', 'm')
    union all
    select format('sequence %s %s', r.name, to_jsonb(q) - 'seqrelid')
    from pg_catalog.pg_sequence as q
    inner join relation as r on q.seqrelid = r.oid
    union all
    select format('%s enabled %s', pg_get_triggerdef(t.oid), t.tgenabled)
    from pg_catalog.pg_trigger as t
    inner join relation as r on t.tgrelid = r.oid
    where not t.tgisinternal
    union all
    select pg_get_ruledef(w.oid)
    from pg_catalog.pg_rewrite as w
    inner join relation as r on w.ev_class = r.oid
    where w.rulename <> '_RETURN'
    union all
    select format('comment on %s %s: %s', i.type, i.identity, d.description)
    from commentable as o
    inner join pg_catalog.pg_description as d
        on o.classid = d.classoid and o.objid = d.objoid
    cross join pg_identify_object(d.classoid, d.objoid, d.objsubid) as i
    union all
    select concat_ws(
        ' ', 'default privileges of', r.rolname,
        'in schema ' || nullif(d.defaclnamespace::regnamespace::text, '-'),
        'on', d.defaclobjtype, 'are',
        (
            select string_agg(
                case x.grantee
                    when 0 then 'public' else pg_get_userbyid(x.grantee)::text
                end || ' ' || x.privilege_type,
                ', ' order by pg_get_userbyid(x.grantee)::text collate "C",
                x.privilege_type collate "C"
            )
            from aclexplode(d.defaclacl) as x
        )
    )
    from pg_catalog.pg_default_acl as d
    inner join role as r on d.defaclrole = r.oid
    union all
    select format(
        'role %I superuser %s inherit %s createrole %s createdb %s replication %s'
        ' bypassrls %s limit %s settings %s',
        r.rolname, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb,
        r.rolreplication, r.rolbypassrls, r.rolconnlimit, r.rolconfig
    )
    from role as r
    union all
    select format('comment on role %I: %s', r.rolname, d.description)
    from pg_catalog.pg_shdescription as d
    inner join role as r on d.objoid = r.oid
    where d.classoid = 'pg_catalog.pg_authid'::regclass
    union all
    select format(
        'role %I is a member of %I %s',
        m.rolname,
        g.rolname,
        to_jsonb(a) - array['oid', 'roleid', 'member', 'grantor']
    )
    from pg_catalog.pg_auth_members as a
    inner join role as g on a.roleid = g.oid
    inner join role as m on a.member = m.oid
)

select replace(replace(f.line, '\', '\\'), e'\n', '\n') as line
from fact as f
order by f.line collate "C";
