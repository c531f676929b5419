-- 0004_signed_context: logins that are known by a signed token.
-- phase: expand
-- locks: ACCESS EXCLUSIVE on tenant_login, a table of few rows
-- migrate:up

set local lock_timeout = '5s';
set local convo.migration = '0004_signed_context';
set local standard_conforming_strings = on;

-- Outside a transaction the line above had no effect. Then the guard below fails, and
-- nothing after it may change anything, even where a client goes on after an error.
do $guard$
begin
    if current_setting('convo.migration', true) is distinct from '0004_signed_context' then
        set default_transaction_read_only = on;
    end if;
end
$guard$;

do $guard$
declare
    caller constant text := current_setting('role');
    ledger_owner name;
    newest integer := 0;
    is_applied boolean := false;
begin
    if current_setting('convo.migration', true) is distinct from '0004_signed_context' then
        raise exception using
            errcode = 'PC092',
            message = 'migration not in one transaction',
            detail = '{"version": 4}',
            hint = 'Connect again and run psql with -1, or use pgconvo migrate.';
    end if;
    perform pg_advisory_xact_lock(hashtextextended('pgconvo migration', 0));

    -- Only its owner and the groups may read the ledger, so look as the owner.
    select pg_get_userbyid(c.relowner) into ledger_owner
    from pg_catalog.pg_class as c
    inner join pg_catalog.pg_namespace as n on c.relnamespace = n.oid
    where n.nspname = 'convo' and c.relname = 'schema_migration';
    if ledger_owner is not null then
        if not pg_has_role(current_user, ledger_owner, 'member') then
            raise insufficient_privilege using
                message = 'only a member of the owner may migrate',
                detail = json_build_object('owner', ledger_owner)::text,
                hint = 'Connect as the role that installed the schema.';
        end if;
        perform set_config('role', ledger_owner, true);
        select
            coalesce(max(m.version), 0),
            coalesce(bool_or(m.version = 4), false)
        into newest, is_applied
        from convo.schema_migration as m
        where m.track = 'core';
        perform set_config('role', caller, true);
    end if;

    if is_applied then
        raise exception using
            errcode = 'PC090',
            message = 'migration applied already',
            detail = json_build_object('version', 4, 'newest', newest)::text,
            hint = 'Leave this file out.';
    elsif newest <> 4 - 1 then
        raise exception using
            errcode = 'PC091',
            message = 'migration out of order',
            detail = json_build_object('version', 4, 'newest', newest)::text,
            hint = 'Apply the file that follows the newest one first.';
    end if;
end
$guard$;

set local role convo_owner;

-- >>> sql/functions/identity/_fail.sql
-- _fail: raises one of the toolkit's errors, so that each has one wording.
-- in: the SQLSTATE, and ids and numbers for DETAIL, never content
-- errors: always
create or replace function convo._fail(code text, detail jsonb) returns void
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    message text;
    hint text;
begin
    select e.message, e.hint into message, hint
    from (values
        ('PC001', 'conversation not found',
            'Check the id, and that the context names the tenant and user who own it.'),
        ('PC002', 'message not found',
            'Check seq with list_messages.'),
        ('PC003', 'request not found',
            'Check the id, and that the context names the tenant and user who own it.'),
        ('PC010', 'changed by somebody else',
            'Read the current state, then try again with the current value.'),
        ('PC011', 'idempotency key or request id used for other content',
            'Use a new key for each append, and prepare a request for each answer.'),
        ('PC012', 'conversation was deleted',
            'Create a new conversation; an id is never used again.'),
        ('PC013', 'conversation id is taken',
            'Leave conversation_id out and let the database make one.'),
        ('PC020', 'what must be kept does not fit the budget',
            'Raise the budget, or append a user message if there is none.'),
        ('PC030', 'no tenant or user set',
            'Call set_context in the same transaction.'),
        ('PC031', 'context token not valid',
            'Mint a new one with a key that is valid now.'),
        ('PC040', 'conversation is on legal hold',
            'Ask for release_conversation, then try again.'),
        ('PC050', 'message not valid in its format',
            'Send the message as the provider documents it.'),
        ('PC060', 'request can not be replayed exactly any more',
            'Look in DETAIL for what was erased since; nothing brings it back.'),
        ('22023', 'invalid argument',
            'See the function''s comment for the values it takes.'),
        ('42501', 'not allowed',
            'Use a role that may do this.')
    ) as e (code, message, hint)
    where e.code = _fail.code;

    raise exception using
        errcode = _fail.code, message = message, detail = _fail.detail::text, hint = hint;
end
$$;

comment on function convo._fail(text, jsonb) is
'Raises the error of a code with constant MESSAGE and HINT.';
revoke execute on function convo._fail(text, jsonb) from public;
grant execute on function convo._fail(text, jsonb)
to convo_app, convo_service, convo_reader, convo_maintainer, convo_search;
-- <<< sql/functions/identity/_fail.sql

-- === sql/tables/tenant_login.sql 1649fbf799c89940
-- a few rows, read at once
-- squawk-ignore ban-drop-constraint
alter table convo_private.tenant_login drop constraint tenant_login_mode_check;
alter table convo_private.tenant_login
-- squawk-ignore constraint-missing-not-valid
add constraint tenant_login_mode_check check (mode in ('settings', 'pinned', 'token'));
comment on column convo_private.tenant_login.mode is
'settings: from settings or claims; pinned: always the tenant named here; token: only '
'from a signed token.';
-- <<< sql/tables/tenant_login.sql

-- >>> sql/tables/context_key.sql
-- context_key: the keys that context tokens are signed with.
create table convo_private.context_key (
    key_id text collate "C" not null,
    secret bytea not null,
    expires_at timestamptz(3),
    constraint context_key_pkey primary key (key_id),
    constraint context_key_key_id_check check (
        length(key_id) <= 63 and key_id ~ '^[A-Za-z0-9_-]+$'
    ),
    -- HMAC-SHA256 asks for 32 bytes at least, and hashes what is over 64
    constraint context_key_secret_check check (length(secret) between 32 and 64)
);

comment on table convo_private.context_key is
'The keys that context tokens are signed with, for the owner, the verifier and dumps.';
comment on column convo_private.context_key.key_id is
'Names the key in a token. To change keys, add one and let the old one expire.';
comment on column convo_private.context_key.secret is '32 to 64 random bytes.';
comment on column convo_private.context_key.expires_at is
'From then on it verifies nothing; null: never.';
-- <<< sql/tables/context_key.sql

-- >>> sql/functions/identity/current_tenant_id.sql
-- current_tenant_id: the tenant on whose behalf this transaction acts, or null.
-- A pinned login has its own tenant, whatever is set; a login in mode token has the one
-- of its signed token. Else JWT claims that hold a tenant count (request.jwt.claims, as
-- PostgREST sets it), else the setting convo.tenant_id.
-- STABLE, never IMMUTABLE: a cached plan would keep another tenant's value.
-- errors: 22P02, 22023 when the claims are garbage, PC031 when the token is
-- since: 0.1.0
create or replace function convo.current_tenant_id() returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    login_mode text;
    tenant text;
begin
    select l.mode, l.tenant_id into login_mode, tenant
    from convo_private.tenant_login as l
    where l.role_name = session_user;
    if login_mode = 'token' then
        return (
            convo_private._verified_context(current_setting('convo.token', true))
        )[1];
    elsif tenant is null and current_setting('request.jwt.claims', true) <> '' then
        tenant := convo._claim('tenant_id');
    end if;
    return coalesce(tenant, nullif(current_setting('convo.tenant_id', true), ''));
end
$$;

comment on function convo.current_tenant_id() is
'The tenant on whose behalf this transaction acts, or null. Empty counts as null.';
revoke execute on function convo.current_tenant_id() from public;
grant execute on function convo.current_tenant_id()
to convo_app, convo_service, convo_reader, convo_maintainer, convo_search;
-- <<< sql/functions/identity/current_tenant_id.sql

-- >>> sql/functions/identity/current_user_id.sql
-- current_user_id: the user on whose behalf this transaction acts, or null.
-- From the same source as the tenant: the signed token for a login in mode token, sub of
-- the JWT claims when they hold a tenant, else the setting convo.user_id. A pinned login
-- needs no tenant in its claims.
-- errors: 22P02, 22023 when the claims are garbage, PC031 when the token is
-- since: 0.1.0
create or replace function convo.current_user_id() returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    login_mode text;
    is_from_claims boolean := false;
begin
    select l.mode into login_mode
    from convo_private.tenant_login as l
    where l.role_name = session_user;
    if login_mode = 'token' then
        return (
            convo_private._verified_context(current_setting('convo.token', true))
        )[2];
    elsif current_setting('request.jwt.claims', true) <> '' then
        is_from_claims := convo._claim('tenant_id') is not null
            or coalesce(login_mode = 'pinned', false)
            and convo._claim('sub') is not null;
    end if;
    if is_from_claims then
        return convo._claim('sub');
    end if;
    return nullif(current_setting('convo.user_id', true), '');
end
$$;

comment on function convo.current_user_id() is
'The user on whose behalf this transaction acts, or null. Empty counts as null.';
revoke execute on function convo.current_user_id() from public;
grant execute on function convo.current_user_id()
to convo_app, convo_service, convo_reader, convo_maintainer, convo_search;
-- <<< sql/functions/identity/current_user_id.sql

-- >>> sql/functions/identity/set_context_token.sql
-- set_context_token: says who is asking by a signed token, for this transaction only.
-- A login in mode token is known by nothing else; for others the token counts as if its
-- tenant and user had been set by set_context.
-- errors: PC031 bad, expired or forged
-- since: 0.1.0
create or replace function convo.set_context_token(token text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    named constant text[] := convo_private._verified_context(set_context_token.token);
begin
    if named[1] is null then
        perform convo._fail('PC031', '{"reason": "no tenant"}');
    end if;
    perform
        convo.set_context(named[1], named[2]),
        set_config('convo.token', set_context_token.token, true);
end
$$;

comment on function convo.set_context_token(text) is
'Says who is asking by a signed token, for this transaction only. PC031 if it is bad, '
'expired or forged.';
revoke execute on function convo.set_context_token(text) from public;
grant execute on function convo.set_context_token(text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/identity/set_context_token.sql

-- >>> sql/functions/identity/_hmac_sha256.sql
-- _hmac_sha256: HMAC with SHA-256 (RFC 2104), of core functions only.
-- in: a key of at most 64 bytes
create or replace function convo._hmac_sha256(key bytea, message bytea) returns bytea
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    inner_pad bytea := decode(repeat('36', 64), 'hex');
    outer_pad bytea := decode(repeat('5c', 64), 'hex');
begin
    for n in 0 .. length(_hmac_sha256.key) - 1 loop
        inner_pad := set_byte(inner_pad, n, get_byte(_hmac_sha256.key, n) # 54);
        outer_pad := set_byte(outer_pad, n, get_byte(_hmac_sha256.key, n) # 92);
    end loop;
    return sha256(outer_pad || sha256(inner_pad || _hmac_sha256.message));
end
$$;

comment on function convo._hmac_sha256(bytea, bytea) is
'HMAC with SHA-256, of core functions only.';
revoke execute on function convo._hmac_sha256(bytea, bytea) from public;
grant execute on function convo._hmac_sha256(bytea, bytea) to convo_search;
-- <<< sql/functions/identity/_hmac_sha256.sql

-- >>> sql/policies/context_key.sql
-- context_key: the owner manages it; only convo_private._verified_context reads it.
alter table convo_private.context_key enable row level security;
alter table convo_private.context_key force row level security;

create policy context_key_owner on convo_private.context_key
for all to convo_owner using (true) with check (true);
comment on policy context_key_owner on convo_private.context_key is
'The owner adds keys and lets them expire.';

create policy context_key_search on convo_private.context_key
for select to convo_search using (true);
comment on policy context_key_search on convo_private.context_key is
'convo_private._verified_context looks keys up.';

create policy context_key_backup on convo_private.context_key
for select to convo_backup using (true);
comment on policy context_key_backup on convo_private.context_key is
'A dump has every row.';

grant select on convo_private.context_key to convo_search, convo_backup;
-- <<< sql/policies/context_key.sql

grant create on schema convo_private to convo_search;
set local role convo_search;

-- >>> sql/functions/identity/_verified_context.sql
-- _verified_context: the tenant and the user that a signed token names.
-- A token is v1.<key id>.<tenant>.<user>.<expiry>.<signature>: tenant and user in UTF-8
-- and base64url without padding (no user: empty), the expiry in seconds since 1970, the
-- signature the HMAC-SHA256 of all before its dot, in hex. SECURITY DEFINER, since
-- nobody who sends SQL may read a key.
-- in: the token; null or empty: there is none
-- out: null without a token
-- errors: PC031
create or replace function convo_private._verified_context(token text) returns text[]
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    parts constant text[] := string_to_array(_verified_context.token, '.');
    signed constant text := left(
        _verified_context.token, -length(parts[6]) - 1
    );
    secret bytea;
    reason text;
begin
    if coalesce(_verified_context.token, '') = '' then
        return null;
    elsif cardinality(parts) <> 6
        or parts[1] <> 'v1'
        or parts[5] !~ '^[0-9]{1,12}$'
        or length(_verified_context.token) > 4096
    then
        perform convo._fail('PC031', '{"reason": "malformed"}');
    end if;
    select k.secret into secret
    from convo_private.context_key as k
    where k.key_id = parts[2]
        and coalesce(k.expires_at > statement_timestamp(), true);
    -- hashed, so that the time it takes tells nothing about the right signature
    if secret is null
        or sha256(convert_to(parts[6], 'UTF8')) <> sha256(convert_to(
            encode(
                convo._hmac_sha256(secret, convert_to(signed, 'UTF8')), 'hex'
            ),
            'UTF8'
        ))
    then
        reason := 'not signed with a key that is valid now';
    elsif to_timestamp(parts[5]::bigint) <= statement_timestamp() then
        reason := 'expired';
    end if;
    if reason is not null then
        perform convo._fail('PC031', jsonb_build_object('reason', reason));
    end if;
    return array(
        select nullif(convert_from(
            decode(
                translate(p.part, '-_', '+/')
                    || repeat('=', (4 - length(p.part) % 4) % 4),
                'base64'
            ),
            'UTF8'
        ), '')
        from unnest(parts[3:4]) with ordinality as p (part, n)
        order by p.n
    );
exception when invalid_parameter_value or character_not_in_repertoire then
    perform convo._fail('PC031', '{"reason": "malformed"}');
end
$$;

comment on function convo_private._verified_context(text) is
'The tenant and the user that a signed token names, or null without a token.';
revoke execute on function convo_private._verified_context(text) from public;
grant execute on function convo_private._verified_context(text)
to convo_app, convo_service, convo_reader, convo_maintainer;
-- <<< sql/functions/identity/_verified_context.sql

set local role convo_owner;
revoke create on schema convo_private from convo_search;

reset role;

set local role convo_owner;
insert into convo.schema_migration (track, version, name)
values ('core', 4, '0004_signed_context');
reset role;

-- migrate:down
