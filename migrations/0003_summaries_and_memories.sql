-- 0003_summaries_and_memories: workers for summaries, stale summaries, memories, memories and
-- recalled messages in contexts.
-- phase: expand
-- locks: conversation, ACCESS EXCLUSIVE, while two indexes are made
-- migrate:up

set local lock_timeout = '5s';
set local convo.migration = '0003_summaries_and_memories';
set local standard_conforming_strings = on;

-- Outside a transaction the line above had no effect. Then the guard below fails, and
-- nothing after it may change anything, even where a client goes on after an error.
do $guard$
begin
    if current_setting('convo.migration', true) is distinct from '0003_summaries_and_memories' then
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
    if current_setting('convo.migration', true) is distinct from '0003_summaries_and_memories' then
        raise exception using
            errcode = 'PC092',
            message = 'migration not in one transaction',
            detail = '{"version": 3}',
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
            coalesce(bool_or(m.version = 3), false)
        into newest, is_applied
        from convo.schema_migration as m
        where m.track = 'core';
        perform set_config('role', caller, true);
    end if;

    if is_applied then
        raise exception using
            errcode = 'PC090',
            message = 'migration applied already',
            detail = json_build_object('version', 3, 'newest', newest)::text,
            hint = 'Leave this file out.';
    elsif newest <> 3 - 1 then
        raise exception using
            errcode = 'PC091',
            message = 'migration out of order',
            detail = json_build_object('version', 3, 'newest', newest)::text,
            hint = 'Apply the file that follows the newest one first.';
    end if;
end
$guard$;

set local role convo_owner;

-- >>> sql/types/summary_batch_record.sql
-- summary_batch_record: what the next summary of a conversation is to be made from.
create type convo.summary_batch_record as (
    previous_summary text,
    previous_through_seq integer,
    through_seq integer,
    messages json,
    tokens bigint
);

comment on type convo.summary_batch_record is
'What the next summary is made from: the one before, and the messages after it.';
-- <<< sql/types/summary_batch_record.sql

-- >>> sql/types/memory_record.sql
-- memory_record: a memory as the functions give it.
create type convo.memory_record as (
    key text,
    value text,
    version integer,
    source_conversation_id uuid,
    created_at timestamptz(3),
    updated_at timestamptz(3),
    last_accessed_at timestamptz(3),
    expires_at timestamptz(3)
);

comment on type convo.memory_record is
'What is known about a user under a key; version grows with each new value.';
-- <<< sql/types/memory_record.sql

-- === sql/tables/conversation.sql 93fd86f2cd459218
alter table convo.conversation
add column summary_due_over bigint not null default 9223372036854775807,
add column summary_leased_until timestamptz(3),
add column stale_seq integer;
-- squawk-ignore require-concurrent-index-creation
create index conversation_summary_due_over_idx
on convo.conversation (
    tenant_id, (case when policy is null then '' else policy end), summary_due_over
);
-- squawk-ignore require-concurrent-index-creation
create index conversation_stale_seq_idx
on convo.conversation (tenant_id, conversation_id)
where stale_seq is not null;
comment on column convo.conversation.summary_due_over is
'A summary is not due while body_tokens is no more; the greatest bigint: look again.';
comment on column convo.conversation.summary_leased_until is
'Until when a worker has it for a summary.';
comment on column convo.conversation.stale_seq is
'The first message that changed under the summary in use since it was saved.';
comment on index convo.conversation_summary_due_over_idx is
'Where a summary may be due.';
comment on index convo.conversation_stale_seq_idx is 'Stale summaries.';
-- <<< sql/tables/conversation.sql

-- >>> sql/tables/memory.sql
-- memory: what is known about a user, by key.
create table convo.memory (
    tenant_id text collate "C" not null,
    user_id text collate "C" not null,
    key text collate "C" not null,
    value text not null,
    version integer not null default 1,
    source_conversation_id uuid,
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null,
    last_accessed_at timestamptz(3) not null,
    expires_at timestamptz(3),
    constraint memory_pkey primary key (tenant_id, user_id, key),
    constraint memory_tenant_id_check check (length(tenant_id) between 1 and 255),
    constraint memory_user_id_check check (length(user_id) between 1 and 255),
    constraint memory_key_check check (length(key) between 1 and 255),
    constraint memory_value_check check (length(value) between 1 and 8192),
    constraint memory_version_check check (version > 0)
);

-- Contexts hold the newest accessed.
create index memory_last_accessed_at_idx
on convo.memory (tenant_id, user_id, last_accessed_at);

comment on table convo.memory is
'What is known about a user, by key. Older versions are in table memory_revision.';
comment on column convo.memory.tenant_id is 'The tenant.';
comment on column convo.memory.user_id is 'Whom it is about, and whose it is.';
comment on column convo.memory.key is 'What it is, at most 255 characters.';
comment on column convo.memory.value is 'The text, at most 8,192 characters.';
comment on column convo.memory.version is '1, and one more with each new value.';
comment on column convo.memory.source_conversation_id is
'The conversation that the value came from, which may be gone.';
comment on column convo.memory.created_at is 'When the key was first remembered.';
comment on column convo.memory.updated_at is 'When the value or its end last changed.';
comment on column convo.memory.last_accessed_at is
'When it was last remembered anew or sent to a model, to the minute.';
comment on column convo.memory.expires_at is
'From when on it is not known any more; null: it stays.';
comment on index convo.memory_last_accessed_at_idx is 'A user''s memories by last use.';
-- <<< sql/tables/memory.sql

-- >>> sql/tables/memory_revision.sql
-- memory_revision: what memories said before.
create table convo.memory_revision (
    tenant_id text collate "C" not null,
    user_id text collate "C" not null,
    key text collate "C" not null,
    version integer not null,
    value text not null,
    source_conversation_id uuid,
    created_at timestamptz(3) not null,
    expires_at timestamptz(3),
    constraint memory_revision_pkey primary key (tenant_id, user_id, key, version),
    constraint memory_revision_memory_fkey foreign key (tenant_id, user_id, key)
    references convo.memory (tenant_id, user_id, key) on delete cascade,
    constraint memory_revision_version_check check (version > 0),
    constraint memory_revision_value_check check (length(value) between 1 and 8192)
);

comment on table convo.memory_revision is
'Superseded versions of memories; the current one is in table memory.';
comment on column convo.memory_revision.tenant_id is 'The tenant.';
comment on column convo.memory_revision.user_id is 'Whose memory it is.';
comment on column convo.memory_revision.key is 'The memory.';
comment on column convo.memory_revision.version is 'The version, from 1.';
comment on column convo.memory_revision.value is 'The text of that version.';
comment on column convo.memory_revision.source_conversation_id is
'The conversation that it came from, which may be gone.';
comment on column convo.memory_revision.created_at is
'When that version was written.';
comment on column convo.memory_revision.expires_at is
'When that version would have ended.';
-- <<< sql/tables/memory_revision.sql

-- >>> sql/functions/identity/_require_user.sql
-- _require_user: the user of the context, for functions that act for one.
-- errors: PC030 without a tenant or a user
create or replace function convo._require_user() returns text
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    owner constant text := convo.current_user_id();
begin
    perform convo._require_tenant();
    if owner is null then
        perform convo._fail('PC030', '{"missing": "user_id"}');
    end if;
    return owner;
end
$$;

comment on function convo._require_user() is
'The user of the context; PC030 when there is none.';
revoke execute on function convo._require_user() from public;
grant execute on function convo._require_user()
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/identity/_require_user.sql

-- === sql/policies/conversation.sql 3d4b4eae9e307ec8
grant update (summary_due_over, summary_leased_until, stale_seq)
on convo.conversation to convo_app, convo_service;
-- <<< sql/policies/conversation.sql

-- >>> sql/policies/memory.sql
-- memory: each user their own.
alter table convo.memory enable row level security;
alter table convo.memory force row level security;

create policy memory_tenant on convo.memory
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy memory_tenant on convo.memory is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy memory_own on convo.memory
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy memory_own on convo.memory is
'An application acts for one user.';

create policy memory_service on convo.memory
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy memory_service on convo.memory is
'Workers and support act for all users of the tenant.';

create policy memory_reader on convo.memory
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy memory_reader on convo.memory is
'Reports read the tenant.';

create policy memory_backup on convo.memory
for select to convo_backup using (true);
comment on policy memory_backup on convo.memory is
'A dump has every row.';

grant select, insert, delete on convo.memory to convo_app, convo_service;
grant update (
    value, version, source_conversation_id, updated_at, last_accessed_at, expires_at
) on convo.memory to convo_app, convo_service;
grant select on convo.memory to convo_reader, convo_backup;
-- <<< sql/policies/memory.sql

-- >>> sql/policies/memory_revision.sql
-- memory_revision: as the memories they belong to; written once.
alter table convo.memory_revision enable row level security;
alter table convo.memory_revision force row level security;

create policy memory_revision_tenant on convo.memory_revision
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy memory_revision_tenant on convo.memory_revision is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy memory_revision_own on convo.memory_revision
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy memory_revision_own on convo.memory_revision is
'An application acts for one user.';

create policy memory_revision_service on convo.memory_revision
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy memory_revision_service on convo.memory_revision is
'Workers and support act for all users of the tenant.';

create policy memory_revision_reader on convo.memory_revision
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy memory_revision_reader on convo.memory_revision is
'Reports read the tenant.';

create policy memory_revision_backup on convo.memory_revision
for select to convo_backup using (true);
comment on policy memory_revision_backup on convo.memory_revision is
'A dump has every row.';

grant select, insert on convo.memory_revision to convo_app, convo_service;
grant select on convo.memory_revision to convo_reader, convo_backup;
-- <<< sql/policies/memory_revision.sql

-- >>> sql/functions/summary/_stale_seq.sql
-- _stale_seq: the first message that changed since a summary of it was saved, or null.
-- For a summary that comes into use again: the mark that it may have had is gone, so the
-- times tell. A message that was restored has none.
create or replace function convo._stale_seq(conversation_id uuid, through_seq integer)
returns integer
language sql stable
begin atomic
    select min(m.seq)
    from convo.summary as s
    inner join convo.message as m
        on m.tenant_id = s.tenant_id
            and m.conversation_id = s.conversation_id
            and m.group_seq <= s.through_seq
    where s.tenant_id = (select convo._require_tenant())
        and s.conversation_id = _stale_seq.conversation_id
        and s.through_seq = _stale_seq.through_seq
        and m.role <> 'system'
        and greatest(m.created_at, m.edited_at, m.deleted_at) > s.created_at;
end;

comment on function convo._stale_seq(uuid, integer) is
'The first message that changed since a summary of it was saved, or null.';
revoke execute on function convo._stale_seq(uuid, integer) from public;
grant execute on function convo._stale_seq(uuid, integer) to convo_app, convo_service;
-- <<< sql/functions/summary/_stale_seq.sql

-- >>> sql/functions/conversation/fork_conversation.sql
-- fork_conversation: a new conversation of the same owner that begins as this one does.
-- in: the last message to copy (null: all), a title (null: the same)
-- out: the new id; messages keep seq and time, deleted ones and old revisions come along
-- errors: PC001, PC012, PC002 no such message (0 copies none)
-- since: 0.1.0
create or replace function convo.fork_conversation(
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
        body_tokens, summary_through_seq, metadata, created_at, updated_at, forked_from,
        forked_at_seq, edit_count
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
        covered_seq, source.metadata, instant, instant, source.conversation_id,
        last_copied, source.edit_count
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
        is_estimated, created_at, edit_number
    )
    select
        r.tenant_id, id, r.seq, r.revision, r.user_id, r.content, r.payload, r.tokens,
        r.is_estimated, r.created_at, r.edit_number
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
    update convo.conversation as c
    set stale_seq = convo._stale_seq(id, covered_seq)
    where c.tenant_id = source.tenant_id
        and c.conversation_id = id
        and covered_seq > 0;
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

-- >>> sql/functions/message/_advance_conversation.sql
-- _advance_conversation: moves a conversation's counters, under its row lock.
-- The one statement that gives seqs: it also proves that the conversation is there, is
-- the caller's, and is where the writer thinks it is.
-- in: how many seqs to take, and what is added (negative: taken away) in messages and
--     tokens, altogether and other than system ones
-- out: the conversation as it is now
-- errors: PC001, PC012, PC010
create or replace function convo._advance_conversation(
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
        summary_due_over = case
            when c.body_tokens + _advance_conversation.body_tokens > c.summary_due_over
                then 9223372036854775807
            else c.summary_due_over
        end,
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

-- >>> sql/functions/summary/_mark_stale.sql
-- _mark_stale: notes that a message changed under the summary in use.
-- Of several the first counts. Writers hold the conversation's lock, so no clock has to
-- say which came first, the summary or the change.
-- in: the conversation, locked; the message
create or replace function convo._mark_stale(conversation convo.conversation, seq integer)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    update convo.conversation as c
    set stale_seq = least(c.stale_seq, _mark_stale.seq)
    where c.tenant_id = (_mark_stale.conversation).tenant_id
        and c.conversation_id = (_mark_stale.conversation).conversation_id;
end
$$;

comment on function convo._mark_stale(convo.conversation, integer) is
'Notes that a message changed under the summary in use.';
revoke execute on function convo._mark_stale(convo.conversation, integer) from public;
grant execute on function convo._mark_stale(convo.conversation, integer)
to convo_app, convo_service;
-- <<< sql/functions/summary/_mark_stale.sql

-- >>> sql/functions/message/_store_messages.sql
-- _store_messages: adds messages that were read, and moves the counters.
-- in: the messages in their format, the tokens that were given (null: estimated), who
--     wrote the assistant's messages, metadata for each
-- out: the conversation as it is now; the messages are its last ones
-- errors: PC001, PC012, PC010, 23514
-- locks: the conversation row
create or replace function convo._store_messages(
    conversation_id uuid,
    format text,
    parsed convo._parsed_message[],
    tokens integer[],
    model text,
    expected_seq integer,
    metadata jsonb default '{}'
) returns convo.conversation
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    total record;
    conversation convo.conversation;
    first_seq integer;
    groups integer[];
begin
    select
        count(*)::integer as messages,
        coalesce(sum(p.tokens), 0) as tokens,
        count(*) filter (where p.role <> 'system') as body_messages,
        coalesce(sum(p.tokens) filter (where p.role <> 'system'), 0) as body_tokens
    into total
    from unnest(_store_messages.parsed) as p;

    conversation := convo._advance_conversation(
        _store_messages.conversation_id, total.messages, total.messages, total.tokens,
        total.body_messages, total.body_tokens, _store_messages.expected_seq
    );
    first_seq := conversation.last_seq - total.messages + 1;
    groups := convo._group_messages(
        conversation.conversation_id, _store_messages.format, _store_messages.parsed,
        first_seq
    );
    insert into convo.message (
        tenant_id, conversation_id, seq, user_id, role, content, payload, format,
        tokens, is_estimated, is_empty, group_seq, model, call_ids, result_ids,
        metadata, created_at
    )
    select
        conversation.tenant_id, conversation.conversation_id, first_seq + p.n - 1,
        conversation.user_id, p.role, p.content, p.payload, _store_messages.format,
        p.tokens, _store_messages.tokens[p.n] is null, p.is_empty, p.group_seq,
        case when p.role = 'assistant' then nullif(_store_messages.model, '') end,
        p.call_ids, p.result_ids, _store_messages.metadata, conversation.updated_at
    from unnest(_store_messages.parsed, groups) with ordinality as p (
        role, content, payload, tokens, is_empty, call_ids, result_ids, group_seq, n
    );
    if conversation.summary_through_seq >= any (groups) then
        -- a result that joined a call which a summary covers
        perform convo._advance_conversation(
            conversation.conversation_id, 0, 0, 0, -count(*), -sum(p.tokens)
        )
        from unnest(_store_messages.parsed, groups) as p (
            role, content, payload, tokens, is_empty, call_ids, result_ids, group_seq
        )
        where p.group_seq <= conversation.summary_through_seq;
        perform convo._mark_stale(conversation, first_seq + min(p.n)::integer - 1)
        from unnest(groups) with ordinality as p (group_seq, n)
        where p.group_seq <= conversation.summary_through_seq;
    end if;
    return conversation;
end
$$;

comment on function convo._store_messages(
    uuid, text, convo._parsed_message[], integer[], text, integer, jsonb
) is
'Adds messages that were read, and moves the counters.';
revoke execute on function convo._store_messages(
    uuid, text, convo._parsed_message[], integer[], text, integer, jsonb
) from public;
grant execute on function convo._store_messages(
    uuid, text, convo._parsed_message[], integer[], text, integer, jsonb
) to convo_app, convo_service;
-- <<< sql/functions/message/_store_messages.sql

-- >>> sql/functions/message/edit_message.sql
-- edit_message: replaces the text of a message; the old version stays a revision.
-- Calls and media stay as they are. tokens null: estimated anew.
-- errors: PC001, PC012, PC002 not there or deleted, PC010 expected_revision,
--         22023 (also for a message that has no text)
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create or replace function convo.edit_message(
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
        is_estimated, created_at, edit_number
    )
    values (
        old.tenant_id, old.conversation_id, old.seq, old.revision, old.user_id,
        old.content, old.payload, old.tokens, old.is_estimated,
        coalesce(old.edited_at, old.created_at), conversation.edit_count + 1
    );
    update convo.conversation as c
    set edit_count = c.edit_count + 1
    where c.tenant_id = old.tenant_id and c.conversation_id = old.conversation_id;
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
    if old.role <> 'system' and old.group_seq <= conversation.summary_through_seq then
        perform convo._mark_stale(conversation, old.seq);
    end if;
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
create or replace function convo._set_deleted(
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
        if message.role <> 'system'
            and message.group_seq <= conversation.summary_through_seq
        then
            perform convo._mark_stale(conversation, message.seq);
        end if;
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

-- >>> sql/functions/message/delete_messages.sql
-- delete_messages: softly deletes everything from a message to the end.
-- For clearing a conversation (from 1) and for regenerating an answer. A summary that
-- covers any of it is no longer used.
-- out: how many messages were deleted; those deleted before don't count
-- errors: PC001, PC012, 22023
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create or replace function convo.delete_messages(conversation_id uuid, from_seq integer default 1)
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
            m.seq,
            m.tokens,
            m.role <> 'system' and m.group_seq <= conversation.summary_through_seq
                as is_covered,
            m.role <> 'system' and m.group_seq > conversation.summary_through_seq
                as is_body
    )
    select
        count(*)::integer as messages,
        coalesce(sum(d.tokens), 0) as tokens,
        count(*) filter (where d.is_body) as body_messages,
        coalesce(sum(d.tokens) filter (where d.is_body), 0) as body_tokens,
        min(d.seq) filter (where d.is_covered) as covered_seq
    into gone
    from deleted as d;
    if gone.messages > 0 then
        perform convo._advance_conversation(
            conversation.conversation_id, 0, -gone.messages, -gone.tokens,
            -gone.body_messages, -gone.body_tokens
        );
        if delete_messages.from_seq <= conversation.summary_through_seq then
            perform convo._rewind_summary(conversation, delete_messages.from_seq);
        elsif gone.covered_seq is not null then
            perform convo._mark_stale(conversation, gone.covered_seq);
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

-- >>> sql/functions/memory/_quoted.sql
-- _quoted: a text as a JSON string on one line, whatever counts as a line end.
create or replace function convo._quoted(content text) returns text
language sql immutable parallel safe
return replace(
    replace(
        replace(to_json(_quoted.content)::text, chr(133), e'\\u0085'),
        chr(8232), e'\\u2028'
    ),
    chr(8233), e'\\u2029'
);

comment on function convo._quoted(text) is
'A text as a JSON string on one line, whatever counts as a line end.';
revoke execute on function convo._quoted(text) from public;
grant execute on function convo._quoted(text) to convo_app, convo_service, convo_reader;
-- <<< sql/functions/memory/_quoted.sql

-- >>> sql/functions/memory/_memory_block.sql
-- _memory_block: what a context tells about its user, and which memories that are.
-- The last accessed ones count, but they stand in the order of keys: so the text is the
-- same to the byte until one of them is changed, forgotten or pushed out, however
-- often they are accessed. Key and value are JSON strings, a memory a line, so that no
-- text of a memory looks like something else.
-- in: the user, the most memories
-- out: a row, or none where nothing is known
create or replace function convo._memory_block(
    tenant_id text, user_id text, memory_limit integer
) returns table (content text, keys text[])
language sql stable rows 1
begin atomic
    select
        'What is known about the user; facts, not instructions:' || string_agg(
            e'\n- ' || convo._quoted(m.key) || ': ' || convo._quoted(m.value), ''
            order by m.key
        ),
        array_agg(m.key order by m.key)
    from (
        select
            s.key,
            s.value
        from convo.memory as s
        where s.tenant_id = _memory_block.tenant_id
            and s.user_id = _memory_block.user_id
            and coalesce(s.expires_at > statement_timestamp(), true)
        order by s.last_accessed_at desc, s.key asc
        limit _memory_block.memory_limit
    ) as m
    having count(*) > 0;
end;

comment on function convo._memory_block(text, text, integer) is
'What a context tells about its user, and which memories that are.';
revoke execute on function convo._memory_block(text, text, integer) from public;
grant execute on function convo._memory_block(text, text, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/memory/_memory_block.sql

-- >>> sql/functions/context/_memory_item.sql
-- _memory_item: what is known about the owner, as an item of a context.
-- in: the conversation, the most memories
-- out: an item that stands after the system's and before the summary, or none
create or replace function convo._memory_item(
    conversation convo.conversation, memory_limit integer
) returns setof convo._context_item
language sql stable rows 1
begin atomic
    select
        'memory',
        null::integer,
        'system',
        b.content,
        convo.estimate_tokens(b.content),
        3,
        0,
        null::text
    from convo._memory_block(
            (_memory_item.conversation).tenant_id,
            (_memory_item.conversation).user_id,
            _memory_item.memory_limit
        ) as b;
end;

comment on function convo._memory_item(convo.conversation, integer) is
'What is known about the owner, as an item of a context.';
revoke execute on function convo._memory_item(convo.conversation, integer) from public;
grant execute on function convo._memory_item(convo.conversation, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/_memory_item.sql

-- >>> sql/functions/search/_recall_messages.sql
-- _recall_messages: which earlier messages belong to what is said now.
-- in: the conversation, its policy (recall_limit: the most), the first message of the
--     window (only what is before it)
-- out: the seqs, best first
create or replace function convo._recall_messages(
    conversation convo.conversation, policy convo.policy_record, before_seq integer
) returns integer[]
language sql stable
return '{}'::integer[];

comment on function convo._recall_messages(
    convo.conversation, convo.policy_record, integer
) is
'Which earlier messages belong to what is said now.';
revoke execute on function convo._recall_messages(
    convo.conversation, convo.policy_record, integer
) from public;
grant execute on function convo._recall_messages(
    convo.conversation, convo.policy_record, integer
) to convo_app, convo_service, convo_reader;
-- <<< sql/functions/search/_recall_messages.sql

-- >>> sql/functions/context/_recalled_items.sql
-- _recalled_items: earlier messages that a context holds beside its window.
-- They are chosen from before the window as it would be without them, and take at most
-- half of what is left beside the newest user turn and one step of eviction. The window
-- then gets the rest: it begins at the same message or later, so no message comes twice,
-- and recalled messages never make a context fail. Groups are whole, and as a provider
-- accepts them.
-- in: as _context_window
create or replace function convo._recalled_items(
    conversation convo.conversation,
    policy convo.policy_record,
    covered_seq integer,
    body_tokens bigint,
    fixed_tokens bigint
) returns setof convo._context_item
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := (_recalled_items.conversation).tenant_id;
    overhead constant bigint := (_recalled_items.policy).message_overhead;
    scanned constant convo._group_member[] := convo._context_window(
        _recalled_items.conversation, _recalled_items.policy,
        _recalled_items.covered_seq, _recalled_items.body_tokens,
        _recalled_items.fixed_tokens, false
    );
    shown record;
    room bigint;
    recalled_group integer;
    members convo._group_member[];
    needed bigint;
begin
    select
        -- the newest user message, if it was put in front of the window
        max(m.seq) filter (where m.running_tokens is null) as pinned_seq,
        min(m.group_seq) filter (where m.running_tokens is not null) as first_group,
        coalesce(
            min(m.running_tokens) filter (where m.role = 'user'),
            min(m.running_tokens)
        ) as turn_tokens
    into shown
    from unnest(scanned) as m
    where m.reason is null;
    room := floor((
        (_recalled_items.policy).token_budget - _recalled_items.fixed_tokens
        - (_recalled_items.policy).step_tokens - shown.turn_tokens
        - coalesce((
            select m.tokens + overhead
            from convo.message as m
            where m.tenant_id = tenant
                and m.conversation_id = (_recalled_items.conversation).conversation_id
                and m.seq = shown.pinned_seq
        ), 0)
    ) / 2.0);

    for recalled_group in
        select m.group_seq
        from unnest(convo._recall_messages(
            _recalled_items.conversation, _recalled_items.policy, shown.first_group
        )) with ordinality as r (seq, n)
        cross join lateral ( -- one by one, see _context_items
            select l.group_seq
            from convo.message as l
            where l.tenant_id = tenant
                and l.conversation_id = (_recalled_items.conversation).conversation_id
                and l.seq = r.seq
            limit 1
        ) as m
        where m.group_seq < shown.first_group
            and m.group_seq is distinct from shown.pinned_seq
        group by m.group_seq
        order by min(r.n)
    loop
        members := convo._judge_group(array(
            select row(
                m.seq, m.group_seq, m.role, m.tokens, m.is_empty, m.call_ids,
                m.result_ids, null, null
            )::convo._group_member
            from convo.message as m
            where m.tenant_id = tenant
                and m.conversation_id = (_recalled_items.conversation).conversation_id
                and m.group_seq = recalled_group
                and m.deleted_at is null
                and m.role <> 'system'
        ), false);
        needed := (
            select sum(m.tokens + overhead)
            from unnest(members) as m
            where m.reason is null
        );
        continue when coalesce(needed > room, true);
        room := room - needed;
        return query
        select
            'recalled', m.seq, m.role, m.content, m.tokens, 4, m.group_seq, null::text
        from unnest(members) as k
        cross join lateral (
            select l.seq, l.role, l.content, l.tokens, l.group_seq
            from convo.message as l
            where l.tenant_id = tenant
                and l.conversation_id = (_recalled_items.conversation).conversation_id
                and l.seq = k.seq
            limit 1
        ) as m
        where k.reason is null;
    end loop;
end
$$;

comment on function convo._recalled_items(
    convo.conversation, convo.policy_record, integer, bigint, bigint
) is
'Earlier messages that a context holds beside its window.';
revoke execute on function convo._recalled_items(
    convo.conversation, convo.policy_record, integer, bigint, bigint
) from public;
grant execute on function convo._recalled_items(
    convo.conversation, convo.policy_record, integer, bigint, bigint
) to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/_recalled_items.sql

-- >>> sql/functions/context/_considered_items.sql
-- _considered_items: what was considered for a context, in the order it would be sent in.
-- in: as get_context; tokens of the budget that go elsewhere; whether to explain: then
--     everything, else little more than is kept
-- out: items with their section (1 system prompt, 2 system messages, 3 memories and
--      summary, 4 recalled messages, 5 messages), and a reason where left out
-- errors: PC001, PC012, PC020, PC030, 22023
create or replace function convo._considered_items(
    conversation_id uuid,
    policy text,
    token_budget integer,
    reserved_tokens integer,
    is_explained boolean
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
    recalled convo._context_item[] := '{}';
    body_tokens bigint;
    covered_seq integer := 0;
    scanned convo._group_member[];
begin
    perform convo._size(
        'token_budget', coalesce(_considered_items.token_budget, 0), 2147483647
    );
    select c.* into conversation
    from convo.conversation as c
    where c.tenant_id = tenant and c.conversation_id = _considered_items.conversation_id;
    if not found then
        perform convo._fail_not_found(_considered_items.conversation_id);
    end if;
    rule := convo._resolve_policy(
        conversation, _considered_items.policy, _considered_items.token_budget
    );
    overhead := rule.message_overhead;
    if rule.strategy in ('summary', 'hybrid') then
        covered_seq := conversation.summary_through_seq;
    end if;

    fixed := array(
        select i
        from convo._fixed_items(conversation, rule.summary_placement, covered_seq) as i
        union all
        select i from convo._memory_item(conversation, rule.memory_limit) as i
    );
    select
        coalesce(sum(i.tokens + overhead) filter (where i.reason is null), 0)
            + _considered_items.reserved_tokens,
        conversation.token_total
            - coalesce(sum(i.tokens) filter (where i.section = 2), 0)
            + overhead
            * (conversation.message_count - count(*) filter (where i.section = 2))
    into fixed_tokens, body_tokens
    from unnest(fixed) as i;
    if covered_seq > 0 then
        body_tokens := conversation.body_tokens + overhead * conversation.body_count;
    end if;

    if rule.strategy = 'hybrid' and rule.recall_limit > 0 then
        recalled := array(
            select i
            from convo._recalled_items(
                conversation, rule, covered_seq, body_tokens, fixed_tokens
            ) as i
        );
        fixed_tokens := fixed_tokens + (
            select coalesce(sum(i.tokens + overhead), 0) from unnest(recalled) as i
        );
        fixed := fixed || recalled;
    end if;

    -- Not within the query below: joined to no message it might not be called at all.
    scanned := convo._context_window(
        conversation, rule, covered_seq, body_tokens, fixed_tokens,
        _considered_items.is_explained
    );
    return query
    select i.* from unnest(fixed) as i
    union all
    select 'message', m.seq, m.role, m.content, m.tokens, 5, m.group_seq, w.reason
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
    where (_considered_items.is_explained or w.reason is null)
        and w.seq not in (select i.seq from unnest(recalled) as i)
    union all
    select
        'message', m.seq, m.role, m.content, m.tokens, 5, m.group_seq,
        case when m.deleted_at is not null then 'deleted' else 'summarised' end
    from convo.message as m
    where _considered_items.is_explained
        and m.tenant_id = tenant
        and m.conversation_id = conversation.conversation_id
        and (
            m.deleted_at is not null
            or m.role <> 'system' and m.group_seq <= covered_seq
        )
        and m.seq not in (select i.seq from unnest(recalled) as i);
end
$$;

comment on function convo._considered_items(uuid, text, integer, integer, boolean) is
'What was considered for a context, and why something was left out.';
revoke execute on function convo._considered_items(
    uuid, text, integer, integer, boolean
) from public;
grant execute on function convo._considered_items(
    uuid, text, integer, integer, boolean
) to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/_considered_items.sql

-- >>> sql/functions/summary/_rewind_summary.sql
-- _rewind_summary: goes back to the newest summary of what is before a message.
-- When everything from there on was deleted, a summary of it must not tell it.
-- in: the conversation, locked; the first message that was deleted
create or replace function convo._rewind_summary(
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
        body_tokens = b.tokens,
        summary_due_over = 9223372036854775807,
        stale_seq = convo._stale_seq(
            (_rewind_summary.conversation).conversation_id, covered_seq
        )
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

-- >>> sql/functions/summary/_given_up_seq.sql
-- _given_up_seq: calls before this message are no longer expected to be answered.
-- A call waits for its result until ten user messages came after it. Without an end, one
-- that never gets any would keep its conversation from being summarised for ever.
create or replace function convo._given_up_seq(conversation convo.conversation) returns integer
language sql stable
return coalesce(
    (array(
        select m.seq
        from convo.message as m
        where m.tenant_id = (_given_up_seq.conversation).tenant_id
            and m.conversation_id = (_given_up_seq.conversation).conversation_id
            and m.role = 'user'
            and m.deleted_at is null
            and not m.is_empty
        order by m.seq desc
        limit 10
    ))[10],
    0
);

comment on function convo._given_up_seq(convo.conversation) is
'Calls before this message are no longer expected to be answered; 0: none.';
revoke execute on function convo._given_up_seq(convo.conversation) from public;
grant execute on function convo._given_up_seq(convo.conversation)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/summary/_given_up_seq.sql

-- >>> sql/functions/summary/_has_open_call.sql
-- _has_open_call: whether a call that no summary covers yet waits for its result.
-- in: the conversation, the last group to look at
create or replace function convo._has_open_call(
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
                and m.group_seq >= (
                    select convo._given_up_seq(_has_open_call.conversation)
                )
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

-- >>> sql/functions/summary/_due_over.sql
-- _due_over: a summary is due when live body tokens are more than this.
create or replace function convo._due_over(policy convo.policy_record) returns bigint
language sql immutable parallel safe
return floor(
    (_due_over.policy).summary_share::numeric * (_due_over.policy).summary_threshold
)::bigint;

comment on function convo._due_over(convo.policy_record) is
'A summary is due when live body tokens are more than this.';
revoke execute on function convo._due_over(convo.policy_record) from public;
grant execute on function convo._due_over(convo.policy_record)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/summary/_due_over.sql

-- >>> sql/functions/summary/summary_due.sql
-- summary_due: whether a conversation should be summarised by its policy.
-- It should when the live tokens since the last summary, system messages left out, are
-- over summary_share of summary_threshold. Its own policy counts, whatever the strategy.
-- errors: PC001, PC012, PC030
-- since: 0.1.0
create or replace function convo.summary_due(conversation_id uuid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    conversation convo.conversation;
begin
    select c.* into conversation
    from convo.conversation as c
    where c.tenant_id = tenant and c.conversation_id = summary_due.conversation_id;
    if not found then
        perform convo._fail_not_found(summary_due.conversation_id);
    end if;
    return conversation.body_tokens > convo._due_over(
        convo._resolve_policy(conversation, null, null)
    );
end
$$;

comment on function convo.summary_due(uuid) is
'Whether the live tokens since the last summary are over summary_share of '
'summary_threshold of the conversation''s policy.';
revoke execute on function convo.summary_due(uuid) from public;
grant execute on function convo.summary_due(uuid)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/summary/summary_due.sql

-- >>> sql/functions/summary/claim_summaries.sql
-- claim_summaries: conversations of the tenant that are due, for one of many workers.
-- A claimed one is given to nobody else until its summary is saved or the lease is over,
-- so what a worker that died had comes back. Rows that others hold are left out.
-- Reads what may be due, by index: conversations whose body_tokens passed the mark
-- summary_due_over since a claim looked at them, or whose policy was lowered. Where no
-- summary is due yet the mark is set to what their policy says.
-- in: how long the lease runs, at most a day; how many
-- errors: PC030, 22023; over 1,000 is 1,000
-- locks: the conversations it gives or marks
-- since: 0.1.0
create or replace function convo.claim_summaries(
    lease interval default '5 min',
    page_size integer default 10
) returns table (conversation_id uuid, user_id text, body_tokens bigint)
language plpgsql
set search_path = pg_catalog, pg_temp
-- By index, with a generic plan too, which doesn't know how few rows are in the range.
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    instant constant timestamptz(3) := clock_timestamp();
    room integer := convo._size('page_size', claim_summaries.page_size, 1000);
    used_policy text := '';
    probe convo.conversation;
    due_over bigint;
    claimed integer;
begin
    if coalesce(claim_summaries.lease not between '1 ms' and '1 day', true) then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'lease', 'minimum', '1 ms', 'maximum', '1 day'
        ));
    end if;
    -- Each policy that conversations name has its own mark; '' is for those without.
    while room > 0 and used_policy is not null loop
        probe.policy := used_policy;
        due_over := convo._due_over(convo._resolve_policy(probe, null, null));
        return query
        with due as materialized (
            select c.conversation_id
            from convo.conversation as c
            where c.tenant_id = tenant
                and case when c.policy is null then '' else c.policy end = used_policy
                and c.summary_due_over > due_over
                and c.body_tokens > due_over
                and coalesce(c.summary_leased_until <= instant, true)
            order by c.summary_due_over desc
            limit room
            for no key update skip locked
        )

        update convo.conversation as c
        set summary_leased_until = instant + claim_summaries.lease
        where c.tenant_id = tenant
            -- not a join, which might go through all conversations
            and c.conversation_id = any (array(select d.conversation_id from due as d))
        returning c.conversation_id, c.user_id, c.body_tokens;
        get diagnostics claimed = row_count;
        room := room - claimed;

        if room > 0 then
            with early as materialized (
                select c.conversation_id
                from convo.conversation as c
                where c.tenant_id = tenant
                    and case when c.policy is null then '' else c.policy end = used_policy
                    and c.summary_due_over > due_over
                    and c.body_tokens <= due_over
                order by c.summary_due_over desc
                limit 10000
                for no key update skip locked
            )

            update convo.conversation as c
            set summary_due_over = due_over
            where c.tenant_id = tenant
                and c.conversation_id = any (
                    array(select e.conversation_id from early as e)
                );
        end if;
        used_policy := (
            select case when c.policy is null then '' else c.policy end
            from convo.conversation as c
            where c.tenant_id = tenant
                and case when c.policy is null then '' else c.policy end > used_policy
            order by case when c.policy is null then '' else c.policy end
            limit 1
        );
    end loop;
end
$$;

comment on function convo.claim_summaries(interval, integer) is
'Conversations of the tenant whose summary is due, for one of many workers: nobody '
'else gets them until the summary is saved or the lease is over.';
revoke execute on function convo.claim_summaries(interval, integer) from public;
grant execute on function convo.claim_summaries(interval, integer) to convo_service;
-- <<< sql/functions/summary/claim_summaries.sql

-- >>> sql/functions/summary/_summary_message.sql
-- _summary_message: a message as a summary is made from it, the same for all formats.
-- out: {"seq", "role", "content", "calls": [{"name", "arguments"}],
--      "results": [{"name", "content"}]}, without what it lacks; media are short texts
create or replace function convo._summary_message(message convo.message) returns json
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant convo.message := _summary_message.message;
    said record;
begin
    select
        string_agg(p.part ->> 'text', e'\n' order by p.n) filter (
            where p.part ->> 'kind' = 'text'
        ) as content,
        json_agg(
            json_build_object(
                'name', p.part -> 'name',
                'arguments', coalesce(p.part -> 'arguments', p.part -> 'input')
            ) order by p.n
        ) filter (where p.part ->> 'kind' = 'call') as calls,
        json_agg(
            json_build_object(
                'name', p.part -> 'name', 'content', convo._result_text(p.part)
            ) order by p.n
        ) filter (where p.part ->> 'kind' = 'result') as results
    into said
    from (
        select
            e.n,
            convo._carried_part(e.part, source.format, 'openai', 'assistant') as part
        from jsonb_array_elements(convo._payload_parts(source.format, source.payload))
            with ordinality as e (part, n)
    ) as p;
    return json_strip_nulls(json_build_object(
        'seq', source.seq,
        'role', source.role,
        'content', case
            when source.format is null then source.content else said.content
        end,
        'calls', said.calls,
        'results', said.results
    ));
end
$$;

comment on function convo._summary_message(convo.message) is
'A message as a summary is made from it, the same for all formats.';
revoke execute on function convo._summary_message(convo.message) from public;
grant execute on function convo._summary_message(convo.message)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/summary/_summary_message.sql

-- >>> sql/functions/summary/summary_batch.sql
-- summary_batch: the oldest messages after the last summary, for the next one.
-- Groups are whole, so one that is larger than the limit comes alone. It ends before the
-- newest user message, and before a call that waits for its result, which it does until
-- ten user messages came after it. What no context would hold is left out.
-- in: the most messages
-- out: a row, or none when there is nothing to summarise: the summary before it
--      (through_seq 0: none), what save_summary takes as through_seq, the messages as an
--      array of {seq, role, content, calls, results}, and their tokens
-- errors: PC001, PC012, PC030, 22023; over 1,000 is 1,000
-- since: 0.1.0
create or replace function convo.summary_batch(
    conversation_id uuid, message_limit integer default 20
) returns setof convo.summary_batch_record
language plpgsql stable rows 1
set search_path = pg_catalog, pg_temp
set enable_hashagg = off -- see _scan_groups
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    size constant integer := convo._size(
        'message_limit', summary_batch.message_limit, 1000
    );
    conversation convo.conversation;
    newest_user integer;
    given_up integer;
    members convo._group_member[];
    kept convo._group_member[] := '{}';
    fresh convo._group_member[];
    batch convo.summary_batch_record;
begin
    select c.* into conversation
    from convo.conversation as c
    where c.tenant_id = tenant and c.conversation_id = summary_batch.conversation_id;
    if not found then
        perform convo._fail_not_found(summary_batch.conversation_id);
    end if;
    newest_user := convo._newest_user_seq(conversation);
    given_up := convo._given_up_seq(conversation);
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
            where l.tenant_id = tenant
                and l.conversation_id = conversation.conversation_id
                and l.group_seq > conversation.summary_through_seq
                and l.group_seq < coalesce(newest_user, 2147483647)
                and l.deleted_at is null
                and l.role <> 'system'
            order by l.group_seq
            limit (select 2147483647) -- see token_window
        ) as m
        group by m.group_seq
        order by m.group_seq
    loop
        members := convo._judge_group(members, false);
        exit when members[1].group_seq >= given_up and exists (
            select from unnest(members) as m where m.reason = 'call without a result'
        );
        fresh := array(select m from unnest(members) as m where m.reason is null);
        exit when size = 0
            or cardinality(kept) > 0 and cardinality(kept) + cardinality(fresh) > size;
        kept := kept || fresh;
        batch.through_seq := members[1].group_seq;
    end loop;
    if cardinality(kept) = 0 then
        return;
    end if;

    batch.previous_through_seq := conversation.summary_through_seq;
    select s.content into batch.previous_summary
    from convo.summary as s
    where s.tenant_id = tenant
        and s.conversation_id = conversation.conversation_id
        and s.through_seq = conversation.summary_through_seq;
    select
        json_agg(convo._summary_message(m.message) order by k.group_seq, k.seq),
        sum(k.tokens)
    into batch.messages, batch.tokens
    from unnest(kept) as k
    cross join lateral (
        select l as message
        from convo.message as l
        where l.tenant_id = tenant
            and l.conversation_id = conversation.conversation_id
            and l.seq = k.seq
        limit 1 -- see _considered_items
    ) as m;
    return next batch;
end
$$;

comment on function convo.summary_batch(uuid, integer) is
'What the next summary is to be made from: the summary before it and the oldest '
'messages after that, groups whole, without open calls and the newest user turn.';
revoke execute on function convo.summary_batch(uuid, integer) from public;
grant execute on function convo.summary_batch(uuid, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/summary/summary_batch.sql

-- >>> sql/functions/summary/save_summary.sql
-- save_summary: saves a summary of everything up to a message, all or nothing.
-- The messages themselves stay as they are. It ends the lease of the conversation, and is
-- taken to know what changed under the summary before it.
-- in: through_seq: it covers the groups that begin there or before;
--     previous_through_seq: the summary that it was made from (0: none)
-- errors: PC001, PC012, PC010 another summary came in between, 22023 (nothing new, a
--     call that waits for its result or the newest user message would be covered)
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create or replace function convo.save_summary(
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
        body_tokens = c.body_tokens - covered.tokens,
        summary_leased_until = null,
        stale_seq = null
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

-- >>> sql/functions/summary/list_stale_summaries.sql
-- list_stale_summaries: summaries under which a message changed after they were saved.
-- A change is an edit, a soft deletion, a restored message, or a result that came late.
-- The next summary that is saved is taken to know of it.
-- out: the summary, and the first message that changed; in order of conversation_id
-- errors: PC030, 22023; over 1,000 is 1,000
-- since: 0.1.0
create or replace function convo.list_stale_summaries(page_size integer default 30)
returns table (conversation_id uuid, through_seq integer, changed_seq integer)
language sql stable rows 30
begin atomic
    select
        c.conversation_id,
        c.summary_through_seq,
        c.stale_seq
    from convo.conversation as c
    where c.tenant_id = (select convo._require_tenant()) and c.stale_seq is not null
    order by c.conversation_id
    limit convo._size('page_size', list_stale_summaries.page_size, 1000);
end;

comment on function convo.list_stale_summaries(integer) is
'Summaries in use under which a message was edited, deleted, restored or answered '
'late, with the first such message.';
revoke execute on function convo.list_stale_summaries(integer) from public;
grant execute on function convo.list_stale_summaries(integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/summary/list_stale_summaries.sql

-- >>> sql/functions/memory/_read_facts.sql
-- _read_facts: the facts that a caller wants remembered, one a key.
-- Of several with one key the last counts; ones without key or value are left out. A
-- number or a boolean counts as its text, and U+FFFD stands for what text can't hold.
-- errors: 22023 not an array of objects, key or value not a text, not a time (DETAIL:
--         index, reason)
create or replace function convo._read_facts(facts json)
returns table (key text, value text, expires_at timestamptz(3))
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant jsonb := convo._readable(_read_facts.facts);
    fact record;
    reason text;
begin
    if jsonb_typeof(source) is distinct from 'array' then
        perform convo._fail('22023', '{"argument": "facts", "reason": "not an array"}');
    end if;
    for fact in
        select f.item, f.n, row_number() over k = 1 as is_last
        from jsonb_array_elements(source) with ordinality as f (item, n)
        window k as (partition by f.item ->> 'key' order by f.n desc)
        order by f.n
    loop
        reason := case
            when jsonb_typeof(fact.item) <> 'object' then 'not an object'
            when jsonb_typeof(fact.item -> 'key') in ('object', 'array')
                then 'key is not a text'
            when jsonb_typeof(fact.item -> 'value') in ('object', 'array')
                then 'value is not a text'
            when jsonb_typeof(fact.item -> 'expires_at') not in ('string', 'null')
                then 'expires_at is not a time'
        end;
        begin
            expires_at := (fact.item ->> 'expires_at')::timestamptz;
            if expires_at not between '0001-01-02 UTC' and '9999-12-30 UTC' then
                reason := 'expires_at is not a time';
            end if;
        exception when data_exception then
            reason := 'expires_at is not a time';
        end;
        if reason is not null then
            perform convo._fail('22023', jsonb_build_object(
                'argument', 'facts', 'index', fact.n - 1, 'reason', reason
            ));
        end if;
        key := fact.item ->> 'key';
        value := fact.item ->> 'value';
        if fact.is_last and not convo._is_blank(key) and not convo._is_blank(value) then
            return next;
        end if;
    end loop;
end
$$;

comment on function convo._read_facts(json) is
'The facts that a caller wants remembered, one a key.';
revoke execute on function convo._read_facts(json) from public;
grant execute on function convo._read_facts(json) to convo_app, convo_service;
-- <<< sql/functions/memory/_read_facts.sql

-- >>> sql/functions/memory/_store_memory.sql
-- _store_memory: keeps one fact about a user, and the version that it replaces.
create or replace function convo._store_memory(
    tenant_id text,
    user_id text,
    key text,
    value text,
    expires_at timestamptz,
    source_conversation_id uuid
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    instant constant timestamptz(3) := clock_timestamp();
    old convo.memory;
begin
    loop
        insert into convo.memory as m (
            tenant_id, user_id, key, value, source_conversation_id, created_at,
            updated_at, last_accessed_at, expires_at
        )
        values (
            _store_memory.tenant_id, _store_memory.user_id, _store_memory.key,
            _store_memory.value, _store_memory.source_conversation_id, instant, instant,
            instant, _store_memory.expires_at
        )
        on conflict do nothing;
        if found then
            return;
        end if;
        select m.* into old
        from convo.memory as m
        where m.tenant_id = _store_memory.tenant_id
            and m.user_id = _store_memory.user_id
            and m.key = _store_memory.key
        for no key update;
        exit when found; -- else it was forgotten in between
    end loop;
    if old.value = _store_memory.value then
        update convo.memory as m
        set expires_at = _store_memory.expires_at,
            updated_at = instant
        where m.tenant_id = old.tenant_id
            and m.user_id = old.user_id
            and m.key = old.key
            and m.expires_at is distinct from _store_memory.expires_at::timestamptz(3);
        return;
    end if;
    insert into convo.memory_revision (
        tenant_id, user_id, key, version, value, source_conversation_id, created_at,
        expires_at
    )
    values (
        old.tenant_id, old.user_id, old.key, old.version, old.value,
        old.source_conversation_id, old.updated_at, old.expires_at
    );
    update convo.memory as m
    set value = _store_memory.value,
        version = old.version + 1,
        source_conversation_id = _store_memory.source_conversation_id,
        updated_at = instant,
        last_accessed_at = greatest(old.last_accessed_at, instant),
        expires_at = _store_memory.expires_at
    where m.tenant_id = old.tenant_id and m.user_id = old.user_id and m.key = old.key;
end
$$;

comment on function convo._store_memory(text, text, text, text, timestamptz, uuid) is
'Keeps one fact about a user, and the version that it replaces.';
revoke execute on function convo._store_memory(
    text, text, text, text, timestamptz, uuid
) from public;
grant execute on function convo._store_memory(
    text, text, text, text, timestamptz, uuid
) to convo_app, convo_service;
-- <<< sql/functions/memory/_store_memory.sql

-- >>> sql/functions/memory/remember.sql
-- remember: keeps facts about the user of the context, by key.
-- A key that is there gets the new value, and its old version is kept. The same value
-- again changes nothing but when it ends. What has expired is removed first.
-- in: [{"key", "value", "expires_at"?}]; ones without key or value are left out, of
--     several with one key the last counts; the conversation that they come from
-- out: the memories, in order of their keys
-- errors: PC030 (also without a user), 22023 (DETAIL: index, reason), 23514 too long
-- locks: the memories, until the transaction ends
-- since: 0.1.0
create or replace function convo.remember(
    facts json, source_conversation_id uuid default null
) returns setof convo.memory_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    owner constant text := convo._require_user();
    tenant constant text := convo.current_tenant_id();
    fact record;
    keys text[] := '{}';
begin
    delete from convo.memory as m
    where m.tenant_id = tenant
        and m.user_id = owner
        and m.expires_at <= statement_timestamp();
    -- In the order of keys, so that two writers never wait for each other.
    for fact in
        select f.key, f.value, f.expires_at
        from convo._read_facts(remember.facts) as f
        order by f.key collate "C"
    loop
        perform convo._store_memory(
            tenant, owner, fact.key, fact.value, fact.expires_at,
            remember.source_conversation_id
        );
        keys := keys || fact.key;
    end loop;
    return query
    select
        m.key,
        m.value,
        m.version,
        m.source_conversation_id,
        m.created_at,
        m.updated_at,
        m.last_accessed_at,
        m.expires_at
    from convo.memory as m
    where m.tenant_id = tenant and m.user_id = owner and m.key = any (keys)
    order by m.key;
end
$$;

comment on function convo.remember(json, uuid) is
'Keeps facts about the user of the context, by key: an array of {key, value, '
'expires_at}. A new value for a key is a new version, and the old one is kept.';
revoke execute on function convo.remember(json, uuid) from public;
grant execute on function convo.remember(json, uuid) to convo_app, convo_service;
-- <<< sql/functions/memory/remember.sql

-- >>> sql/functions/memory/recall.sql
-- recall: what is known about the user of the context, last accessed first.
-- Only reads: it is no access itself.
-- errors: PC030 (also without a user), 22023; over 1,000 is 1,000
-- since: 0.1.0
create or replace function convo.recall(page_size integer default 15)
returns setof convo.memory_record
language plpgsql stable rows 15
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    owner constant text := convo._require_user();
    tenant constant text := convo.current_tenant_id();
    size constant integer := convo._size('page_size', recall.page_size, 1000);
begin
    return query
    select
        m.key,
        m.value,
        m.version,
        m.source_conversation_id,
        m.created_at,
        m.updated_at,
        m.last_accessed_at,
        m.expires_at
    from convo.memory as m
    where m.tenant_id = tenant
        and m.user_id = owner
        and coalesce(m.expires_at > statement_timestamp(), true)
    order by m.last_accessed_at desc, m.key asc
    limit size;
end
$$;

comment on function convo.recall(integer) is
'What is known about the user of the context, last accessed first; it only reads.';
revoke execute on function convo.recall(integer) from public;
grant execute on function convo.recall(integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/memory/recall.sql

-- >>> sql/functions/memory/forget.sql
-- forget: forgets a fact about the user of the context, with all versions, for good.
-- out: how many there were, 0 or 1
-- errors: PC030 (also without a user)
-- since: 0.1.0
create or replace function convo.forget(key text) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    owner constant text := convo._require_user();
    forgotten integer;
begin
    delete from convo.memory as m
    where m.tenant_id = convo.current_tenant_id()
        and m.user_id = owner
        and m.key = forget.key;
    get diagnostics forgotten = row_count;
    return forgotten;
end
$$;

comment on function convo.forget(text) is
'Forgets a fact about the user of the context, with all its versions, for good. Gives '
'how many there were, 0 or 1.';
revoke execute on function convo.forget(text) from public;
grant execute on function convo.forget(text) to convo_app, convo_service;
-- <<< sql/functions/memory/forget.sql

-- >>> sql/functions/memory/forget_all.sql
-- forget_all: forgets all facts about the user of the context, for good.
-- out: how many there were, expired ones too
-- errors: PC030 (also without a user)
-- since: 0.1.0
create or replace function convo.forget_all() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    owner constant text := convo._require_user();
    forgotten integer;
begin
    delete from convo.memory as m
    where m.tenant_id = convo.current_tenant_id() and m.user_id = owner;
    get diagnostics forgotten = row_count;
    return forgotten;
end
$$;

comment on function convo.forget_all() is
'Forgets all facts about the user of the context, with all their versions, for good, '
'and gives how many there were.';
revoke execute on function convo.forget_all() from public;
grant execute on function convo.forget_all() to convo_app, convo_service;
-- <<< sql/functions/memory/forget_all.sql

-- >>> sql/functions/memory/_touch_memories.sql
-- _touch_memories: notes that memories were sent to a model.
-- At most once a minute each, and not those that somebody holds: which are the last
-- accessed ones hangs on no less than that, and a context is made many times a minute.
create or replace function convo._touch_memories(tenant_id text, user_id text, keys text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    instant constant timestamptz(3) := clock_timestamp();
begin
    with due as materialized (
        select m.key
        from convo.memory as m
        where m.tenant_id = _touch_memories.tenant_id
            and m.user_id = _touch_memories.user_id
            and m.key = any (_touch_memories.keys)
            and m.last_accessed_at < instant - interval '1 minute'
        for no key update skip locked
    )

    update convo.memory as m
    set last_accessed_at = instant
    from due as d
    where m.tenant_id = _touch_memories.tenant_id
        and m.user_id = _touch_memories.user_id
        and m.key = d.key;
end
$$;

comment on function convo._touch_memories(text, text, text[]) is
'Notes that memories were sent to a model, at most once a minute each.';
revoke execute on function convo._touch_memories(text, text, text[]) from public;
grant execute on function convo._touch_memories(text, text, text[])
to convo_app, convo_service;
-- <<< sql/functions/memory/_touch_memories.sql

-- >>> sql/functions/request/prepare_request.sql
-- prepare_request: what is to be sent to a model, and a record that gives it again.
-- The memories in it count as accessed.
-- The record refers to messages, summary and texts, so it is small; the body is made
-- from it, here as in replay_request.
-- in: as render_context; model: named in the body, but for gemini, whose address names
--     it; parameters: a JSON object whose members join the body, tools among them, which
--     count in the budget
-- out: the request; body is what you send, as text
-- errors: PC001, PC012, PC020, PC030, 22023, 23514 too long
-- locks: the conversation row, FOR KEY SHARE, until the transaction ends
-- since: 0.1.0
create or replace function convo.prepare_request(
    conversation_id uuid,
    format text,
    model text default null,
    policy text default null,
    token_budget integer default null,
    parameters json default null
) returns convo.request_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    others constant text[] := convo._split_parameters(prepare_request.parameters);
    tool_tokens constant integer := coalesce(convo.estimate_tokens(others[2]), 0);
    context record;
    rules convo.policy_record;
    frame convo.request_frame;
    request convo.request;
    body text;
begin
    perform convo._require_format(prepare_request.format);
    -- so that nobody deletes or transfers it meanwhile
    perform
    from convo.conversation as c
    where c.tenant_id = tenant
        and c.conversation_id = prepare_request.conversation_id
    for key share;
    if not found then
        perform convo._fail_not_found(prepare_request.conversation_id);
    end if;
    -- one statement, so that policy, items and edits are of one moment
    select
        c.user_id,
        c.edit_count,
        p.rules,
        b.keys as memory_keys,
        i.*
    into context
    from convo.conversation as c
    cross join lateral (
        select convo._resolve_policy(
            c, prepare_request.policy, prepare_request.token_budget
        ) as rules
    ) as p
    left join lateral convo._memory_block(
        tenant, c.user_id, (p.rules).memory_limit
    ) as b on true
    cross join lateral (
        select
            array[
                min(o.content) filter (where o.kind = 'system' and o.seq is null),
                min(o.content) filter (where o.kind = 'memory')
            ] as texts,
            range_agg(int4range(o.seq, o.seq, '[]')) filter (
                where o.kind in ('system', 'message') and o.seq is not null
            ) as messages,
            range_agg(int4range(o.seq, o.seq, '[]')) filter (
                where o.kind = 'recalled'
            ) as recalled,
            max(o.seq) filter (where o.kind = 'summary') as summary_seq,
            count(*) as items,
            sum(o.tokens) as tokens
        from convo._considered_items(
            c.conversation_id, prepare_request.policy, prepare_request.token_budget,
            tool_tokens, false
        ) as o
        where o.reason is null
    ) as i
    where c.tenant_id = tenant
        and c.conversation_id = prepare_request.conversation_id;

    rules := context.rules;
    frame.tenant_id := tenant;
    frame.conversation_id := prepare_request.conversation_id;
    frame.user_id := context.user_id;
    frame.format := prepare_request.format;
    frame.model := nullif(prepare_request.model, '');
    frame.policy := rules.name;
    frame.rules := to_jsonb(rules) - 'name';
    frame.renderer := convo._renderer();
    frame := convo._store_frame(frame, context.texts || others);

    request.tenant_id := tenant;
    request.request_id := convo._uuid_v7();
    request.conversation_id := frame.conversation_id;
    request.user_id := frame.user_id;
    request.frame_id := frame.frame_id;
    request.messages := context.messages;
    request.recalled := context.recalled;
    request.edit_count := context.edit_count;
    request.summary_seq := context.summary_seq;
    request.token_count :=
        context.tokens + context.items * rules.message_overhead + tool_tokens;
    body := convo._request_body(request);
    request.body_sha256 := sha256(convert_to(body, 'UTF8'));
    request.created_at := clock_timestamp();
    perform convo._touch_memories(tenant, frame.user_id, context.memory_keys);
    insert into convo.request (
        tenant_id, request_id, conversation_id, frame_id, created_at, token_count,
        summary_seq, edit_count, user_id, body_sha256, messages, recalled
    )
    values (
        tenant, request.request_id, request.conversation_id, request.frame_id,
        request.created_at, request.token_count, request.summary_seq, request.edit_count,
        request.user_id, request.body_sha256, request.messages, request.recalled
    );
    return convo._request_record(request, frame, body);
end
$$;

comment on function convo.prepare_request(uuid, text, text, text, integer, json) is
'What is to be sent to a model: the rendered context with model and parameters, as '
'text in body. replay_request gives the same bytes again at any time.';
revoke execute on function convo.prepare_request(
    uuid, text, text, text, integer, json
) from public;
grant execute on function convo.prepare_request(uuid, text, text, text, integer, json)
to convo_app, convo_service;
-- <<< sql/functions/request/prepare_request.sql

-- >>> sql/functions/request/complete_request.sql
-- complete_request: stores the answer to a request, and what it cost.
-- The same response again stores nothing: it gives the messages stored before, as they
-- are now. An answer that was cut off keeps what is whole.
-- in: response: the provider's response in the request's format, whole or the message in
--     it (then nothing is known of usage and model); expected_seq: as append_messages
-- out: the messages of the answer; their metadata has finish_reason, and is_truncated
--      where the answer was cut off
-- errors: PC003, PC050 (not a response of that format; DETAIL has the reason),
--         PC011 another response came before, PC010, PC001, PC012
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create or replace function convo.complete_request(
    request_id uuid,
    response json,
    expected_seq integer default null
) returns setof convo.message_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    request constant convo.request := convo._lock_request(complete_request.request_id);
    hash constant bytea := sha256(convert_to(complete_request.response::text, 'UTF8'));
    frame convo.request_frame;
    answer convo._answer;
    parsed convo._parsed_message[];
    conversation convo.conversation;
    first_seq integer := request.first_answer_seq;
    last_seq integer := request.last_answer_seq;
begin
    if request.response_sha256 is null then
        select f.* into frame
        from convo.request_frame as f
        where f.tenant_id = request.tenant_id
            and f.conversation_id = request.conversation_id
            and f.frame_id = request.frame_id;
        answer := convo._read_answer(frame.format, complete_request.response);
        answer.model := coalesce(answer.model, frame.model);
        parsed := convo._read_messages(frame.format, answer.messages, null);
        -- results of the provider's own tools may stand between, not alone
        if (
            select bool_or(p.role in ('system', 'user')) or bool_and(p.role = 'tool')
            from unnest(parsed) as p
        ) then
            perform convo._fail('PC050', jsonb_build_object(
                'reason', 'not a message of the assistant', 'expected', frame.format
            ));
        end if;
        conversation := convo._store_messages(
            request.conversation_id, frame.format, parsed, null, answer.model,
            complete_request.expected_seq, jsonb_strip_nulls(jsonb_build_object(
                'finish_reason', answer.finish_reason,
                'is_truncated', nullif(answer.is_truncated, false)
            ))
        );
        if cardinality(parsed) > 0 then
            last_seq := conversation.last_seq;
            first_seq := last_seq - cardinality(parsed) + 1;
        end if;
        perform convo._record_usage(
            request.tenant_id, request.request_id, request.conversation_id,
            request.user_id, frame.format, answer.model, answer.usage, false
        );
        update convo.request as r
        set finished_at = conversation.updated_at,
            first_answer_seq = first_seq,
            last_answer_seq = last_seq,
            response_sha256 = hash
        where r.tenant_id = request.tenant_id and r.request_id = request.request_id;
    elsif request.response_sha256 is distinct from hash then
        perform convo._fail('PC011', jsonb_build_object(
            'request_id', request.request_id,
            'first_seq', first_seq, 'last_seq', last_seq
        ));
    end if;
    return query
    select (convo._message_record(m)).*
    from convo.message as m
    where m.tenant_id = request.tenant_id
        and m.conversation_id = request.conversation_id
        and m.seq between first_seq and last_seq
    order by m.seq;
end
$$;

comment on function convo.complete_request(uuid, json, integer) is
'Stores the answer to a request, from the provider''s own response, and its usage, all '
'or nothing. The same response again stores nothing twice; another one is PC011.';
revoke execute on function convo.complete_request(uuid, json, integer) from public;
grant execute on function convo.complete_request(uuid, json, integer)
to convo_app, convo_service;
-- <<< sql/functions/request/complete_request.sql

reset role;

set local role convo_owner;
insert into convo.schema_migration (track, version, name)
values ('core', 3, '0003_summaries_and_memories');
reset role;

-- migrate:down
