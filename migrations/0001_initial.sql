-- 0001_initial: the whole schema of the first release.
-- phase: expand
-- locks: none on what exists
-- migrate:up

set local lock_timeout = '5s';
set local convo.migration = '0001_initial';
set local standard_conforming_strings = on;

-- Outside a transaction the line above had no effect. Then the guard below fails, and
-- nothing after it may change anything, even where a client goes on after an error.
do $guard$
begin
    if current_setting('convo.migration', true) is distinct from '0001_initial' then
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
    if current_setting('convo.migration', true) is distinct from '0001_initial' then
        raise exception using
            errcode = 'PC092',
            message = 'migration not in one transaction',
            detail = '{"version": 1}',
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
            coalesce(bool_or(m.version = 1), false)
        into newest, is_applied
        from convo.schema_migration as m
        where m.track = 'core';
        perform set_config('role', caller, true);
    end if;

    if is_applied then
        raise exception using
            errcode = 'PC090',
            message = 'migration applied already',
            detail = json_build_object('version', 1, 'newest', newest)::text,
            hint = 'Leave this file out.';
    elsif newest <> 1 - 1 then
        raise exception using
            errcode = 'PC091',
            message = 'migration out of order',
            detail = json_build_object('version', 1, 'newest', newest)::text,
            hint = 'Apply the file that follows the newest one first.';
    end if;
end
$guard$;

-- >>> sql/roles.sql
-- roles: the group roles that own, use and maintain the store.
-- They are NOLOGIN and members of nothing; logins are made members of them.
-- Roles belong to the cluster, so one that exists already (another database of the
-- same server uses this toolkit) is taken as it is.
do $roles$
declare
    role_name text;
begin
    foreach role_name in array array[
        'convo_owner', 'convo_app', 'convo_service', 'convo_reader',
        'convo_maintainer', 'convo_search', 'convo_backup'
    ] loop
        begin
            if not exists (
                select from pg_catalog.pg_roles as r where r.rolname = role_name
            ) then
                execute pg_catalog.format('create role %I nologin', role_name);
            end if;
        exception when duplicate_object or unique_violation then
            null; -- made in this moment by an installation in another database
        end;
    end loop;
end
$roles$;

-- Who installs must be able to act as the owner and as the definer. A superuser is;
-- a CREATEROLE user grants itself the right to SET ROLE, without inheriting.
do $membership$
declare
    role_name text;
    right_needed text := 'member';
    set_option text := '';
begin
    if current_setting('server_version_num')::integer >= 160000 then
        right_needed := 'set';
        set_option := ' with set true, inherit false';
    end if;
    foreach role_name in array array['convo_owner', 'convo_search'] loop
        if not pg_catalog.pg_has_role(role_name, right_needed) then
            execute pg_catalog.format(
                'grant %I to %I%s', role_name, current_user, set_option
            );
        end if;
    end loop;
end
$membership$;

-- Comments on roles need the right to change them, which the installer of a second
-- database may not have: then the first one's stand.
do $comments$
begin
    comment on role convo_owner is
        'Owns every object of the conversation store. Nobody logs in as it.';
    comment on role convo_app is
        'For applications: one user''s own conversations in one tenant.';
    comment on role convo_service is
        'For workers and support: all users of one tenant.';
    comment on role convo_reader is
        'Reads everything in one tenant, changes nothing.';
    comment on role convo_maintainer is
        'Purges what is due in all tenants; sees keys and times, never content.';
    comment on role convo_search is
        'Owns the few SECURITY DEFINER functions. Nobody logs in as it.';
    comment on role convo_backup is
        'Reads every row, for logical dumps.';
exception when insufficient_privilege then
    null;
end
$comments$;
-- <<< sql/roles.sql

-- >>> sql/schema.sql
-- schema: the two schemas, and the rule that nothing is for PUBLIC.
do $encoding$
begin
    if current_setting('server_encoding') <> 'UTF8' then
        raise feature_not_supported using
            message = 'the database is not in UTF8',
            detail = json_build_object(
                'encoding', current_setting('server_encoding')
            )::text,
            hint = 'Create a database with encoding UTF8 for it.';
    end if;
end
$encoding$;

create schema convo authorization convo_owner;
create schema convo_private authorization convo_owner;

set local role convo_owner;

comment on schema convo is
'Conversation history for LLM applications: call its functions.';
comment on schema convo_private is
'What the functions in schema convo use: login rules and definer helpers.';

grant usage on schema convo to
convo_app, convo_service, convo_reader, convo_maintainer, convo_search, convo_backup;
grant usage on schema convo_private to
convo_app, convo_service, convo_reader, convo_maintainer, convo_search, convo_backup;

-- A per-schema default can't take away what PUBLIC has by the global one.
alter default privileges for role convo_owner revoke execute on functions from public;
alter default privileges for role convo_owner revoke usage on types from public;
-- <<< sql/schema.sql

-- >>> sql/types/conversation_record.sql
-- conversation_record: a conversation as the functions give it.
create type convo.conversation_record as (
    conversation_id uuid,
    user_id text,
    title text,
    system_prompt text,
    retention_class text,
    policy text,
    last_seq integer,
    message_count integer,
    token_total bigint,
    metadata jsonb,
    created_at timestamptz(3),
    updated_at timestamptz(3),
    archived_at timestamptz(3),
    is_on_hold boolean,
    forked_from uuid,
    forked_at_seq integer
);

comment on type convo.conversation_record is
'A conversation: message_count and token_total count live messages, last_seq all.';
-- <<< sql/types/conversation_record.sql

-- >>> sql/types/message_record.sql
-- message_record: a message as the functions give it.
create type convo.message_record as (
    seq integer,
    role text,
    content text,
    tokens integer,
    is_estimated boolean,
    created_at timestamptz(3),
    revision integer,
    model text,
    payload json,
    format text,
    metadata jsonb,
    group_seq integer,
    deleted_at timestamptz(3)
);

comment on type convo.message_record is
'A message: content is its text, payload the provider''s own JSON byte for byte.';
-- <<< sql/types/message_record.sql

-- >>> sql/types/parsed_message.sql
-- _parsed_message: what the readers of provider formats make of one message.
create type convo._parsed_message as (
    role text,
    content text,
    payload json,
    tokens integer,
    is_empty boolean,
    call_ids text[],
    result_ids text[]
);

comment on type convo._parsed_message is
'A provider''s message, read: its text, estimated tokens, calls and results.';
-- <<< sql/types/parsed_message.sql

-- >>> sql/types/retention_record.sql
-- retention_record: a retention rule as the functions give it.
create type convo.retention_record as (
    retention_class text,
    max_age interval,
    basis text,
    action text
);

comment on type convo.retention_record is
'How long conversations of a class are kept; max_age null: for ever.';
-- <<< sql/types/retention_record.sql

-- >>> sql/types/purge_record.sql
-- purge_record: what one batch of the purge did.
create type convo.purge_record as (
    conversations integer,
    messages bigint,
    held integer,
    started_at timestamptz(3),
    finished_at timestamptz(3),
    is_dry_run boolean
);

comment on type convo.purge_record is
'One batch: conversations and messages gone, and conversations kept by a hold.';
-- <<< sql/types/purge_record.sql

-- >>> sql/types/policy_record.sql
-- policy_record: a context policy as the functions give it.
create type convo.policy_record as (
    name text,
    strategy text,
    token_budget integer,
    message_limit integer,
    step_tokens integer,
    message_overhead integer,
    start_on_user boolean,
    pin_last_user boolean,
    open_calls text,
    summary_placement text,
    summary_threshold integer,
    summary_share real,
    memory_limit integer,
    recall_limit integer
);

comment on type convo.policy_record is
'The rule by which a context is made. See set_policy for each field.';
-- <<< sql/types/policy_record.sql

-- >>> sql/types/context_record.sql
-- context_record: an item of a context as the functions give it.
create type convo.context_record as (
    ordinal integer,
    kind text,
    seq integer,
    role text,
    content text,
    tokens integer,
    running_tokens bigint
);

comment on type convo.context_record is
'An item of what is to be sent. kind: system, memory, summary, recalled or message.';
-- <<< sql/types/context_record.sql

-- >>> sql/types/summary_record.sql
-- summary_record: a summary as the functions give it.
create type convo.summary_record as (
    through_seq integer,
    content text,
    tokens integer,
    model text,
    created_at timestamptz(3)
);

comment on type convo.summary_record is
'A summary of everything up to the groups that begin at through_seq or before.';
-- <<< sql/types/summary_record.sql

-- >>> sql/types/context_item.sql
-- _context_item: an item that was considered for a context.
create type convo._context_item as (
    kind text,
    seq integer,
    role text,
    content text,
    tokens integer,
    section integer,
    group_seq integer,
    reason text
);

comment on type convo._context_item is
'An item considered for a context: where it stands, and why it was left out, if so.';
-- <<< sql/types/context_item.sql

-- >>> sql/types/group_member.sql
-- _group_member: what the window of a context has to know of a message.
create type convo._group_member as (
    seq integer,
    group_seq integer,
    role text,
    tokens integer,
    is_empty boolean,
    call_ids text[],
    result_ids text[],
    running_tokens bigint,
    reason text
);

comment on type convo._group_member is
'A message of a group, and why a context leaves it out, if so.';
-- <<< sql/types/group_member.sql

-- >>> sql/types/render_item.sql
-- _render_item: what a renderer has to know of an item of a context.
create type convo._render_item as (
    kind text,
    seq integer,
    group_seq integer,
    role text,
    content text,
    format text,
    payload json
);

comment on type convo._render_item is
'An item of a context, with the message as its provider wrote it.';
-- <<< sql/types/render_item.sql

-- >>> sql/types/render_block.sql
-- _render_block: a part of an item of a context, on its way into a request.
-- item, part: its place; group_place: the first item of its group; unit: the first item
-- of its OpenAI message, for a result the one of its call; role: a result is the user's;
-- content: the part, see _openai_parts; raw: its own bytes, where its format has parts;
-- is_native: written in the format asked for; is_whole: its item goes out as it is;
-- call, call_id, call_number: the call (of a result, the one answered), the id that it
-- goes out with, its number in its group
create type convo._render_block as (
    item integer,
    part integer,
    seq integer,
    group_seq integer,
    group_place integer,
    unit integer,
    role text,
    kind text,
    content jsonb,
    raw text,
    is_native boolean,
    is_whole boolean,
    call jsonb,
    call_id text,
    call_number integer
);

comment on type convo._render_block is
'A part of an item of a context, on its way into a request.';
-- <<< sql/types/render_block.sql

-- >>> sql/functions/identity/_fail.sql
-- _fail: raises one of the toolkit's errors, so that each has one wording.
-- in: the SQLSTATE, and ids and numbers for DETAIL, never content
-- errors: always
create function convo._fail(code text, detail jsonb) returns void
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
        ('PC010', 'changed by somebody else',
            'Read the current state, then try again with the current value.'),
        ('PC011', 'idempotency key used for other content',
            'Use a new key for each new append.'),
        ('PC012', 'conversation was deleted',
            'Create a new conversation; an id is never used again.'),
        ('PC013', 'conversation id is taken',
            'Leave conversation_id out and let the database make one.'),
        ('PC020', 'what must be kept does not fit the budget',
            'Raise the budget, or append a user message if there is none.'),
        ('PC030', 'no tenant or user set',
            'Call set_context in the same transaction.'),
        ('PC040', 'conversation is on legal hold',
            'Ask for release_conversation, then try again.'),
        ('PC050', 'message not valid in its format',
            'Send the message as the provider documents it.'),
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

-- >>> sql/functions/identity/_size.sql
-- _size: checks a size argument and bounds it.
-- in: the argument's name, its value, the most that is taken
-- out: the value, or the most
-- errors: 22023 when null or negative
create function convo._size(argument text, size integer, maximum integer)
returns integer
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if _size.size is null or _size.size < 0 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', _size.argument, 'value', _size.size, 'minimum', 0
        ));
    end if;
    return least(_size.size, _size.maximum);
end
$$;

comment on function convo._size(text, integer, integer) is
'Checks a size argument and bounds it.';
revoke execute on function convo._size(text, integer, integer) from public;
grant execute on function convo._size(text, integer, integer)
to convo_app, convo_service, convo_reader, convo_maintainer;
-- <<< sql/functions/identity/_size.sql

-- >>> sql/functions/identity/_uuid_v7.sql
-- _uuid_v7: a UUID of version 7 (RFC 9562): milliseconds first, then 74 random bits.
-- Made from a random one, so it is the same on every version of PostgreSQL.
create function convo._uuid_v7() returns uuid
language sql volatile parallel safe
return encode(
    set_bit(
        set_bit(
            overlay(
                uuid_send(gen_random_uuid()),
                substring(
                    int8send((extract(epoch from clock_timestamp()) * 1000)::bigint), 3
                ),
                1, 6
            ),
            52, 1
        ),
        53, 1
    ),
    'hex'
)::uuid;

comment on function convo._uuid_v7() is
'A new UUID of version 7: ordered by time, and not to be guessed.';
revoke execute on function convo._uuid_v7() from public;
grant execute on function convo._uuid_v7()
to convo_app, convo_service, convo_maintainer, convo_search;
-- <<< sql/functions/identity/_uuid_v7.sql

-- >>> sql/functions/identity/version.sql
-- version: the version of the toolkit that is installed.
-- since: 0.1.0
create function convo.version() returns text
language sql immutable parallel safe
return '0.1.0';

comment on function convo.version() is 'The version of the toolkit that is installed.';
revoke execute on function convo.version() from public;
grant execute on function convo.version()
to convo_app, convo_service, convo_reader, convo_maintainer, convo_backup;
-- <<< sql/functions/identity/version.sql

-- >>> sql/tables/schema_migration.sql
-- schema_migration: the ledger of applied migrations, one row each.
create table convo.schema_migration (
    track text not null,
    version integer not null,
    name text not null,
    applied_at timestamptz(3) not null default clock_timestamp(),
    applied_by text not null default session_user,
    constraint schema_migration_pkey primary key (track, version),
    constraint schema_migration_track_check check (length(track) between 1 and 30),
    constraint schema_migration_version_check check (version > 0),
    constraint schema_migration_name_check check (length(name) between 1 and 200),
    constraint schema_migration_applied_by_check check (length(applied_by) <= 63)
);

comment on table convo.schema_migration is
'The migrations applied to this database, in order, by track.';
comment on column convo.schema_migration.track is
'core, or an optional track that needs an extension.';
comment on column convo.schema_migration.version is
'The number that the file name begins with.';
comment on column convo.schema_migration.name is
'The file name without its ending.';
comment on column convo.schema_migration.applied_at is
'When it was applied.';
comment on column convo.schema_migration.applied_by is
'The login that applied it.';
-- <<< sql/tables/schema_migration.sql

-- >>> sql/tables/tenant_login.sql
-- tenant_login: logins whose tenant is not taken from settings.
create table convo_private.tenant_login (
    role_name name not null,
    mode text not null,
    tenant_id text collate "C",
    constraint tenant_login_pkey primary key (role_name),
    constraint tenant_login_mode_check check (mode in ('settings', 'pinned')),
    constraint tenant_login_tenant_id_check check (
        (mode = 'pinned') = (tenant_id is not null)
        and length(tenant_id) between 1 and 255
    )
);

comment on table convo_private.tenant_login is
'How a login says who is asking. A login without a row uses settings or JWT claims.';
comment on column convo_private.tenant_login.role_name is
'The login (session_user).';
comment on column convo_private.tenant_login.mode is
'settings: from settings or claims; pinned: always the tenant named here.';
comment on column convo_private.tenant_login.tenant_id is
'The tenant of a pinned login.';
-- <<< sql/tables/tenant_login.sql

-- >>> sql/tables/prompt.sql
-- prompt: texts that many conversations share, stored once per user by their hash.
create table convo.prompt (
    tenant_id text collate "C" not null,
    user_id text collate "C" not null,
    sha256 bytea not null,
    content text not null,
    tokens integer not null,
    created_at timestamptz(3) not null default clock_timestamp(),
    constraint prompt_pkey primary key (tenant_id, user_id, sha256),
    constraint prompt_tokens_check check (tokens >= 0),
    constraint prompt_sha256_check check (length(sha256) = 32),
    constraint prompt_content_check check (
        octet_length(content) between 1 and 16777216
    ),
    constraint prompt_tenant_id_check check (length(tenant_id) between 1 and 255),
    constraint prompt_user_id_check check (length(user_id) between 1 and 255)
);

comment on table convo.prompt is
'System prompts, content-addressed per user. Gone when nothing refers to it.';
comment on column convo.prompt.tenant_id is 'The tenant.';
comment on column convo.prompt.user_id is 'The user whose conversations use it.';
comment on column convo.prompt.sha256 is 'SHA-256 of the text in UTF-8.';
comment on column convo.prompt.content is 'The text, at most 16 MiB.';
comment on column convo.prompt.tokens is 'Its estimated tokens.';
comment on column convo.prompt.created_at is 'When it was first stored.';
-- <<< sql/tables/prompt.sql

-- >>> sql/tables/conversation.sql
-- conversation: one row a conversation, with the counter that gives messages their seq.
create table convo.conversation (
    tenant_id text collate "C" not null,
    conversation_id uuid not null,
    user_id text collate "C" not null,
    title text,
    system_prompt_sha256 bytea,
    retention_class text not null,
    policy text,
    last_seq integer not null default 0,
    message_count integer not null default 0,
    token_total bigint not null default 0,
    body_count integer not null default 0,
    body_tokens bigint not null default 0,
    summary_through_seq integer not null default 0,
    is_on_hold boolean not null default false,
    metadata jsonb not null default '{}',
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null,
    archived_at timestamptz(3),
    forked_from uuid,
    forked_at_seq integer,
    constraint conversation_pkey primary key (tenant_id, conversation_id),
    -- what children refer to: so a child's owner is always its conversation's owner
    constraint conversation_owner_key unique (tenant_id, conversation_id, user_id),
    constraint conversation_prompt_fkey
    foreign key (tenant_id, user_id, system_prompt_sha256)
    references convo.prompt (tenant_id, user_id, sha256),
    constraint conversation_tenant_id_check check (length(tenant_id) between 1 and 255),
    constraint conversation_user_id_check check (length(user_id) between 1 and 255),
    constraint conversation_title_check check (length(title) <= 1000),
    constraint conversation_system_prompt_sha256_check check (
        length(system_prompt_sha256) = 32
    ),
    constraint conversation_retention_class_check check (
        length(retention_class) between 1 and 63
    ),
    constraint conversation_policy_check check (length(policy) between 1 and 63),
    constraint conversation_counters_check check (
        last_seq >= message_count
        and summary_through_seq between 0 and last_seq
        and message_count >= body_count
        and body_count >= 0
        and token_total >= body_tokens
        and body_tokens >= 0
    ),
    constraint conversation_metadata_check check (
        jsonb_typeof(metadata) = 'object' and pg_column_size(metadata) <= 65536
    )
) with (fillfactor = 80); -- room for HOT updates of the counters

-- For lists of one user, and for the foreign key to prompt. It holds nothing that an
-- append changes: an index on updated_at would end HOT updates.
create index conversation_user_id_system_prompt_sha256_idx
on convo.conversation (tenant_id, user_id, system_prompt_sha256);

-- For the purge: whatever is due by activity was created before the limit too.
create index conversation_retention_class_created_at_idx
on convo.conversation (tenant_id, retention_class, created_at);

comment on table convo.conversation is
'One row a conversation. Its row lock orders the writers, its counter gives seq.';
comment on column convo.conversation.tenant_id is 'The tenant.';
comment on column convo.conversation.conversation_id is 'UUID, version 7 by default.';
comment on column convo.conversation.user_id is 'The owner.';
comment on column convo.conversation.title is 'A title, at most 1,000 characters.';
comment on column convo.conversation.system_prompt_sha256 is
'The system prompt, in table prompt.';
comment on column convo.conversation.retention_class is
'Names the tenant''s retention rule for it.';
comment on column convo.conversation.policy is
'Names the tenant''s context policy for it; null: the default.';
comment on column convo.conversation.last_seq is
'The seq of the newest message ever stored, deleted ones too.';
comment on column convo.conversation.message_count is 'Live messages.';
comment on column convo.conversation.token_total is 'Tokens of live messages.';
comment on column convo.conversation.body_count is
'Live messages that are neither system ones nor summarised.';
comment on column convo.conversation.body_tokens is
'Tokens of live messages that are neither system ones nor summarised.';
comment on column convo.conversation.summary_through_seq is
'What the newest summary covers: messages with this group_seq or less. 0: none.';
comment on column convo.conversation.is_on_hold is
'On legal hold: can''t be deleted, purged or erased.';
comment on column convo.conversation.metadata is
'The application''s own data, an object of at most 64 KiB.';
comment on column convo.conversation.created_at is 'When it was created.';
comment on column convo.conversation.updated_at is
'When the conversation or its messages last changed; never goes back.';
comment on column convo.conversation.archived_at is
'When it was archived; null: it is not.';
comment on column convo.conversation.forked_from is
'The conversation it was forked from, which may be gone.';
comment on column convo.conversation.forked_at_seq is
'The seq of the last message that the fork copied.';
comment on index convo.conversation_user_id_system_prompt_sha256_idx is
'One user''s conversations; conversations that use a prompt.';
comment on index convo.conversation_retention_class_created_at_idx is
'What may be due for the purge.';
-- <<< sql/tables/conversation.sql

-- >>> sql/tables/message.sql
-- message: one row a message, in the order of seq within its conversation.
create table convo.message (
    tenant_id text collate "C" not null,
    conversation_id uuid not null,
    seq integer not null,
    user_id text collate "C" not null,
    role text not null,
    content text,
    payload json,
    format text,
    tokens integer not null,
    is_estimated boolean not null,
    is_empty boolean not null,
    group_seq integer not null,
    revision integer not null default 1,
    model text,
    call_ids text[],
    result_ids text[],
    metadata jsonb not null default '{}',
    created_at timestamptz(3) not null,
    edited_at timestamptz(3),
    deleted_at timestamptz(3),
    constraint message_pkey primary key (tenant_id, conversation_id, seq),
    -- deferrable for transfer_conversation, which changes both sides
    constraint message_conversation_fkey
    foreign key (tenant_id, conversation_id, user_id)
    references convo.conversation (tenant_id, conversation_id, user_id)
    on delete cascade deferrable,
    constraint message_seq_check check (seq > 0),
    constraint message_role_check check (
        role in ('system', 'user', 'assistant', 'tool')
    ),
    -- pg_column_size and octet_length look at sizes only, they detoast nothing
    constraint message_content_check check (octet_length(content) <= 67108864),
    constraint message_payload_check check (pg_column_size(payload) <= 67108864),
    constraint message_format_check check (
        format in ('openai', 'openai_responses', 'anthropic', 'gemini')
        and (format is null) = (payload is null)
    ),
    constraint message_tokens_check check (tokens >= 0),
    constraint message_group_seq_check check (group_seq between 1 and seq),
    constraint message_revision_check check (revision > 0),
    constraint message_model_check check (length(model) between 1 and 255),
    constraint message_call_ids_check check (pg_column_size(call_ids) <= 1048576),
    constraint message_result_ids_check check (pg_column_size(result_ids) <= 1048576),
    constraint message_metadata_check check (
        jsonb_typeof(metadata) = 'object' and pg_column_size(metadata) <= 65536
    )
);

-- The next two are read backwards, newest first. Ascending, since a descending index
-- that grows at its left end splits its pages in halves.

-- The newest live messages, whatever was deleted at the end.
create index message_seq_idx
on convo.message (tenant_id, conversation_id, seq)
where deleted_at is null;

-- The token window.
create index message_group_seq_idx
on convo.message (tenant_id, conversation_id, group_seq)
where deleted_at is null and role <> 'system';

-- The live system messages, which every context holds.
create index message_system_idx
on convo.message (tenant_id, conversation_id, seq)
where role = 'system' and deleted_at is null;

-- The newest live calls, for the results that come in.
create index message_call_ids_idx
on convo.message (tenant_id, conversation_id, seq)
where call_ids is not null and deleted_at is null;

comment on table convo.message is
'One row a message. A seq is never reused; edits keep old versions elsewhere.';
comment on column convo.message.tenant_id is 'The tenant.';
comment on column convo.message.conversation_id is 'The conversation.';
comment on column convo.message.seq is 'Its place: 1, 2, 3 ... without gaps.';
comment on column convo.message.user_id is 'The owner of the conversation.';
comment on column convo.message.role is 'system, user, assistant or tool.';
comment on column convo.message.content is
'Its text; null where it has none. U+FFFD stands for what text can''t hold.';
comment on column convo.message.payload is
'The provider''s own JSON, byte for byte. Clean it before reading it as jsonb.';
comment on column convo.message.format is 'The provider format of the payload.';
comment on column convo.message.tokens is 'Tokens, given or estimated.';
comment on column convo.message.is_estimated is 'Whether tokens is an estimate.';
comment on column convo.message.is_empty is
'Whether it says nothing beside results: no text but white space, no call or media.';
comment on column convo.message.group_seq is
'The seq of the first message that it must stand together with, else its own.';
comment on column convo.message.revision is '1, and one more with each edit.';
comment on column convo.message.model is 'The model that wrote it.';
comment on column convo.message.call_ids is 'The ids of the tool calls in it.';
comment on column convo.message.result_ids is
'The ids of the calls that the results in it answer.';
comment on column convo.message.metadata is
'The application''s own data, an object of at most 64 KiB.';
comment on column convo.message.created_at is
'When it was stored; never before the message before it.';
comment on column convo.message.edited_at is 'When it was last edited.';
comment on column convo.message.deleted_at is 'When it was softly deleted.';
comment on index convo.message_seq_idx is 'Live messages in order.';
comment on index convo.message_group_seq_idx is
'Live messages but system ones, in order of their groups.';
comment on index convo.message_system_idx is 'Live system messages.';
comment on index convo.message_call_ids_idx is 'Live messages with calls.';
-- <<< sql/tables/message.sql

-- >>> sql/tables/message_revision.sql
-- message_revision: what edited messages said before.
create table convo.message_revision (
    tenant_id text collate "C" not null,
    conversation_id uuid not null,
    seq integer not null,
    revision integer not null,
    user_id text collate "C" not null,
    content text,
    payload json,
    tokens integer not null,
    is_estimated boolean not null,
    created_at timestamptz(3) not null,
    constraint message_revision_pkey
    primary key (tenant_id, conversation_id, seq, revision),
    constraint message_revision_conversation_fkey
    foreign key (tenant_id, conversation_id, user_id)
    references convo.conversation (tenant_id, conversation_id, user_id)
    on delete cascade deferrable,
    constraint message_revision_revision_check check (revision > 0),
    constraint message_revision_content_check check (octet_length(content) <= 67108864),
    constraint message_revision_payload_check check (
        pg_column_size(payload) <= 67108864
    ),
    constraint message_revision_tokens_check check (tokens >= 0)
);

comment on table convo.message_revision is
'Superseded versions of messages; the current one is in table message.';
comment on column convo.message_revision.tenant_id is 'The tenant.';
comment on column convo.message_revision.conversation_id is 'The conversation.';
comment on column convo.message_revision.seq is 'The message.';
comment on column convo.message_revision.revision is 'The version, from 1.';
comment on column convo.message_revision.user_id is 'The owner of the conversation.';
comment on column convo.message_revision.content is 'The text of that version.';
comment on column convo.message_revision.payload is 'The payload of that version.';
comment on column convo.message_revision.tokens is 'The tokens of that version.';
comment on column convo.message_revision.is_estimated is
'Whether tokens is an estimate.';
comment on column convo.message_revision.created_at is
'When that version was written.';
-- <<< sql/tables/message_revision.sql

-- >>> sql/tables/idempotency_key.sql
-- idempotency_key: which append stored which messages, so that a retry stores nothing.
create table convo.idempotency_key (
    tenant_id text collate "C" not null,
    conversation_id uuid not null,
    key text collate "C" not null,
    user_id text collate "C" not null,
    first_seq integer not null,
    last_seq integer not null,
    sha256 bytea not null,
    created_at timestamptz(3) not null,
    constraint idempotency_key_pkey primary key (tenant_id, conversation_id, key),
    constraint idempotency_key_conversation_fkey
    foreign key (tenant_id, conversation_id, user_id)
    references convo.conversation (tenant_id, conversation_id, user_id)
    on delete cascade deferrable,
    constraint idempotency_key_key_check check (length(key) between 1 and 255),
    constraint idempotency_key_seq_check check (
        first_seq > 0 and last_seq >= first_seq - 1
    ),
    constraint idempotency_key_sha256_check check (length(sha256) = 32)
);

comment on table convo.idempotency_key is
'Keys that writers gave with an append, each with the messages it stored.';
comment on column convo.idempotency_key.tenant_id is 'The tenant.';
comment on column convo.idempotency_key.conversation_id is 'The conversation.';
comment on column convo.idempotency_key.key is 'The writer''s key.';
comment on column convo.idempotency_key.user_id is 'The owner of the conversation.';
comment on column convo.idempotency_key.first_seq is 'The first message stored.';
comment on column convo.idempotency_key.last_seq is
'The last message stored; one less than first_seq if there was none.';
comment on column convo.idempotency_key.sha256 is
'Hash of what was to be stored, so that other content is refused.';
comment on column convo.idempotency_key.created_at is 'When it was used first.';
-- <<< sql/tables/idempotency_key.sql

-- >>> sql/tables/summary.sql
-- summary: what earlier messages said, in short; each covers the ones before it too.
create table convo.summary (
    tenant_id text collate "C" not null,
    conversation_id uuid not null,
    through_seq integer not null,
    user_id text collate "C" not null,
    content text not null,
    tokens integer not null,
    model text,
    created_at timestamptz(3) not null,
    constraint summary_pkey primary key (tenant_id, conversation_id, through_seq),
    constraint summary_conversation_fkey
    foreign key (tenant_id, conversation_id, user_id)
    references convo.conversation (tenant_id, conversation_id, user_id)
    on delete cascade deferrable,
    constraint summary_through_seq_check check (through_seq > 0),
    constraint summary_content_check check (
        content ~ '\S' and octet_length(content) <= 1048576
    ),
    constraint summary_tokens_check check (tokens >= 0),
    constraint summary_model_check check (length(model) between 1 and 255)
);

comment on table convo.summary is
'Progressive summaries, append-only. Messages that they cover are never touched.';
comment on column convo.summary.tenant_id is 'The tenant.';
comment on column convo.summary.conversation_id is 'The conversation.';
comment on column convo.summary.through_seq is
'It covers every message whose group_seq is this or less.';
comment on column convo.summary.user_id is 'The owner of the conversation.';
comment on column convo.summary.content is 'The text, at most 1 MiB.';
comment on column convo.summary.tokens is 'Its tokens, given or estimated.';
comment on column convo.summary.model is 'The model that wrote it.';
comment on column convo.summary.created_at is 'When it was saved.';
-- <<< sql/tables/summary.sql

-- >>> sql/tables/context_policy.sql
-- context_policy: the rules by which contexts are made, by tenant and name.
create table convo.context_policy (
    tenant_id text collate "C" not null,
    name text not null,
    strategy text not null,
    token_budget integer not null,
    message_limit integer,
    step_tokens integer not null,
    message_overhead integer not null,
    start_on_user boolean not null,
    pin_last_user boolean not null,
    open_calls text not null,
    summary_placement text not null,
    summary_threshold integer not null,
    summary_share real not null,
    memory_limit integer not null,
    recall_limit integer not null,
    constraint context_policy_pkey primary key (tenant_id, name),
    constraint context_policy_tenant_id_check check (
        length(tenant_id) between 1 and 255
    ),
    constraint context_policy_name_check check (length(name) between 1 and 63),
    constraint context_policy_strategy_check check (
        strategy in ('full', 'last_n', 'token_budget', 'summary', 'hybrid')
    ),
    constraint context_policy_token_budget_check check (token_budget > 0),
    constraint context_policy_message_limit_check check (
        message_limit > 0 and (strategy <> 'last_n' or message_limit is not null)
    ),
    constraint context_policy_step_tokens_check check (
        step_tokens between 0 and token_budget / 2
    ),
    constraint context_policy_message_overhead_check check (
        message_overhead between 0 and 1000
    ),
    constraint context_policy_open_calls_check check (open_calls in ('drop', 'keep')),
    constraint context_policy_summary_placement_check check (
        summary_placement in ('exchange', 'system')
    ),
    constraint context_policy_summary_threshold_check check (summary_threshold > 0),
    constraint context_policy_summary_share_check check (
        summary_share > 0 and summary_share <= 1
    ),
    constraint context_policy_memory_limit_check check (
        memory_limit between 0 and 1000
    ),
    constraint context_policy_recall_limit_check check (recall_limit between 0 and 1000)
);

comment on table convo.context_policy is
'Context policies by tenant. The one named default is for conversations without one.';
comment on column convo.context_policy.tenant_id is 'The tenant.';
comment on column convo.context_policy.name is
'Its name; default is the tenant''s own.';
comment on column convo.context_policy.strategy is
'full, last_n, token_budget, summary or hybrid.';
comment on column convo.context_policy.token_budget is 'The most tokens of a context.';
comment on column convo.context_policy.message_limit is
'The most messages in the window of last_n.';
comment on column convo.context_policy.step_tokens is
'Eviction goes in steps of so many tokens; 0: message by message.';
comment on column convo.context_policy.message_overhead is
'Tokens that each message costs beside its own.';
comment on column convo.context_policy.start_on_user is
'Whether what stands before the first user message goes.';
comment on column convo.context_policy.pin_last_user is
'Whether the newest user message is always kept.';
comment on column convo.context_policy.open_calls is
'drop: calls without results go; keep: the one at the end stays.';
comment on column convo.context_policy.summary_placement is
'exchange: as a user and an assistant message; system: in the system text.';
comment on column convo.context_policy.summary_threshold is
'Live tokens at which a summary would be full.';
comment on column convo.context_policy.summary_share is
'The share of the threshold at which a summary is due.';
comment on column convo.context_policy.memory_limit is 'The most memories.';
comment on column convo.context_policy.recall_limit is 'The most recalled messages.';
-- <<< sql/tables/context_policy.sql

-- >>> sql/tables/tombstone.sql
-- tombstone: ids of conversations that are gone, so that no late writer revives them.
create table convo.tombstone (
    tenant_id text collate "C" not null,
    conversation_id uuid not null,
    user_id text collate "C" not null,
    deleted_at timestamptz(3) not null default clock_timestamp(),
    constraint tombstone_pkey primary key (tenant_id, conversation_id),
    constraint tombstone_tenant_id_check check (length(tenant_id) between 1 and 255),
    constraint tombstone_user_id_check check (length(user_id) between 1 and 255)
);

comment on table convo.tombstone is
'Ids of deleted and purged conversations. An id is never used again.';
comment on column convo.tombstone.tenant_id is 'The tenant.';
comment on column convo.tombstone.conversation_id is 'The id.';
comment on column convo.tombstone.user_id is 'The last owner.';
comment on column convo.tombstone.deleted_at is 'When it was deleted.';
-- <<< sql/tables/tombstone.sql

-- >>> sql/tables/retention_policy.sql
-- retention_policy: how long conversations of a class are kept, by tenant.
create table convo.retention_policy (
    tenant_id text collate "C" not null,
    retention_class text not null,
    max_age interval,
    basis text not null,
    action text not null,
    constraint retention_policy_pkey primary key (tenant_id, retention_class),
    constraint retention_policy_retention_class_check check (
        length(retention_class) between 1 and 63
    ),
    -- Part by part: a time minus an age that leaves the calendar is an error, and one
    -- tenant's rule would stop the purge of all.
    constraint retention_policy_max_age_check check (
        max_age >= interval '0'
        and extract(year from max_age) between 0 and 1000
        and extract(day from max_age) between 0 and 400000
        and extract(hour from max_age) between 0 and 10000000
    ),
    constraint retention_policy_basis_check check (basis in ('activity', 'creation')),
    constraint retention_policy_action_check check (action in ('delete')),
    constraint retention_policy_tenant_id_check check (
        length(tenant_id) between 1 and 255
    )
);

comment on table convo.retention_policy is
'Retention rules by tenant and class. A class without a rule is kept for ever.';
comment on column convo.retention_policy.tenant_id is 'The tenant.';
comment on column convo.retention_policy.retention_class is
'The class that conversations name.';
comment on column convo.retention_policy.max_age is
'How old they may become, at most 1,000 years; null: for ever.';
comment on column convo.retention_policy.basis is
'What age counts from: the last activity, or creation.';
comment on column convo.retention_policy.action is 'What the purge does: delete.';
-- <<< sql/tables/retention_policy.sql

-- >>> sql/tables/purge_run.sql
-- purge_run: what each batch of the purge removed, by tenant.
create table convo.purge_run (
    tenant_id text collate "C" not null,
    purge_run_id uuid not null,
    conversations integer not null,
    messages bigint not null,
    started_at timestamptz(3) not null,
    finished_at timestamptz(3) not null,
    constraint purge_run_pkey primary key (tenant_id, purge_run_id),
    constraint purge_run_tenant_id_check check (length(tenant_id) between 1 and 255)
);

comment on table convo.purge_run is
'A row a batch and tenant that lost conversations to the purge. Counts only.';
comment on column convo.purge_run.tenant_id is 'The tenant.';
comment on column convo.purge_run.purge_run_id is 'The batch.';
comment on column convo.purge_run.conversations is 'Conversations purged.';
comment on column convo.purge_run.messages is 'Messages purged with them.';
comment on column convo.purge_run.started_at is 'When the batch began.';
comment on column convo.purge_run.finished_at is 'When it was done.';
-- <<< sql/tables/purge_run.sql

-- >>> sql/tables/audit.sql
-- audit: who held, released and transferred what, and why; written by _audit alone.
create table convo.audit (
    tenant_id text collate "C" not null,
    audit_id uuid not null,
    action text not null,
    conversation_id uuid not null,
    reason text,
    acted_by text not null,
    acted_at timestamptz(3) not null,
    constraint audit_pkey primary key (tenant_id, audit_id),
    constraint audit_action_check check (action in ('hold', 'release', 'transfer')),
    constraint audit_reason_check check (length(reason) between 1 and 1000),
    constraint audit_acted_by_check check (length(acted_by) <= 320),
    constraint audit_tenant_id_check check (length(tenant_id) between 1 and 255)
);

comment on table convo.audit is
'Administrative acts on conversations. Ids and reasons, no content.';
comment on column convo.audit.tenant_id is 'The tenant.';
comment on column convo.audit.audit_id is 'UUID version 7, so in order of time.';
comment on column convo.audit.action is 'hold, release or transfer.';
comment on column convo.audit.conversation_id is 'The conversation, which may be gone.';
comment on column convo.audit.reason is 'The reason given, at most 1,000 characters.';
comment on column convo.audit.acted_by is
'The login, and the user it acted for where one was set: login/user.';
comment on column convo.audit.acted_at is 'When.';
-- <<< sql/tables/audit.sql

-- >>> sql/functions/identity/_claim.sql
-- _claim: a member of the JWT claims in request.jwt.claims, or null.
-- errors: 22P02 when the claims aren't JSON, 22023 when the member is neither a string
--         nor a number, or over 255 characters: what is garbage must not pass as an id
create function convo._claim(name text) returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    claim constant jsonb := convo._readable(
        nullif(current_setting('request.jwt.claims', true), '')::json
    ) -> _claim.name;
    id constant text := nullif(claim #>> '{}', '');
begin
    if id is not null
        and (jsonb_typeof(claim) not in ('string', 'number') or length(id) > 255)
    then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'request.jwt.claims', 'member', _claim.name
        ));
    end if;
    return id;
end
$$;

comment on function convo._claim(text) is
'A member of the JWT claims of this transaction, or null.';
revoke execute on function convo._claim(text) from public;
grant execute on function convo._claim(text)
to convo_app, convo_service, convo_reader, convo_maintainer, convo_search;
-- <<< sql/functions/identity/_claim.sql

-- >>> sql/functions/identity/current_tenant_id.sql
-- current_tenant_id: the tenant on whose behalf this transaction acts, or null.
-- A pinned login has its own tenant, whatever is set. Else JWT claims that hold a tenant
-- count (request.jwt.claims, as PostgREST sets it), else the setting convo.tenant_id.
-- STABLE, never IMMUTABLE: a cached plan would keep another tenant's value.
-- errors: 22P02, 22023 when the claims are garbage
-- since: 0.1.0
create function convo.current_tenant_id() returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant text;
begin
    select l.tenant_id into tenant
    from convo_private.tenant_login as l
    where l.role_name = session_user;
    if tenant is null and current_setting('request.jwt.claims', true) <> '' then
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
-- From the same source as the tenant: sub of the JWT claims when they hold a tenant, else
-- the setting convo.user_id. A pinned login needs no tenant in its claims.
-- errors: 22P02, 22023 when the claims are garbage
-- since: 0.1.0
create function convo.current_user_id() returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    is_from_claims boolean := false;
begin
    if current_setting('request.jwt.claims', true) <> '' then
        is_from_claims := convo._claim('tenant_id') is not null;
        if not is_from_claims and convo._claim('sub') is not null then
            is_from_claims := exists (
                select
                from convo_private.tenant_login as l
                where l.role_name = session_user and l.mode = 'pinned'
            );
        end if;
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

-- >>> sql/functions/identity/_require_tenant.sql
-- _require_tenant: the tenant of the context, for functions that need one.
-- errors: PC030 without a tenant, or, for a role that acts for one user, without a user
create function convo._require_tenant() returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo.current_tenant_id();
begin
    if tenant is null then
        perform convo._fail('PC030', '{"missing": "tenant_id"}');
    elsif convo.current_user_id() is null
        and not pg_has_role('convo_service', 'usage')
        and not pg_has_role('convo_reader', 'usage')
    then
        perform convo._fail('PC030', '{"missing": "user_id"}');
    end if;
    return tenant;
end
$$;

comment on function convo._require_tenant() is
'The tenant of the context; PC030 when the caller has not said who is asking.';
revoke execute on function convo._require_tenant() from public;
grant execute on function convo._require_tenant()
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/identity/_require_tenant.sql

-- >>> sql/functions/identity/set_context.sql
-- set_context: says who is asking, for this transaction only.
-- in: tenant, and user (null: no user, for roles that act for a whole tenant)
-- errors: 22023 when empty, or over 255 characters, or the tenant is null
-- since: 0.1.0
create function convo.set_context(tenant_id text, user_id text default null)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if coalesce(length(set_context.tenant_id), 0) not between 1 and 255 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'tenant_id', 'minimum_length', 1, 'maximum_length', 255
        ));
    elsif length(set_context.user_id) not between 1 and 255 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'user_id', 'minimum_length', 1, 'maximum_length', 255
        ));
    end if;
    perform
        set_config('convo.tenant_id', set_context.tenant_id, true),
        set_config('convo.user_id', coalesce(set_context.user_id, ''), true);
end
$$;

comment on function convo.set_context(text, text) is
'Says who is asking, for this transaction only.';
revoke execute on function convo.set_context(text, text) from public;
grant execute on function convo.set_context(text, text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/identity/set_context.sql

-- >>> sql/policies/schema_migration.sql
-- schema_migration: the owner writes it, the groups may read it.
alter table convo.schema_migration enable row level security;
alter table convo.schema_migration force row level security;

create policy schema_migration_owner on convo.schema_migration
for all to convo_owner using (true) with check (true);
comment on policy schema_migration_owner on convo.schema_migration is
'Migrations run as the owner.';

create policy schema_migration_group on convo.schema_migration
for select to convo_app, convo_service, convo_reader, convo_maintainer, convo_backup
using (true);
comment on policy schema_migration_group on convo.schema_migration is
'Which version is installed is no secret.';

grant select on convo.schema_migration
to convo_app, convo_service, convo_reader, convo_maintainer, convo_backup;
-- <<< sql/policies/schema_migration.sql

-- >>> sql/policies/tenant_login.sql
-- tenant_login: the owner manages it; a login sees its own row, which context needs.
alter table convo_private.tenant_login enable row level security;
alter table convo_private.tenant_login force row level security;

create policy tenant_login_owner on convo_private.tenant_login
for all to convo_owner using (true) with check (true);
comment on policy tenant_login_owner on convo_private.tenant_login is
'The owner says which login is pinned to which tenant.';

create policy tenant_login_self on convo_private.tenant_login
for select using (role_name = session_user);
comment on policy tenant_login_self on convo_private.tenant_login is
'A session reads the rule for its own login.';

create policy tenant_login_backup on convo_private.tenant_login
for select to convo_backup using (true);
comment on policy tenant_login_backup on convo_private.tenant_login is
'A dump has every row.';

grant select on convo_private.tenant_login
to convo_app, convo_service, convo_reader, convo_maintainer, convo_search, convo_backup;
-- <<< sql/policies/tenant_login.sql

-- >>> sql/policies/prompt.sql
-- prompt: each user their own; deleted when nothing refers to it.
alter table convo.prompt enable row level security;
alter table convo.prompt force row level security;

create policy prompt_tenant on convo.prompt
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy prompt_tenant on convo.prompt is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy prompt_own on convo.prompt
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy prompt_own on convo.prompt is
'An application acts for one user.';

create policy prompt_service on convo.prompt
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy prompt_service on convo.prompt is
'Workers and support act for all users of the tenant.';

create policy prompt_reader on convo.prompt
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy prompt_reader on convo.prompt is
'Reports read the tenant.';

create policy prompt_backup on convo.prompt
for select to convo_backup using (true);
comment on policy prompt_backup on convo.prompt is
'A dump has every row.';

create policy prompt_purge_select on convo.prompt
for select to convo_maintainer using (
    not exists (
        select
        from convo.conversation as c
        where c.tenant_id = prompt.tenant_id
            and c.user_id = prompt.user_id
            and c.system_prompt_sha256 = prompt.sha256
    )
);
comment on policy prompt_purge_select on convo.prompt is
'The purge finds prompts by key.';

create policy prompt_purge_delete on convo.prompt
for delete to convo_maintainer using (
    not exists (
        select
        from convo.conversation as c
        where c.tenant_id = prompt.tenant_id
            and c.user_id = prompt.user_id
            and c.system_prompt_sha256 = prompt.sha256
    )
);
comment on policy prompt_purge_delete on convo.prompt is
'The purge drops prompts that lost their last conversation; foreign keys keep others.';

grant select, insert, delete on convo.prompt to convo_app, convo_service;
-- Row locks need an UPDATE grant; created_at is the column that matters least.
grant update (created_at) on convo.prompt to convo_app, convo_service;
grant select on convo.prompt to convo_reader, convo_backup;
grant select (tenant_id, user_id, sha256), delete on convo.prompt to convo_maintainer;
-- <<< sql/policies/prompt.sql

-- >>> sql/policies/conversation.sql
-- conversation: each user their own, workers their tenant, the purge what is due.
alter table convo.conversation enable row level security;
alter table convo.conversation force row level security;

create policy conversation_tenant on convo.conversation
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy conversation_tenant on convo.conversation is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy conversation_own on convo.conversation
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy conversation_own on convo.conversation is
'An application acts for one user.';

create policy conversation_service on convo.conversation
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy conversation_service on convo.conversation is
'Workers and support act for all users of the tenant.';

create policy conversation_reader on convo.conversation
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy conversation_reader on convo.conversation is
'Reports read the tenant.';

create policy conversation_backup on convo.conversation
for select to convo_backup using (true);
comment on policy conversation_backup on convo.conversation is
'A dump has every row.';

create policy conversation_hold on convo.conversation
as restrictive for delete to public using (not is_on_hold);
comment on policy conversation_hold on convo.conversation is
'On legal hold: nobody deletes it, whatever their role.';

create policy conversation_purge_select on convo.conversation
for select to convo_maintainer using (
    exists (
        select
        from convo.retention_policy as r
        where r.tenant_id = conversation.tenant_id
            and r.retention_class = conversation.retention_class
            and (
                case r.basis
                    when 'activity' then conversation.updated_at
                    else conversation.created_at
                end
            ) < statement_timestamp() - r.max_age
    )
);
comment on policy conversation_purge_select on convo.conversation is
'The purge sees what is due, held ones too, to count them.';

create policy conversation_purge_lock on convo.conversation
for update to convo_maintainer using (
    not is_on_hold and exists (
        select
        from convo.retention_policy as r
        where r.tenant_id = conversation.tenant_id
            and r.retention_class = conversation.retention_class
            and (
                case r.basis
                    when 'activity' then conversation.updated_at
                    else conversation.created_at
                end
            ) < statement_timestamp() - r.max_age
    )
) with check (false);
comment on policy conversation_purge_lock on convo.conversation is
'The purge locks rows but changes none.';

create policy conversation_purge_delete on convo.conversation
for delete to convo_maintainer using (
    not is_on_hold and exists (
        select
        from convo.retention_policy as r
        where r.tenant_id = conversation.tenant_id
            and r.retention_class = conversation.retention_class
            and (
                case r.basis
                    when 'activity' then conversation.updated_at
                    else conversation.created_at
                end
            ) < statement_timestamp() - r.max_age
    )
);
comment on policy conversation_purge_delete on convo.conversation is
'The purge deletes what is due and not held.';

create policy conversation_search_select on convo.conversation
for select to convo_search
using (tenant_id = (select convo.current_tenant_id()));
comment on policy conversation_search_select on convo.conversation is
'convo_private._mark_hold finds it.';

create policy conversation_search_update on convo.conversation
for update to convo_search
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy conversation_search_update on convo.conversation is
'convo_private._mark_hold holds and releases, and nobody else does.';

grant select, delete on convo.conversation to convo_app, convo_service;
grant insert (
    tenant_id, conversation_id, user_id, title, system_prompt_sha256, retention_class,
    policy, last_seq, message_count, token_total, body_count, body_tokens,
    summary_through_seq, metadata, created_at, updated_at, archived_at, forked_from,
    forked_at_seq
) on convo.conversation to convo_app, convo_service;
grant update (
    title, system_prompt_sha256, retention_class, policy, last_seq, message_count,
    token_total, body_count, body_tokens, summary_through_seq, metadata, updated_at,
    archived_at
) on convo.conversation to convo_app, convo_service;
grant update (user_id) on convo.conversation to convo_service;
grant select on convo.conversation to convo_reader, convo_backup;
-- Keys, times and counts, no title or metadata. The purge's row locks need an UPDATE
-- grant, on one column that no rule lets it change.
grant select (
    tenant_id, conversation_id, user_id, system_prompt_sha256, retention_class,
    last_seq, is_on_hold, created_at, updated_at
), update (archived_at), delete on convo.conversation to convo_maintainer;
grant select (tenant_id, conversation_id), update (is_on_hold)
on convo.conversation to convo_search;
-- <<< sql/policies/conversation.sql

-- >>> sql/policies/message.sql
-- message: as the conversations they belong to.
alter table convo.message enable row level security;
alter table convo.message force row level security;

create policy message_tenant on convo.message
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy message_tenant on convo.message is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy message_own on convo.message
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy message_own on convo.message is
'An application acts for one user.';

create policy message_service on convo.message
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy message_service on convo.message is
'Workers and support act for all users of the tenant.';

create policy message_reader on convo.message
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy message_reader on convo.message is
'Reports read the tenant.';

create policy message_backup on convo.message
for select to convo_backup using (true);
comment on policy message_backup on convo.message is
'A dump has every row.';

grant select, insert on convo.message to convo_app, convo_service;
grant update (
    content, payload, tokens, is_estimated, is_empty, revision, edited_at, deleted_at
) on convo.message to convo_app, convo_service;
grant update (user_id) on convo.message to convo_service;
grant select on convo.message to convo_reader, convo_backup;
-- <<< sql/policies/message.sql

-- >>> sql/policies/message_revision.sql
-- message_revision: as the conversations they belong to; written once.
alter table convo.message_revision enable row level security;
alter table convo.message_revision force row level security;

create policy message_revision_tenant on convo.message_revision
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy message_revision_tenant on convo.message_revision is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy message_revision_own on convo.message_revision
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy message_revision_own on convo.message_revision is
'An application acts for one user.';

create policy message_revision_service on convo.message_revision
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy message_revision_service on convo.message_revision is
'Workers and support act for all users of the tenant.';

create policy message_revision_reader on convo.message_revision
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy message_revision_reader on convo.message_revision is
'Reports read the tenant.';

create policy message_revision_backup on convo.message_revision
for select to convo_backup using (true);
comment on policy message_revision_backup on convo.message_revision is
'A dump has every row.';

grant select, insert on convo.message_revision to convo_app, convo_service;
grant update (user_id) on convo.message_revision to convo_service;
grant select on convo.message_revision to convo_reader, convo_backup;
-- <<< sql/policies/message_revision.sql

-- >>> sql/policies/idempotency_key.sql
-- idempotency_key: as the conversations they belong to; written once.
alter table convo.idempotency_key enable row level security;
alter table convo.idempotency_key force row level security;

create policy idempotency_key_tenant on convo.idempotency_key
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy idempotency_key_tenant on convo.idempotency_key is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy idempotency_key_own on convo.idempotency_key
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy idempotency_key_own on convo.idempotency_key is
'An application acts for one user.';

create policy idempotency_key_service on convo.idempotency_key
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy idempotency_key_service on convo.idempotency_key is
'Workers and support act for all users of the tenant.';

create policy idempotency_key_reader on convo.idempotency_key
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy idempotency_key_reader on convo.idempotency_key is
'Reports read the tenant.';

create policy idempotency_key_backup on convo.idempotency_key
for select to convo_backup using (true);
comment on policy idempotency_key_backup on convo.idempotency_key is
'A dump has every row.';

grant select, insert on convo.idempotency_key to convo_app, convo_service;
grant update (user_id) on convo.idempotency_key to convo_service;
grant select on convo.idempotency_key to convo_reader, convo_backup;
-- <<< sql/policies/idempotency_key.sql

-- >>> sql/policies/summary.sql
-- summary: as the conversations they belong to; written once.
alter table convo.summary enable row level security;
alter table convo.summary force row level security;

create policy summary_tenant on convo.summary
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy summary_tenant on convo.summary is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy summary_own on convo.summary
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy summary_own on convo.summary is
'An application acts for one user.';

create policy summary_service on convo.summary
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy summary_service on convo.summary is
'Workers and support act for all users of the tenant.';

create policy summary_reader on convo.summary
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy summary_reader on convo.summary is
'Reports read the tenant.';

create policy summary_backup on convo.summary
for select to convo_backup using (true);
comment on policy summary_backup on convo.summary is
'A dump has every row.';

grant select, insert on convo.summary to convo_app, convo_service;
grant update (user_id) on convo.summary to convo_service;
grant select on convo.summary to convo_reader, convo_backup;
-- <<< sql/policies/summary.sql

-- >>> sql/policies/context_policy.sql
-- context_policy: workers set their tenant's, applications read them.
alter table convo.context_policy enable row level security;
alter table convo.context_policy force row level security;

create policy context_policy_tenant on convo.context_policy
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy context_policy_tenant on convo.context_policy is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy context_policy_app on convo.context_policy
for select to convo_app
using (
    tenant_id = (select convo.current_tenant_id())
    and (select convo.current_user_id()) is not null
);
comment on policy context_policy_app on convo.context_policy is
'Applications read the policies of the tenant that they act for a user of.';

create policy context_policy_reader on convo.context_policy
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy context_policy_reader on convo.context_policy is
'Reports read the tenant.';

create policy context_policy_service on convo.context_policy
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy context_policy_service on convo.context_policy is
'Workers set the policies of their tenant.';

create policy context_policy_backup on convo.context_policy
for select to convo_backup using (true);
comment on policy context_policy_backup on convo.context_policy is
'A dump has every row.';

grant select on convo.context_policy to convo_app, convo_reader, convo_backup;
grant select, insert, delete on convo.context_policy to convo_service;
grant update (
    strategy, token_budget, message_limit, step_tokens, message_overhead, start_on_user,
    pin_last_user, open_calls, summary_placement, summary_threshold, summary_share,
    memory_limit, recall_limit
) on convo.context_policy to convo_service;
-- <<< sql/policies/context_policy.sql

-- >>> sql/policies/tombstone.sql
-- tombstone: each user their own; written when a conversation goes.
alter table convo.tombstone enable row level security;
alter table convo.tombstone force row level security;

create policy tombstone_tenant on convo.tombstone
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy tombstone_tenant on convo.tombstone is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy tombstone_own on convo.tombstone
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy tombstone_own on convo.tombstone is
'An application acts for one user.';

create policy tombstone_service on convo.tombstone
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy tombstone_service on convo.tombstone is
'Workers and support act for all users of the tenant.';

create policy tombstone_reader on convo.tombstone
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy tombstone_reader on convo.tombstone is
'Reports read the tenant.';

create policy tombstone_backup on convo.tombstone
for select to convo_backup using (true);
comment on policy tombstone_backup on convo.tombstone is
'A dump has every row.';

create policy tombstone_purge on convo.tombstone
for insert to convo_maintainer with check (true);
comment on policy tombstone_purge on convo.tombstone is
'The purge leaves a tombstone for each conversation.';

create policy tombstone_search on convo.tombstone
for select to convo_search using (true);
comment on policy tombstone_search on convo.tombstone is
'convo_private._has_tombstone asks whether an id was ever used.';

grant select, insert on convo.tombstone to convo_app, convo_service;
grant select on convo.tombstone to convo_reader, convo_search, convo_backup;
grant insert on convo.tombstone to convo_maintainer;
-- <<< sql/policies/tombstone.sql

-- >>> sql/policies/retention_policy.sql
-- retention_policy: workers set their tenant's, the purge reads all.
alter table convo.retention_policy enable row level security;
alter table convo.retention_policy force row level security;

create policy retention_policy_tenant on convo.retention_policy
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy retention_policy_tenant on convo.retention_policy is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy retention_policy_service on convo.retention_policy
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy retention_policy_service on convo.retention_policy is
'Workers and support act for all users of the tenant.';

create policy retention_policy_reader on convo.retention_policy
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy retention_policy_reader on convo.retention_policy is
'Reports read the tenant.';

create policy retention_policy_backup on convo.retention_policy
for select to convo_backup using (true);
comment on policy retention_policy_backup on convo.retention_policy is
'A dump has every row.';

create policy retention_policy_purge on convo.retention_policy
for select to convo_maintainer using (max_age is not null);
comment on policy retention_policy_purge on convo.retention_policy is
'The purge reads the rules that can make something due.';

grant select, insert on convo.retention_policy to convo_service;
grant update (max_age, basis, action) on convo.retention_policy to convo_service;
grant select on convo.retention_policy to convo_reader, convo_maintainer, convo_backup;
-- <<< sql/policies/retention_policy.sql

-- >>> sql/policies/purge_run.sql
-- purge_run: the purge writes it, a tenant sees its own.
alter table convo.purge_run enable row level security;
alter table convo.purge_run force row level security;

create policy purge_run_tenant on convo.purge_run
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy purge_run_tenant on convo.purge_run is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy purge_run_service on convo.purge_run
for select to convo_service
using (tenant_id = (select convo.current_tenant_id()));
comment on policy purge_run_service on convo.purge_run is
'Workers and support act for all users of the tenant.';

create policy purge_run_reader on convo.purge_run
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy purge_run_reader on convo.purge_run is
'Reports read the tenant.';

create policy purge_run_backup on convo.purge_run
for select to convo_backup using (true);
comment on policy purge_run_backup on convo.purge_run is
'A dump has every row.';

create policy purge_run_purge on convo.purge_run
for insert to convo_maintainer with check (true);
comment on policy purge_run_purge on convo.purge_run is
'The purge logs its batches.';

grant select on convo.purge_run to convo_service, convo_reader, convo_backup;
grant insert on convo.purge_run to convo_maintainer;
-- <<< sql/policies/purge_run.sql

-- >>> sql/policies/audit.sql
-- audit: _audit writes it, a tenant sees its own.
alter table convo.audit enable row level security;
alter table convo.audit force row level security;

create policy audit_tenant on convo.audit
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy audit_tenant on convo.audit is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy audit_service on convo.audit
for select to convo_service
using (tenant_id = (select convo.current_tenant_id()));
comment on policy audit_service on convo.audit is
'Workers and support act for all users of the tenant.';

create policy audit_reader on convo.audit
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy audit_reader on convo.audit is
'Reports read the tenant.';

create policy audit_backup on convo.audit
for select to convo_backup using (true);
comment on policy audit_backup on convo.audit is
'A dump has every row.';

create policy audit_search on convo.audit
for insert to convo_search
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy audit_search on convo.audit is
'convo_private._audit writes, within the tenant of the context.';

grant select on convo.audit to convo_service, convo_reader, convo_backup;
grant insert on convo.audit to convo_search;
-- <<< sql/policies/audit.sql

grant create on schema convo_private to convo_search;

set local role convo_search;

-- >>> sql/functions/conversation/_has_tombstone.sql
-- _has_tombstone: whether a conversation of this id was ever deleted in the tenant.
-- SECURITY DEFINER, since row security hides other users' tombstones and an id must not
-- be used twice. It tells no more than PC013 does.
create function convo_private._has_tombstone(conversation_id uuid) returns boolean
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return exists (
        select
        from convo.tombstone as t
        where t.tenant_id = convo.current_tenant_id()
            and t.conversation_id = _has_tombstone.conversation_id
    );
end
$$;

comment on function convo_private._has_tombstone(uuid) is
'Whether a conversation of this id was ever deleted in the tenant of the context.';
revoke execute on function convo_private._has_tombstone(uuid) from public;
grant execute on function convo_private._has_tombstone(uuid)
to convo_app, convo_service;
-- <<< sql/functions/conversation/_has_tombstone.sql

-- >>> sql/functions/retention/_audit.sql
-- _audit: notes an administrative act in the audit trail.
-- SECURITY DEFINER, so that no role can write the trail but through the functions.
create function convo_private._audit(
    action text, conversation_id uuid, reason text
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    insert into convo.audit (
        tenant_id, audit_id, action, conversation_id, reason, acted_by, acted_at
    )
    values (
        convo.current_tenant_id(), convo._uuid_v7(), _audit.action,
        _audit.conversation_id, _audit.reason,
        concat_ws('/', session_user, convo.current_user_id()), clock_timestamp()
    );
end
$$;

comment on function convo_private._audit(text, uuid, text) is
'Notes an administrative act in the audit trail of the context''s tenant.';
revoke execute on function convo_private._audit(text, uuid, text) from public;
grant execute on function convo_private._audit(text, uuid, text) to convo_service;
-- <<< sql/functions/retention/_audit.sql

-- >>> sql/functions/retention/_mark_hold.sql
-- _mark_hold: sets or lifts a legal hold, and notes who and why.
-- SECURITY DEFINER, so that no role can change a hold without a trace.
-- out: whether there is such a conversation in the tenant of the context
create function convo_private._mark_hold(
    conversation_id uuid, is_on_hold boolean, reason text
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    update convo.conversation as c
    set is_on_hold = _mark_hold.is_on_hold
    where c.tenant_id = convo.current_tenant_id()
        and c.conversation_id = _mark_hold.conversation_id;
    if not found then
        return false;
    end if;
    perform convo_private._audit(
        case when _mark_hold.is_on_hold then 'hold' else 'release' end,
        _mark_hold.conversation_id, _mark_hold.reason
    );
    return true;
end
$$;

comment on function convo_private._mark_hold(uuid, boolean, text) is
'Sets or lifts a legal hold in the context''s tenant, and notes who and why.';
revoke execute on function convo_private._mark_hold(uuid, boolean, text) from public;
grant execute on function convo_private._mark_hold(uuid, boolean, text)
to convo_service;
-- <<< sql/functions/retention/_mark_hold.sql

set local role convo_owner;

revoke create on schema convo_private from convo_search;

-- >>> sql/functions/conversation/_store_prompt.sql
-- _store_prompt: stores a shared text once, and holds it until the transaction ends.
-- in: owner and text; out: its hash, or null for null or ''
-- locks: the prompt row, FOR KEY SHARE, so that no one collects it meanwhile
create function convo._store_prompt(user_id text, content text) returns bytea
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    hash constant bytea := sha256(convert_to(_store_prompt.content, 'UTF8'));
begin
    if coalesce(_store_prompt.content, '') = '' then
        return null;
    end if;
    loop
        perform
        from convo.prompt as p
        where p.tenant_id = tenant
            and p.user_id = _store_prompt.user_id
            and p.sha256 = hash
        for key share;
        exit when found;
        insert into convo.prompt (tenant_id, user_id, sha256, content, tokens)
        values (
            tenant, _store_prompt.user_id, hash, _store_prompt.content,
            convo.estimate_tokens(_store_prompt.content)
        )
        on conflict do nothing;
        exit when found;
    end loop;
    return hash;
end
$$;

comment on function convo._store_prompt(text, text) is
'Stores a shared text once per user and gives its hash.';
revoke execute on function convo._store_prompt(text, text) from public;
grant execute on function convo._store_prompt(text, text) to convo_app, convo_service;
-- <<< sql/functions/conversation/_store_prompt.sql

-- >>> sql/functions/conversation/_collect_prompt.sql
-- _collect_prompt: deletes a shared text if nothing refers to it any more.
-- The foreign keys decide: where one still refers to it, the deletion is undone.
create function convo._collect_prompt(tenant_id text, user_id text, sha256 bytea)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if _collect_prompt.sha256 is null or exists (
        select
        from convo.conversation as c
        where c.tenant_id = _collect_prompt.tenant_id
            and c.user_id = _collect_prompt.user_id
            and c.system_prompt_sha256 = _collect_prompt.sha256
    ) then
        return;
    end if;
    delete from convo.prompt as p
    where p.tenant_id = _collect_prompt.tenant_id
        and p.user_id = _collect_prompt.user_id
        and p.sha256 = _collect_prompt.sha256;
exception when foreign_key_violation or deadlock_detected then
    -- Used by a row that this role or snapshot doesn't see; or two conversations swap
    -- their prompts, and each transaction would wait for the other.
    null;
end
$$;

comment on function convo._collect_prompt(text, text, bytea) is
'Deletes a shared text if nothing refers to it any more.';
revoke execute on function convo._collect_prompt(text, text, bytea) from public;
grant execute on function convo._collect_prompt(text, text, bytea)
to convo_app, convo_service, convo_maintainer;
-- <<< sql/functions/conversation/_collect_prompt.sql

-- >>> sql/functions/conversation/_fail_not_found.sql
-- _fail_not_found: says that a conversation is not there, or was deleted.
-- Not found and not the caller's are one error, with the same words.
-- errors: PC012 when the caller's conversation was deleted, else PC001
create function convo._fail_not_found(conversation_id uuid) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform convo._fail(
        case
            when exists (
                select
                from convo.tombstone as t
                where t.tenant_id = convo._require_tenant()
                    and t.conversation_id = _fail_not_found.conversation_id
            ) then 'PC012'
            else 'PC001'
        end,
        jsonb_build_object('conversation_id', _fail_not_found.conversation_id)
    );
end
$$;

comment on function convo._fail_not_found(uuid) is
'Raises PC012 for a conversation of the caller that was deleted, else PC001.';
revoke execute on function convo._fail_not_found(uuid) from public;
grant execute on function convo._fail_not_found(uuid)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/conversation/_fail_not_found.sql

-- >>> sql/functions/conversation/_lock_conversation.sql
-- _lock_conversation: the caller's conversation, locked against other writers.
-- errors: PC001, PC012
-- locks: the conversation row, FOR NO KEY UPDATE
create function convo._lock_conversation(conversation_id uuid)
returns convo.conversation
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    conversation convo.conversation;
begin
    select c.* into conversation
    from convo.conversation as c
    where c.tenant_id = convo._require_tenant()
        and c.conversation_id = _lock_conversation.conversation_id
    for no key update;
    if not found then
        perform convo._fail_not_found(_lock_conversation.conversation_id);
    end if;
    return conversation;
end
$$;

comment on function convo._lock_conversation(uuid) is
'The caller''s conversation, locked against other writers.';
revoke execute on function convo._lock_conversation(uuid) from public;
grant execute on function convo._lock_conversation(uuid) to convo_app, convo_service;
-- <<< sql/functions/conversation/_lock_conversation.sql

-- >>> sql/functions/conversation/create_conversation.sql
-- create_conversation: makes a conversation and gives its id.
-- in: everything may be left out; user_id only where the context names no user
-- out: the id; a caller that gives the id of its own conversation gets it back unchanged
-- errors: PC012 the id was the caller's and deleted, PC013 it is another user's,
--         22023, 42501 an application for another user, 23514 too long
-- since: 0.1.0
create function convo.create_conversation(
    title text default null,
    system_prompt text default null,
    metadata jsonb default '{}',
    conversation_id uuid default null,
    retention_class text default 'standard',
    policy text default null,
    user_id text default null
) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    owner constant text := coalesce(
        create_conversation.user_id, convo.current_user_id()
    );
    id constant uuid := coalesce(create_conversation.conversation_id, convo._uuid_v7());
    instant constant timestamptz(3) := clock_timestamp();
begin
    if coalesce(owner, '') = '' then
        perform convo._fail('22023', '{"argument": "user_id", "reason": "missing"}');
    elsif owner <> coalesce(convo.current_user_id(), '')
        and not pg_has_role('convo_service', 'usage')
    then
        perform convo._fail('42501', '{"argument": "user_id"}');
    elsif jsonb_typeof(create_conversation.metadata) <> 'object' then
        perform convo._fail(
            '22023', '{"argument": "metadata", "reason": "not an object"}'
        );
    end if;
    insert into convo.conversation (
        tenant_id, conversation_id, user_id, title, retention_class, policy, metadata,
        created_at, updated_at
    )
    values (
        tenant, id, owner, nullif(create_conversation.title, ''),
        coalesce(nullif(create_conversation.retention_class, ''), 'standard'),
        nullif(create_conversation.policy, ''),
        coalesce(create_conversation.metadata, '{}'), instant, instant
    )
    on conflict do nothing;
    if not found and exists (
        select
        from convo.conversation as c
        where c.tenant_id = tenant and c.conversation_id = id and c.user_id = owner
    ) then
        return id;
    end if;
    -- Looked up after the insert, which waits for a deletion that is still going on.
    if not found
        or create_conversation.conversation_id is not null
        and convo_private._has_tombstone(id)
    then
        perform convo._fail(
            case
                when exists (
                    select
                    from convo.tombstone as t
                    where t.tenant_id = tenant
                        and t.conversation_id = id
                        and t.user_id = owner
                ) then 'PC012'
                else 'PC013'
            end,
            jsonb_build_object('conversation_id', id)
        );
    end if;
    -- The prompt comes last: whoever held it while waiting for that deletion would
    -- deadlock with it, since a deletion collects its prompt.
    if create_conversation.system_prompt <> '' then
        update convo.conversation as c
        set system_prompt_sha256 = convo._store_prompt(
            owner, create_conversation.system_prompt
        )
        where c.tenant_id = tenant and c.conversation_id = id;
    end if;
    return id;
end
$$;

comment on function convo.create_conversation(
    text, text, jsonb, uuid, text, text, text
) is
'Makes a conversation and gives its id. With an id of the caller''s choice it is '
'idempotent: the owner of that id gets it back, unchanged.';
revoke execute on function convo.create_conversation(
    text, text, jsonb, uuid, text, text, text
) from public;
grant execute on function convo.create_conversation(
    text, text, jsonb, uuid, text, text, text
) to convo_app, convo_service;
-- <<< sql/functions/conversation/create_conversation.sql

-- >>> sql/functions/conversation/get_conversation.sql
-- get_conversation: one conversation.
-- out: a row, or none when it isn't there or isn't the caller's
-- errors: PC030
-- since: 0.1.0
create function convo.get_conversation(conversation_id uuid)
returns setof convo.conversation_record
language sql stable rows 1
begin atomic
    select
        c.conversation_id,
        c.user_id,
        c.title,
        p.content as system_prompt,
        c.retention_class,
        c.policy,
        c.last_seq,
        c.message_count,
        c.token_total,
        c.metadata,
        c.created_at,
        c.updated_at,
        c.archived_at,
        c.is_on_hold,
        c.forked_from,
        c.forked_at_seq
    from convo.conversation as c
    left join convo.prompt as p
        on p.tenant_id = c.tenant_id
            and p.user_id = c.user_id
            and p.sha256 = c.system_prompt_sha256
    where c.tenant_id = (select convo._require_tenant())
        and c.conversation_id = get_conversation.conversation_id;
end;

comment on function convo.get_conversation(uuid) is
'One conversation, or no row when it isn''t there or isn''t the caller''s.';
revoke execute on function convo.get_conversation(uuid) from public;
grant execute on function convo.get_conversation(uuid)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/conversation/get_conversation.sql

-- >>> sql/functions/conversation/list_conversations.sql
-- list_conversations: a page of conversations, newest activity first.
-- in: before_at and before_id: updated_at and id of the last row of the page before
-- errors: PC030, 22023
-- since: 0.1.0
create function convo.list_conversations(
    before_at timestamptz default null,
    before_id uuid default null,
    include_archived boolean default false,
    page_size integer default 30
) returns setof convo.conversation_record
language sql stable rows 30
begin atomic
    select
        c.conversation_id,
        c.user_id,
        c.title,
        p.content as system_prompt,
        c.retention_class,
        c.policy,
        c.last_seq,
        c.message_count,
        c.token_total,
        c.metadata,
        c.created_at,
        c.updated_at,
        c.archived_at,
        c.is_on_hold,
        c.forked_from,
        c.forked_at_seq
    from (
        select s.*
        from convo.conversation as s
        where s.tenant_id = (select convo._require_tenant())
            and (list_conversations.include_archived or s.archived_at is null)
            and (
                num_nonnulls(
                    list_conversations.before_at, list_conversations.before_id
                ) = 0
                or s.updated_at < list_conversations.before_at
                or s.updated_at = list_conversations.before_at
                and s.conversation_id < list_conversations.before_id
            )
        order by s.updated_at desc, s.conversation_id desc
        limit convo._size('page_size', list_conversations.page_size, 1000)
    ) as c
    left join convo.prompt as p
        on p.tenant_id = c.tenant_id
            and p.user_id = c.user_id
            and p.sha256 = c.system_prompt_sha256
    order by c.updated_at desc, c.conversation_id desc;
end;

comment on function convo.list_conversations(timestamptz, uuid, boolean, integer) is
'A page of the caller''s conversations, newest activity first. The next page: give '
'updated_at and conversation_id of the last row.';
revoke execute on function convo.list_conversations(
    timestamptz, uuid, boolean, integer
) from public;
grant execute on function convo.list_conversations(timestamptz, uuid, boolean, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/conversation/list_conversations.sql

-- >>> sql/functions/conversation/update_conversation.sql
-- update_conversation: changes what is given; null keeps, '' clears.
-- errors: PC001, PC012, 23514 too long
-- since: 0.1.0
create function convo.update_conversation(
    conversation_id uuid,
    title text default null,
    system_prompt text default null,
    metadata jsonb default null,
    policy text default null,
    retention_class text default null
) returns convo.conversation_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    old constant convo.conversation := convo._lock_conversation(
        update_conversation.conversation_id
    );
    new_sha256 bytea := old.system_prompt_sha256;
    result convo.conversation_record;
begin
    if jsonb_typeof(update_conversation.metadata) <> 'object' then
        perform convo._fail(
            '22023', '{"argument": "metadata", "reason": "not an object"}'
        );
    end if;
    if update_conversation.system_prompt is not null then
        new_sha256 := convo._store_prompt(
            old.user_id, update_conversation.system_prompt
        );
    end if;
    update convo.conversation as c
    set title = nullif(coalesce(update_conversation.title, c.title), ''),
        system_prompt_sha256 = new_sha256,
        metadata = coalesce(update_conversation.metadata, c.metadata),
        policy = nullif(coalesce(update_conversation.policy, c.policy), ''),
        retention_class = coalesce(
            nullif(coalesce(update_conversation.retention_class, c.retention_class), ''),
            'standard'
        ),
        updated_at = greatest(c.updated_at, clock_timestamp())
    where c.tenant_id = old.tenant_id and c.conversation_id = old.conversation_id;
    if new_sha256 is distinct from old.system_prompt_sha256 then
        perform convo._collect_prompt(
            old.tenant_id, old.user_id, old.system_prompt_sha256
        );
    end if;
    select r.* into result from convo.get_conversation(old.conversation_id) as r;
    return result;
end
$$;

comment on function convo.update_conversation(uuid, text, text, jsonb, text, text) is
'Changes what is given: null keeps, '''' clears.';
revoke execute on function convo.update_conversation(
    uuid, text, text, jsonb, text, text
) from public;
grant execute on function convo.update_conversation(
    uuid, text, text, jsonb, text, text
) to convo_app, convo_service;
-- <<< sql/functions/conversation/update_conversation.sql

-- >>> sql/functions/conversation/archive_conversation.sql
-- archive_conversation: takes a conversation out of the default list.
-- Not an activity: it moves neither its place in the list nor its retention.
-- errors: PC001, PC012
-- since: 0.1.0
create function convo.archive_conversation(conversation_id uuid)
returns convo.conversation_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    result convo.conversation_record;
begin
    update convo.conversation as c
    set archived_at = coalesce(c.archived_at, clock_timestamp())
    where c.tenant_id = convo._require_tenant()
        and c.conversation_id = archive_conversation.conversation_id;
    if not found then
        perform convo._fail_not_found(archive_conversation.conversation_id);
    end if;
    select r.* into result
    from convo.get_conversation(archive_conversation.conversation_id) as r;
    return result;
end
$$;

comment on function convo.archive_conversation(uuid) is
'Takes a conversation out of the default list. Nothing else changes.';
revoke execute on function convo.archive_conversation(uuid) from public;
grant execute on function convo.archive_conversation(uuid) to convo_app, convo_service;
-- <<< sql/functions/conversation/archive_conversation.sql

-- >>> sql/functions/conversation/unarchive_conversation.sql
-- unarchive_conversation: puts an archived conversation back into the list.
-- Not an activity: it moves neither its place in the list nor its retention.
-- errors: PC001, PC012
-- since: 0.1.0
create function convo.unarchive_conversation(conversation_id uuid)
returns convo.conversation_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    result convo.conversation_record;
begin
    update convo.conversation as c
    set archived_at = null
    where c.tenant_id = convo._require_tenant()
        and c.conversation_id = unarchive_conversation.conversation_id;
    if not found then
        perform convo._fail_not_found(unarchive_conversation.conversation_id);
    end if;
    select r.* into result
    from convo.get_conversation(unarchive_conversation.conversation_id) as r;
    return result;
end
$$;

comment on function convo.unarchive_conversation(uuid) is
'Puts an archived conversation back into the default list.';
revoke execute on function convo.unarchive_conversation(uuid) from public;
grant execute on function convo.unarchive_conversation(uuid)
to convo_app, convo_service;
-- <<< sql/functions/conversation/unarchive_conversation.sql

-- >>> sql/functions/conversation/delete_conversation.sql
-- delete_conversation: removes a conversation and all that belongs to it, for good.
-- out: whether there was one
-- errors: PC040 on legal hold
-- locks: the conversation row, FOR UPDATE
-- since: 0.1.0
create function convo.delete_conversation(conversation_id uuid) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    old convo.conversation;
begin
    select c.* into old
    from convo.conversation as c
    where c.tenant_id = tenant
        and c.conversation_id = delete_conversation.conversation_id
    for update;
    if not found then
        return false;
    elsif old.is_on_hold then
        perform convo._fail(
            'PC040', jsonb_build_object('conversation_id', old.conversation_id)
        );
    end if;
    delete from convo.conversation as c
    where c.tenant_id = tenant and c.conversation_id = old.conversation_id;
    insert into convo.tombstone (tenant_id, conversation_id, user_id)
    values (tenant, old.conversation_id, old.user_id)
    on conflict do nothing; -- by direct SQL, before its time
    perform convo._collect_prompt(tenant, old.user_id, old.system_prompt_sha256);
    return true;
end
$$;

comment on function convo.delete_conversation(uuid) is
'Removes a conversation and all that belongs to it, for good. Gives whether there was '
'one. A tombstone stays, so that a late writer brings nothing back.';
revoke execute on function convo.delete_conversation(uuid) from public;
grant execute on function convo.delete_conversation(uuid) to convo_app, convo_service;
-- <<< sql/functions/conversation/delete_conversation.sql

-- >>> sql/functions/conversation/fork_conversation.sql
-- fork_conversation: a new conversation of the same owner that begins as this one does.
-- in: the last message to copy (null: all), a title (null: the same)
-- out: the new id; messages keep seq and time, deleted ones and old revisions come along
-- errors: PC001, PC012, PC002 no such message (0 copies none)
-- since: 0.1.0
create function convo.fork_conversation(
    conversation_id uuid,
    through_seq integer default null,
    title text default null
) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant convo.conversation := convo._lock_conversation(
        fork_conversation.conversation_id
    );
    last_copied constant integer := coalesce(
        fork_conversation.through_seq, source.last_seq
    );
    id constant uuid := convo._uuid_v7();
    instant constant timestamptz(3) := greatest(clock_timestamp(), source.updated_at);
    covered_seq integer;
begin
    if last_copied not between 0 and source.last_seq then
        perform convo._fail('PC002', jsonb_build_object(
            'conversation_id', source.conversation_id, 'seq', last_copied,
            'last_seq', source.last_seq
        ));
    end if;
    select coalesce(max(s.through_seq), 0) into covered_seq
    from convo.summary as s
    where s.tenant_id = source.tenant_id
        and s.conversation_id = source.conversation_id
        and s.through_seq <= last_copied;
    insert into convo.conversation (
        tenant_id, conversation_id, user_id, title, system_prompt_sha256,
        retention_class, policy, last_seq, message_count, token_total, body_count,
        body_tokens, summary_through_seq, metadata, created_at, updated_at, forked_from, forked_at_seq
    )
    select
        source.tenant_id, id, source.user_id,
        nullif(coalesce(fork_conversation.title, source.title), ''),
        source.system_prompt_sha256, source.retention_class, source.policy, last_copied,
        count(*), coalesce(sum(m.tokens), 0),
        count(*) filter (where m.role <> 'system' and m.group_seq > covered_seq),
        coalesce(
            sum(m.tokens) filter (where m.role <> 'system' and m.group_seq > covered_seq),
            0
        ),
        covered_seq, source.metadata, instant, instant, source.conversation_id, last_copied
    from convo.message as m
    where m.tenant_id = source.tenant_id
        and m.conversation_id = source.conversation_id
        and m.seq <= last_copied
        and m.deleted_at is null;

    insert into convo.message (
        tenant_id, conversation_id, seq, user_id, role, content, payload, format,
        tokens, is_estimated, is_empty, group_seq, revision, model, call_ids, result_ids,
        metadata, created_at, edited_at, deleted_at
    )
    select
        m.tenant_id, id, m.seq, m.user_id, m.role, m.content, m.payload, m.format,
        m.tokens, m.is_estimated, m.is_empty, m.group_seq, m.revision, m.model,
        m.call_ids, m.result_ids, m.metadata, m.created_at, m.edited_at, m.deleted_at
    from convo.message as m
    where m.tenant_id = source.tenant_id
        and m.conversation_id = source.conversation_id
        and m.seq <= last_copied;

    insert into convo.message_revision (
        tenant_id, conversation_id, seq, revision, user_id, content, payload, tokens,
        is_estimated, created_at
    )
    select
        r.tenant_id, id, r.seq, r.revision, r.user_id, r.content, r.payload, r.tokens,
        r.is_estimated, r.created_at
    from convo.message_revision as r
    where r.tenant_id = source.tenant_id
        and r.conversation_id = source.conversation_id
        and r.seq <= last_copied;

    insert into convo.summary (
        tenant_id, conversation_id, through_seq, user_id, content, tokens, model,
        created_at
    )
    select
        s.tenant_id, id, s.through_seq, s.user_id, s.content, s.tokens, s.model,
        s.created_at
    from convo.summary as s
    where s.tenant_id = source.tenant_id
        and s.conversation_id = source.conversation_id
        and s.through_seq <= last_copied;
    return id;
end
$$;

comment on function convo.fork_conversation(uuid, integer, text) is
'A new conversation of the same owner that begins as this one does, up to a message. '
'Messages keep their seq and time, summaries come along; holds and idempotency keys '
'stay behind.';
revoke execute on function convo.fork_conversation(uuid, integer, text) from public;
grant execute on function convo.fork_conversation(uuid, integer, text)
to convo_app, convo_service;
-- <<< sql/functions/conversation/fork_conversation.sql

-- >>> sql/functions/conversation/transfer_conversation.sql
-- transfer_conversation: gives a conversation to another user of the tenant.
-- errors: PC001, PC012, 22023
-- locks: the conversation row, FOR UPDATE
-- since: 0.1.0
create function convo.transfer_conversation(conversation_id uuid, to_user_id text)
returns convo.conversation_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    old constant convo.conversation := convo._lock_conversation(
        transfer_conversation.conversation_id
    );
    prompt text;
    result convo.conversation_record;
begin
    if coalesce(length(transfer_conversation.to_user_id), 0) not between 1 and 255 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'to_user_id', 'minimum_length', 1, 'maximum_length', 255
        ));
    end if;
    select r.system_prompt into prompt
    from convo.get_conversation(old.conversation_id) as r;

    set constraints
        convo.message_conversation_fkey,
        convo.message_revision_conversation_fkey,
        convo.summary_conversation_fkey,
        convo.idempotency_key_conversation_fkey deferred;
    update convo.conversation as c
    set user_id = transfer_conversation.to_user_id,
        system_prompt_sha256 = convo._store_prompt(
            transfer_conversation.to_user_id, prompt
        )
    where c.tenant_id = old.tenant_id and c.conversation_id = old.conversation_id;
    update convo.message as m
    set user_id = transfer_conversation.to_user_id
    where m.tenant_id = old.tenant_id and m.conversation_id = old.conversation_id;
    update convo.message_revision as r
    set user_id = transfer_conversation.to_user_id
    where r.tenant_id = old.tenant_id and r.conversation_id = old.conversation_id;
    update convo.summary as s
    set user_id = transfer_conversation.to_user_id
    where s.tenant_id = old.tenant_id and s.conversation_id = old.conversation_id;
    update convo.idempotency_key as k
    set user_id = transfer_conversation.to_user_id
    where k.tenant_id = old.tenant_id and k.conversation_id = old.conversation_id;
    set constraints
        convo.message_conversation_fkey,
        convo.message_revision_conversation_fkey,
        convo.summary_conversation_fkey,
        convo.idempotency_key_conversation_fkey immediate;

    perform convo._collect_prompt(old.tenant_id, old.user_id, old.system_prompt_sha256);
    perform convo_private._audit('transfer', old.conversation_id, null);
    select r.* into result from convo.get_conversation(old.conversation_id) as r;
    return result;
end
$$;

comment on function convo.transfer_conversation(uuid, text) is
'Gives a conversation, with all that belongs to it, to another user of the tenant.';
revoke execute on function convo.transfer_conversation(uuid, text) from public;
grant execute on function convo.transfer_conversation(uuid, text) to convo_service;
-- <<< sql/functions/conversation/transfer_conversation.sql

-- >>> sql/functions/message/estimate_tokens.sql
-- estimate_tokens: about how many tokens (o200k, GPT-4o and later) a text has.
-- in: any text; only the text counts, not its role or other overhead
-- out: null for null, 0 for the empty text, else at least 1
-- errors: none
-- since: 0.1.0
create function convo.estimate_tokens(content text) returns integer
language plpgsql
immutable
strict
parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
-- The estimate is a weighted sum of counts. The weights are thousandths of a token,
-- fitted by bench/tokens/fit.py; docs/tokens.md has the errors. With integers, explicit
-- character ranges and collation C every server gives the same number for a text.
declare
    sample text collate "C" := estimate_tokens.content;
    sample_bytes integer;
    characters integer;
    lower_bits bigint;
    letters bigint;
    capitals bigint;
    signs bigint := 0;
    millis bigint;
begin
    if octet_length(estimate_tokens.content) = 0 then
        return 0;
    end if;

    -- A text over 32 kB is judged by 32 slices of 1 kB, evenly spread and cut between
    -- characters (bytes 128 to 191 continue one), so that its cost stays small. Slices
    -- are 4 bytes short of 1024: the last one then can't run past the end.
    if octet_length(estimate_tokens.content) > 32768 then
        declare
            bytes constant bytea := convert_to(estimate_tokens.content, 'UTF8');
            first_byte integer;
            end_byte integer;
        begin
            sample := '';
            for part in 0 .. 31 loop
                first_byte := part * (octet_length(bytes) / 32);
                end_byte := first_byte + 1020;
                while get_byte(bytes, first_byte) between 128 and 191 loop
                    first_byte := first_byte + 1;
                end loop;
                while get_byte(bytes, end_byte) between 128 and 191 loop
                    end_byte := end_byte + 1;
                end loop;
                sample := sample || convert_from(
                    substr(bytes, first_byte + 1, end_byte - first_byte), 'UTF8'
                );
            end loop;
        end;
    end if;
    sample_bytes := octet_length(sample);

    -- Indentation, ruled lines and bold type are few tokens: two spaces, dashes or
    -- asterisks count as one.
    sample := replace(replace(replace(sample, '  ', ' '), '--', '-'), '**', '*');
    characters := length(sample);
    millis := 159 * characters;

    if octet_length(sample) > characters then
        declare
            -- Characters outside ASCII, taken out script by script, and what each adds.
            scripts constant text[] collate "C" := array[
                E'[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]+',  -- Chinese to Korean
                E'[\u0456\u0457\u0454\u0491\u0406\u0407\u0404\u0490]+', -- Ukrainian
                E'[\u0400-\u052f]+',                            -- Cyrillic
                E'[\u0590-\u05ff\u0e00-\u0e7f]+',               -- Hebrew, Thai
                -- Greek, Armenian, Arabic, India's scripts, Burmese, Georgian, Khmer
                E'[\u0370-\u03ff\u0530-\u0dff\u1000-\u10ff\u1780-\u17ff]+',
                E'[\u00c0-\u024f\u1e00-\u1eff]+',               -- Latin with marks
                E'[\u0300-\u036f]+'                             -- marks on their own
            ];
            weights constant integer[] := array[602, 1245, 94, 274, 188, 477, 1910];
            rest text collate "C";
            others text collate "C";
        begin
            rest := regexp_replace(sample, E'[\u0001-\u007f]+', '', 'g');
            signs := -octet_length(rest);
            for script in 1 .. cardinality(scripts) loop
                others := regexp_replace(rest, scripts[script], '', 'g');
                millis := millis + weights[script] * (length(rest) - length(others));
                rest := others;
            end loop;
            -- Emoji, typographic signs and further scripts, by the byte.
            millis := millis + 483 * octet_length(rest);
        end;
    end if;

    -- The cheapest way to count ASCII letters: lower() sets one bit of each capital,
    -- upper() clears one of each small letter. Signs are digits, punctuation and line
    -- ends.
    lower_bits := bit_count(convert_to(lower(sample), 'UTF8'));
    capitals := lower_bits - bit_count(convert_to(sample, 'UTF8'));
    letters := lower_bits - bit_count(convert_to(upper(sample), 'UTF8'));
    signs := signs + octet_length(replace(sample, ' ', '')) - letters;

    -- k, z and a are rarer in English than in other languages in Latin script, whose
    -- words are more tokens.
    millis := millis + 206 * capitals + 409 * signs
        + 582 * (octet_length(sample) - octet_length(replace(sample, 'k', '')))
        + 1559 * (octet_length(sample) - octet_length(replace(sample, 'z', '')))
        + 312 * (octet_length(sample) - octet_length(replace(sample, 'a', '')));

    millis := millis * octet_length(estimate_tokens.content) / sample_bytes;
    return greatest(1, (millis + 500) / 1000);
end
$$;

comment on function convo.estimate_tokens(text) is
'About how many tokens (o200k) a text has; null for null, 0 for the empty text.';
revoke execute on function convo.estimate_tokens(text) from public;
grant execute on function convo.estimate_tokens(text)
to convo_app, convo_service, convo_reader, convo_maintainer;
-- <<< sql/functions/message/estimate_tokens.sql

-- >>> sql/functions/message/_is_blank.sql
-- _is_blank: whether a text is null, empty or white space only, in any script.
create function convo._is_blank(content text) returns boolean
language sql immutable parallel safe
return coalesce(
    _is_blank.content !~ (
        '[^\s\u001c-\u001f\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f'
        '\u3000]'
    ),
    true
);

comment on function convo._is_blank(text) is
'Whether a text is null, empty or white space only.';
revoke execute on function convo._is_blank(text) from public;
grant execute on function convo._is_blank(text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/message/_is_blank.sql

-- >>> sql/functions/message/_message_record.sql
-- _message_record: a row of table message as the functions give it.
create function convo._message_record(message convo.message)
returns convo.message_record
language sql immutable parallel safe
return row(
    (_message_record.message).seq,
    (_message_record.message).role,
    (_message_record.message).content,
    (_message_record.message).tokens,
    (_message_record.message).is_estimated,
    (_message_record.message).created_at,
    (_message_record.message).revision,
    (_message_record.message).model,
    (_message_record.message).payload,
    (_message_record.message).format,
    (_message_record.message).metadata,
    (_message_record.message).group_seq,
    (_message_record.message).deleted_at
)::convo.message_record;

comment on function convo._message_record(convo.message) is
'A row of table message as the functions give it.';
revoke execute on function convo._message_record(convo.message) from public;
grant execute on function convo._message_record(convo.message)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/message/_message_record.sql

-- >>> sql/functions/message/_readable.sql
-- _readable: a payload as jsonb, for reading its parts.
-- jsonb can't hold \u0000 or half of a surrogate pair, so U+FFFD stands for them. An
-- escaped backslash is written as \u005c first: then every \u left is an escape.
-- errors: those of the cast: 22003 a number out of range, 54001 nested too deeply
create function convo._readable(payload json) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    cleaned text := _readable.payload::text;
begin
    if strpos(cleaned, e'\\u') > 0 then
        cleaned := replace(cleaned, e'\\\\', e'\\u005c');
        cleaned := replace(cleaned, e'\\u0000', e'\\ufffd');
        cleaned := regexp_replace(
            cleaned,
            e'\\\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\\\u[dD][c-fC-F])', e'\\\\ufffd', 'g'
        );
        cleaned := regexp_replace(
            cleaned,
            e'(?<!\\\\u[dD][89abAB][0-9a-fA-F]{2})\\\\u[dD][c-fC-F][0-9a-fA-F]{2}',
            e'\\\\ufffd', 'g'
        );
    end if;
    return cleaned::jsonb;
end
$$;

comment on function convo._readable(json) is
'A payload as jsonb, with U+FFFD for what jsonb can''t hold.';
revoke execute on function convo._readable(json) from public;
grant execute on function convo._readable(json)
to convo_app, convo_service, convo_reader, convo_maintainer, convo_search;
-- <<< sql/functions/message/_readable.sql

-- >>> sql/functions/message/_url_media.sql
-- _url_media: what a part says about its data: a data URL is taken apart.
-- in: the URL as a JSON string
-- out: {"media_type", "data"} for a data URL in base64, else {"url"}
create function convo._url_media(url jsonb) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    address constant text := _url_media.url #>> '{}';
    comma constant integer := strpos(address, ',');
    head constant text := left(address, greatest(comma - 1, 0));
begin
    if head like 'data:%;base64' then
        return jsonb_build_object(
            'media_type', split_part(substr(head, 6), ';', 1),
            'data', substr(address, comma + 1)
        );
    end if;
    return jsonb_build_object('url', case
        when jsonb_typeof(_url_media.url) = 'string' then _url_media.url
    end);
end
$$;

comment on function convo._url_media(jsonb) is
'A URL as a member of a part, a data URL taken apart.';
revoke execute on function convo._url_media(jsonb) from public;
grant execute on function convo._url_media(jsonb)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/message/_url_media.sql

-- >>> sql/functions/message/_openai_content_parts.sql
-- _openai_content_parts: the content of a message of either OpenAI format as parts.
-- in: a string, an array of content parts, or null
-- out: an array, see _openai_parts; what isn't valid is a part without a kind or text
create function convo._openai_content_parts(content jsonb) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant jsonb := _openai_content_parts.content;
begin
    if jsonb_typeof(source) = 'string' then
        return jsonb_build_array(jsonb_build_object('kind', 'text', 'text', source));
    elsif jsonb_typeof(source) is distinct from 'array' then
        return '[]';
    end if;
    return (
        select coalesce(jsonb_agg(
            case
                when p.type in ('text', 'input_text', 'output_text', 'refusal')
                    then jsonb_build_object('kind', 'text', 'text', coalesce(
                        p.part -> 'text', p.part -> 'refusal'
                    ))
                when p.type in ('image_url', 'input_image', 'computer_screenshot')
                    then jsonb_strip_nulls(jsonb_build_object(
                        'kind', 'image', 'id', p.part -> 'file_id', 'detail', coalesce(
                            p.part #> '{image_url,detail}', p.part -> 'detail'
                        )
                    ) || convo._url_media(coalesce(
                        p.part #> '{image_url,url}', p.part -> 'image_url'
                    )))
                when p.type in ('file', 'input_file')
                    then jsonb_strip_nulls(jsonb_build_object(
                        'kind', 'file', 'name', f.file -> 'filename',
                        'id', f.file -> 'file_id', 'url', f.file -> 'file_url'
                    ) || case
                        when f.file ->> 'file_data' like 'data:%'
                            then convo._url_media(f.file -> 'file_data')
                        else jsonb_build_object('data', f.file -> 'file_data')
                    end)
                when p.type = 'input_audio' then jsonb_strip_nulls(jsonb_build_object(
                    'kind', 'audio',
                    'media_type', 'audio/' || (p.part #>> '{input_audio,format}'),
                    'data', p.part #> '{input_audio,data}'
                ))
                when p.type is not null then '{"kind": "other"}'
                else '{}'
            end
            order by p.n
        ), '[]')
        from (
            select e.part, e.n, case
                when jsonb_typeof(e.part -> 'type') = 'string' then e.part ->> 'type'
            end as type
            from jsonb_array_elements(source) with ordinality as e (part, n)
        ) as p
        cross join lateral (
            values (coalesce(p.part -> 'file', p.part))
        ) as f (file)
    );
end
$$;

comment on function convo._openai_content_parts(jsonb) is
'The content of a message of either OpenAI format as parts.';
revoke execute on function convo._openai_content_parts(jsonb) from public;
grant execute on function convo._openai_content_parts(jsonb)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/message/_openai_content_parts.sql

-- >>> sql/functions/message/_openai_parts.sql
-- _openai_parts: an OpenAI chat message as parts, the form between all formats.
-- in: a message that _read_openai took, cleaned by _readable
-- out: an array in the order of the message; each part has a kind:
--      text (text), image, file, audio (media_type and data, url or id; name, detail),
--      call (id, name, arguments or input as text), result (id, name, parts, is_error),
--      reasoning (text), other (what only its own format can carry)
create function convo._openai_parts(message jsonb) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant jsonb := _openai_parts.message;
    parts jsonb := convo._openai_content_parts(source -> 'content');
begin
    if source ->> 'role' in ('tool', 'function') then
        return jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
            'kind', 'result',
            'id', case source ->> 'role'
                when 'tool' then source ->> 'tool_call_id'
                else 'function_call:' || (source ->> 'name')
            end,
            'name', source -> 'name', 'parts', parts, 'is_error', false
        )));
    end if;
    if parts = '[]' and source ->> 'refusal' is not null then
        parts := jsonb_build_array(jsonb_build_object(
            'kind', 'text', 'text', source -> 'refusal'
        ));
    end if;
    if jsonb_typeof(source -> 'audio') = 'object' then
        parts := parts || '[{"kind": "other"}]';
    end if;
    return parts || (
        select
            coalesce(jsonb_agg(
                jsonb_strip_nulls(jsonb_build_object(
                    'kind', 'call', 'id', c.id, 'name', c.target -> 'name',
                    'arguments', c.target -> 'arguments', 'input', c.target -> 'input'
                ))
                order by c.n
            ), '[]')
        from (
            select
                t.n, t.call ->> 'id' as id,
                coalesce(t.call -> 'function', t.call -> 'custom') as target
            from jsonb_path_query(source, '$.tool_calls[*] ? (@ != null)')
                with ordinality as t (call, n)
            union all
            -- The older function calls have no ids: their name stands for one.
            select
                1, 'function_call:' || (source #>> '{function_call,name}'),
                source -> 'function_call'
            where source #>> '{function_call,name}' is not null
                and coalesce(source -> 'tool_calls', 'null') in ('null', '[]')
        ) as c
    );
end
$$;

comment on function convo._openai_parts(jsonb) is
'An OpenAI chat message as parts, the form between all formats.';
revoke execute on function convo._openai_parts(jsonb) from public;
grant execute on function convo._openai_parts(jsonb)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/message/_openai_parts.sql

-- >>> sql/functions/message/_openai_responses_parts.sql
-- _openai_responses_parts: an item of the OpenAI responses format as parts.
-- in: the item, cleaned by _readable
-- out: an array, see _openai_parts; what isn't valid is a part that lacks a member
create function convo._openai_responses_parts(message jsonb) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    item constant jsonb := _openai_responses_parts.message;
    item_type constant text := coalesce(item ->> 'type', 'message');
    part jsonb;
begin
    if item_type = 'message' then
        return convo._openai_content_parts(item -> 'content');
    elsif item_type ~ '_call_output$' then
        part := jsonb_build_object(
            'kind', 'result',
            -- the output of the local shell has its call's id there
            'id', coalesce(item -> 'call_id', case item_type
                when 'local_shell_call_output' then item -> 'id'
            end),
            'parts', case
                when item_type = 'shell_call_output'
                    then convo._openai_content_parts(to_jsonb((
                        select coalesce(string_agg(
                            concat(o.part ->> 'stdout', o.part ->> 'stderr'), ''
                        ), '')
                        from jsonb_path_query(item, '$.output[*]') as o (part)
                    )))
                when jsonb_typeof(item -> 'output') = 'object'
                    then convo._openai_content_parts(
                        jsonb_build_array(item -> 'output')
                    )
                else convo._openai_content_parts(item -> 'output')
            end,
            'is_error', false
        );
    elsif item_type in ('function_call', 'custom_tool_call') then
        part := jsonb_build_object(
            'kind', 'call', 'id', item -> 'call_id', 'name', item -> 'name',
            'arguments', item -> 'arguments', 'input', item -> 'input'
        );
    elsif item_type in (
        'computer_call', 'local_shell_call', 'shell_call', 'apply_patch_call'
    ) then
        part := jsonb_build_object(
            'kind', 'call', 'id', item -> 'call_id', 'name', item_type,
            'arguments', coalesce(
                item -> 'action', item -> 'actions', item -> 'operation', '{}'
            )::text
        );
    elsif item_type = 'reasoning' then
        part := jsonb_build_object('kind', 'reasoning', 'text', coalesce(
            (
                select string_agg(t.text #>> '{}', e'\n')
                from jsonb_path_query(item, '$.summary[*].text') as t (text)
            ),
            (
                select string_agg(t.text #>> '{}', e'\n')
                from jsonb_path_query(item, '$.content[*].text') as t (text)
            ),
            ''
        ));
    else
        part := '{"kind": "other"}';
    end if;
    return jsonb_build_array(jsonb_strip_nulls(part));
end
$$;

comment on function convo._openai_responses_parts(jsonb) is
'An item of the OpenAI responses format as parts.';
revoke execute on function convo._openai_responses_parts(jsonb) from public;
grant execute on function convo._openai_responses_parts(jsonb)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/message/_openai_responses_parts.sql

-- >>> sql/functions/message/_anthropic_source.sql
-- _anthropic_source: what an Anthropic image or document says of its data.
-- out: {"media_type", "data"}, {"url"} or {"id"}; {} for sources of another kind
create function convo._anthropic_source(source jsonb) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return case
        when _anthropic_source.source ->> 'type' = 'text' then jsonb_build_object(
            'media_type', 'text/plain', 'data', replace(encode(
                convert_to(_anthropic_source.source ->> 'data', 'UTF8'), 'base64'
            ), e'\n', '')
        )
        else jsonb_build_object(
            'media_type', _anthropic_source.source -> 'media_type',
            'data', _anthropic_source.source -> 'data',
            'url', _anthropic_source.source -> 'url',
            'id', _anthropic_source.source -> 'file_id'
        )
    end;
end
$$;

comment on function convo._anthropic_source(jsonb) is
'The data of an image or document of the Anthropic format.';
revoke execute on function convo._anthropic_source(jsonb) from public;
grant execute on function convo._anthropic_source(jsonb)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/message/_anthropic_source.sql

-- >>> sql/functions/message/_anthropic_parts.sql
-- _anthropic_parts: a message of the Anthropic format as parts.
-- in: the message, or {"content": ...} of a tool result, cleaned by _readable
-- out: an array, see _openai_parts; what isn't valid is a part that lacks a member
create function convo._anthropic_parts(message jsonb) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    content constant jsonb := _anthropic_parts.message -> 'content';
begin
    if jsonb_typeof(content) = 'string' then
        return jsonb_build_array(jsonb_build_object('kind', 'text', 'text', content));
    elsif jsonb_typeof(content) is distinct from 'array' then
        return '[]';
    end if;
    return (
        select coalesce(jsonb_agg(
            jsonb_strip_nulls(case b.block ->> 'type'
                when 'text' then jsonb_build_object(
                    'kind', 'text', 'text', b.block -> 'text'
                )
                when 'image' then '{"kind": "image"}'
                    || convo._anthropic_source(b.block -> 'source')
                when 'document' then case b.block #>> '{source,type}'
                    when 'content' then '{"kind": "other"}'
                    else jsonb_build_object(
                        'kind', 'file', 'name', b.block -> 'title'
                    ) || convo._anthropic_source(b.block -> 'source')
                end
                when 'tool_use' then jsonb_build_object(
                    'kind', 'call', 'id', b.block -> 'id', 'name', b.block -> 'name',
                    'arguments', case
                        when jsonb_typeof(b.block -> 'input') = 'object'
                            then (b.block -> 'input')::text
                    end
                )
                when 'tool_result' then jsonb_build_object(
                    'kind', 'result', 'id', b.block -> 'tool_use_id',
                    'parts', convo._anthropic_parts(b.block),
                    'is_error', coalesce(b.block -> 'is_error' = 'true', false)
                )
                when 'thinking' then jsonb_build_object(
                    'kind', 'reasoning', 'text', b.block -> 'thinking'
                )
                when 'redacted_thinking' then '{"kind": "reasoning", "text": ""}'
                else case
                    when jsonb_typeof(b.block -> 'type') = 'string'
                        then '{"kind": "other"}'::jsonb
                    else '{}'
                end
            end)
            order by b.n
        ), '[]')
        from jsonb_array_elements(content) with ordinality as b (block, n)
    );
end
$$;

comment on function convo._anthropic_parts(jsonb) is
'A message of the Anthropic format as parts.';
revoke execute on function convo._anthropic_parts(jsonb) from public;
grant execute on function convo._anthropic_parts(jsonb)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/message/_anthropic_parts.sql

-- >>> sql/functions/message/_gemini_member.sql
-- _gemini_member: a member of a Gemini object, written in camel or in snake case.
-- in: the object, the name in camel case
-- out: null also for a JSON null
create function convo._gemini_member(object jsonb, name text) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return coalesce(
        nullif(_gemini_member.object -> _gemini_member.name, 'null'),
        nullif(_gemini_member.object -> lower(
            regexp_replace(_gemini_member.name, '([A-Z])', e'_\\1', 'g')
        ), 'null')
    );
end
$$;

comment on function convo._gemini_member(jsonb, text) is
'A member of a Gemini object, in camel or snake case.';
revoke execute on function convo._gemini_member(jsonb, text) from public;
grant execute on function convo._gemini_member(jsonb, text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/message/_gemini_member.sql

-- >>> sql/functions/message/_gemini_media.sql
-- _gemini_media: the media of a Gemini part.
-- in: inlineData or fileData
create function convo._gemini_media(source jsonb) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    media_type constant jsonb := convo._gemini_member(_gemini_media.source, 'mimeType');
    main_type constant text := split_part(media_type #>> '{}', '/', 1);
begin
    return jsonb_build_object(
        'kind', case
            when main_type in ('image', 'audio') then main_type
            else 'file'
        end,
        'name', convo._gemini_member(_gemini_media.source, 'displayName'),
        'media_type', media_type,
        'data', _gemini_media.source -> 'data',
        'url', convo._gemini_member(_gemini_media.source, 'fileUri')
    );
end
$$;

comment on function convo._gemini_media(jsonb) is
'The media of a Gemini part.';
revoke execute on function convo._gemini_media(jsonb) from public;
grant execute on function convo._gemini_media(jsonb)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/message/_gemini_media.sql

-- >>> sql/functions/message/_gemini_response.sql
-- _gemini_response: the result in a Gemini functionResponse.
-- Its text is the response as JSON; or output, result or error where that is a string
-- and all there is. Where calls have no ids, names stand for them.
create function convo._gemini_response(source jsonb) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    response constant jsonb := _gemini_response.source -> 'response';
    single jsonb;
begin
    if jsonb_typeof(response) = 'object'
        and '{}' in (response - 'output', response - 'result', response - 'error')
    then
        single := coalesce(
            response -> 'output', response -> 'result', response -> 'error'
        );
    end if;
    return jsonb_build_object(
        'kind', 'result',
        'id', coalesce(
            nullif(_gemini_response.source -> 'id', '""'),
            _gemini_response.source -> 'name'
        ),
        'name', _gemini_response.source -> 'name',
        'parts', jsonb_build_array(jsonb_build_object(
            'kind', 'text', 'text', case
                when jsonb_typeof(single) = 'string' then single #>> '{}'
                when jsonb_typeof(response) = 'object' then response::text
            end
        )) || convo._gemini_parts(_gemini_response.source),
        'is_error', coalesce(response ? 'error', false)
    );
end
$$;

comment on function convo._gemini_response(jsonb) is
'The result in a Gemini functionResponse.';
revoke execute on function convo._gemini_response(jsonb) from public;
grant execute on function convo._gemini_response(jsonb)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/message/_gemini_response.sql

-- >>> sql/functions/message/_gemini_parts.sql
-- _gemini_parts: a message of the Gemini format as parts.
-- in: the message, or a functionResponse with parts of its own, cleaned by _readable
-- out: an array, see _openai_parts; what isn't valid is a part that lacks a member
create function convo._gemini_parts(message jsonb) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if jsonb_typeof(_gemini_parts.message -> 'parts') is distinct from 'array' then
        return '[]';
    end if;
    return (
        select coalesce(jsonb_agg(
            jsonb_strip_nulls(case
                when jsonb_typeof(p.part -> 'text') <> 'null' then jsonb_build_object(
                    'kind', case
                        when p.part -> 'thought' = 'true' then 'reasoning' else 'text'
                    end,
                    'text', p.part -> 'text'
                )
                when p.media is not null then convo._gemini_media(p.media)
                when p.call is not null then jsonb_build_object(
                    'kind', 'call',
                    'id', coalesce(nullif(p.call -> 'id', '""'), p.call -> 'name'),
                    'name', p.call -> 'name',
                    'arguments', case
                        when p.call -> 'args' is null then '{}'
                        when jsonb_typeof(p.call -> 'args') = 'object'
                            then (p.call -> 'args')::text
                    end
                )
                when p.response is not null then convo._gemini_response(p.response)
                when jsonb_typeof(p.part) = 'object'
                    and jsonb_strip_nulls(p.part - 'thought') <> '{}'
                    then '{"kind": "other"}'
                else '{}'
            end)
            order by p.n
        ), '[]')
        from (
            select
                e.part, e.n,
                coalesce(
                    convo._gemini_member(e.part, 'inlineData'),
                    convo._gemini_member(e.part, 'fileData')
                ) as media,
                convo._gemini_member(e.part, 'functionCall') as call,
                convo._gemini_member(e.part, 'functionResponse') as response
            from jsonb_array_elements(_gemini_parts.message -> 'parts')
                with ordinality as e (part, n)
        ) as p
    );
end
$$;

comment on function convo._gemini_parts(jsonb) is
'A message of the Gemini format as parts.';
revoke execute on function convo._gemini_parts(jsonb) from public;
grant execute on function convo._gemini_parts(jsonb)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/message/_gemini_parts.sql

-- >>> sql/functions/message/_openai_text.sql
-- _openai_text: the text of the content of an OpenAI chat message; null if it has none.
create function convo._openai_text(content jsonb) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if jsonb_typeof(_openai_text.content) = 'string' then
        return _openai_text.content #>> '{}';
    elsif jsonb_typeof(_openai_text.content) = 'array' then
        return (
            select
                string_agg(
                    coalesce(p.part ->> 'text', p.part ->> 'refusal'), e'\n' order by p.n
                )
            from jsonb_array_elements(_openai_text.content) with ordinality as p (part, n)
            where p.part ->> 'type' in ('text', 'refusal')
        );
    end if;
    return null;
end
$$;

comment on function convo._openai_text(jsonb) is
'The text of the content of an OpenAI chat message, parts joined by line feeds.';
revoke execute on function convo._openai_text(jsonb) from public;
grant execute on function convo._openai_text(jsonb) to convo_app, convo_service;
-- <<< sql/functions/message/_openai_text.sql

-- >>> sql/functions/message/_estimate_openai_parts.sql
-- _estimate_openai_parts: the tokens of what isn't text in an OpenAI chat message.
-- A call: its name and arguments, and 8 for its frame. An image: 85 at detail low, else
-- 765, what 1024 by 1024 pixels cost.
create function convo._estimate_openai_parts(message jsonb) returns integer
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tokens integer := 0;
begin
    if _estimate_openai_parts.message ?| array['tool_calls', 'function_call'] then
        tokens := (
            select
                coalesce(sum(8 + convo.estimate_tokens(concat(
                    f.target ->> 'name', f.target ->> 'arguments', f.target ->> 'input'
                ))), 0)
            from (
                select coalesce(c.call -> 'function', c.call -> 'custom') as target
                from jsonb_path_query(
                        _estimate_openai_parts.message, '$.tool_calls[*] ? (@ != null)'
                    ) as c (call)
                union all
                select _estimate_openai_parts.message -> 'function_call'
                where jsonb_typeof(_estimate_openai_parts.message -> 'function_call')
                    = 'object'
            ) as f
        );
    end if;
    if jsonb_typeof(_estimate_openai_parts.message -> 'content') = 'array' then
        tokens := tokens + (
            select
                coalesce(sum(
                    case when p.part #>> '{image_url,detail}' = 'low' then 85 else 765 end
                ), 0)
            from jsonb_path_query(
                    _estimate_openai_parts.message,
                    '$.content[*] ? (@.type == "image_url")'
                ) as p (part)
        );
    end if;
    return tokens;
end
$$;

comment on function convo._estimate_openai_parts(jsonb) is
'The tokens of calls and images in an OpenAI chat message.';
revoke execute on function convo._estimate_openai_parts(jsonb) from public;
grant execute on function convo._estimate_openai_parts(jsonb)
to convo_app, convo_service;
-- <<< sql/functions/message/_estimate_openai_parts.sql

-- >>> sql/functions/message/_read_openai.sql
-- _read_openai: reads a message of the OpenAI chat completions format.
-- in: the message, and its place in the batch for the error
-- errors: PC050
create function convo._read_openai(payload json, index integer)
returns convo._parsed_message
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    message constant jsonb := convo._readable(_read_openai.payload);
    content constant jsonb := nullif(message -> 'content', 'null');
    -- No calls: some providers write [] for it.
    calls constant jsonb := nullif(nullif(message -> 'tool_calls', 'null'), '[]');
    role constant text := message ->> 'role';
    part_reason text;
    has_bad_call boolean;
    reason text;
    parsed convo._parsed_message;
begin
    -- Sub-selects stand alone: within an expression each would start an executor, also
    -- where there is nothing to look at.
    if jsonb_typeof(content) = 'array' then
        part_reason := convo._parts_reason(
            'user', convo._openai_content_parts(content)
        );
    end if;
    if jsonb_typeof(calls) = 'array' then
        has_bad_call := exists (
            select
            from jsonb_array_elements(calls) as c (call)
            cross join lateral (
                values (coalesce(c.call -> 'function', c.call -> 'custom'))
            ) as f (target)
            where coalesce(c.call ->> 'id', '') = ''
                or jsonb_typeof(c.call -> 'id') <> 'string'
                or coalesce(f.target ->> 'name', '') = ''
                or coalesce(
                    jsonb_typeof(f.target -> 'arguments'),
                    jsonb_typeof(f.target -> 'input')
                ) is distinct from 'string'
        );
        parsed.call_ids := array(
            select c.call ->> 'id'
            from jsonb_array_elements(calls) with ordinality as c (call, n)
            order by c.n
        );
    end if;
    reason := case
        when jsonb_typeof(message) <> 'object' then 'not an object'
        when jsonb_typeof(message -> 'role') is distinct from 'string'
            then 'role is not a string'
        when role not in (
            'system', 'developer', 'user', 'assistant', 'tool', 'function'
        ) then 'unknown role'
        when content is null and role <> 'assistant' then 'content is missing'
        when jsonb_typeof(content) not in ('string', 'array')
            then 'content is neither a string nor an array'
        when content = '[]' then 'content is empty'
        when part_reason is not null then part_reason
        when jsonb_typeof(message -> 'refusal') not in ('string', 'null')
            then 'refusal is not a string'
        when role = 'tool' and (
            coalesce(message ->> 'tool_call_id', '') = ''
            or jsonb_typeof(message -> 'tool_call_id') <> 'string'
        ) then 'tool_call_id is missing or not a string'
        when role = 'function' and (
            coalesce(message ->> 'name', '') = ''
            or jsonb_typeof(message -> 'name') <> 'string'
        ) then 'name is missing or not a string'
        when role <> 'assistant'
            and coalesce(calls, nullif(message -> 'function_call', 'null')) is not null
            then 'only an assistant message has calls'
        when jsonb_typeof(calls) <> 'array' then 'tool_calls is not an array'
        when has_bad_call then 'a tool call has no id, name or arguments'
        when jsonb_typeof(message -> 'function_call') <> 'null' and (
            coalesce(message #>> '{function_call,name}', '') = ''
            or jsonb_typeof(message #> '{function_call,arguments}')
                is distinct from 'string'
        ) then 'function_call is not valid'
    end;
    if reason is not null then
        perform convo._fail('PC050', jsonb_build_object(
            'index', _read_openai.index, 'reason', reason
        ));
    end if;

    parsed.role := case role
        when 'developer' then 'system'
        when 'function' then 'tool'
        else role
    end;
    parsed.content := coalesce(convo._openai_text(content), message ->> 'refusal');
    parsed.payload := _read_openai.payload;
    -- The older function calls have no ids: their name stands for one.
    if message #>> '{function_call,name}' is not null and calls is null then
        parsed.call_ids := array['function_call:' || (message #>> '{function_call,name}')];
    end if;
    parsed.result_ids := case role
        when 'tool' then array[message ->> 'tool_call_id']
        when 'function' then array['function_call:' || (message ->> 'name')]
    end;
    parsed.tokens := coalesce(convo.estimate_tokens(parsed.content), 0)
        + convo._estimate_openai_parts(message);
    parsed.is_empty := parsed.result_ids is not null
        or parsed.call_ids is null
        and convo._is_blank(parsed.content)
        and jsonb_path_exists(
            message, '$.content[*] ? (@.type != "text" && @.type != "refusal")'
        ) is not true;
    return parsed;
end
$$;

comment on function convo._read_openai(json, integer) is
'Reads a message of the OpenAI chat completions format.';
revoke execute on function convo._read_openai(json, integer) from public;
grant execute on function convo._read_openai(json, integer)
to convo_app, convo_service;
-- <<< sql/functions/message/_read_openai.sql

-- >>> sql/functions/message/_parts_reason.sql
-- _parts_reason: why the parts of a message are not valid, or null if they are.
-- in: the role, and what a _..._parts function made of the message
create function convo._parts_reason(role text, parts jsonb) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return (
        select min(case
            when p.kind is null then 'a content part is not valid'
            when p.kind in ('text', 'reasoning')
                and jsonb_typeof(p.part -> 'text') is distinct from 'string'
                then 'a text is not a string'
            when p.kind in ('image', 'file', 'audio') and coalesce(
                p.part ->> 'data', p.part ->> 'url', p.part ->> 'id', ''
            ) = '' then 'an image, file or audio has no source'
            when p.kind = 'call' and (
                coalesce(p.part ->> 'id', '') = ''
                or coalesce(p.part ->> 'name', '') = ''
                or jsonb_typeof(p.part -> 'id') <> 'string'
                or jsonb_typeof(p.part -> 'name') <> 'string'
                or coalesce(
                    jsonb_typeof(p.part -> 'arguments'), jsonb_typeof(p.part -> 'input')
                ) is distinct from 'string'
            ) then 'a call has no id, name or arguments'
            when p.kind = 'call' and _parts_reason.role <> 'assistant'
                then 'only an assistant message has calls'
            when p.kind = 'result' and (
                coalesce(p.part ->> 'id', '') = ''
                or jsonb_typeof(p.part -> 'id') <> 'string'
            ) then 'a result has no call id'
            when p.kind = 'result' and _parts_reason.role in ('assistant', 'system')
                then 'an assistant or system message has no results'
            when p.kind = 'result' then convo._parts_reason('user', p.part -> 'parts')
        end)
        from (
            select e.part, e.part ->> 'kind' as kind
            from jsonb_array_elements(_parts_reason.parts) as e (part)
        ) as p
    );
end
$$;

comment on function convo._parts_reason(text, jsonb) is
'Why the parts of a message are not valid, or null.';
revoke execute on function convo._parts_reason(text, jsonb) from public;
grant execute on function convo._parts_reason(text, jsonb)
to convo_app, convo_service;
-- <<< sql/functions/message/_parts_reason.sql

-- >>> sql/functions/message/_parsed_message.sql
-- _parsed_message: what the parts of a message say about it.
-- Its content is its texts joined by line feeds; without any, those of its results.
-- A message that holds results is a tool's. Tokens: those of all texts; a call, 8 and
-- those of its name and arguments; an image, 85 at detail low, else 765.
-- in: the role, what a _..._parts function made of the message, and the message itself
create function convo._parsed_message(role text, parts jsonb, payload json)
returns convo._parsed_message
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    parsed convo._parsed_message;
    found record;
begin
    select
        string_agg(p.text, e'\n' order by p.n) filter (
            where p.kind = 'text' and not p.is_inner
        ) as own_text,
        string_agg(p.text, e'\n' order by p.n) filter (
            where p.kind = 'text' and p.is_inner
        ) as result_text,
        string_agg(p.text, e'\n' order by p.n) filter (
            where p.kind = 'reasoning'
        ) as reasoning_text,
        array_agg(p.part ->> 'id' order by p.n) filter (
            where p.kind = 'call'
        ) as call_ids,
        array_agg(p.part ->> 'id' order by p.n) filter (
            where p.kind = 'result'
        ) as result_ids,
        coalesce(sum(case p.kind
            when 'call' then 8 + convo.estimate_tokens(concat(
                p.part ->> 'name', p.part ->> 'arguments', p.part ->> 'input'
            ))
            when 'image' then case when p.part ->> 'detail' = 'low' then 85 else 765 end
        end), 0) as tokens,
        bool_or(
            not p.is_inner
            and p.kind not in ('result', 'reasoning')
            and (p.kind <> 'text' or not convo._is_blank(p.text))
        ) is true as has_own
    into found
    from (
        select
            i.part, i.part ->> 'kind' as kind, i.part ->> 'text' as text, i.is_inner,
            row_number() over (order by o.n, i.n) as n
        from jsonb_array_elements(_parsed_message.parts)
            with ordinality as o (part, n)
        cross join lateral (
            select o.part, 0 as n, false as is_inner
            union all
            select r.part, r.n, true
            from jsonb_path_query(o.part, '$.parts[*]') with ordinality as r (part, n)
        ) as i
    ) as p;

    parsed.role := case
        when found.result_ids is null then _parsed_message.role else 'tool'
    end;
    parsed.content := coalesce(found.own_text, found.result_text);
    parsed.payload := _parsed_message.payload;
    parsed.call_ids := found.call_ids;
    parsed.result_ids := found.result_ids;
    parsed.tokens := found.tokens
        + coalesce(convo.estimate_tokens(found.own_text), 0)
        + coalesce(convo.estimate_tokens(found.result_text), 0)
        + coalesce(convo.estimate_tokens(found.reasoning_text), 0);
    parsed.is_empty := not found.has_own;
    return parsed;
end
$$;

comment on function convo._parsed_message(text, jsonb, json) is
'What the parts of a message say about it.';
revoke execute on function convo._parsed_message(text, jsonb, json) from public;
grant execute on function convo._parsed_message(text, jsonb, json)
to convo_app, convo_service;
-- <<< sql/functions/message/_parsed_message.sql

-- >>> sql/functions/message/_read_openai_responses.sql
-- _read_openai_responses: reads an item of the OpenAI responses format.
-- in: the item, and its place in the batch for the error
-- errors: PC050
create function convo._read_openai_responses(payload json, index integer)
returns convo._parsed_message
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    item constant jsonb := convo._readable(_read_openai_responses.payload);
    -- A message may leave its type out.
    item_type constant text := coalesce(item ->> 'type', 'message');
    role constant text := case
        when item ->> 'role' = 'developer' then 'system'
        when item_type = 'message' or item ->> 'role' in ('system', 'user', 'assistant')
            then item ->> 'role'
        when item_type ~ '_call_output$' then 'tool'
        else 'assistant'
    end;
    part_name constant text := case
        when item_type = 'message' then 'content'
        when role = 'tool' then 'output'
    end;
    parts jsonb;
    reason text;
begin
    reason := case
        when jsonb_typeof(item) <> 'object' then 'not an object'
        when jsonb_typeof(item -> 'type') not in ('string', 'null')
            then 'type is not a string'
        when jsonb_typeof(item -> 'role') not in ('string', 'null')
            or item_type = 'message' and role is null
            then 'role is not a string'
        when role not in ('system', 'user', 'assistant', 'tool')
            or item_type = 'message' and role = 'tool'
            then 'unknown role'
        when item_type = 'message' and coalesce(item -> 'content', '[]') = '[]'
            and role <> 'assistant'
            or item ->> part_name is null and part_name is not null
            then part_name || ' is missing or empty'
        when jsonb_typeof(item -> part_name) not in ('string', 'array')
            and (part_name = 'content' or jsonb_typeof(item -> part_name) <> 'object')
            then part_name || ' is neither a string nor an array'
    end;
    if reason is null then
        parts := convo._openai_responses_parts(item);
        reason := convo._parts_reason(role, parts);
    end if;
    if reason is not null then
        perform convo._fail('PC050', jsonb_build_object(
            'index', _read_openai_responses.index, 'reason', reason
        ));
    end if;
    return convo._parsed_message(role, parts, _read_openai_responses.payload);
end
$$;

comment on function convo._read_openai_responses(json, integer) is
'Reads an item of the OpenAI responses format.';
revoke execute on function convo._read_openai_responses(json, integer) from public;
grant execute on function convo._read_openai_responses(json, integer)
to convo_app, convo_service;
-- <<< sql/functions/message/_read_openai_responses.sql

-- >>> sql/functions/message/_read_anthropic.sql
-- _read_anthropic: reads a message of the Anthropic format.
-- The system text, which the format keeps apart, comes as a message of role system.
-- in: the message, and its place in the batch for the error
-- errors: PC050
create function convo._read_anthropic(payload json, index integer)
returns convo._parsed_message
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    message constant jsonb := convo._readable(_read_anthropic.payload);
    role constant text := message ->> 'role';
    parts jsonb;
    reason text;
begin
    reason := case
        when jsonb_typeof(message) <> 'object' then 'not an object'
        when jsonb_typeof(message -> 'role') is distinct from 'string'
            then 'role is not a string'
        when role not in ('system', 'user', 'assistant') then 'unknown role'
        when message ->> 'content' is null then 'content is missing'
        when jsonb_typeof(message -> 'content') not in ('string', 'array')
            then 'content is neither a string nor an array'
        -- A model may answer with nothing.
        when message -> 'content' = '[]' and role <> 'assistant'
            then 'content is empty'
        when exists (
            select
            from jsonb_path_query(
                    message, '$.content[*] ? (@.type == "tool_result").content'
                ) as r (content)
            where jsonb_typeof(r.content) not in ('string', 'array', 'null')
        ) then 'the content of a result is neither a string nor an array'
    end;
    if reason is null then
        parts := convo._anthropic_parts(message);
        reason := convo._parts_reason(role, parts);
    end if;
    if reason is not null then
        perform convo._fail('PC050', jsonb_build_object(
            'index', _read_anthropic.index, 'reason', reason
        ));
    end if;
    return convo._parsed_message(role, parts, _read_anthropic.payload);
end
$$;

comment on function convo._read_anthropic(json, integer) is
'Reads a message of the Anthropic format.';
revoke execute on function convo._read_anthropic(json, integer) from public;
grant execute on function convo._read_anthropic(json, integer)
to convo_app, convo_service;
-- <<< sql/functions/message/_read_anthropic.sql

-- >>> sql/functions/message/_read_gemini.sql
-- _read_gemini: reads a message of the Gemini format, in camel or snake case.
-- The system instruction, which the format keeps apart, comes with the role system.
-- in: the message, and its place in the batch for the error
-- errors: PC050
create function convo._read_gemini(payload json, index integer)
returns convo._parsed_message
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    message constant jsonb := convo._readable(_read_gemini.payload);
    -- A message without a role is a user's.
    role constant text := coalesce(message ->> 'role', 'user');
    parts jsonb;
    reason text;
begin
    reason := case
        when jsonb_typeof(message) <> 'object' then 'not an object'
        when jsonb_typeof(message -> 'role') not in ('string', 'null')
            then 'role is not a string'
        when role not in ('system', 'user', 'model', 'function') then 'unknown role'
        -- A model may answer with nothing.
        when coalesce(message ->> 'parts', '[]') = '[]' and role <> 'model'
            then 'parts is missing or empty'
        when jsonb_typeof(message -> 'parts') not in ('array', 'null')
            then 'parts is not an array'
        when role = 'function' and not jsonb_path_exists(
            message, '$.parts[*] ? (exists (@.functionResponse)
                || exists (@.function_response))'
        ) then 'a function message has no functionResponse'
    end;
    if reason is null then
        parts := convo._gemini_parts(message);
        reason := convo._parts_reason(
            case role when 'model' then 'assistant' else role end, parts
        );
    end if;
    if reason is not null then
        perform convo._fail('PC050', jsonb_build_object(
            'index', _read_gemini.index, 'reason', reason
        ));
    end if;
    return convo._parsed_message(
        case role when 'model' then 'assistant' else role end, parts,
        _read_gemini.payload
    );
end
$$;

comment on function convo._read_gemini(json, integer) is
'Reads a message of the Gemini format.';
revoke execute on function convo._read_gemini(json, integer) from public;
grant execute on function convo._read_gemini(json, integer)
to convo_app, convo_service;
-- <<< sql/functions/message/_read_gemini.sql

-- >>> sql/functions/message/_read_message.sql
-- _read_message: reads a message of a format that is known.
-- in: the format, the message, its place in the batch for the error
-- errors: PC050
create function convo._read_message(format text, payload json, index integer)
returns convo._parsed_message
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    raw constant text := _read_message.payload::text;
    is_deep constant text := 'nested over 1000 levels';
begin
    -- A limit of its own, far from where the stack ends: what is stored can be read on
    -- any server, also inside the functions that render it.
    if octet_length(raw) > 2000
        and octet_length(raw) - octet_length(replace(replace(raw, '[', ''), '{', ''))
            > 1000
        and jsonb_path_exists(convo._readable(_read_message.payload), '$.**{1001}')
    then
        perform convo._fail('PC050', jsonb_build_object(
            'index', _read_message.index, 'reason', is_deep
        ));
    end if;
    return case _read_message.format
        when 'openai'
            then convo._read_openai(_read_message.payload, _read_message.index)
        when 'openai_responses' then convo._read_openai_responses(
            _read_message.payload, _read_message.index
        )
        when 'anthropic'
            then convo._read_anthropic(_read_message.payload, _read_message.index)
        when 'gemini'
            then convo._read_gemini(_read_message.payload, _read_message.index)
    end;
-- what json takes and jsonb doesn't
exception when statement_too_complex or numeric_value_out_of_range then
    perform convo._fail('PC050', jsonb_build_object(
        'index', _read_message.index,
        'reason', case sqlstate
            when '54001' then is_deep else 'a number is out of range'
        end
    ));
end
$$;

comment on function convo._read_message(text, json, integer) is
'Reads a message of any format that is known.';
revoke execute on function convo._read_message(text, json, integer) from public;
grant execute on function convo._read_message(text, json, integer)
to convo_app, convo_service;
-- <<< sql/functions/message/_read_message.sql

-- >>> sql/functions/message/_read_messages.sql
-- _read_messages: reads one message or an array of them.
-- in: the format, the JSON, and tokens for each (null, or null for one: estimated)
-- errors: 22023, PC050
create function convo._read_messages(format text, messages json, tokens integer[])
returns convo._parsed_message[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    formats constant text[] := array[
        'openai', 'openai_responses', 'anthropic', 'gemini'
    ];
    batch json := _read_messages.messages;
    element json;
    parsed convo._parsed_message[] := '{}';
    message convo._parsed_message;
begin
    if batch is null then
        perform convo._fail('22023', '{"argument": "messages", "reason": "missing"}');
    elsif (_read_messages.format = any (formats)) is not true then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'format', 'allowed', formats
        ));
    elsif json_typeof(batch) <> 'array' then
        batch := json_build_array(batch);
    end if;
    -- json_array_elements splits an array without touching a byte of its elements.
    for element in select e.value from json_array_elements(batch) as e loop
        message := convo._read_message(
            _read_messages.format, element, cardinality(parsed)
        );
        message.tokens := coalesce(
            _read_messages.tokens[cardinality(parsed) + 1], message.tokens
        );
        parsed := parsed || message;
    end loop;
    if cardinality(_read_messages.tokens) <> cardinality(parsed)
        or array_ndims(_read_messages.tokens) > 1
        or array_lower(_read_messages.tokens, 1) <> 1
        or 0 > any (_read_messages.tokens)
    then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'tokens', 'length', cardinality(parsed), 'minimum', 0
        ));
    end if;
    return parsed;
end
$$;

comment on function convo._read_messages(text, json, integer[]) is
'Reads one message of a provider''s format or an array of them.';
revoke execute on function convo._read_messages(text, json, integer[]) from public;
grant execute on function convo._read_messages(text, json, integer[])
to convo_app, convo_service;
-- <<< sql/functions/message/_read_messages.sql

-- >>> sql/functions/message/_open_calls.sql
-- _open_calls: the newest stored calls that wait for a result, by id.
-- in: the ids of the results that came in, an id as often as it has results
-- out: one row an open call, at most as many for an id as results came, oldest first
create function convo._open_calls(conversation_id uuid, result_ids text[])
returns table (call_id text, group_seq integer)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
begin
    return query
    select o.call_id, o.group_seq
    from (
        select r.id, count(*) as results
        from unnest(_open_calls.result_ids) as r (id)
        group by r.id
    ) as w
    cross join lateral (
        select w.id as call_id, m.group_seq, m.seq
        from convo.message as m
        -- once for each of its calls with this id that has no result
        cross join generate_series(
            1,
            cardinality(array_positions(m.call_ids, w.id)) - (
                select coalesce(sum(cardinality(array_positions(a.result_ids, w.id))), 0)
                from convo.message as a
                where a.tenant_id = tenant
                    and a.conversation_id = _open_calls.conversation_id
                    and a.group_seq = m.group_seq
                    and a.deleted_at is null
                    and a.role <> 'system'
            )
        )
        where m.tenant_id = tenant
            and m.conversation_id = _open_calls.conversation_id
            and m.call_ids @> array[w.id]
            and m.deleted_at is null
        order by m.seq desc
        limit w.results
    ) as o
    order by o.seq;
end
$$;

comment on function convo._open_calls(uuid, text[]) is
'The newest stored calls that wait for a result, by id, oldest first.';
revoke execute on function convo._open_calls(uuid, text[]) from public;
grant execute on function convo._open_calls(uuid, text[]) to convo_app, convo_service;
-- <<< sql/functions/message/_open_calls.sql

-- >>> sql/functions/message/_begun_group.sql
-- _begun_group: the group that an item of the responses format joins which comes next.
-- out: the group of the newest live message, if it is reasoning, a call, or an item
--      that joined one of them, in this format; else null
create function convo._begun_group(conversation_id uuid) returns integer
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    last convo.message;
begin
    select m.* into last
    from convo.message as m
    where m.tenant_id = tenant
        and m.conversation_id = _begun_group.conversation_id
        and m.deleted_at is null
    order by m.seq desc
    limit 1;
    if last.format = 'openai_responses' and last.role = 'assistant' and (
        last.group_seq < last.seq or last.call_ids is not null
        or last.is_empty and last.content is null
    ) then
        return last.group_seq;
    end if;
    return null;
end
$$;

comment on function convo._begun_group(uuid) is
'The group that an item of the responses format joins which comes next, or null.';
revoke execute on function convo._begun_group(uuid) from public;
grant execute on function convo._begun_group(uuid) to convo_app, convo_service;
-- <<< sql/functions/message/_begun_group.sql

-- >>> sql/functions/message/_group_messages.sql
-- _group_messages: which group each message of a batch belongs to.
-- A result belongs to the nearest call before it with its id that has no result yet, in
-- the batch or stored before; its group is the call's, of several results the first's.
-- An item of the responses format that follows reasoning or a call directly was made
-- with it, and joins its group. Anything else is its own group.
-- in: the conversation, the format, the batch, the seq of its first message
-- out: a group_seq for each message
create function convo._group_messages(
    conversation_id uuid,
    format text,
    messages convo._parsed_message[],
    first_seq integer
) returns integer[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    groups integer[] := '{}';
    open_ids text[];
    open_groups integer[];
    position integer;
    message convo._parsed_message;
    group_seq integer;
    -- the group that an assistant's item joins which comes next
    begun integer;
    result_id text;
begin
    select array_agg(o.call_id), array_agg(o.group_seq) into open_ids, open_groups
    from convo._open_calls(_group_messages.conversation_id, array(
        select r.id
        from unnest(_group_messages.messages) as m
        cross join unnest(m.result_ids) as r (id)
    )) as o;
    if _group_messages.format = 'openai_responses'
        and _group_messages.messages[1].role = 'assistant'
    then
        begun := convo._begun_group(_group_messages.conversation_id);
    end if;

    foreach message in array _group_messages.messages loop
        group_seq := null;
        foreach result_id in array coalesce(message.result_ids, '{}') loop
            select max(o.n) into position
            from unnest(open_ids) with ordinality as o (id, n)
            where o.id = result_id;
            if position is not null then
                group_seq := coalesce(group_seq, open_groups[position]);
                open_ids[position] := null;
            end if;
        end loop;
        if message.role = 'assistant' then
            group_seq := begun;
        end if;
        group_seq := coalesce(
            group_seq, _group_messages.first_seq + cardinality(groups)
        );
        begun := case
            when _group_messages.format = 'openai_responses'
                and message.role = 'assistant'
                and (
                    begun is not null or message.call_ids is not null
                    or message.is_empty and message.content is null
                )
                then group_seq
        end;
        open_ids := open_ids || message.call_ids;
        open_groups := open_groups
            || array_fill(group_seq, array[coalesce(cardinality(message.call_ids), 0)]);
        groups := groups || group_seq;
    end loop;
    return groups;
end
$$;

comment on function convo._group_messages(
    uuid, text, convo._parsed_message[], integer
) is
'The group_seq of each message of a batch: results join their call.';
revoke execute on function convo._group_messages(
    uuid, text, convo._parsed_message[], integer
) from public;
grant execute on function convo._group_messages(
    uuid, text, convo._parsed_message[], integer
) to convo_app, convo_service;
-- <<< sql/functions/message/_group_messages.sql

-- >>> sql/functions/message/_json_set.sql
-- _json_set: a JSON object with one member set, the others as they are and in order.
-- in: the object, the name, the value as JSON text
create function convo._json_set(object json, name text, value text) returns json
language sql immutable parallel safe
return (
    select
        '{' || concat_ws(
            ',',
            string_agg(
                to_json(m.key)::text || ':' || case
                    when m.key = _json_set.name then _json_set.value else m.value::text
                end,
                ',' order by m.n
            ),
            case
                when bool_and(m.key <> _json_set.name) is not false
                    then to_json(_json_set.name)::text || ':' || _json_set.value
            end
        ) || '}'
    from json_each(_json_set.object) with ordinality as m (key, value, n)
)::json;

comment on function convo._json_set(json, text, text) is
'A JSON object with one member set, the others as they are and in order.';
revoke execute on function convo._json_set(json, text, text) from public;
grant execute on function convo._json_set(json, text, text) to convo_app, convo_service;
-- <<< sql/functions/message/_json_set.sql

-- >>> sql/functions/message/_json_without.sql
-- _json_without: a JSON object without some of its members, the others as they are.
create function convo._json_without(object json, names text[]) returns json
language sql immutable parallel safe
return (
    select
        coalesce(
            '{' || string_agg(
                to_json(m.key)::text || ':' || m.value::text, ',' order by m.n
            ) || '}',
            '{}'
        )
    from json_each(_json_without.object) with ordinality as m (key, value, n)
    where array_position(_json_without.names, m.key) is null
)::json;

comment on function convo._json_without(json, text[]) is
'A JSON object without some of its members, the others as they are.';
revoke execute on function convo._json_without(json, text[]) from public;
grant execute on function convo._json_without(json, text[])
to convo_app, convo_service;
-- <<< sql/functions/message/_json_without.sql

-- >>> sql/functions/message/_replace_openai_text.sql
-- _replace_openai_text: an OpenAI chat message with other text.
-- in: the message, without escapes that json_each fails on; the text as a JSON string
create function convo._replace_openai_text(message json, text_value text) returns json
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    new_content text := _replace_openai_text.text_value;
    result json := _replace_openai_text.message;
begin
    if json_typeof(result -> 'content') = 'array' then
        select '[' || string_agg(
            case
                when p.place is null then p.part::text
                when p.part ->> 'type' = 'text' then convo._json_set(
                    p.part, 'text', _replace_openai_text.text_value
                )::text
                else '{"type":"text","text":' || _replace_openai_text.text_value || '}'
            end,
            ',' order by p.n
        ) || ']'
        into new_content
        from (
            select
                e.part, e.n,
                case when e.part ->> 'type' in ('text', 'refusal') then
                    row_number() over (
                        partition by e.part ->> 'type' in ('text', 'refusal')
                        order by e.n
                    )
                end as place
            from json_array_elements(result -> 'content') with ordinality as e (part, n)
        ) as p
        where p.place is null or p.place = 1;
    end if;
    if result ->> 'refusal' is not null then
        result := convo._json_set(result, 'refusal', 'null');
    end if;
    return convo._json_set(result, 'content', new_content);
end
$$;

comment on function convo._replace_openai_text(json, text) is
'An OpenAI chat message with other text.';
revoke execute on function convo._replace_openai_text(json, text) from public;
grant execute on function convo._replace_openai_text(json, text)
to convo_app, convo_service;
-- <<< sql/functions/message/_replace_openai_text.sql

-- >>> sql/functions/message/_replace_responses_text.sql
-- _replace_responses_text: an item of the OpenAI responses format with other text.
-- Annotations and log probabilities go: they are about the old text.
-- in: the item, without escapes that json_each fails on; the text as a JSON string
create function convo._replace_responses_text(item json, text_value text) returns json
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant json := _replace_responses_text.item;
    part_name constant text := case
        when source ->> 'type' ~ '_output$' then 'output' else 'content'
    end;
    old_value constant json := source -> part_name;
    text_types constant text[] := array['text', 'input_text', 'output_text', 'refusal'];
    new_value text := _replace_responses_text.text_value;
begin
    if source ->> 'type' = 'shell_call_output' then
        new_value := '[' || convo._json_set(
            convo._json_set(
                old_value -> 0, 'stdout', _replace_responses_text.text_value
            ),
            'stderr', '""'
        )::text || ']';
    elsif json_typeof(old_value) = 'array' then
        select '[' || string_agg(
            case
                when p.place is null then p.part::text
                when p.part ->> 'type' in ('output_text', 'refusal')
                    then '{"type":"output_text","text":' || new_value
                        || ',"annotations":[]}'
                else convo._json_set(p.part, 'text', new_value)::text
            end,
            ',' order by p.n
        ) || ']'
        into new_value
        from (
            select
                e.part, e.n,
                case when e.part ->> 'type' = any (text_types) then
                    row_number() over (
                        partition by e.part ->> 'type' = any (text_types) order by e.n
                    )
                end as place
            from json_array_elements(old_value) with ordinality as e (part, n)
        ) as p
        where p.place is null or p.place = 1;
    end if;
    return convo._json_set(source, part_name, new_value);
end
$$;

comment on function convo._replace_responses_text(json, text) is
'An item of the OpenAI responses format with other text.';
revoke execute on function convo._replace_responses_text(json, text) from public;
grant execute on function convo._replace_responses_text(json, text)
to convo_app, convo_service;
-- <<< sql/functions/message/_replace_responses_text.sql

-- >>> sql/functions/message/_replace_anthropic_text.sql
-- _replace_anthropic_text: an Anthropic message, or a tool result, with other text.
-- Thinking goes with its signatures, and so do citations, which are about the old text.
-- Without text of its own its first result takes the text, and that of others goes.
-- in: the message, without escapes that json_each fails on; the text as a JSON string,
--     or null for none
create function convo._replace_anthropic_text(message json, text_value text)
returns json
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant json := _replace_anthropic_text.message;
    blocks constant json := source -> 'content';
    taker text;
    new_blocks text;
begin
    if json_typeof(blocks) = 'string' then
        if _replace_anthropic_text.text_value is null then
            return convo._json_without(source, '{content}');
        end if;
        return convo._json_set(source, 'content', _replace_anthropic_text.text_value);
    elsif json_typeof(blocks) is distinct from 'array' then
        return source;
    end if;
    taker := case
        when exists (
            select
            from json_array_elements(blocks) as e (block)
            where e.block ->> 'type' = 'text'
        ) then 'text'
        else 'tool_result'
    end;
    select '[' || coalesce(string_agg(
        case
            when b.kind <> taker then b.block::text
            when taker = 'text' then convo._json_set(
                convo._json_without(b.block, '{citations}'), 'text',
                _replace_anthropic_text.text_value
            )::text
            else convo._replace_anthropic_text(b.block, case
                when b.place = 1 then _replace_anthropic_text.text_value
            end)::text
        end,
        ',' order by b.n
    ), '') || ']'
    into new_blocks
    from (
        select e.block, e.n, k.kind, row_number() over (
            partition by k.kind order by e.n
        ) as place
        from json_array_elements(blocks) with ordinality as e (block, n)
        cross join lateral (
            select case
                when e.block ->> 'type' = 'tool_result'
                    and json_typeof(e.block -> 'content') is distinct from 'string'
                    and jsonb_path_exists(
                        (e.block -> 'content')::jsonb, '$[*] ? (@.type == "text")'
                    ) is not true
                    then 'result without text'
                else e.block ->> 'type'
            end as kind
        ) as k
    ) as b
    where b.kind not in ('text', 'thinking', 'redacted_thinking')
        or b.kind = 'text' and b.place = 1
        and _replace_anthropic_text.text_value is not null;
    return convo._json_set(source, 'content', new_blocks);
end
$$;

comment on function convo._replace_anthropic_text(json, text) is
'An Anthropic message, or a tool result, with other text.';
revoke execute on function convo._replace_anthropic_text(json, text) from public;
grant execute on function convo._replace_anthropic_text(json, text)
to convo_app, convo_service;
-- <<< sql/functions/message/_replace_anthropic_text.sql

-- >>> sql/functions/message/_replace_gemini_text.sql
-- _replace_gemini_text: a Gemini message with other text.
-- Thoughts go, and so do signatures. Without text of its own its first functionResponse
-- takes the text, and the response of others is empty.
-- in: the message, without escapes that json_each fails on; the text as a JSON string
create function convo._replace_gemini_text(message json, text_value text) returns json
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    signatures constant text[] := array['thoughtSignature', 'thought_signature'];
    has_text constant boolean := exists (
        select
        from json_array_elements(_replace_gemini_text.message -> 'parts') as e (part)
        where e.part ->> 'text' is not null
            and e.part ->> 'thought' is distinct from 'true'
    );
    parts text;
begin
    select '[' || coalesce(string_agg(
        case
            when p.kind = 'text' then convo._json_set(
                p.part, 'text', _replace_gemini_text.text_value
            )::text
            when p.kind = 'other' or has_text then p.part::text
            else convo._json_set(p.part, p.kind, convo._json_set(
                p.part -> p.kind, 'response', case
                    when p.place = 1
                        then '{"output":' || _replace_gemini_text.text_value || '}'
                    else '{}'
                end
            )::text)::text
        end,
        ',' order by p.n
    ), '') || ']'
    into parts
    from (
        select
            case
                when coalesce(s.part -> signatures[1], s.part -> signatures[2]) is null
                    then s.part
                else convo._json_without(s.part, signatures)
            end as part,
            s.kind, s.n, row_number() over (
                partition by s.kind in ('other', 'text'), s.kind = 'text' order by s.n
            ) as place
        from (
            select e.part, e.n, case
                when e.part ->> 'thought' = 'true' then 'thought'
                when e.part ->> 'text' is not null then 'text'
                when e.part ->> 'functionResponse' is not null then 'functionResponse'
                when e.part ->> 'function_response' is not null then 'function_response'
                else 'other'
            end as kind
            from json_array_elements(_replace_gemini_text.message -> 'parts')
                with ordinality as e (part, n)
        ) as s
        where s.kind <> 'thought'
    ) as p
    where p.part::text <> '{}' and (p.kind <> 'text' or p.place = 1);
    return convo._json_set(_replace_gemini_text.message, 'parts', parts);
end
$$;

comment on function convo._replace_gemini_text(json, text) is
'A Gemini message with other text.';
revoke execute on function convo._replace_gemini_text(json, text) from public;
grant execute on function convo._replace_gemini_text(json, text)
to convo_app, convo_service;
-- <<< sql/functions/message/_replace_gemini_text.sql

-- >>> sql/functions/message/_replace_text.sql
-- _replace_text: a payload with other text, and all other values byte for byte.
-- Of several text parts the first takes the new text, and the others go. Reasoning and
-- signatures go too: they vouch for the old text.
-- out: null for null, so for a plain text message
create function convo._replace_text(format text, payload json, content text)
returns json
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    hidden constant text[] := convo._hide_escapes(
        _replace_text.payload::text, _replace_text.content
    );
    message constant json := hidden[1];
    text_value constant text := to_json(_replace_text.content)::text;
begin
    return convo._show_escapes(
        case _replace_text.format
            when 'openai' then convo._replace_openai_text(message, text_value)
            when 'openai_responses'
                then convo._replace_responses_text(message, text_value)
            when 'anthropic' then convo._replace_anthropic_text(message, text_value)
            when 'gemini' then convo._replace_gemini_text(message, text_value)
        end::text,
        hidden[2:]
    );
end
$$;

comment on function convo._replace_text(text, json, text) is
'A payload with other text, and all other values byte for byte.';
revoke execute on function convo._replace_text(text, json, text) from public;
grant execute on function convo._replace_text(text, json, text)
to convo_app, convo_service;
-- <<< sql/functions/message/_replace_text.sql

-- >>> sql/functions/message/_advance_conversation.sql
-- _advance_conversation: moves a conversation's counters, under its row lock.
-- The one statement that gives seqs: it also proves that the conversation is there, is
-- the caller's, and is where the writer thinks it is.
-- in: how many seqs to take, and what is added (negative: taken away) in messages and
--     tokens, altogether and other than system ones
-- out: the conversation as it is now
-- errors: PC001, PC012, PC010
create function convo._advance_conversation(
    conversation_id uuid,
    seqs integer,
    messages bigint,
    tokens bigint,
    body_messages bigint,
    body_tokens bigint,
    expected_seq integer default null
) returns convo.conversation
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    conversation convo.conversation;
begin
    update convo.conversation as c
    set last_seq = c.last_seq + _advance_conversation.seqs,
        message_count = c.message_count + _advance_conversation.messages,
        token_total = c.token_total + _advance_conversation.tokens,
        body_count = c.body_count + _advance_conversation.body_messages,
        body_tokens = c.body_tokens + _advance_conversation.body_tokens,
        updated_at = greatest(c.updated_at, clock_timestamp())
    where c.tenant_id = convo._require_tenant()
        and c.conversation_id = _advance_conversation.conversation_id
    returning c.* into conversation;
    if not found then
        perform convo._fail_not_found(_advance_conversation.conversation_id);
    elsif _advance_conversation.expected_seq
        <> conversation.last_seq - _advance_conversation.seqs
    then
        perform convo._fail('PC010', jsonb_build_object(
            'conversation_id', conversation.conversation_id,
            'expected_seq', _advance_conversation.expected_seq,
            'last_seq', conversation.last_seq - _advance_conversation.seqs
        ));
    end if;
    return conversation;
end
$$;

comment on function convo._advance_conversation(
    uuid, integer, bigint, bigint, bigint, bigint, integer
) is
'Moves a conversation''s counters, under its row lock.';
revoke execute on function convo._advance_conversation(
    uuid, integer, bigint, bigint, bigint, bigint, integer
) from public;
grant execute on function convo._advance_conversation(
    uuid, integer, bigint, bigint, bigint, bigint, integer
) to convo_app, convo_service;
-- <<< sql/functions/message/_advance_conversation.sql

-- >>> sql/functions/message/_find_append.sql
-- _find_append: the append that has used an idempotency key before.
-- Locks the conversation first, so that of two tries at once the second sees the first.
-- out: the row of the key, null if the key is new
-- errors: 22023, PC001, PC012, PC011 used for other content
create function convo._find_append(conversation_id uuid, key text, sha256 bytea)
returns convo.idempotency_key
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    conversation convo.conversation;
    earlier convo.idempotency_key;
begin
    if length(_find_append.key) not between 1 and 255 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'idempotency_key', 'minimum_length', 1, 'maximum_length', 255
        ));
    end if;
    conversation := convo._lock_conversation(_find_append.conversation_id);
    select k.* into earlier
    from convo.idempotency_key as k
    where k.tenant_id = conversation.tenant_id
        and k.conversation_id = conversation.conversation_id
        and k.key = _find_append.key;
    if earlier.sha256 <> _find_append.sha256 then
        perform convo._fail('PC011', jsonb_build_object(
            'conversation_id', conversation.conversation_id,
            'first_seq', earlier.first_seq, 'last_seq', earlier.last_seq
        ));
    end if;
    return earlier;
end
$$;

comment on function convo._find_append(uuid, text, bytea) is
'The append that has used an idempotency key before, or null.';
revoke execute on function convo._find_append(uuid, text, bytea) from public;
grant execute on function convo._find_append(uuid, text, bytea)
to convo_app, convo_service;
-- <<< sql/functions/message/_find_append.sql

-- >>> sql/functions/message/_find_message.sql
-- _find_message: one message of a conversation that the caller has locked.
-- errors: PC002 no such message
create function convo._find_message(conversation convo.conversation, seq integer)
returns convo.message
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    message convo.message;
begin
    select m.* into message
    from convo.message as m
    where m.tenant_id = (_find_message.conversation).tenant_id
        and m.conversation_id = (_find_message.conversation).conversation_id
        and m.seq = _find_message.seq;
    if not found then
        perform convo._fail('PC002', jsonb_build_object(
            'conversation_id', (_find_message.conversation).conversation_id,
            'seq', _find_message.seq
        ));
    end if;
    return message;
end
$$;

comment on function convo._find_message(convo.conversation, integer) is
'One message of a conversation; PC002 if there is none.';
revoke execute on function convo._find_message(convo.conversation, integer) from public;
grant execute on function convo._find_message(convo.conversation, integer)
to convo_app, convo_service;
-- <<< sql/functions/message/_find_message.sql

-- >>> sql/functions/message/append_message.sql
-- append_message: adds one plain text message at the end of a conversation.
-- in: role system, user or assistant; tokens null: estimated
-- out: the stored message, or with a key used before the one stored then, as it is now
-- errors: PC001, PC012, PC010 expected_seq, PC011 key, 22023, 23514 too long
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create function convo.append_message(
    conversation_id uuid,
    role text,
    content text,
    tokens integer default null,
    model text default null,
    expected_seq integer default null,
    idempotency_key text default null,
    metadata jsonb default '{}'
) returns convo.message_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    token_count constant integer := coalesce(
        append_message.tokens, convo.estimate_tokens(append_message.content)
    );
    hash bytea;
    earlier convo.idempotency_key;
    conversation convo.conversation;
    message convo.message;
begin
    if append_message.role is null
        or append_message.role not in ('system', 'user', 'assistant')
    then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'role', 'allowed', array['system', 'user', 'assistant'],
            'instead', 'a tool result needs its call: append_messages'
        ));
    elsif append_message.content is null then
        perform convo._fail('22023', '{"argument": "content", "reason": "missing"}');
    elsif append_message.tokens < 0 then
        perform convo._fail('22023', '{"argument": "tokens", "minimum": 0}');
    elsif jsonb_typeof(append_message.metadata) <> 'object' then
        perform convo._fail(
            '22023', '{"argument": "metadata", "reason": "not an object"}'
        );
    end if;
    if append_message.idempotency_key is not null then
        hash := sha256(convert_to(json_build_array(
            'text', append_message.role, append_message.content
        )::text, 'UTF8'));
        earlier := convo._find_append(
            append_message.conversation_id, append_message.idempotency_key, hash
        );
        if earlier.first_seq is not null then
            select m.* into message
            from convo.message as m
            where m.tenant_id = earlier.tenant_id
                and m.conversation_id = earlier.conversation_id
                and m.seq = earlier.first_seq;
            return convo._message_record(message);
        end if;
    end if;

    conversation := convo._advance_conversation(
        append_message.conversation_id, 1, 1, token_count,
        (append_message.role <> 'system')::integer,
        case when append_message.role <> 'system' then token_count else 0 end,
        append_message.expected_seq
    );
    insert into convo.message (
        tenant_id, conversation_id, seq, user_id, role, content, tokens, is_estimated,
        is_empty, group_seq, model, metadata, created_at
    )
    values (
        conversation.tenant_id, conversation.conversation_id, conversation.last_seq,
        conversation.user_id, append_message.role, append_message.content, token_count,
        append_message.tokens is null, convo._is_blank(append_message.content),
        conversation.last_seq, nullif(append_message.model, ''),
        coalesce(append_message.metadata, '{}'), conversation.updated_at
    )
    returning * into message;
    if hash is not null then
        insert into convo.idempotency_key (
            tenant_id, conversation_id, key, user_id, first_seq, last_seq, sha256,
            created_at
        )
        values (
            conversation.tenant_id, conversation.conversation_id,
            append_message.idempotency_key, conversation.user_id, message.seq,
            message.seq, hash, message.created_at
        );
    end if;
    return convo._message_record(message);
end
$$;

comment on function convo.append_message(
    uuid, text, text, integer, text, integer, text, jsonb
) is
'Adds one plain text message. expected_seq is the last seq the writer saw (PC010 if it '
'is another now). With an idempotency_key a retry stores nothing twice.';
revoke execute on function convo.append_message(
    uuid, text, text, integer, text, integer, text, jsonb
) from public;
grant execute on function convo.append_message(
    uuid, text, text, integer, text, integer, text, jsonb
) to convo_app, convo_service;
-- <<< sql/functions/message/append_message.sql

-- >>> sql/functions/message/append_messages.sql
-- append_messages: adds messages in a provider's own shape, all or none.
-- in: one message or an array; format: openai (chat), openai_responses (items of input
--     or output), anthropic or gemini, whose system text is a message of role system;
--     tokens for each (null: estimated); model: who wrote the assistant's messages
-- out: the stored messages, or with a key used before the ones stored then, as they are
--      now; [] checks expected_seq, stores nothing and gives no row
-- errors: PC050 not valid in the format (DETAIL: index, reason), PC001, PC012,
--         PC010 expected_seq, PC011 key, 22023, 23514 too long
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create function convo.append_messages(
    conversation_id uuid,
    messages json,
    format text default 'openai',
    tokens integer[] default null,
    model text default null,
    expected_seq integer default null,
    idempotency_key text default null
) returns setof convo.message_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    parsed convo._parsed_message[];
    total record;
    hash bytea;
    earlier convo.idempotency_key;
    conversation convo.conversation;
    first_seq integer;
    groups integer[];
begin
    -- Everything is read before anything is locked.
    parsed := convo._read_messages(
        append_messages.format, append_messages.messages, append_messages.tokens
    );
    select
        count(*)::integer as messages,
        coalesce(sum(p.tokens), 0) as tokens,
        count(*) filter (where p.role <> 'system') as body_messages,
        coalesce(sum(p.tokens) filter (where p.role <> 'system'), 0) as body_tokens
    into total
    from unnest(parsed) as p;

    if append_messages.idempotency_key is not null then
        hash := sha256(convert_to(json_build_array(
            append_messages.format, append_messages.messages
        )::text, 'UTF8'));
        earlier := convo._find_append(
            append_messages.conversation_id, append_messages.idempotency_key, hash
        );
        if earlier.first_seq is not null then
            return query
            select (convo._message_record(m)).*
            from convo.message as m
            where m.tenant_id = earlier.tenant_id
                and m.conversation_id = earlier.conversation_id
                and m.seq between earlier.first_seq and earlier.last_seq
            order by m.seq;
            return;
        end if;
    end if;

    conversation := convo._advance_conversation(
        append_messages.conversation_id, total.messages, total.messages, total.tokens,
        total.body_messages, total.body_tokens, append_messages.expected_seq
    );
    first_seq := conversation.last_seq - total.messages + 1;
    groups := convo._group_messages(
        conversation.conversation_id, append_messages.format, parsed, first_seq
    );
    insert into convo.message (
        tenant_id, conversation_id, seq, user_id, role, content, payload, format,
        tokens, is_estimated, is_empty, group_seq, model, call_ids, result_ids,
        created_at
    )
    select
        conversation.tenant_id, conversation.conversation_id, first_seq + p.n - 1,
        conversation.user_id, p.role, p.content, p.payload, append_messages.format,
        p.tokens, append_messages.tokens[p.n] is null, p.is_empty, p.group_seq,
        case when p.role = 'assistant' then nullif(append_messages.model, '') end,
        p.call_ids, p.result_ids, conversation.updated_at
    from unnest(parsed, groups) with ordinality as p (
        role, content, payload, tokens, is_empty, call_ids, result_ids, group_seq, n
    );
    if conversation.summary_through_seq >= any (groups) then
        -- a result that joined a call which a summary covers
        perform convo._advance_conversation(
            conversation.conversation_id, 0, 0, 0, -count(*), -sum(p.tokens)
        )
        from unnest(parsed, groups) as p (
            role, content, payload, tokens, is_empty, call_ids, result_ids, group_seq
        )
        where p.group_seq <= conversation.summary_through_seq;
    end if;
    if hash is not null then
        insert into convo.idempotency_key (
            tenant_id, conversation_id, key, user_id, first_seq, last_seq, sha256,
            created_at
        )
        values (
            conversation.tenant_id, conversation.conversation_id,
            append_messages.idempotency_key, conversation.user_id, first_seq,
            conversation.last_seq, hash, conversation.updated_at
        );
    end if;
    return query
    select (convo._message_record(m)).*
    from convo.message as m
    where m.tenant_id = conversation.tenant_id
        and m.conversation_id = conversation.conversation_id
        and m.seq >= first_seq
    order by m.seq;
end
$$;

comment on function convo.append_messages(
    uuid, json, text, integer[], text, integer, text
) is
'Adds one message or an array of messages in a provider''s own shape, all or none. The '
'JSON is kept byte for byte; tool results join the call that they answer.';
revoke execute on function convo.append_messages(
    uuid, json, text, integer[], text, integer, text
) from public;
grant execute on function convo.append_messages(
    uuid, json, text, integer[], text, integer, text
) to convo_app, convo_service;
-- <<< sql/functions/message/append_messages.sql

-- >>> sql/functions/message/last_messages.sql
-- last_messages: the newest N live messages, oldest of them first.
-- out: rows in order of seq; none when the conversation isn't there or the caller's
-- errors: PC030, 22023; over 10,000 is 10,000
-- since: 0.1.0
create function convo.last_messages(conversation_id uuid, message_limit integer)
returns setof convo.message_record
language sql stable rows 20
begin atomic
    select
        m.seq,
        m.role,
        m.content,
        m.tokens,
        m.is_estimated,
        m.created_at,
        m.revision,
        m.model,
        m.payload,
        m.format,
        m.metadata,
        m.group_seq,
        m.deleted_at
    from (
        select s.*
        from convo.message as s
        where s.tenant_id = (select convo._require_tenant())
            and s.conversation_id = last_messages.conversation_id
            and s.deleted_at is null
        order by s.seq desc
        limit convo._size('message_limit', last_messages.message_limit, 10000)
    ) as m
    order by m.seq;
end;

comment on function convo.last_messages(uuid, integer) is
'The newest N live messages of a conversation, oldest of them first.';
revoke execute on function convo.last_messages(uuid, integer) from public;
grant execute on function convo.last_messages(uuid, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/message/last_messages.sql

-- >>> sql/functions/message/list_messages.sql
-- list_messages: a page of live messages, always oldest first.
-- in: after_seq: the page that follows it; else the page before before_seq; neither: the
--     newest page
-- out: rows in order of seq; none when the conversation isn't there or the caller's
-- errors: PC030, 22023; over 1,000 is 1,000
-- since: 0.1.0
create function convo.list_messages(
    conversation_id uuid,
    before_seq integer default null,
    after_seq integer default null,
    page_size integer default 30
) returns setof convo.message_record
language sql stable rows 30
begin atomic
    select
        m.seq,
        m.role,
        m.content,
        m.tokens,
        m.is_estimated,
        m.created_at,
        m.revision,
        m.model,
        m.payload,
        m.format,
        m.metadata,
        m.group_seq,
        m.deleted_at
    from (
        (
            select f.*
            from convo.message as f
            where f.tenant_id = (select convo._require_tenant())
                and f.conversation_id = list_messages.conversation_id
                and f.deleted_at is null
                and f.seq > list_messages.after_seq
                and f.seq < coalesce(list_messages.before_seq, 2147483647)
            order by f.seq
            limit convo._size('page_size', list_messages.page_size, 1000)
        )
        union all
        (
            select b.*
            from convo.message as b
            where b.tenant_id = (select convo._require_tenant())
                and b.conversation_id = list_messages.conversation_id
                and b.deleted_at is null
                and list_messages.after_seq is null
                and b.seq < coalesce(list_messages.before_seq, 2147483647)
            order by b.seq desc
            limit convo._size('page_size', list_messages.page_size, 1000)
        )
    ) as m
    order by m.seq;
end;

comment on function convo.list_messages(uuid, integer, integer, integer) is
'A page of live messages, oldest first: the one after after_seq, else the one before '
'before_seq, else the newest.';
revoke execute on function convo.list_messages(uuid, integer, integer, integer)
from public;
grant execute on function convo.list_messages(uuid, integer, integer, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/message/list_messages.sql

-- >>> sql/functions/message/edit_message.sql
-- edit_message: replaces the text of a message; the old version stays a revision.
-- Calls and media stay as they are. tokens null: estimated anew.
-- errors: PC001, PC012, PC002 not there or deleted, PC010 expected_revision,
--         22023 (also for a message that has no text)
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create function convo.edit_message(
    conversation_id uuid,
    seq integer,
    content text,
    tokens integer default null,
    expected_revision integer default null
) returns convo.message_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    conversation constant convo.conversation := convo._lock_conversation(
        edit_message.conversation_id
    );
    old constant convo.message := convo._find_message(conversation, edit_message.seq);
    new_payload json;
    parsed convo._parsed_message;
    token_count integer;
    message convo.message;
begin
    if old.deleted_at is not null then
        perform convo._fail('PC002', jsonb_build_object(
            'conversation_id', old.conversation_id, 'seq', old.seq
        ));
    elsif edit_message.content is null then
        perform convo._fail('22023', '{"argument": "content", "reason": "missing"}');
    elsif edit_message.tokens < 0 then
        perform convo._fail('22023', '{"argument": "tokens", "minimum": 0}');
    elsif old.content is null then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'seq', 'value', old.seq, 'reason', 'the message has no text'
        ));
    elsif edit_message.expected_revision <> old.revision then
        perform convo._fail('PC010', jsonb_build_object(
            'conversation_id', old.conversation_id, 'seq', old.seq,
            'expected_revision', edit_message.expected_revision,
            'revision', old.revision
        ));
    end if;

    new_payload := convo._replace_text(old.format, old.payload, edit_message.content);
    parsed := convo._read_message(old.format, new_payload, 0);
    token_count := coalesce(
        edit_message.tokens, parsed.tokens, convo.estimate_tokens(edit_message.content)
    );
    insert into convo.message_revision (
        tenant_id, conversation_id, seq, revision, user_id, content, payload, tokens,
        is_estimated, created_at
    )
    values (
        old.tenant_id, old.conversation_id, old.seq, old.revision, old.user_id,
        old.content, old.payload, old.tokens, old.is_estimated,
        coalesce(old.edited_at, old.created_at)
    );
    update convo.message as m
    set content = edit_message.content,
        payload = new_payload,
        tokens = token_count,
        is_estimated = edit_message.tokens is null,
        is_empty = coalesce(parsed.is_empty, convo._is_blank(edit_message.content)),
        revision = old.revision + 1,
        edited_at = clock_timestamp()
    where m.tenant_id = old.tenant_id
        and m.conversation_id = old.conversation_id
        and m.seq = old.seq
    returning m.* into message;
    perform convo._advance_conversation(
        old.conversation_id, 0, 0, token_count - old.tokens, 0,
        case
            when old.role <> 'system'
                and old.group_seq > conversation.summary_through_seq
                then token_count - old.tokens
            else 0
        end
    );
    return convo._message_record(message);
end
$$;

comment on function convo.edit_message(uuid, integer, text, integer, integer) is
'Replaces the text of a message, keeps its calls and media, and keeps the old version '
'as a revision.';
revoke execute on function convo.edit_message(uuid, integer, text, integer, integer)
from public;
grant execute on function convo.edit_message(uuid, integer, text, integer, integer)
to convo_app, convo_service;
-- <<< sql/functions/message/edit_message.sql

-- >>> sql/functions/message/_set_deleted.sql
-- _set_deleted: softly deletes a message or brings it back; once is as good as twice.
-- errors: PC001, PC012, PC002
-- locks: the conversation row, until the transaction ends
create function convo._set_deleted(
    conversation_id uuid, seq integer, is_deleted boolean
) returns convo.message_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    conversation constant convo.conversation := convo._lock_conversation(
        _set_deleted.conversation_id
    );
    message convo.message := convo._find_message(conversation, _set_deleted.seq);
    step constant integer := case when _set_deleted.is_deleted then -1 else 1 end;
    body_step constant integer := case
        when message.role <> 'system'
            and message.group_seq > conversation.summary_through_seq
            then step
        else 0
    end;
begin
    if (message.deleted_at is not null) <> _set_deleted.is_deleted then
        update convo.message as m
        set deleted_at = case when _set_deleted.is_deleted then clock_timestamp() end
        where m.tenant_id = message.tenant_id
            and m.conversation_id = message.conversation_id
            and m.seq = message.seq
        returning m.* into message;
        perform convo._advance_conversation(
            message.conversation_id, 0, step, step * message.tokens,
            body_step, body_step * message.tokens
        );
    end if;
    return convo._message_record(message);
end
$$;

comment on function convo._set_deleted(uuid, integer, boolean) is
'Softly deletes a message or brings it back.';
revoke execute on function convo._set_deleted(uuid, integer, boolean) from public;
grant execute on function convo._set_deleted(uuid, integer, boolean)
to convo_app, convo_service;
-- <<< sql/functions/message/_set_deleted.sql

-- >>> sql/functions/message/delete_message.sql
-- delete_message: softly deletes a message: it leaves every list, window and context.
-- Its seq stays taken and its versions are kept. Once is as good as twice.
-- errors: PC001, PC012, PC002
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create function convo.delete_message(conversation_id uuid, seq integer)
returns convo.message_record
language sql
begin atomic
    select convo._set_deleted(delete_message.conversation_id, delete_message.seq, true);
end;

comment on function convo.delete_message(uuid, integer) is
'Softly deletes a message: it leaves every list, window and context.';
revoke execute on function convo.delete_message(uuid, integer) from public;
grant execute on function convo.delete_message(uuid, integer)
to convo_app, convo_service;
-- <<< sql/functions/message/delete_message.sql

-- >>> sql/functions/message/restore_message.sql
-- restore_message: brings a softly deleted message back to its place.
-- errors: PC001, PC012, PC002
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create function convo.restore_message(conversation_id uuid, seq integer)
returns convo.message_record
language sql
begin atomic
    select convo._set_deleted(
        restore_message.conversation_id, restore_message.seq, false
    );
end;

comment on function convo.restore_message(uuid, integer) is
'Brings a softly deleted message back to its place.';
revoke execute on function convo.restore_message(uuid, integer) from public;
grant execute on function convo.restore_message(uuid, integer)
to convo_app, convo_service;
-- <<< sql/functions/message/restore_message.sql

-- >>> sql/functions/message/delete_messages.sql
-- delete_messages: softly deletes everything from a message to the end.
-- For clearing a conversation (from 1) and for regenerating an answer. A summary that
-- covers any of it is no longer used.
-- out: how many messages were deleted; those deleted before don't count
-- errors: PC001, PC012, 22023
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create function convo.delete_messages(conversation_id uuid, from_seq integer default 1)
returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    conversation constant convo.conversation := convo._lock_conversation(
        delete_messages.conversation_id
    );
    gone record;
begin
    if delete_messages.from_seq is null or delete_messages.from_seq < 1 then
        perform convo._fail('22023', '{"argument": "from_seq", "minimum": 1}');
    end if;
    with deleted as (
        update convo.message as m
        set deleted_at = clock_timestamp()
        where m.tenant_id = conversation.tenant_id
            and m.conversation_id = conversation.conversation_id
            and m.seq >= delete_messages.from_seq
            and m.deleted_at is null
        returning
            m.tokens,
            m.role <> 'system' and m.group_seq > conversation.summary_through_seq
                as is_body
    )
    select
        count(*)::integer as messages,
        coalesce(sum(d.tokens), 0) as tokens,
        count(*) filter (where d.is_body) as body_messages,
        coalesce(sum(d.tokens) filter (where d.is_body), 0) as body_tokens
    into gone
    from deleted as d;
    if gone.messages > 0 then
        perform convo._advance_conversation(
            conversation.conversation_id, 0, -gone.messages, -gone.tokens,
            -gone.body_messages, -gone.body_tokens
        );
        if delete_messages.from_seq <= conversation.summary_through_seq then
            perform convo._rewind_summary(conversation, delete_messages.from_seq);
        end if;
    end if;
    return gone.messages;
end
$$;

comment on function convo.delete_messages(uuid, integer) is
'Softly deletes everything from a message to the end, and gives how many that were.';
revoke execute on function convo.delete_messages(uuid, integer) from public;
grant execute on function convo.delete_messages(uuid, integer)
to convo_app, convo_service;
-- <<< sql/functions/message/delete_messages.sql

-- >>> sql/functions/message/message_revisions.sql
-- message_revisions: all versions of a message, oldest first, the current one last.
-- out: rows whose created_at is when that version was written; none when the message
--      isn't there or the caller's; a deleted message still has its versions
-- errors: PC030
-- since: 0.1.0
create function convo.message_revisions(conversation_id uuid, seq integer)
returns setof convo.message_record
language sql stable rows 3
begin atomic
    select
        m.seq,
        m.role,
        v.content,
        v.tokens,
        v.is_estimated,
        v.created_at,
        v.revision,
        m.model,
        v.payload,
        m.format,
        m.metadata,
        m.group_seq,
        m.deleted_at
    from convo.message as m
    inner join (
        select
            r.tenant_id,
            r.conversation_id,
            r.seq,
            r.revision,
            r.content,
            r.payload,
            r.tokens,
            r.is_estimated,
            r.created_at
        from convo.message_revision as r
        union all
        select
            c.tenant_id,
            c.conversation_id,
            c.seq,
            c.revision,
            c.content,
            c.payload,
            c.tokens,
            c.is_estimated,
            coalesce(c.edited_at, c.created_at)
        from convo.message as c
    ) as v
        on v.tenant_id = m.tenant_id
            and v.conversation_id = m.conversation_id
            and v.seq = m.seq
    where m.tenant_id = (select convo._require_tenant())
        and m.conversation_id = message_revisions.conversation_id
        and m.seq = message_revisions.seq
    order by v.revision;
end;

comment on function convo.message_revisions(uuid, integer) is
'All versions of a message, oldest first, the current one last.';
revoke execute on function convo.message_revisions(uuid, integer) from public;
grant execute on function convo.message_revisions(uuid, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/message/message_revisions.sql

-- >>> sql/functions/context/token_window.sql
-- token_window: the newest messages whose tokens fit a budget, groups whole.
-- sum(tokens) over (order by group_seq desc) gives each message the total from the
-- newest back. The default RANGE frame makes the messages of a group peers with one
-- total, so a call and its results stay or go together. The monotonic count of rows over
-- the budget becomes a run condition, which ends the scan at the edge of the window. The
-- limit, which the planner can't see through, keeps it from sorting the conversation.
-- in: token_budget: the most that may add up
-- out: rows in order of (group_seq, seq), system messages left out; none when the
--      conversation isn't there or isn't the caller's
-- errors: PC030, 22023
-- since: 0.1.0
create function convo.token_window(conversation_id uuid, token_budget integer)
returns table (
    seq integer,
    role text,
    content text,
    tokens integer,
    running_tokens bigint
)
language sql stable rows 50
begin atomic
    select
        w.seq,
        w.role,
        w.content,
        w.tokens,
        w.running_tokens
    from (
        select
            s.*,
            count(*) filter (where s.running_tokens > token_window.token_budget) over (
                order by s.group_seq desc
                rows unbounded preceding
            ) as over_budget
        from (
            select
                m.seq,
                m.role,
                m.content,
                m.tokens,
                m.group_seq,
                sum(m.tokens) over (order by m.group_seq desc) as running_tokens
            from (
                select
                    l.seq,
                    l.role,
                    l.content,
                    l.tokens,
                    l.group_seq
                from convo.message as l
                where l.tenant_id = (select convo._require_tenant())
                    and l.conversation_id = token_window.conversation_id
                    and l.deleted_at is null
                    and l.role <> 'system'
                order by l.group_seq desc
                limit (
                    select greatest(2147483647, convo._size(
                        'token_budget', token_window.token_budget, 2147483647
                    ))
                )
            ) as m
        ) as s
    ) as w
    where w.over_budget <= 0
    order by w.group_seq, w.seq;
end;

comment on function convo.token_window(uuid, integer) is
'The newest live messages, other than system ones, whose tokens fit a budget, oldest '
'of them first. running_tokens is the total from the newest back; a tool call and its '
'results stay or go together.';
revoke execute on function convo.token_window(uuid, integer) from public;
grant execute on function convo.token_window(uuid, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/token_window.sql

-- >>> sql/functions/context/list_policies.sql
-- list_policies: the context policies of this tenant, by name.
-- errors: PC030
-- since: 0.1.0
create function convo.list_policies() returns setof convo.policy_record
language sql stable rows 10
begin atomic
    select
        p.name,
        p.strategy,
        p.token_budget,
        p.message_limit,
        p.step_tokens,
        p.message_overhead,
        p.start_on_user,
        p.pin_last_user,
        p.open_calls,
        p.summary_placement,
        p.summary_threshold,
        p.summary_share,
        p.memory_limit,
        p.recall_limit
    from convo.context_policy as p
    where p.tenant_id = (select convo._require_tenant())
    order by p.name;
end;

comment on function convo.list_policies() is
'The context policies of this tenant, by name.';
revoke execute on function convo.list_policies() from public;
grant execute on function convo.list_policies()
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/list_policies.sql

-- >>> sql/functions/context/get_policy.sql
-- get_policy: a context policy of this tenant.
-- out: a row, or none
-- errors: PC030
-- since: 0.1.0
create function convo.get_policy(name text) returns setof convo.policy_record
language sql stable rows 1
begin atomic
    select p.*
    from convo.list_policies() as p
    where p.name = get_policy.name;
end;

comment on function convo.get_policy(text) is
'A context policy of this tenant, or no row.';
revoke execute on function convo.get_policy(text) from public;
grant execute on function convo.get_policy(text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/get_policy.sql

-- >>> sql/functions/context/set_policy.sql
-- set_policy: sets a context policy of this tenant, whole: what isn't given is the default.
-- in: name: 'default' is for conversations that name none
--     strategy: full (everything live), last_n (message_limit messages, whole groups),
--       token_budget (the newest that fit), summary (the summary, then the newest that
--       fit), hybrid (as summary, with recalled messages)
--     token_budget: the most tokens of a context, everything counted
--     step_tokens: eviction in steps of so many tokens, so that the beginning stays the
--       same for many turns and prompt caches hit; 0: no steps, at most half the budget
--     message_overhead: tokens that each message costs beside its own
--     start_on_user: what stands before the first user message goes
--     pin_last_user: the newest user message is always kept
--     open_calls: drop leaves out calls without results; keep keeps the one at the end
--     summary_placement: exchange (a user and an assistant message) or system
--     summary_threshold, summary_share: a summary is due over share * threshold tokens
-- errors: 22023, PC030
-- since: 0.1.0
create function convo.set_policy(
    name text,
    strategy text default 'summary',
    token_budget integer default 8000,
    message_limit integer default null,
    step_tokens integer default 0,
    message_overhead integer default 0,
    start_on_user boolean default true,
    pin_last_user boolean default true,
    open_calls text default 'drop',
    summary_placement text default 'exchange',
    summary_threshold integer default 20000,
    summary_share real default 0.8,
    memory_limit integer default 15,
    recall_limit integer default 0
) returns convo.policy_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    result convo.policy_record;
begin
    insert into convo.context_policy (
        tenant_id, name, strategy, token_budget, message_limit, step_tokens,
        message_overhead, start_on_user, pin_last_user, open_calls, summary_placement,
        summary_threshold, summary_share, memory_limit, recall_limit
    )
    values (
        tenant, set_policy.name, set_policy.strategy, set_policy.token_budget,
        set_policy.message_limit, set_policy.step_tokens, set_policy.message_overhead,
        set_policy.start_on_user, set_policy.pin_last_user, set_policy.open_calls,
        set_policy.summary_placement, set_policy.summary_threshold,
        set_policy.summary_share, set_policy.memory_limit, set_policy.recall_limit
    )
    on conflict (tenant_id, name) do update
        set strategy = excluded.strategy,
            token_budget = excluded.token_budget,
            message_limit = excluded.message_limit,
            step_tokens = excluded.step_tokens,
            message_overhead = excluded.message_overhead,
            start_on_user = excluded.start_on_user,
            pin_last_user = excluded.pin_last_user,
            open_calls = excluded.open_calls,
            summary_placement = excluded.summary_placement,
            summary_threshold = excluded.summary_threshold,
            summary_share = excluded.summary_share,
            memory_limit = excluded.memory_limit,
            recall_limit = excluded.recall_limit;
    select p.* into result from convo.get_policy(set_policy.name) as p;
    return result;
exception when check_violation or not_null_violation then
    declare
        rule text;
        argument text;
    begin
        get stacked diagnostics rule = constraint_name, argument = column_name;
        perform convo._fail('22023', jsonb_build_object(
            'argument', coalesce(
                nullif(argument, ''),
                regexp_replace(rule, '^context_policy_(.*)_check$', e'\\1')
            )
        ));
    end;
end
$$;

comment on function convo.set_policy(
    text, text, integer, integer, integer, integer, boolean, boolean, text, text,
    integer, real, integer, integer
) is
'Sets a context policy of this tenant, whole: what isn''t given is the default. The '
'policy named default is for conversations that name none.';
revoke execute on function convo.set_policy(
    text, text, integer, integer, integer, integer, boolean, boolean, text, text,
    integer, real, integer, integer
) from public;
grant execute on function convo.set_policy(
    text, text, integer, integer, integer, integer, boolean, boolean, text, text,
    integer, real, integer, integer
) to convo_service;
-- <<< sql/functions/context/set_policy.sql

-- >>> sql/functions/context/delete_policy.sql
-- delete_policy: deletes a context policy of this tenant.
-- Conversations that name it go on with the tenant's default.
-- out: whether there was one
-- errors: PC030
-- since: 0.1.0
create function convo.delete_policy(name text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    delete from convo.context_policy as p
    where p.tenant_id = convo._require_tenant() and p.name = delete_policy.name;
    return found;
end
$$;

comment on function convo.delete_policy(text) is
'Deletes a context policy of this tenant, and gives whether there was one.';
revoke execute on function convo.delete_policy(text) from public;
grant execute on function convo.delete_policy(text) to convo_service;
-- <<< sql/functions/context/delete_policy.sql

-- >>> sql/functions/context/_resolve_policy.sql
-- _resolve_policy: the policy that counts for a context.
-- The call's, else the conversation's, else the tenant's default, else the built-in
-- defaults of set_policy. A conversation may name one that is gone: then the default.
-- in: the conversation, the name and the budget given in the call (null: none)
-- errors: 22023 the call names no policy of the tenant, or the budget is too small
create function convo._resolve_policy(
    conversation convo.conversation, name text, token_budget integer
) returns convo.policy_record
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    policy convo.policy_record;
begin
    select p.* into policy
    from convo.list_policies() as p
    where p.name in (_resolve_policy.name, (_resolve_policy.conversation).policy, 'default')
    order by
        p.name is not distinct from _resolve_policy.name desc,
        p.name is not distinct from (_resolve_policy.conversation).policy desc
    limit 1;
    if _resolve_policy.name is distinct from policy.name
        and _resolve_policy.name is not null
    then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'policy', 'reason', 'there is no such policy'
        ));
    elsif policy.name is null then
        policy := row(
            'default', 'summary', 8000, null, 0, 0, true, true, 'drop', 'exchange',
            20000, 0.8, 15, 0
        );
    end if;
    policy.token_budget := coalesce(_resolve_policy.token_budget, policy.token_budget);
    if policy.token_budget < greatest(2 * policy.step_tokens, 0) then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'token_budget', 'value', policy.token_budget,
            'minimum', 2 * policy.step_tokens
        ));
    end if;
    return policy;
end
$$;

comment on function convo._resolve_policy(convo.conversation, text, integer) is
'The policy that counts for a context, with the budget of the call.';
revoke execute on function convo._resolve_policy(convo.conversation, text, integer)
from public;
grant execute on function convo._resolve_policy(convo.conversation, text, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/_resolve_policy.sql

-- >>> sql/functions/context/_judge_group.sql
-- _judge_group: which live messages of a group a provider would accept.
-- A call needs a result, a result needs a call, and of two results for one call the
-- first counts. Something that says nothing stays only beside something that does, as
-- reasoning beside its answer. What a user says beside a result stays in any case.
-- in: the messages; whether calls may be open
-- out: the messages in order of seq, with a reason where one is left out
create function convo._judge_group(
    members convo._group_member[], may_be_open boolean
) returns convo._group_member[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    judged convo._group_member[] := _judge_group.members;
    open_ids text[] := '{}';
    place integer;
    is_answering boolean;
begin
    -- most messages stand alone
    if cardinality(judged) = 1
        and coalesce(judged[1].call_ids, judged[1].result_ids) is null
    then
        judged[1].reason := case when judged[1].is_empty then 'empty' end;
        return judged;
    end if;
    judged := array(select m from unnest(judged) as m order by m.seq);
    for n in 1 .. cardinality(judged) loop
        open_ids := open_ids || judged[n].call_ids;
        is_answering := judged[n].result_ids is null;
        for r in 1 .. coalesce(cardinality(judged[n].result_ids), 0) loop
            place := array_position(open_ids, judged[n].result_ids[r]);
            if place is not null then
                open_ids := open_ids[:place - 1] || open_ids[place + 1:];
                is_answering := true;
            end if;
        end loop;
        if not is_answering and judged[n].is_empty then
            judged[n].reason := 'result without a call';
        end if;
    end loop;
    if cardinality(open_ids) > 0 and not _judge_group.may_be_open then
        for n in 1 .. cardinality(judged) loop
            if judged[n].result_ids is null or judged[n].is_empty then
                judged[n].reason := 'call without a result';
            end if;
        end loop;
    end if;
    if not exists (
        select from unnest(judged) as m where m.reason is null and not m.is_empty
    ) then
        for n in 1 .. cardinality(judged) loop
            judged[n].reason := coalesce(judged[n].reason, 'empty');
        end loop;
    end if;
    return judged;
end
$$;

comment on function convo._judge_group(convo._group_member[], boolean) is
'Which live messages of a group a provider would accept.';
revoke execute on function convo._judge_group(convo._group_member[], boolean)
from public;
grant execute on function convo._judge_group(convo._group_member[], boolean)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/_judge_group.sql

-- >>> sql/functions/context/_stepped_budget.sql
-- _stepped_budget: the budget of the window when eviction goes in steps.
-- As the conversation grows, what has been evicted stays a whole number of steps, so
-- the window begins at the same message for many turns.
-- in: all live tokens, the budget, the step (0: no steps)
create function convo._stepped_budget(total bigint, budget bigint, step integer)
returns bigint
language sql immutable parallel safe
return case
    when _stepped_budget.step = 0 or _stepped_budget.total <= _stepped_budget.budget
        then _stepped_budget.budget
    else _stepped_budget.total - _stepped_budget.step * (
            (_stepped_budget.total - _stepped_budget.budget + _stepped_budget.step - 1)
            / _stepped_budget.step
        )
end;

comment on function convo._stepped_budget(bigint, bigint, integer) is
'The budget of the window when eviction goes in steps.';
revoke execute on function convo._stepped_budget(bigint, bigint, integer) from public;
grant execute on function convo._stepped_budget(bigint, bigint, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/_stepped_budget.sql

-- >>> sql/functions/context/_scan_groups.sql
-- _scan_groups: goes back through a conversation, group by group, and judges each.
-- Stops at the first valid group that doesn't fit, so its cost follows the window; only
-- to explain it goes on to the beginning. The newest valid group always fits.
-- in: the conversation, the policy, the last summarised group (0: none), the tokens that
--     fit, whether to explain
-- out: the live messages come across, other than system ones, newest group first, with
--     the total from the newest back to their group, and a reason where left out
create function convo._scan_groups(
    conversation convo.conversation,
    policy convo.policy_record,
    covered_seq integer,
    window_budget bigint,
    is_explained boolean
) returns convo._group_member[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_hashagg = off -- so that groups come one by one, in the order of the index
as $$
#variable_conflict use_column
declare
    size_limit constant integer := case
        when (_scan_groups.policy).strategy = 'last_n' then (_scan_groups.policy).message_limit
        else 2147483647
    end;
    scanned convo._group_member[] := '{}';
    size integer := 0;
    running bigint := 0;
    is_full boolean := false;
    members convo._group_member[];
    member convo._group_member;
    valid_members integer;
begin
    for members in
        select
            array_agg(row(
                m.seq, m.group_seq, m.role, m.tokens, m.is_empty, m.call_ids,
                m.result_ids, null, null
            )::convo._group_member)
        from (
            select
                l.seq, l.group_seq, l.role, l.tokens, l.is_empty, l.call_ids,
                l.result_ids
            from convo.message as l
            where l.tenant_id = (_scan_groups.conversation).tenant_id
                and l.conversation_id = (_scan_groups.conversation).conversation_id
                and l.group_seq > _scan_groups.covered_seq
                and l.deleted_at is null
                and l.role <> 'system'
            order by l.group_seq desc
            limit (select 2147483647) -- see token_window
        ) as m
        group by m.group_seq
        order by m.group_seq desc
    loop
        members := convo._judge_group(
            members, (_scan_groups.policy).open_calls = 'keep' and size = 0
        );
        valid_members := 0;
        foreach member in array members loop
            if member.reason is null then
                running := running + member.tokens + (_scan_groups.policy).message_overhead;
                valid_members := valid_members + 1;
            end if;
        end loop;
        is_full := is_full
            or size > 0
            and valid_members > 0
            and (running > _scan_groups.window_budget or size + valid_members > size_limit);
        exit when is_full and not _scan_groups.is_explained;
        size := size + valid_members;
        foreach member in array members loop
            member.running_tokens := running;
            if is_full then
                member.reason := coalesce(member.reason, 'over the budget');
            end if;
            scanned := scanned || member;
        end loop;
    end loop;
    return scanned;
end
$$;

comment on function convo._scan_groups(
    convo.conversation, convo.policy_record, integer, bigint, boolean
) is
'Goes back through a conversation, group by group, as far as a window reaches.';
revoke execute on function convo._scan_groups(
    convo.conversation, convo.policy_record, integer, bigint, boolean
) from public;
grant execute on function convo._scan_groups(
    convo.conversation, convo.policy_record, integer, bigint, boolean
) to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/_scan_groups.sql

-- >>> sql/functions/context/_context_window.sql
-- _context_window: which messages the window of a context holds.
-- in: the conversation, the policy, the last summarised group (0: none), all live tokens
--     of the body, what is taken off the budget first, whether to explain
-- out: the messages kept (reason null), and the ones come across that were left out
-- errors: PC020
create function convo._context_window(
    conversation convo.conversation,
    policy convo.policy_record,
    covered_seq integer,
    body_tokens bigint,
    fixed_tokens bigint,
    is_explained boolean
) returns convo._group_member[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    is_whole constant boolean := (_context_window.policy).strategy = 'full';
    step constant integer := (_context_window.policy).step_tokens;
    available bigint :=
        (_context_window.policy).token_budget - _context_window.fixed_tokens;
    window_budget bigint := case
        when is_whole then 9223372036854775807
        else convo._stepped_budget(_context_window.body_tokens, available, step)
    end;
    scanned convo._group_member[] := convo._scan_groups(
        _context_window.conversation, _context_window.policy,
        _context_window.covered_seq, window_budget, _context_window.is_explained
    );
    kept record;
    newest_user convo._group_member;
    pinned_seq integer;
    pinned_tokens bigint := 0;
begin
    select
        min(m.running_tokens) as newest_tokens,
        max(m.running_tokens) as tokens,
        max(m.group_seq) as newest_group,
        min(m.group_seq) filter (where m.role = 'user') as first_user_group
    into kept
    from unnest(scanned) as m
    where m.reason is null;

    if kept.first_user_group is null then
        select m.seq, m.tokens into newest_user.seq, newest_user.tokens
        from convo.message as m
        where m.tenant_id = (_context_window.conversation).tenant_id
            and m.conversation_id = (_context_window.conversation).conversation_id
            and m.group_seq > _context_window.covered_seq
            and m.deleted_at is null
            and m.role = 'user'
            and not m.is_empty
        order by m.seq desc
        limit 1;
        if found and (_context_window.policy).pin_last_user then
            pinned_seq := newest_user.seq;
            pinned_tokens := newest_user.tokens::bigint
                + (_context_window.policy).message_overhead;
            available := available - pinned_tokens;
            window_budget := convo._stepped_budget(
                _context_window.body_tokens, available, step
            );
        end if;
    end if;

    if coalesce(kept.newest_tokens, available + 1) > available
        or is_whole and kept.tokens > available
        or (_context_window.policy).start_on_user
        and coalesce(kept.first_user_group, pinned_seq) is null
    then
        perform convo._fail('PC020', jsonb_build_object(
            'conversation_id', (_context_window.conversation).conversation_id,
            'needed', _context_window.fixed_tokens + greatest(
                pinned_tokens + case
                    when is_whole then kept.tokens else kept.newest_tokens
                end,
                -- all that came since a user message that isn't pinned
                (
                    select sum(
                        m.tokens::bigint + (_context_window.policy).message_overhead
                    )
                    from convo.message as m
                    where m.tenant_id = (_context_window.conversation).tenant_id
                        and m.conversation_id
                            = (_context_window.conversation).conversation_id
                        and m.group_seq >= newest_user.seq
                        and m.deleted_at is null
                        and m.role <> 'system'
                        and pinned_seq is null
                ),
                pinned_tokens
            ),
            'available', (_context_window.policy).token_budget,
            'has_user_message',
            kept.first_user_group is not null or newest_user.seq is not null
        ));
    end if;

    for n in 1 .. cardinality(scanned) loop
        scanned[n].reason := case
            when scanned[n].seq = pinned_seq then null
            when scanned[n].reason is not null then scanned[n].reason
            when scanned[n].running_tokens > window_budget
                and scanned[n].group_seq < kept.newest_group
                then 'over the budget'
            when (_context_window.policy).start_on_user
                and scanned[n].group_seq < kept.first_user_group
                then 'before the first user message'
        end;
    end loop;
    if pinned_seq is not null and not _context_window.is_explained then
        scanned := scanned || row(
            pinned_seq, pinned_seq, 'user', null, null, null, null, null, null
        )::convo._group_member;
    end if;
    return scanned;
end
$$;

comment on function convo._context_window(
    convo.conversation, convo.policy_record, integer, bigint, bigint, boolean
) is
'Which messages the window of a context holds.';
revoke execute on function convo._context_window(
    convo.conversation, convo.policy_record, integer, bigint, bigint, boolean
) from public;
grant execute on function convo._context_window(
    convo.conversation, convo.policy_record, integer, bigint, bigint, boolean
) to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/_context_window.sql

-- >>> sql/functions/context/_fixed_items.sql
-- _fixed_items: what stands before the window of a context, and comes off its budget.
-- in: the conversation, where the summary goes, what it covers (0: no summary)
-- out: the system prompt, the system messages, the summary
create function convo._fixed_items(
    conversation convo.conversation, summary_placement text, covered_seq integer
) returns setof convo._context_item
language sql stable
begin atomic
    select
        'system',
        null::integer,
        'system',
        p.content,
        p.tokens,
        1,
        0,
        null::text
    from convo.prompt as p
    where p.tenant_id = (_fixed_items.conversation).tenant_id
        and p.user_id = (_fixed_items.conversation).user_id
        and p.sha256 = (_fixed_items.conversation).system_prompt_sha256
    union all
    select
        'system',
        m.seq,
        m.role,
        m.content,
        m.tokens,
        2,
        m.seq as group_seq,
        case when m.is_empty then 'empty' end
    from convo.message as m
    where m.tenant_id = (_fixed_items.conversation).tenant_id
        and m.conversation_id = (_fixed_items.conversation).conversation_id
        and m.role = 'system'
        and m.deleted_at is null
    union all
    select
        'summary',
        s.through_seq,
        e.role,
        e.content,
        e.tokens,
        3,
        e.place,
        null::text
    from convo.summary as s
    cross join
        lateral (
            select
                'user' as role,
                'Summarize our conversation so far.' as content,
                6 as tokens,
                1 as place
            where _fixed_items.summary_placement = 'exchange'
            union all
            select
                case
                    when _fixed_items.summary_placement = 'exchange' then 'assistant'
                    else 'system'
                end,
                s.content,
                s.tokens,
                2
        ) as e
    where s.tenant_id = (_fixed_items.conversation).tenant_id
        and s.conversation_id = (_fixed_items.conversation).conversation_id
        and s.through_seq = _fixed_items.covered_seq;
end;

comment on function convo._fixed_items(convo.conversation, text, integer) is
'What stands before the window of a context: system prompt and messages, summary.';
revoke execute on function convo._fixed_items(convo.conversation, text, integer)
from public;
grant execute on function convo._fixed_items(convo.conversation, text, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/_fixed_items.sql

-- >>> sql/functions/context/_context_items.sql
-- _context_items: what was considered for a context, in the order it would be sent in.
-- in: as get_context; whether to explain: then everything, else little more than is kept
-- out: items with their section (1 system prompt, 2 system messages, 3 summary,
--      4 messages), and a reason where left out
-- errors: PC001, PC012, PC020, PC030, 22023
create function convo._context_items(
    conversation_id uuid, policy text, token_budget integer, is_explained boolean
) returns setof convo._context_item
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    conversation convo.conversation;
    rule convo.policy_record;
    overhead bigint;
    fixed convo._context_item[];
    fixed_tokens bigint;
    body_tokens bigint;
    covered_seq integer := 0;
    scanned convo._group_member[];
begin
    perform convo._size(
        'token_budget', coalesce(_context_items.token_budget, 0), 2147483647
    );
    select c.* into conversation
    from convo.conversation as c
    where c.tenant_id = tenant and c.conversation_id = _context_items.conversation_id;
    if not found then
        perform convo._fail_not_found(_context_items.conversation_id);
    end if;
    rule := convo._resolve_policy(
        conversation, _context_items.policy, _context_items.token_budget
    );
    overhead := rule.message_overhead;
    if rule.strategy in ('summary', 'hybrid') then
        covered_seq := conversation.summary_through_seq;
    end if;

    fixed := array(
        select i
        from convo._fixed_items(conversation, rule.summary_placement, covered_seq) as i
    );
    select
        coalesce(sum(i.tokens + overhead) filter (where i.reason is null), 0),
        conversation.token_total
            - coalesce(sum(i.tokens) filter (where i.section = 2), 0)
            + overhead
            * (conversation.message_count - count(*) filter (where i.section = 2))
    into fixed_tokens, body_tokens
    from unnest(fixed) as i;
    if covered_seq > 0 then
        body_tokens := conversation.body_tokens + overhead * conversation.body_count;
    end if;

    -- Not within the query below: joined to no message it might not be called at all.
    scanned := convo._context_window(
        conversation, rule, covered_seq, body_tokens, fixed_tokens,
        _context_items.is_explained
    );
    return query
    select i.* from unnest(fixed) as i
    union all
    select 'message', m.seq, m.role, m.content, m.tokens, 4, m.group_seq, w.reason
    from unnest(scanned) as w
    -- one by one: a generic plan might join them to the whole conversation
    cross join lateral (
        select
            l.seq,
            l.role,
            l.content,
            l.tokens,
            l.group_seq
        from convo.message as l
        where l.tenant_id = tenant
            and l.conversation_id = conversation.conversation_id
            and l.seq = w.seq
        limit 1
    ) as m
    where _context_items.is_explained or w.reason is null
    union all
    select
        'message', m.seq, m.role, m.content, m.tokens, 4, m.group_seq,
        case when m.deleted_at is not null then 'deleted' else 'summarised' end
    from convo.message as m
    where _context_items.is_explained
        and m.tenant_id = tenant
        and m.conversation_id = conversation.conversation_id
        and (
            m.deleted_at is not null
            or m.role <> 'system' and m.group_seq <= covered_seq
        );
end
$$;

comment on function convo._context_items(uuid, text, integer, boolean) is
'What was considered for a context, and why something was left out.';
revoke execute on function convo._context_items(uuid, text, integer, boolean)
from public;
grant execute on function convo._context_items(uuid, text, integer, boolean)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/_context_items.sql

-- >>> sql/functions/context/get_context.sql
-- get_context: what should be sent to a model, by the rule that the policy declares.
-- System prompt, system messages and summary come first and off the budget. Then the
-- newest groups that fit, in chronological order, with the newest user message in front
-- if it lies before them. Calls without results, results without calls and messages that
-- say nothing are left out.
-- in: policy: a name, else the conversation's, the tenant's default, the built-in one;
--     token_budget: instead of the policy's
-- out: items in the order they are sent in; running_tokens adds up in that order
-- errors: PC001, PC012, PC020 (what must be kept doesn't fit, or there is no user
--     message: DETAIL has needed and available), PC030, 22023
-- since: 0.1.0
create function convo.get_context(
    conversation_id uuid,
    policy text default null,
    token_budget integer default null
) returns setof convo.context_record
language sql stable rows 50
begin atomic
    select
        row_number() over w::integer as ordinal,
        i.kind,
        i.seq,
        i.role,
        i.content,
        i.tokens,
        sum(i.tokens) over w as running_tokens
    from convo._context_items(
            get_context.conversation_id,
            get_context.policy,
            get_context.token_budget,
            false
        ) as i
    where i.reason is null
    window
        w as (
            order by i.section, i.group_seq, i.seq
            rows unbounded preceding
        )
    order by ordinal;
end;

comment on function convo.get_context(uuid, text, integer) is
'What should be sent to a model, item by item, by the rule that the policy declares. '
'Never empty: PC020 when what must be kept doesn''t fit the budget.';
revoke execute on function convo.get_context(uuid, text, integer) from public;
grant execute on function convo.get_context(uuid, text, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/get_context.sql

-- >>> sql/functions/context/explain_context.sql
-- explain_context: what get_context keeps, and why it leaves out the rest.
-- Reads the whole conversation.
-- in: as get_context
-- out: all items, in the order they would be sent in; running_tokens adds up the kept
-- errors: as get_context
-- since: 0.1.0
create function convo.explain_context(
    conversation_id uuid,
    policy text default null,
    token_budget integer default null
) returns table (
    seq integer,
    role text,
    kind text,
    tokens integer,
    running_tokens bigint,
    is_kept boolean,
    reason text
)
language sql stable
begin atomic
    select
        i.seq,
        i.role,
        i.kind,
        i.tokens,
        case when i.reason is null then
                sum(i.tokens) filter (where i.reason is null) over (
                    order by i.section, i.group_seq, i.seq
                    rows unbounded preceding
                )
        end as running_tokens,
        i.reason is null as is_kept,
        coalesce(i.reason, 'kept') as reason
    from convo._context_items(
            explain_context.conversation_id, explain_context.policy,
            explain_context.token_budget, true
        ) as i
    order by i.section, i.group_seq, i.seq;
end;

comment on function convo.explain_context(uuid, text, integer) is
'What get_context keeps, and for everything else the reason why it is left out.';
revoke execute on function convo.explain_context(uuid, text, integer) from public;
grant execute on function convo.explain_context(uuid, text, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/explain_context.sql

-- >>> sql/functions/render/_hide_escapes.sql
-- _hide_escapes: JSON text that the functions of json can take apart.
-- They fail on \u0000 and on half surrogate pairs, so what begins an escape is hidden
-- behind marks that occur nowhere; but for the escapes of ASCII, with which the name of
-- a member can be written.
-- in: the text, and another one that the marks mustn't occur in
-- out: the text, and the two marks, for _show_escapes
create function convo._hide_escapes(raw text, other text default '') returns text[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    -- no text holds its own hash
    mark constant text := chr(57344) || md5(_hide_escapes.raw || _hide_escapes.other);
    marks constant text[] := array[mark || 'a', mark || 'b'];
begin
    if strpos(_hide_escapes.raw, e'\\') = 0 then
        return array[_hide_escapes.raw] || marks;
    end if;
    return array[regexp_replace(
        replace(_hide_escapes.raw, e'\\\\', marks[1]), e'\\\\u(?!00[2-7])', marks[2], 'g'
    )] || marks;
end
$$;

comment on function convo._hide_escapes(text, text) is
'JSON text without the escapes that the functions of json fail on.';
revoke execute on function convo._hide_escapes(text, text) from public;
grant execute on function convo._hide_escapes(text, text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_hide_escapes.sql

-- >>> sql/functions/render/_show_escapes.sql
-- _show_escapes: JSON text as it was before _hide_escapes.
create function convo._show_escapes(hidden text, marks text[]) returns text
language sql immutable parallel safe
return replace(
    replace(_show_escapes.hidden, _show_escapes.marks[2], '\u'),
    _show_escapes.marks[1], '\\'
);

comment on function convo._show_escapes(text, text[]) is
'JSON text as it was before _hide_escapes.';
revoke execute on function convo._show_escapes(text, text[]) from public;
grant execute on function convo._show_escapes(text, text[])
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_show_escapes.sql

-- >>> sql/functions/render/_raw_parts.sql
-- _raw_parts: the parts of an Anthropic or Gemini message, byte for byte.
-- A content that is a string is a text block.
create function convo._raw_parts(format text, payload json) returns text[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    hidden constant text[] := convo._hide_escapes(_raw_parts.payload::text);
    parts constant json := hidden[1]::json -> case _raw_parts.format
        when 'anthropic' then 'content' else 'parts'
    end;
begin
    if json_typeof(parts) = 'string' then
        return array[convo._show_escapes(
            '{"type":"text","text":' || parts::text || '}', hidden[2:]
        )];
    end if;
    return array(
        select convo._show_escapes(p.part::text, hidden[2:])
        from json_array_elements(parts) with ordinality as p (part, n)
        order by p.n
    );
end
$$;

comment on function convo._raw_parts(text, json) is
'The parts of an Anthropic or Gemini message, byte for byte.';
revoke execute on function convo._raw_parts(text, json) from public;
grant execute on function convo._raw_parts(text, json)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_raw_parts.sql

-- >>> sql/functions/render/_set_raw.sql
-- _set_raw: the bytes of a JSON object with one member set, the rest as it is.
create function convo._set_raw(raw text, name text, value text) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    hidden constant text[] := convo._hide_escapes(_set_raw.raw);
begin
    return convo._show_escapes(
        convo._json_set(
            hidden[1]::json, _set_raw.name, to_json(_set_raw.value)::text
        )::text,
        hidden[2:]
    );
end
$$;

comment on function convo._set_raw(text, text, text) is
'The bytes of a JSON object with one member set.';
revoke execute on function convo._set_raw(text, text, text) from public;
grant execute on function convo._set_raw(text, text, text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_set_raw.sql

-- >>> sql/functions/render/_payload_parts.sql
-- _payload_parts: a message of any format as parts, see _openai_parts.
create function convo._payload_parts(format text, payload json) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    message constant jsonb := convo._readable(_payload_parts.payload);
begin
    return case _payload_parts.format
        when 'openai' then convo._openai_parts(message)
        when 'openai_responses' then convo._openai_responses_parts(message)
        when 'anthropic' then convo._anthropic_parts(message)
        when 'gemini' then convo._gemini_parts(message)
    end;
end
$$;

comment on function convo._payload_parts(text, json) is
'A message of any format as parts.';
revoke execute on function convo._payload_parts(text, json) from public;
grant execute on function convo._payload_parts(text, json)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_payload_parts.sql

-- >>> sql/functions/render/_carried_part.sql
-- _carried_part: a part as a format can carry it: media that it can't are a short text.
-- in: the part, the format it is from, the one it goes to, and where it stands there
--     (system, user, assistant, result)
create function convo._carried_part(part jsonb, source text, format text, place text)
returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    kind constant text := _carried_part.part ->> 'kind';
    media_type constant text := coalesce(_carried_part.part ->> 'media_type', '');
    has_data constant boolean := _carried_part.part ? 'data';
    has_url constant boolean := _carried_part.part ->> 'url' ~ '^https?://';
    is_image constant boolean := kind = 'image' and (
        has_url
        or has_data
        and media_type in ('image/png', 'image/jpeg', 'image/gif', 'image/webp')
    );
    is_pdf constant boolean :=
        kind = 'file' and has_data and media_type = 'application/pdf';
    -- An id of a file means something to its maker only.
    has_id constant boolean := _carried_part.part ? 'id'
        and _carried_part.source in ('openai', 'openai_responses');
begin
    if kind = 'result' then
        return jsonb_set(_carried_part.part, '{parts}', (
            select coalesce(jsonb_agg(
                convo._carried_part(
                    p.part, _carried_part.source, _carried_part.format, 'result'
                ) order by p.n
            ), '[]')
            from jsonb_array_elements(_carried_part.part -> 'parts')
                with ordinality as p (part, n)
            where p.part ->> 'kind' in ('image', 'file', 'audio')
                or p.part ->> 'kind' = 'text' and not convo._is_blank(p.part ->> 'text')
        ));
    elsif kind not in ('image', 'file', 'audio')
        or _carried_part.place in ('user', 'result') and (case
            when _carried_part.format = 'openai' then _carried_part.place = 'user' and (
                is_image or is_pdf or kind = 'file' and has_id
                or media_type in ('audio/wav', 'audio/mp3', 'audio/mpeg') and has_data
            )
            when _carried_part.format = 'openai_responses'
                then is_image or is_pdf or kind <> 'audio' and has_id
                or kind = 'file' and has_url
            when _carried_part.format = 'anthropic'
                then is_image or is_pdf or kind = 'file' and has_url
            else _carried_part.place = 'user'
                and (has_data and media_type <> '' or _carried_part.part ? 'url')
        end)
    then
        return _carried_part.part;
    end if;
    return jsonb_build_object('kind', 'text', 'text', '[' || concat_ws(
        ' ', kind, _carried_part.part ->> 'name'
    ) || ']');
end
$$;

comment on function convo._carried_part(jsonb, text, text, text) is
'A part as a format can carry it: media that it can''t are a short text.';
revoke execute on function convo._carried_part(jsonb, text, text, text) from public;
grant execute on function convo._carried_part(jsonb, text, text, text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_carried_part.sql

-- >>> sql/functions/render/_is_sent.sql
-- _is_sent: whether a part goes out at all.
-- Not a blank text, but for one that its own format takes; nor the reasoning and the
-- special parts of other formats.
-- in: the part, the format asked for, whether it is of that format, its bytes there
create function convo._is_sent(
    part jsonb, format text, is_native boolean, raw text
) returns boolean
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return case _is_sent.part ->> 'kind'
        when 'text' then not convo._is_blank(_is_sent.part ->> 'text')
            or _is_sent.is_native and (
                _is_sent.format like 'openai%'
                -- Gemini signs empty texts.
                or coalesce(_is_sent.raw ~ '"thought(S|_s)ignature"', false)
            )
        when 'reasoning' then _is_sent.is_native
        when 'other' then _is_sent.is_native
        else true
    end;
end
$$;

comment on function convo._is_sent(jsonb, text, boolean, text) is
'Whether a part goes out at all.';
revoke execute on function convo._is_sent(jsonb, text, boolean, text) from public;
grant execute on function convo._is_sent(jsonb, text, boolean, text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_is_sent.sql

-- >>> sql/functions/render/_item_blocks.sql
-- _item_blocks: an item of a context, part by part, for one format.
-- in: the item, its place in the context, the format asked for
create function convo._item_blocks(
    item convo._render_item, place integer, format text
) returns convo._render_block[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant text := (_item_blocks.item).format;
    is_native constant boolean := coalesce(source = _item_blocks.format, false);
    role constant text := case (_item_blocks.item).role
        when 'tool' then 'user' else (_item_blocks.item).role
    end;
    raws text[];
    parts jsonb[];
    kept integer[];
begin
    if source is null then
        parts := array[jsonb_build_object(
            'kind', 'text', 'text', (_item_blocks.item).content
        )];
    elsif is_native and source in ('anthropic', 'gemini') then
        raws := convo._raw_parts(source, (_item_blocks.item).payload);
        parts := array(
            select coalesce(
                convo._payload_parts(source, (case source
                    when 'anthropic' then '{"content":[' else '{"parts":['
                end || r.raw || ']}')::json) -> 0,
                '{"kind": "other"}'
            )
            from unnest(raws) with ordinality as r (raw, n)
            order by r.n
        );
    else
        parts := array(
            select jsonb_array_elements(
                convo._payload_parts(source, (_item_blocks.item).payload)
            )
        );
    end if;
    kept := array(
        select p.n
        from unnest(parts) with ordinality as p (part, n)
        where convo._is_sent(p.part, _item_blocks.format, is_native, raws[p.n])
        order by p.n
    );
    return array(
        select row(
            _item_blocks.place, k.n, (_item_blocks.item).seq,
            coalesce((_item_blocks.item).group_seq, -_item_blocks.place),
            null, null, role, parts[k.n] ->> 'kind',
            convo._carried_part(parts[k.n], source, _item_blocks.format, role),
            raws[k.n], is_native, is_native and cardinality(kept) = cardinality(parts),
            null, null, null
        )::convo._render_block
        from unnest(kept) as k (n)
        order by k.n
    );
end
$$;

comment on function convo._item_blocks(convo._render_item, integer, text) is
'An item of a context, part by part, for one format.';
revoke execute on function convo._item_blocks(convo._render_item, integer, text)
from public;
grant execute on function convo._item_blocks(convo._render_item, integer, text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_item_blocks.sql

-- >>> sql/functions/render/_call_id.sql
-- _call_id: the id that a call goes out with; the id of another maker never does.
-- Anthropic wants ids of certain characters, each once in a request; Gemini needs none.
-- in: the call, the format, the ids that went out before
create function convo._call_id(block convo._render_block, format text, used text[])
returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    id text := (_call_id.block).content ->> 'id';
begin
    if (_call_id.block).is_native and (
        _call_id.format <> 'anthropic'
        or id ~ '^[a-zA-Z0-9_-]+$' and not id = any (_call_id.used)
    ) then
        return id;
    elsif _call_id.format = 'gemini' then
        return null;
    end if;
    id := concat_ws('_', 'call', (_call_id.block).seq, (_call_id.block).part);
    while id = any (_call_id.used) loop
        id := id || '_';
    end loop;
    return id;
end
$$;

comment on function convo._call_id(convo._render_block, text, text[]) is
'The id that a call goes out with.';
revoke execute on function convo._call_id(convo._render_block, text, text[])
from public;
grant execute on function convo._call_id(convo._render_block, text, text[])
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_call_id.sql

-- >>> sql/functions/render/_call_name.sql
-- _call_name: the name of another maker's call, as OpenAI and Anthropic take it.
-- They refuse what Gemini allows: dots, colons, more than 64 characters.
create function convo._call_name(call jsonb) returns json
language sql immutable parallel safe
return to_json(left(
    regexp_replace(_call_name.call ->> 'name', '[^a-zA-Z0-9_-]', '_', 'g'), 64
));

comment on function convo._call_name(jsonb) is
'The name of another maker''s call, as OpenAI and Anthropic take it.';
revoke execute on function convo._call_name(jsonb) from public;
grant execute on function convo._call_name(jsonb)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_call_name.sql

-- >>> sql/functions/render/_answer_call.sql
-- _answer_call: a result that knows its call.
-- Its own bytes are of no use if the call goes out in other words.
create function convo._answer_call(
    block convo._render_block, call convo._render_block
) returns convo._render_block
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    answer convo._render_block := _answer_call.block;
begin
    answer.unit := (_answer_call.call).unit;
    answer.call := (_answer_call.call).call;
    answer.call_id := (_answer_call.call).call_id;
    answer.call_number := (_answer_call.call).call_number;
    if answer.is_native and not (_answer_call.call).is_native then
        answer.is_native := false;
        answer.is_whole := false;
        answer.raw := null;
    end if;
    return answer;
end
$$;

comment on function convo._answer_call(convo._render_block, convo._render_block) is
'A result that knows its call.';
revoke execute on function convo._answer_call(convo._render_block, convo._render_block)
from public;
grant execute on function convo._answer_call(convo._render_block, convo._render_block)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_answer_call.sql

-- >>> sql/functions/render/_pair_blocks.sql
-- _pair_blocks: gives each result its call, by occurrence, since ids repeat.
-- A result without a call goes, and so does a second one for the same call.
-- in: the blocks, groups together; the format asked for
create function convo._pair_blocks(blocks convo._render_block[], format text)
returns convo._render_block[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    paired convo._render_block[] := '{}';
    changed_items integer[] := '{}';
    used text[] := '{}';
    group_place integer;
    group_seq integer;
    open_ids text[];
    calls convo._render_block[];
    block convo._render_block;
    place integer;
begin
    foreach block in array _pair_blocks.blocks loop
        if block.group_seq is distinct from group_seq then
            group_seq := block.group_seq;
            group_place := block.item;
            open_ids := '{}';
            calls := '{}';
        end if;
        block.group_place := group_place;
        block.unit := case
            when block.role = 'assistant' and not block.is_native then group_place
            else block.item
        end;
        if block.kind = 'call' then
            block.call_id := convo._call_id(block, _pair_blocks.format, used);
            block.call := block.content;
            block.call_number := cardinality(calls) + 1;
            used := used || block.call_id;
            open_ids := open_ids || (block.content ->> 'id');
            calls := calls || block;
        elsif block.kind = 'result' then
            place := array_position(open_ids, block.content ->> 'id');
            if place is null then
                changed_items := changed_items || block.item;
                continue;
            end if;
            open_ids[place] := null;
            block := convo._answer_call(block, calls[place]);
        end if;
        if block.is_native and block.call_id <> block.content ->> 'id' then
            block.raw := convo._set_raw(
                block.raw, case block.kind when 'call' then 'id' else 'tool_use_id' end,
                block.call_id
            );
            block.is_whole := false;
        end if;
        if not block.is_whole then
            changed_items := changed_items || block.item;
        end if;
        paired := paired || block;
    end loop;
    for n in 1 .. cardinality(paired) loop
        if paired[n].item = any (changed_items) then
            paired[n].is_whole := false;
        end if;
    end loop;
    return paired;
end
$$;

comment on function convo._pair_blocks(convo._render_block[], text) is
'Gives each result its call; results without one go.';
revoke execute on function convo._pair_blocks(convo._render_block[], text) from public;
grant execute on function convo._pair_blocks(convo._render_block[], text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_pair_blocks.sql

-- >>> sql/functions/render/_render_blocks.sql
-- _render_blocks: the items of a context, part by part, in the order of a request.
-- Results stand directly after the message with their calls, what else their messages
-- hold after them. The newest user message is never left out, whatever it is.
create function convo._render_blocks(items convo._render_item[], format text)
returns convo._render_block[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    blocks convo._render_block[] := '{}';
    newest_user integer;
begin
    for n in 1 .. cardinality(_render_blocks.items) loop
        blocks := blocks
            || convo._item_blocks(_render_blocks.items[n], n, _render_blocks.format);
        if _render_blocks.items[n].role = 'user' then
            newest_user := n;
        end if;
    end loop;
    if not exists (
        select from unnest(blocks) as b where b.item = newest_user
    ) and newest_user is not null then
        blocks := blocks || convo._item_blocks(
            row('message', null, null, 'user', '[unsupported content]', null, null),
            newest_user, _render_blocks.format
        );
    end if;
    blocks := convo._pair_blocks(blocks, _render_blocks.format);
    return array(
        select b
        from unnest(blocks) as b
        -- OpenAI: reasoning stands before what it led to.
        where b.kind <> 'reasoning'
            or _render_blocks.format <> 'openai_responses'
            or exists (
                select
                from unnest(blocks) as o
                where o.group_place = b.group_place
                    and o.item > b.item
                    and o.is_native
                    and o.role = 'assistant'
                    and o.kind <> 'reasoning'
            )
        order by
            b.group_place,
            b.role = 'user' and b.kind <> 'result',
            case when _render_blocks.format = 'openai' then b.unit end,
            b.kind = 'result',
            -- Anthropic: nothing between calls and their results.
            _render_blocks.format = 'anthropic' and b.kind = 'call' and not b.is_native,
            -- Gemini: results of calls without ids are known by their order.
            case
                when _render_blocks.format = 'gemini'
                    and b.kind = 'result' and not b.is_native
                    then b.call_number
            end,
            b.item,
            b.part
    );
end
$$;

comment on function convo._render_blocks(convo._render_item[], text) is
'The items of a context, part by part, in the order of a request.';
revoke execute on function convo._render_blocks(convo._render_item[], text) from public;
grant execute on function convo._render_blocks(convo._render_item[], text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_render_blocks.sql

-- >>> sql/functions/render/_result_text.sql
-- _result_text: the text of a result.
create function convo._result_text(result jsonb) returns text
language sql immutable parallel safe
return (
    select coalesce(string_agg(p.part ->> 'text', e'\n' order by p.n), '')
    from jsonb_array_elements(_result_text.result -> 'parts')
        with ordinality as p (part, n)
);

comment on function convo._result_text(jsonb) is
'The text of a result, parts joined by line feeds.';
revoke execute on function convo._result_text(jsonb) from public;
grant execute on function convo._result_text(jsonb)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_result_text.sql

-- >>> sql/functions/render/_data_url.sql
-- _data_url: the URL of a part, made of its data if it has none.
create function convo._data_url(part jsonb) returns text
language sql immutable parallel safe
return coalesce(
    _data_url.part ->> 'url',
    'data:' || (_data_url.part ->> 'media_type') || ';base64,'
    || (_data_url.part ->> 'data')
);

comment on function convo._data_url(jsonb) is
'The URL of a part, made of its data if it has none.';
revoke execute on function convo._data_url(jsonb) from public;
grant execute on function convo._data_url(jsonb)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_data_url.sql

-- >>> sql/functions/render/_arguments_object.sql
-- _arguments_object: the arguments of a call as the text of a JSON object.
-- Text that isn't one, as models write it at times, is its member input.
create function convo._arguments_object(call jsonb) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    arguments constant text := coalesce(
        _arguments_object.call ->> 'arguments', _arguments_object.call ->> 'input'
    );
begin
    if convo._is_blank(arguments) then
        return '{}';
    elsif json_typeof(arguments::json) = 'object' then
        return arguments;
    end if;
    return json_build_object('input', arguments)::text;
exception when invalid_text_representation or statement_too_complex then
    return json_build_object('input', arguments)::text;
end
$$;

comment on function convo._arguments_object(jsonb) is
'The arguments of a call as the text of a JSON object.';
revoke execute on function convo._arguments_object(jsonb) from public;
grant execute on function convo._arguments_object(jsonb)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_arguments_object.sql

-- >>> sql/functions/render/_openai_content.sql
-- _openai_content: a part as a content part of an OpenAI chat message.
create function convo._openai_content(part jsonb) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant jsonb := _openai_content.part;
begin
    return json_strip_nulls(case source ->> 'kind'
        when 'text' then json_build_object('type', 'text', 'text', source ->> 'text')
        when 'image' then json_build_object(
            'type', 'image_url', 'image_url', json_build_object(
                'url', convo._data_url(source), 'detail', source ->> 'detail'
            )
        )
        when 'file' then json_build_object('type', 'file', 'file', json_build_object(
            'file_id', source ->> 'id',
            'filename', case
                when not source ? 'id' then coalesce(source ->> 'name', 'file.pdf')
            end,
            'file_data', convo._data_url(source)
        ))
        when 'audio' then json_build_object(
            'type', 'input_audio', 'input_audio', json_build_object(
                'data', source ->> 'data',
                'format', case source ->> 'media_type'
                    when 'audio/wav' then 'wav' else 'mp3'
                end
            )
        )
    end)::text;
end
$$;

comment on function convo._openai_content(jsonb) is
'A part as a content part of an OpenAI chat message.';
revoke execute on function convo._openai_content(jsonb) from public;
grant execute on function convo._openai_content(jsonb)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_openai_content.sql

-- >>> sql/functions/render/_openai_message.sql
-- _openai_message: an OpenAI chat message of blocks that belong together.
create function convo._openai_message(blocks convo._render_block[]) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    result constant convo._render_block := _openai_message.blocks[1];
    contents text[];
    calls text;
    content text;
begin
    if result.kind = 'result' then
        return format(
            '{"role":"tool","tool_call_id":%s,"content":%s}',
            to_json(result.call_id), to_json(convo._result_text(result.content))
        );
    end if;
    select
        array_agg(convo._openai_content(b.content)) filter (where b.kind <> 'call'),
        string_agg(
            case
                when b.content ? 'input' then format(
                    '{"id":%s,"type":"custom","custom":{"name":%s,"input":%s}}',
                    to_json(b.call_id), convo._call_name(b.content),
                    b.content -> 'input'
                )
                else format(
                    '{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}',
                    to_json(b.call_id), convo._call_name(b.content),
                    b.content -> 'arguments'
                )
            end,
            ','
        ) filter (where b.kind = 'call')
    into contents, calls
    from unnest(_openai_message.blocks) as b;
    if cardinality(contents) = 1 and contents[1]::json ->> 'type' = 'text' then
        content := contents[1]::json ->> 'text';
    end if;
    return format(
        '{"role":"%s","content":%s%s}', result.role,
        case
            when contents is null then 'null'
            when content is not null then to_json(content)::text
            else '[' || array_to_string(contents, ',') || ']'
        end,
        ',"tool_calls":[' || calls || ']'
    );
end
$$;

comment on function convo._openai_message(convo._render_block[]) is
'An OpenAI chat message of blocks that belong together.';
revoke execute on function convo._openai_message(convo._render_block[]) from public;
grant execute on function convo._openai_message(convo._render_block[])
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_openai_message.sql

-- >>> sql/functions/render/_render_openai.sql
-- _render_openai: a context as OpenAI chat messages.
create function convo._render_openai(items convo._render_item[]) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    blocks constant convo._render_block[] := convo._render_blocks(
        _render_openai.items, 'openai'
    );
begin
    return '[' || coalesce((
        select string_agg(m.message, ',' order by m.place)
        from (
            select
                min(b.n) as place,
                case
                    when bool_and(blocks[b.n].is_whole)
                        then _render_openai.items[min(blocks[b.n].item)].payload::text
                    else convo._openai_message(array_agg(blocks[b.n] order by b.n))
                end as message
            from generate_subscripts(blocks, 1) as b (n)
            group by
                case when blocks[b.n].kind = 'result' then b.n end,
                case
                    when blocks[b.n].role = 'assistant' then blocks[b.n].unit
                    else blocks[b.n].item
                end
        ) as m
    ), '') || ']';
end
$$;

comment on function convo._render_openai(convo._render_item[]) is
'A context as OpenAI chat messages.';
revoke execute on function convo._render_openai(convo._render_item[]) from public;
grant execute on function convo._render_openai(convo._render_item[])
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_render_openai.sql

-- >>> sql/functions/render/_openai_responses_content.sql
-- _openai_responses_content: a part as input content of the OpenAI responses format.
create function convo._openai_responses_content(part jsonb) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant jsonb := _openai_responses_content.part;
begin
    return json_strip_nulls(case source ->> 'kind'
        when 'text' then json_build_object(
            'type', 'input_text', 'text', source ->> 'text'
        )
        when 'image' then json_build_object(
            'type', 'input_image',
            'image_url', convo._data_url(source),
            'file_id', source ->> 'id',
            'detail', coalesce(source ->> 'detail', 'auto')
        )
        when 'file' then json_build_object(
            'type', 'input_file',
            'file_id', source ->> 'id',
            'file_url', source ->> 'url',
            'filename', case
                when source ? 'data' then coalesce(source ->> 'name', 'file.pdf')
            end,
            'file_data', case when source ? 'data' then convo._data_url(source) end
        )
    end)::text;
end
$$;

comment on function convo._openai_responses_content(jsonb) is
'A part as input content of the OpenAI responses format.';
revoke execute on function convo._openai_responses_content(jsonb) from public;
grant execute on function convo._openai_responses_content(jsonb)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_openai_responses_content.sql

-- >>> sql/functions/render/_openai_responses_item.sql
-- _openai_responses_item: an item of the OpenAI responses format.
-- in: a call, a result or a text of the assistant; or all that a user's or system
--     message holds
create function convo._openai_responses_item(blocks convo._render_block[])
returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    block constant convo._render_block := _openai_responses_item.blocks[1];
    is_custom constant boolean := coalesce(block.call ? 'input', false);
    contents json;
begin
    if block.kind = 'call' then
        return json_build_object(
            'type', case
                when is_custom then 'custom_tool_call' else 'function_call'
            end,
            'call_id', block.call_id,
            'name', convo._call_name(block.call),
            case when is_custom then 'input' else 'arguments' end,
            coalesce(block.call ->> 'input', block.call ->> 'arguments')
        )::text;
    end if;
    select json_agg(convo._openai_responses_content(p.part)::json) into contents
    from (
        select r.part
        from jsonb_array_elements(block.content -> 'parts') as r (part)
        where block.kind = 'result'
        union all
        select b.content
        from unnest(_openai_responses_item.blocks) as b
        where block.kind <> 'result'
    ) as p;
    -- texts alone are a string
    if block.kind = 'result' and not exists (
        select
        from json_array_elements(contents) as c (part)
        where c.part ->> 'type' <> 'input_text'
    ) then
        contents := to_json(convo._result_text(block.content));
    elsif json_array_length(contents) = 1
        and contents #>> '{0,type}' = 'input_text'
    then
        contents := contents #> '{0,text}';
    end if;
    if block.kind = 'result' then
        return json_build_object(
            'type', case
                when is_custom then 'custom_tool_call_output'
                else 'function_call_output'
            end,
            'call_id', block.call_id,
            'output', contents
        )::text;
    end if;
    return json_build_object('role', block.role, 'content', contents)::text;
end
$$;

comment on function convo._openai_responses_item(convo._render_block[]) is
'An item of the OpenAI responses format.';
revoke execute on function convo._openai_responses_item(convo._render_block[])
from public;
grant execute on function convo._openai_responses_item(convo._render_block[])
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_openai_responses_item.sql

-- >>> sql/functions/render/_render_openai_responses.sql
-- _render_openai_responses: a context as input items of the OpenAI responses format.
create function convo._render_openai_responses(items convo._render_item[])
returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    blocks constant convo._render_block[] := convo._render_blocks(
        _render_openai_responses.items, 'openai_responses'
    );
begin
    return '[' || coalesce((
        select string_agg(m.item, ',' order by m.place)
        from (
            select
                min(b.n) as place,
                case
                    when bool_and(blocks[b.n].is_whole)
                        then _render_openai_responses.items[
                            min(blocks[b.n].item)
                        ].payload::text
                    else convo._openai_responses_item(
                        array_agg(blocks[b.n] order by b.n)
                    )
                end as item
            from generate_subscripts(blocks, 1) as b (n)
            group by
                blocks[b.n].item,
                case
                    when blocks[b.n].is_whole then null
                    when blocks[b.n].kind = 'result' or blocks[b.n].role = 'assistant'
                        then b.n
                end
        ) as m
    ), '') || ']';
end
$$;

comment on function convo._render_openai_responses(convo._render_item[]) is
'A context as input items of the OpenAI responses format.';
revoke execute on function convo._render_openai_responses(convo._render_item[])
from public;
grant execute on function convo._render_openai_responses(convo._render_item[])
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_render_openai_responses.sql

-- >>> sql/functions/render/_anthropic_content.sql
-- _anthropic_content: a text, image or document as a block of the Anthropic format.
create function convo._anthropic_content(part jsonb) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant jsonb := _anthropic_content.part;
begin
    return case source ->> 'kind'
        when 'text' then format('{"type":"text","text":%s}', source -> 'text')
        else json_strip_nulls(json_build_object(
            'type', replace(source ->> 'kind', 'file', 'document'),
            'source', case
                when source ? 'data' then json_build_object(
                    'type', 'base64', 'media_type', source ->> 'media_type',
                    'data', source ->> 'data'
                )
                else json_build_object('type', 'url', 'url', source ->> 'url')
            end,
            'title', source ->> 'name'
        ))::text
    end;
end
$$;

comment on function convo._anthropic_content(jsonb) is
'A text, image or document as a block of the Anthropic format.';
revoke execute on function convo._anthropic_content(jsonb) from public;
grant execute on function convo._anthropic_content(jsonb)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_anthropic_content.sql

-- >>> sql/functions/render/_anthropic_block.sql
-- _anthropic_block: a part as a content block of the Anthropic format.
create function convo._anthropic_block(block convo._render_block) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    part constant jsonb := (_anthropic_block.block).content;
    id constant json := to_json((_anthropic_block.block).call_id);
    contents text;
begin
    if (_anthropic_block.block).kind = 'call' then
        return format(
            '{"type":"tool_use","id":%s,"name":%s,"input":%s}',
            id, convo._call_name(part), convo._arguments_object(part)
        );
    elsif (_anthropic_block.block).kind = 'result' then
        select string_agg(convo._anthropic_content(p.part), ',' order by p.n)
        into contents
        from jsonb_array_elements(part -> 'parts') with ordinality as p (part, n);
        return format(
            '{"type":"tool_result","tool_use_id":%s%s%s}', id,
            ',"content":[' || contents || ']',
            case when part -> 'is_error' = 'true' then ',"is_error":true' end
        );
    end if;
    return convo._anthropic_content(part);
end
$$;

comment on function convo._anthropic_block(convo._render_block) is
'A part as a content block of the Anthropic format.';
revoke execute on function convo._anthropic_block(convo._render_block) from public;
grant execute on function convo._anthropic_block(convo._render_block)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_anthropic_block.sql

-- >>> sql/functions/render/_trim_anthropic.sql
-- _trim_anthropic: no white space at the end, if the last message is the assistant's.
-- Anthropic refuses it there.
create function convo._trim_anthropic(blocks convo._render_block[])
returns convo._render_block[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    result convo._render_block[] := _trim_anthropic.blocks;
    last constant convo._render_block := result[cardinality(result)];
    trimmed constant text := regexp_replace(
        case when last.kind = 'text' then last.content ->> 'text' end, e'\\s+$', ''
    );
begin
    if last.role = 'assistant' and trimmed <> last.content ->> 'text' then
        result[cardinality(result)].content := jsonb_build_object(
            'kind', 'text', 'text', trimmed
        );
        result[cardinality(result)].is_whole := false;
        result[cardinality(result)].raw := null;
    end if;
    return result;
end
$$;

comment on function convo._trim_anthropic(convo._render_block[]) is
'Blocks without white space at the end of a last message of the assistant.';
revoke execute on function convo._trim_anthropic(convo._render_block[]) from public;
grant execute on function convo._trim_anthropic(convo._render_block[])
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_trim_anthropic.sql

-- >>> sql/functions/render/_gemini_part.sql
-- _gemini_part: a part of the Gemini format.
create function convo._gemini_part(block convo._render_block) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    part constant jsonb := (_gemini_part.block).content;
    call constant jsonb := (_gemini_part.block).call;
begin
    return case (_gemini_part.block).content ->> 'kind'
        when 'text' then format('{"text":%s}', part -> 'text')
        when 'call' then format(
            '{"functionCall":{"name":%s,"args":%s}%s}',
            part -> 'name', convo._arguments_object(part),
            -- Newer models want a signature at the first call of a step; this one
            -- says that another model made the call.
            case when (_gemini_part.block).call_number = 1 then
                ',"thoughtSignature":"skip_thought_signature_validator"'
            end
        )
        when 'result' then json_build_object('functionResponse', json_strip_nulls(
            json_build_object(
                'id', nullif((_gemini_part.block).call_id, call ->> 'name'),
                'name', call ->> 'name',
                'response', json_build_object(
                    case
                        when part -> 'is_error' = 'true' then 'error' else 'output'
                    end,
                    convo._result_text(part)
                )
            )
        ))::text
        else json_strip_nulls(json_build_object(
            case when part ? 'data' then 'inlineData' else 'fileData' end,
            json_build_object(
                'mimeType', part ->> 'media_type', 'data', part ->> 'data',
                'fileUri', part ->> 'url'
            )
        ))::text
    end;
end
$$;

comment on function convo._gemini_part(convo._render_block) is
'A part of the Gemini format.';
revoke execute on function convo._gemini_part(convo._render_block) from public;
grant execute on function convo._gemini_part(convo._render_block)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_gemini_part.sql

-- >>> sql/functions/render/_turn_message.sql
-- _turn_message: a message of a format in which user and assistant take turns.
-- in: the format, the role, the JSON texts of its blocks or parts
create function convo._turn_message(format text, role text, contents text) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if _turn_message.format = 'anthropic' then
        return format(
            '{"role":"%s","content":[%s]}', _turn_message.role, _turn_message.contents
        );
    end if;
    return format(
        '{"role":"%s","parts":[%s]}',
        replace(_turn_message.role, 'assistant', 'model'), _turn_message.contents
    );
end
$$;

comment on function convo._turn_message(text, text, text) is
'A message of a format in which user and assistant take turns.';
revoke execute on function convo._turn_message(text, text, text) from public;
grant execute on function convo._turn_message(text, text, text)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_turn_message.sql

-- >>> sql/functions/render/_render_turns.sql
-- _render_turns: messages of formats in which user and assistant take turns.
-- Neighbours of one role are one message. A message that stands alone is as it was.
-- out: messages as JSON text, with commas between them; the first is the user's
create function convo._render_turns(
    items convo._render_item[], blocks convo._render_block[], format text
) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    is_anthropic constant boolean := _render_turns.format = 'anthropic';
    first_role text;
    messages text;
begin
    select
        min(t.role) filter (where t.turn = 1),
        string_agg(t.message, ',' order by t.turn)
    into first_role, messages
    from (
        select
            p.turn,
            p.role,
            case
                when bool_and(p.is_whole)
                    and count(distinct p.item) = 1
                    and array_agg(p.part order by p.n)
                    = array_agg(p.part order by p.part)
                    then _render_turns.items[min(p.item)].payload::text
                else convo._turn_message(
                    _render_turns.format, p.role,
                    string_agg(p.content, ',' order by p.n)
                )
            end as message
        from (
            select
                o.*, count(*) filter (where o.is_turn) over (order by o.n) as turn
            from (
                select
                    b.role, b.item, b.part, b.is_whole, n.n,
                    b.role is distinct from lag(b.role) over (order by n.n) as is_turn,
                    case
                        when b.raw is not null then b.raw
                        when is_anthropic
                            then convo._anthropic_block(_render_turns.blocks[n.n])
                        else convo._gemini_part(_render_turns.blocks[n.n])
                    end as content
                from generate_subscripts(_render_turns.blocks, 1) as n (n)
                cross join lateral (select (_render_turns.blocks[n.n]).*) as b
                where b.role <> 'system'
            ) as o
        ) as p
        group by p.turn, p.role
    ) as t;
    if first_role is distinct from 'user' then
        messages := concat_ws(',', convo._turn_message(
            _render_turns.format, 'user', case
                when is_anthropic then '{"type":"text","text":"[continued]"}'
                else '{"text":"[continued]"}'
            end
        ), messages);
    end if;
    return messages;
end
$$;

comment on function convo._render_turns(
    convo._render_item[], convo._render_block[], text
) is
'Messages of formats in which user and assistant take turns.';
revoke execute on function convo._render_turns(
    convo._render_item[], convo._render_block[], text
) from public;
grant execute on function convo._render_turns(
    convo._render_item[], convo._render_block[], text
)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_render_turns.sql

-- >>> sql/functions/render/_render_anthropic.sql
-- _render_anthropic: a context as system and messages of the Anthropic format.
create function convo._render_anthropic(items convo._render_item[]) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    blocks constant convo._render_block[] := convo._trim_anthropic(
        convo._render_blocks(_render_anthropic.items, 'anthropic')
    );
    system text;
begin
    select case
        when count(*) = 1 then min((b.content -> 'text')::text)
        else '[' || string_agg(convo._anthropic_content(b.content), ',') || ']'
    end
    into system
    from unnest(blocks) as b
    where b.role = 'system';
    return '{' || coalesce('"system":' || system || ',', '') || '"messages":['
        || convo._render_turns(_render_anthropic.items, blocks, 'anthropic') || ']}';
end
$$;

comment on function convo._render_anthropic(convo._render_item[]) is
'A context as system and messages of the Anthropic format.';
revoke execute on function convo._render_anthropic(convo._render_item[]) from public;
grant execute on function convo._render_anthropic(convo._render_item[])
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_render_anthropic.sql

-- >>> sql/functions/render/_render_gemini.sql
-- _render_gemini: a context as systemInstruction and contents of the Gemini format.
create function convo._render_gemini(items convo._render_item[]) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    blocks constant convo._render_block[] := convo._render_blocks(
        _render_gemini.items, 'gemini'
    );
    system text;
begin
    select string_agg(format('{"text":%s}', b.content -> 'text'), ',') into system
    from unnest(blocks) as b
    where b.role = 'system';
    return '{'
        || coalesce('"systemInstruction":{"parts":[' || system || ']},', '')
        || '"contents":['
        || convo._render_turns(_render_gemini.items, blocks, 'gemini') || ']}';
end
$$;

comment on function convo._render_gemini(convo._render_item[]) is
'A context as systemInstruction and contents of the Gemini format.';
revoke execute on function convo._render_gemini(convo._render_item[]) from public;
grant execute on function convo._render_gemini(convo._render_item[])
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/_render_gemini.sql

-- >>> sql/functions/render/render_context.sql
-- render_context: a context as the provider's own JSON, in an order that it takes.
-- A message stored in that format is there byte for byte; others are converted part by
-- part. Signatures, encrypted reasoning and call ids go only to the provider that made
-- them.
-- in: format openai, openai_responses, anthropic or gemini; the rest as get_context
-- out: openai: chat messages; openai_responses: input items; anthropic: {system,
--      messages}; gemini: {systemInstruction, contents}
-- errors: 22023 unknown format, and those of get_context
-- since: 0.1.0
create function convo.render_context(
    conversation_id uuid,
    format text,
    policy text default null,
    token_budget integer default null
) returns json
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    items convo._render_item[];
begin
    if render_context.format is null
        or render_context.format not in (
            'openai', 'openai_responses', 'anthropic', 'gemini'
        )
    then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'format',
            'allowed', array['openai', 'openai_responses', 'anthropic', 'gemini']
        ));
    end if;
    items := array(
        select row(
            c.kind, c.seq, m.group_seq, c.role, c.content, m.format, m.payload
        )::convo._render_item
        from convo.get_context(
            render_context.conversation_id, render_context.policy,
            render_context.token_budget
        ) as c
        -- one by one: a generic plan might join them to the whole conversation
        left join lateral (
            select
                l.group_seq,
                l.format,
                l.payload
            from convo.message as l
            where l.tenant_id = tenant
                and l.conversation_id = render_context.conversation_id
                and l.seq = c.seq
                and c.kind in ('system', 'recalled', 'message')
            limit 1
        ) as m on true
        order by c.ordinal
    );
    return case render_context.format
        when 'openai' then convo._render_openai(items)
        when 'openai_responses' then convo._render_openai_responses(items)
        when 'anthropic' then convo._render_anthropic(items)
        else convo._render_gemini(items)
    end;
end
$$;

comment on function convo.render_context(uuid, text, text, integer) is
'A context as the JSON of a provider: openai, openai_responses, anthropic or gemini.';
revoke execute on function convo.render_context(uuid, text, text, integer) from public;
grant execute on function convo.render_context(uuid, text, text, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/render/render_context.sql

-- >>> sql/functions/summary/_newest_user_seq.sql
-- _newest_user_seq: the seq of the newest live user message that says something, or null.
create function convo._newest_user_seq(conversation convo.conversation)
returns integer
language sql stable
begin atomic
    select m.seq
    from convo.message as m
    where m.tenant_id = (_newest_user_seq.conversation).tenant_id
        and m.conversation_id = (_newest_user_seq.conversation).conversation_id
        and m.role = 'user'
        and m.deleted_at is null
        and not m.is_empty
    order by m.seq desc
    limit 1;
end;

comment on function convo._newest_user_seq(convo.conversation) is
'The seq of the newest live user message that says something, or null.';
revoke execute on function convo._newest_user_seq(convo.conversation) from public;
grant execute on function convo._newest_user_seq(convo.conversation)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/summary/_newest_user_seq.sql

-- >>> sql/functions/summary/_rewind_summary.sql
-- _rewind_summary: goes back to the newest summary of what is before a message.
-- When everything from there on was deleted, a summary of it must not tell it.
-- in: the conversation, locked; the first message that was deleted
create function convo._rewind_summary(
    conversation convo.conversation, from_seq integer
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    covered_seq integer;
begin
    select coalesce(max(s.through_seq), 0) into covered_seq
    from convo.summary as s
    where s.tenant_id = (_rewind_summary.conversation).tenant_id
        and s.conversation_id = (_rewind_summary.conversation).conversation_id
        and s.through_seq < _rewind_summary.from_seq;
    update convo.conversation as c
    set summary_through_seq = covered_seq,
        body_count = b.messages,
        body_tokens = b.tokens
    from (
        select count(*) as messages, coalesce(sum(m.tokens), 0) as tokens
        from convo.message as m
        where m.tenant_id = (_rewind_summary.conversation).tenant_id
            and m.conversation_id = (_rewind_summary.conversation).conversation_id
            and m.group_seq > covered_seq
            and m.deleted_at is null
            and m.role <> 'system'
    ) as b
    where c.tenant_id = (_rewind_summary.conversation).tenant_id
        and c.conversation_id = (_rewind_summary.conversation).conversation_id;
end
$$;

comment on function convo._rewind_summary(convo.conversation, integer) is
'Goes back to the newest summary of what is before a message.';
revoke execute on function convo._rewind_summary(convo.conversation, integer)
from public;
grant execute on function convo._rewind_summary(convo.conversation, integer)
to convo_app, convo_service;
-- <<< sql/functions/summary/_rewind_summary.sql

-- >>> sql/functions/summary/_has_open_call.sql
-- _has_open_call: whether a call that no summary covers yet waits for its result.
-- in: the conversation, the last group to look at
create function convo._has_open_call(
    conversation convo.conversation, through_seq integer
) returns boolean
language sql stable
begin atomic
    select exists(
        select
        from (
            select
                array_agg(
                    row(
                        m.seq, m.group_seq, m.role, m.tokens, m.is_empty, m.call_ids,
                        m.result_ids, null, null
                    )::convo._group_member
                ) as members
            from convo.message as m
            where m.tenant_id = (_has_open_call.conversation).tenant_id
                and m.conversation_id = (_has_open_call.conversation).conversation_id
                and m.group_seq > (_has_open_call.conversation).summary_through_seq
                and m.group_seq <= _has_open_call.through_seq
                and m.deleted_at is null
                and m.role <> 'system'
            group by m.group_seq
            having bool_or(m.call_ids is not null)
        ) as g
        cross join lateral unnest(convo._judge_group(g.members, false)) as j
        where j.reason = 'call without a result'
    );
end;

comment on function convo._has_open_call(convo.conversation, integer) is
'Whether a call that no summary covers yet waits for its result.';
revoke execute on function convo._has_open_call(convo.conversation, integer)
from public;
grant execute on function convo._has_open_call(convo.conversation, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/summary/_has_open_call.sql

-- >>> sql/functions/summary/save_summary.sql
-- save_summary: saves a summary of everything up to a message, all or nothing.
-- The messages themselves stay as they are.
-- in: through_seq: it covers the groups that begin there or before;
--     previous_through_seq: the summary that it was made from (0: none)
-- errors: PC001, PC012, PC010 another summary came in between, 22023 (nothing new, a
--     call that waits for its result or the newest user message would be covered)
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create function convo.save_summary(
    conversation_id uuid,
    content text,
    through_seq integer,
    previous_through_seq integer,
    tokens integer default null,
    model text default null
) returns convo.summary_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    conversation constant convo.conversation := convo._lock_conversation(
        save_summary.conversation_id
    );
    reason text;
    covered record;
    result convo.summary_record;
begin
    if save_summary.previous_through_seq is distinct from conversation.summary_through_seq
    then
        perform convo._fail('PC010', jsonb_build_object(
            'conversation_id', conversation.conversation_id,
            'expected_through_seq', save_summary.previous_through_seq,
            'through_seq', conversation.summary_through_seq
        ));
    end if;
    reason := case
        when convo._is_blank(save_summary.content) then 'content is empty'
        when save_summary.tokens < 0 then 'tokens is negative'
        when save_summary.through_seq is null
            or save_summary.through_seq <= conversation.summary_through_seq
            or save_summary.through_seq > conversation.last_seq
            then 'through_seq is not after the last summary'
        when exists (
            select
            from convo.summary as s
            where s.tenant_id = conversation.tenant_id
                and s.conversation_id = conversation.conversation_id
                and s.through_seq = save_summary.through_seq
        ) then 'an earlier summary ends there'
        when save_summary.through_seq >= convo._newest_user_seq(conversation)
            then 'the newest user message would be covered'
        when convo._has_open_call(conversation, save_summary.through_seq)
            then 'a call without its result would be covered'
    end;
    if reason is not null then
        perform convo._fail('22023', jsonb_build_object(
            'conversation_id', conversation.conversation_id, 'reason', reason
        ));
    end if;

    insert into convo.summary as s (
        tenant_id, conversation_id, through_seq, user_id, content, tokens, model,
        created_at
    )
    values (
        conversation.tenant_id, conversation.conversation_id, save_summary.through_seq,
        conversation.user_id, save_summary.content,
        coalesce(save_summary.tokens, convo.estimate_tokens(save_summary.content)),
        nullif(save_summary.model, ''), clock_timestamp()
    )
    returning s.through_seq, s.content, s.tokens, s.model, s.created_at into result;
    select count(*) as messages, coalesce(sum(m.tokens), 0) as tokens into covered
    from convo.message as m
    where m.tenant_id = conversation.tenant_id
        and m.conversation_id = conversation.conversation_id
        and m.group_seq > conversation.summary_through_seq
        and m.group_seq <= save_summary.through_seq
        and m.deleted_at is null
        and m.role <> 'system';
    update convo.conversation as c
    set summary_through_seq = save_summary.through_seq,
        body_count = c.body_count - covered.messages,
        body_tokens = c.body_tokens - covered.tokens
    where c.tenant_id = conversation.tenant_id
        and c.conversation_id = conversation.conversation_id;
    return result;
end
$$;

comment on function convo.save_summary(uuid, text, integer, integer, integer, text) is
'Saves a summary of everything up to a message. previous_through_seq is the summary it '
'was made from; if another came in between: PC010, and nothing is saved.';
revoke execute on function convo.save_summary(
    uuid, text, integer, integer, integer, text
) from public;
grant execute on function convo.save_summary(
    uuid, text, integer, integer, integer, text
) to convo_app, convo_service;
-- <<< sql/functions/summary/save_summary.sql

-- >>> sql/functions/retention/set_retention.sql
-- set_retention: says how long conversations of a class are kept in this tenant.
-- in: max_age at most 1,000 years, null: for ever; basis: what age counts from, activity
--     or creation
-- errors: 22023, PC030
-- since: 0.1.0
create function convo.set_retention(
    retention_class text,
    max_age interval,
    basis text default 'activity',
    action text default 'delete'
) returns convo.retention_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    result convo.retention_record;
begin
    if coalesce(length(set_retention.retention_class), 0) not between 1 and 63 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'retention_class', 'minimum_length', 1, 'maximum_length', 63
        ));
    elsif set_retention.basis is null
        or set_retention.basis not in ('activity', 'creation')
    then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'basis', 'allowed', array['activity', 'creation']
        ));
    elsif set_retention.action is distinct from 'delete' then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'action', 'allowed', array['delete']
        ));
    end if;
    insert into convo.retention_policy as r (
        tenant_id, retention_class, max_age, basis, action
    )
    values (
        convo._require_tenant(), set_retention.retention_class, set_retention.max_age,
        set_retention.basis, set_retention.action
    )
    on conflict (tenant_id, retention_class) do update
        set max_age = excluded.max_age,
            basis = excluded.basis,
            action = excluded.action
    returning r.retention_class, r.max_age, r.basis, r.action into result;
    return result;
exception when check_violation then
    perform convo._fail('22023', jsonb_build_object(
        'argument', 'max_age', 'minimum', 0, 'maximum', '1000 years'
    ));
end
$$;

comment on function convo.set_retention(text, interval, text, text) is
'Says how long conversations of a class are kept in this tenant; max_age null: for '
'ever.';
revoke execute on function convo.set_retention(text, interval, text, text) from public;
grant execute on function convo.set_retention(text, interval, text, text)
to convo_service;
-- <<< sql/functions/retention/set_retention.sql

-- >>> sql/functions/retention/_set_hold.sql
-- _set_hold: puts a conversation on legal hold or releases it, and notes who and why.
-- No activity: it moves neither its place in the list nor its retention.
-- errors: PC001, PC012, 22023 without a reason
create function convo._set_hold(conversation_id uuid, is_on_hold boolean, reason text)
returns convo.conversation_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    result convo.conversation_record;
begin
    if coalesce(length(_set_hold.reason), 0) not between 1 and 1000 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'reason', 'minimum_length', 1, 'maximum_length', 1000
        ));
    end if;
    perform convo._require_tenant();
    if not convo_private._mark_hold(
        _set_hold.conversation_id, _set_hold.is_on_hold, _set_hold.reason
    ) then
        perform convo._fail_not_found(_set_hold.conversation_id);
    end if;
    select r.* into result from convo.get_conversation(_set_hold.conversation_id) as r;
    return result;
end
$$;

comment on function convo._set_hold(uuid, boolean, text) is
'Puts a conversation on legal hold or releases it, and notes who and why.';
revoke execute on function convo._set_hold(uuid, boolean, text) from public;
grant execute on function convo._set_hold(uuid, boolean, text) to convo_service;
-- <<< sql/functions/retention/_set_hold.sql

-- >>> sql/functions/retention/hold_conversation.sql
-- hold_conversation: puts a conversation on legal hold.
-- It can be written to, but neither deleted nor purged until it is released.
-- in: the reason, for the audit trail
-- errors: PC001, PC012, 22023
-- since: 0.1.0
create function convo.hold_conversation(conversation_id uuid, reason text)
returns convo.conversation_record
language sql
begin atomic
    select convo._set_hold(
        hold_conversation.conversation_id, true, hold_conversation.reason
    );
end;

comment on function convo.hold_conversation(uuid, text) is
'Puts a conversation on legal hold: neither deleted nor purged until it is released.';
revoke execute on function convo.hold_conversation(uuid, text) from public;
grant execute on function convo.hold_conversation(uuid, text) to convo_service;
-- <<< sql/functions/retention/hold_conversation.sql

-- >>> sql/functions/retention/release_conversation.sql
-- release_conversation: ends a legal hold.
-- in: the reason, for the audit trail
-- errors: PC001, PC012, 22023
-- since: 0.1.0
create function convo.release_conversation(conversation_id uuid, reason text)
returns convo.conversation_record
language sql
begin atomic
    select convo._set_hold(
        release_conversation.conversation_id, false, release_conversation.reason
    );
end;

comment on function convo.release_conversation(uuid, text) is
'Ends a legal hold. What is due is purged with the next run.';
revoke execute on function convo.release_conversation(uuid, text) from public;
grant execute on function convo.release_conversation(uuid, text) to convo_service;
-- <<< sql/functions/retention/release_conversation.sql

-- >>> sql/functions/retention/_due_conversations.sql
-- _due_conversations: what the tenants' retention rules say is due.
-- in: the ones on hold or the others; the most of each rule (null: all)
create function convo._due_conversations(is_on_hold boolean, page_size integer)
returns table (tenant_id text, conversation_id uuid, last_seq integer)
language sql stable
begin atomic
    select
        c.tenant_id,
        c.conversation_id,
        c.last_seq
    from convo.retention_policy as r
    cross join lateral (
        select
            s.tenant_id,
            s.conversation_id,
            s.last_seq
        from convo.conversation as s
        where s.tenant_id = r.tenant_id
            and s.retention_class = r.retention_class
            -- what is due by activity was created before that, too: the index helps
            and s.created_at < statement_timestamp() - r.max_age
            and (
                r.basis = 'creation'
                or s.updated_at < statement_timestamp() - r.max_age
            )
            and s.is_on_hold = _due_conversations.is_on_hold
        order by s.created_at
        limit _due_conversations.page_size
    ) as c;
end;

comment on function convo._due_conversations(boolean, integer) is
'What the tenants'' retention rules say is due, on hold or not.';
revoke execute on function convo._due_conversations(boolean, integer) from public;
grant execute on function convo._due_conversations(boolean, integer)
to convo_maintainer;
-- <<< sql/functions/retention/_due_conversations.sql

-- >>> sql/functions/retention/purge.sql
-- purge: one batch of what is due by the retention rules of all tenants.
-- Works under row security: its role sees what is due, and can delete what is due and
-- not held. Rows that are locked are left for the next run, so two purges at once share
-- the work; a purge that is killed leaves whole conversations, never parts.
-- in: is_dry_run: only count what this call would remove; page_size: most conversations
-- out: what went, and how many are due but stay because they are held
-- errors: 22023; over 1,000 is 1,000
-- locks: the rows it deletes
-- since: 0.1.0
create function convo.purge(
    is_dry_run boolean default false,
    page_size integer default 500
) returns convo.purge_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    batch_size constant integer := convo._size('page_size', purge.page_size, 1000);
    run_id constant uuid := convo._uuid_v7();
    prompts convo.prompt[];
    result convo.purge_record;
begin
    result.started_at := clock_timestamp();
    result.is_dry_run := purge.is_dry_run;
    if result.is_dry_run is null then
        perform convo._fail('22023', '{"argument": "is_dry_run", "reason": "missing"}');
    end if;
    select count(*) into result.held
    from convo._due_conversations(true, null);

    if result.is_dry_run then
        select count(*), coalesce(sum(d.last_seq), 0)
        into result.conversations, result.messages
        from (
            select a.last_seq
            from convo._due_conversations(false, batch_size) as a
            limit batch_size
        ) as d;
        result.finished_at := clock_timestamp();
        return result;
    end if;

    -- _due_conversations once more, with the rows locked: a rule or an activity that
    -- has just changed is seen on the locked row.
    with due as materialized (
        select c.tenant_id, c.conversation_id
        from convo.retention_policy as r
        cross join lateral (
            select s.tenant_id, s.conversation_id
            from convo.conversation as s
            where s.tenant_id = r.tenant_id
                and s.retention_class = r.retention_class
                and s.created_at < statement_timestamp() - r.max_age
                and (
                    r.basis = 'creation'
                    or s.updated_at < statement_timestamp() - r.max_age
                )
                and not s.is_on_hold
            order by s.created_at
            limit batch_size
            for update skip locked
        ) as c
        limit batch_size
    ),

    gone as (
        delete from convo.conversation as c
        using due as d
        where c.tenant_id = d.tenant_id and c.conversation_id = d.conversation_id
        returning
            c.tenant_id, c.conversation_id, c.user_id, c.last_seq,
            c.system_prompt_sha256
    ),

    tombstones as (
        insert into convo.tombstone (tenant_id, conversation_id, user_id)
        select g.tenant_id, g.conversation_id, g.user_id
        from gone as g
        on conflict do nothing -- by direct SQL, before its time
    ),

    runs as (
        insert into convo.purge_run (
            tenant_id, purge_run_id, conversations, messages, started_at, finished_at
        )
        select
            g.tenant_id, run_id, count(*), sum(g.last_seq), result.started_at,
            clock_timestamp()
        from gone as g
        group by g.tenant_id
    )

    select
        count(*),
        coalesce(sum(g.last_seq), 0),
        array_agg(distinct row(
            g.tenant_id, g.user_id, g.system_prompt_sha256, null, null, null
        )::convo.prompt) filter (where g.system_prompt_sha256 is not null)
    into result.conversations, result.messages, prompts
    from gone as g;

    perform convo._collect_prompt(p.tenant_id, p.user_id, p.sha256)
    from unnest(prompts) as p;
    result.finished_at := clock_timestamp();
    return result;
end
$$;

comment on function convo.purge(boolean, integer) is
'Removes one batch of what is due by the retention rules, across tenants. Held '
'conversations stay and are counted.';
revoke execute on function convo.purge(boolean, integer) from public;
grant execute on function convo.purge(boolean, integer) to convo_maintainer;
-- <<< sql/functions/retention/purge.sql

-- >>> sql/functions/retention/purge_all.sql
-- purge_all: purges until nothing is due, and commits after each batch.
-- Called in autocommit. A procedure that commits can't have a SET clause, so all it does
-- is call purge.
-- in: page_size: most conversations a batch; max_batches: stop after so many (null: never)
-- errors: 22023, 2D000 inside a transaction
-- since: 0.1.0
create procedure convo.purge_all(
    page_size integer default 500,
    max_batches integer default null
)
language plpgsql
as $$
#variable_conflict use_column
declare
    batches integer := 0;
begin
    if purge_all.max_batches operator(pg_catalog.<) 0 then
        perform convo._size('max_batches', purge_all.max_batches, 0);
    end if;
    while coalesce(batches operator(pg_catalog.<) purge_all.max_batches, true) loop
        exit when (convo.purge(false, purge_all.page_size)).conversations
            operator(pg_catalog.=) 0;
        commit;
        batches := batches operator(pg_catalog.+) 1;
    end loop;
end
$$;

comment on procedure convo.purge_all(integer, integer) is
'Purges until nothing is due, and commits after each batch. Call it in autocommit.';
revoke execute on procedure convo.purge_all(integer, integer) from public;
grant execute on procedure convo.purge_all(integer, integer) to convo_maintainer;
-- <<< sql/functions/retention/purge_all.sql

reset role;

set local role convo_owner;
insert into convo.schema_migration (track, version, name)
values ('core', 1, '0001_initial');
reset role;

-- migrate:down
