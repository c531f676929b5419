-- 0006_summary_versions: summaries that were put out of use stay there, and can be
-- written anew.
-- phase: expand
-- locks: ACCESS EXCLUSIVE on conversation, request and summary, whose key is made anew
-- migrate:up

set local lock_timeout = '5s';
set local convo.migration = '0006_summary_versions';
set local standard_conforming_strings = on;

-- Outside a transaction the line above had no effect. Then the guard below fails, and
-- nothing after it may change anything, even where a client goes on after an error.
do $guard$
begin
    if current_setting('convo.migration', true) is distinct from '0006_summary_versions' then
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
    if current_setting('convo.migration', true) is distinct from '0006_summary_versions' then
        raise exception using
            errcode = 'PC092',
            message = 'migration not in one transaction',
            detail = '{"version": 6}',
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
            coalesce(bool_or(m.version = 6), false)
        into newest, is_applied
        from convo.schema_migration as m
        where m.track = 'core';
        perform set_config('role', caller, true);
    end if;

    if is_applied then
        raise exception using
            errcode = 'PC090',
            message = 'migration applied already',
            detail = json_build_object('version', 6, 'newest', newest)::text,
            hint = 'Leave this file out.';
    elsif newest <> 6 - 1 then
        raise exception using
            errcode = 'PC091',
            message = 'migration out of order',
            detail = json_build_object('version', 6, 'newest', newest)::text,
            hint = 'Apply the file that follows the newest one first.';
    end if;
end
$guard$;

set local role convo_owner;

-- === sql/tables/conversation.sql 99ef5b1b181bc2cf
alter table convo.conversation add column changed_seq integer;
comment on column convo.conversation.changed_seq is
'The first message after the summary that changed while a worker had it.';
-- <<< sql/tables/conversation.sql

-- === sql/tables/summary.sql a1c261f6d75bb4d4
alter table convo.summary
add column version integer not null default 1,
add column dropped_at timestamptz(3);
-- squawk-ignore ban-drop-constraint
alter table convo.summary drop constraint summary_pkey;
alter table convo.summary
-- squawk-ignore constraint-missing-not-valid, adding-serial-primary-key-field
add constraint summary_pkey
primary key (tenant_id, conversation_id, through_seq, version);
comment on column convo.summary.version is
'1, and one more where one of the same messages was written anew: the last one counts.';
comment on column convo.summary.dropped_at is
'When it was put out of use, since messages that it covers were cleared. Requests that '
'it was sent with still replay.';
-- <<< sql/tables/summary.sql

-- === sql/tables/request.sql c857366028ef06aa
alter table convo.request add column summary_version integer;
comment on column convo.request.summary_version is
'Which version of that summary; null: the first.';
-- <<< sql/tables/request.sql

-- === sql/policies/conversation.sql 246a8e7e6164bafd
grant update (changed_seq) on convo.conversation to convo_app, convo_service;
-- <<< sql/policies/conversation.sql

-- === sql/policies/summary.sql 4de86cd6d1b14120
grant update (dropped_at) on convo.summary to convo_app, convo_service;
-- <<< sql/policies/summary.sql

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
-- errors: PC031; no exception block catches 22021, which a signer gets who signs what
--     isn't UTF-8: on PostgreSQL 15 such a block can't run in a parallel plan
create or replace function convo_private._verified_context(token text) returns text[]
language plpgsql stable parallel safe security definer
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
        -- base64url, no length of which leaves one character over
        or concat(parts[3], parts[4]) !~ '^[A-Za-z0-9_-]*$'
        or 1 in (length(parts[3]) % 4, length(parts[4]) % 4)
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
        and s.version = (
            select max(v.version)
            from convo.summary as v
            where v.tenant_id = s.tenant_id
                and v.conversation_id = s.conversation_id
                and v.through_seq = s.through_seq
        )
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
        and s.through_seq <= last_copied
        and s.dropped_at is null;
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
        metadata, created_at, edited_at, deleted_at, words, words_norm
    )
    select
        m.tenant_id, id, m.seq, m.user_id, m.role, m.content, m.payload, m.format,
        m.tokens, m.is_estimated, m.is_empty, m.group_seq, m.revision, m.model,
        m.call_ids, m.result_ids, m.metadata, m.created_at, m.edited_at, m.deleted_at,
        m.words, m.words_norm
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
        created_at, version, dropped_at
    )
    select
        s.tenant_id, id, s.through_seq, s.user_id, s.content, s.tokens, s.model,
        s.created_at, s.version, s.dropped_at
    from convo.summary as s
    where s.tenant_id = source.tenant_id
        and s.conversation_id = source.conversation_id
        and s.through_seq <= last_copied;
    update convo.conversation as c
    set stale_seq = case
            when covered_seq = source.summary_through_seq then source.stale_seq
            else convo._stale_seq(id, covered_seq)
        end
    where c.tenant_id = source.tenant_id
        and c.conversation_id = id
        and covered_seq > 0;

    if to_regclass('convo.embedding') is not null then -- the vector track
        insert into convo.embedding (
            tenant_id, conversation_id, seq, model, user_id, revision, dimension,
            embedding
        )
        select
            e.tenant_id, id, e.seq, e.model, e.user_id, e.revision, e.dimension,
            e.embedding
        from convo.embedding as e
        where e.tenant_id = source.tenant_id
            and e.conversation_id = source.conversation_id
            and e.seq <= last_copied
            and e.embedding is not null;
    end if;
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

-- >>> sql/functions/summary/_mark_changed.sql
-- _mark_changed: notes that a message changed while a worker may be summarising it.
-- The text that the worker saves then doesn't know of it, so it is stale at once.
-- in: the conversation, locked; the first message that changed
create or replace function convo._mark_changed(conversation convo.conversation, seq integer)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if (_mark_changed.conversation).summary_leased_until is not null then
        update convo.conversation as c
        set changed_seq = least(c.changed_seq, _mark_changed.seq)
        where c.tenant_id = (_mark_changed.conversation).tenant_id
            and c.conversation_id = (_mark_changed.conversation).conversation_id;
    end if;
end
$$;

comment on function convo._mark_changed(convo.conversation, integer) is
'Notes that a message changed while a worker may be summarising it.';
revoke execute on function convo._mark_changed(convo.conversation, integer)
from public;
grant execute on function convo._mark_changed(convo.conversation, integer)
to convo_app, convo_service;
-- <<< sql/functions/summary/_mark_changed.sql

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
        words = w.words,
        words_norm = w.norm,
        payload = new_payload,
        tokens = token_count,
        is_estimated = edit_message.tokens is null,
        is_empty = coalesce(parsed.is_empty, convo._is_blank(edit_message.content)),
        revision = old.revision + 1,
        edited_at = clock_timestamp()
    from convo._search_words(edit_message.content) as w
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
    else
        perform convo._mark_changed(conversation, old.seq);
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
        else
            perform convo._mark_changed(conversation, message.seq);
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
        perform convo._mark_changed(conversation, delete_messages.from_seq);
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

-- >>> sql/functions/context/_fixed_items.sql
-- _fixed_items: what stands before the window of a context, and comes off its budget.
-- in: the conversation, where the summary goes, what it covers (0: no summary)
-- out: the system prompt, the system messages, the summary
create or replace function convo._fixed_items(
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
        lateral
        convo._summary_items(s.content, s.tokens, _fixed_items.summary_placement) as e
    where s.tenant_id = (_fixed_items.conversation).tenant_id
        and s.conversation_id = (_fixed_items.conversation).conversation_id
        and s.through_seq = _fixed_items.covered_seq
        and s.version = (
            select max(v.version)
            from convo.summary as v
            where v.tenant_id = s.tenant_id
                and v.conversation_id = s.conversation_id
                and v.through_seq = s.through_seq
        );
end;

comment on function convo._fixed_items(convo.conversation, text, integer) is
'What stands before the window of a context: system prompt and messages, summary.';
revoke execute on function convo._fixed_items(convo.conversation, text, integer)
from public;
grant execute on function convo._fixed_items(convo.conversation, text, integer)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/context/_fixed_items.sql

-- >>> sql/functions/summary/_summary_end.sql
-- _summary_end: the first message that no summary may cover.
-- The newest user message, or where there is none the newest message: a context without
-- either would be empty.
create or replace function convo._summary_end(conversation convo.conversation) returns integer
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return coalesce(convo._newest_user_seq(_summary_end.conversation), (
        select m.group_seq
        from convo.message as m
        where m.tenant_id = (_summary_end.conversation).tenant_id
            and m.conversation_id = (_summary_end.conversation).conversation_id
            and m.deleted_at is null
            and m.role <> 'system'
        order by m.group_seq desc
        limit 1
    ));
end
$$;

comment on function convo._summary_end(convo.conversation) is
'The first message that no summary may cover.';
revoke execute on function convo._summary_end(convo.conversation) from public;
grant execute on function convo._summary_end(convo.conversation)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/summary/_summary_end.sql

-- >>> sql/functions/summary/_rewind_summary.sql
-- _rewind_summary: goes back to the newest summary of what is before a message.
-- When everything from there on was deleted, a summary of it must not tell it, now or
-- when another one is dropped.
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
        and s.through_seq < _rewind_summary.from_seq
        and s.dropped_at is null;
    update convo.summary as s
    set dropped_at = clock_timestamp()
    where s.tenant_id = (_rewind_summary.conversation).tenant_id
        and s.conversation_id = (_rewind_summary.conversation).conversation_id
        and s.through_seq > covered_seq
        and s.dropped_at is null;
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
        set summary_leased_until = instant + claim_summaries.lease,
            changed_seq = null
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
    end_seq integer;
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
    end_seq := convo._summary_end(conversation);
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
                and l.group_seq < end_seq
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
        and s.through_seq = conversation.summary_through_seq
    order by s.version desc
    limit 1;
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
-- taken to know what changed before: what changed since a worker claimed the conversation
-- makes it stale at once. A stale summary can be written anew with its own through_seq.
-- in: through_seq: it covers the groups that begin there or before;
--     previous_through_seq: the summary that it was made from (0: none)
-- errors: PC001, PC012, PC010 another summary came in between, or all that it would cover
--     was deleted, 22023 (nothing new, a
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
    -- a stale one is written anew
    is_anew constant boolean := coalesce(
        save_summary.through_seq = conversation.summary_through_seq, false
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
            or save_summary.through_seq < conversation.summary_through_seq
            or save_summary.through_seq = conversation.summary_through_seq
            and conversation.stale_seq is null
            or save_summary.through_seq > conversation.last_seq
            then 'through_seq is not after the last summary'
        when is_anew then null
        when save_summary.through_seq >= convo._summary_end(conversation)
            then 'the newest user message would be covered'
        when convo._has_open_call(conversation, save_summary.through_seq)
            then 'a call without its result would be covered'
    end;
    if reason is not null then
        perform convo._fail('22023', jsonb_build_object(
            'conversation_id', conversation.conversation_id, 'reason', reason
        ));
    end if;

    select count(*) as messages, coalesce(sum(m.tokens), 0) as tokens into covered
    from convo.message as m
    where m.tenant_id = conversation.tenant_id
        and m.conversation_id = conversation.conversation_id
        and m.group_seq > conversation.summary_through_seq
        and m.group_seq <= save_summary.through_seq
        and m.deleted_at is null
        and m.role <> 'system';
    if covered.messages = 0 and not is_anew then
        -- all of it was deleted since it was read
        perform convo._fail('PC010', jsonb_build_object(
            'conversation_id', conversation.conversation_id,
            'through_seq', conversation.summary_through_seq
        ));
    end if;
    insert into convo.summary as s (
        tenant_id, conversation_id, through_seq, user_id, content, tokens, model,
        created_at, version
    )
    select
        conversation.tenant_id, conversation.conversation_id, save_summary.through_seq,
        conversation.user_id, save_summary.content,
        coalesce(save_summary.tokens, convo.estimate_tokens(save_summary.content)),
        nullif(save_summary.model, ''), clock_timestamp(),
        coalesce(max(e.version), 0) + 1
    from convo.summary as e
    where e.tenant_id = conversation.tenant_id
        and e.conversation_id = conversation.conversation_id
        and e.through_seq = save_summary.through_seq
    returning s.through_seq, s.content, s.tokens, s.model, s.created_at into result;
    update convo.conversation as c
    set summary_through_seq = save_summary.through_seq,
        body_count = c.body_count - covered.messages,
        body_tokens = c.body_tokens - covered.tokens,
        summary_leased_until = null,
        stale_seq = case
            when c.changed_seq <= save_summary.through_seq then c.changed_seq
        end,
        changed_seq = null
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
    -- In the order of keys, here and below, so that two writers never wait for each other.
    perform
    from convo.memory as m
    where m.tenant_id = tenant
        and m.user_id = owner
        and m.expires_at <= statement_timestamp()
    order by m.key
    for update;
    delete from convo.memory as m
    where m.tenant_id = tenant
        and m.user_id = owner
        and m.expires_at <= statement_timestamp();
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
    -- locked in the order of keys, as remember does
    perform
    from convo.memory as m
    where m.tenant_id = convo.current_tenant_id() and m.user_id = owner
    order by m.key
    for update;
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

-- >>> sql/functions/request/_request_items.sql
-- _request_items: the items of a request as they were when it was prepared.
-- in: the request, the summary_placement of its policy
-- errors: PC060 names what is gone
create or replace function convo._request_items(request convo.request, frame convo.request_frame)
returns convo._render_item[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    found record;
begin
    with numbered as (
        select k.kind, s.seq
        from (
            values
                ('message', (_request_items.request).messages),
                ('recalled', (_request_items.request).recalled)
        ) as k (kind, seqs)
        cross join lateral unnest(k.seqs) as r (span)
        cross join lateral generate_series(lower(r.span), upper(r.span) - 1) as s (seq)
    ),

    items as (
        select
            case when n.kind = 'recalled' then 5 when m.role = 'system' then 2 else 6 end
            as section,
            coalesce(m.group_seq, n.seq) as place,
            n.kind,
            n.seq,
            m.group_seq,
            m.role,
            m.content,
            m.format,
            m.payload,
            case when m.seq is null then n.seq end as missing_seq
        from numbered as n
        -- one by one: a generic plan might join them to the whole conversation
        left join lateral (
            select
                l.seq,
                l.group_seq,
                l.role,
                l.format,
                case when o.edit_number is null then l.content else o.content end
                as content,
                case when o.edit_number is null then l.payload else o.payload end
                as payload
            from convo.message as l
            -- what it said before the first edit since
            left join lateral (
                select
                    r.edit_number,
                    r.content,
                    r.payload
                from convo.message_revision as r
                where l.revision > 1
                    and r.tenant_id = l.tenant_id
                    and r.conversation_id = l.conversation_id
                    and r.seq = l.seq
                    and r.edit_number > (_request_items.request).edit_count
                order by r.revision
                limit 1
            ) as o on true
            where l.tenant_id = (_request_items.request).tenant_id
                and l.conversation_id = (_request_items.request).conversation_id
                and l.seq = n.seq
            limit 1
        ) as m on true
        union all
        select
            case when p.part = 'system' then 1 else 3 end,
            0,
            p.part,
            null,
            null,
            'system',
            p.content,
            null,
            null,
            null
        from convo._request_texts(_request_items.request) as p
        where p.part in ('system', 'memory')
        union all
        select
            4,
            e.place,
            'summary',
            s.through_seq,
            null,
            e.role,
            e.content,
            null,
            null,
            null
        from convo.summary as s
        cross join lateral convo._summary_items(
            s.content, s.tokens,
            (_request_items.frame).rules ->> 'summary_placement'
        ) as e
        where s.tenant_id = (_request_items.request).tenant_id
            and s.conversation_id = (_request_items.request).conversation_id
            and s.through_seq = (_request_items.request).summary_seq
            and s.version = coalesce((_request_items.request).summary_version, 1)
    )

    select
        array_agg(
            row(
                i.kind, i.seq, i.group_seq, i.role, i.content, i.format, i.payload
            )::convo._render_item
            order by i.section, i.place, i.seq
        ) as items,
        array_agg(i.missing_seq order by i.seq) filter (
            where i.missing_seq is not null
        ) as missing_messages,
        case when count(*) filter (where i.kind = 'summary') = 0 then
                (_request_items.request).summary_seq
        end as missing_summary
    into found
    from items as i;
    if coalesce(found.missing_messages[1], found.missing_summary) is not null then
        perform convo._fail('PC060', jsonb_strip_nulls(jsonb_build_object(
            'request_id', (_request_items.request).request_id,
            'messages', found.missing_messages,
            'summary', found.missing_summary
        )));
    end if;
    return found.items;
end
$$;

comment on function convo._request_items(convo.request, convo.request_frame) is
'The items of a request as they were when it was prepared.';
revoke execute on function convo._request_items(convo.request, convo.request_frame)
from public;
grant execute on function convo._request_items(convo.request, convo.request_frame)
to convo_app, convo_service, convo_reader;
-- <<< sql/functions/request/_request_items.sql

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
        (
            select nullif(max(s.version), 1)
            from convo.summary as s
            where s.tenant_id = tenant
                and s.conversation_id = prepare_request.conversation_id
                and s.through_seq = i.summary_seq
        ) as summary_version,
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
    request.summary_version := context.summary_version;
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
        summary_seq, edit_count, user_id, body_sha256, messages, recalled,
        summary_version
    )
    values (
        tenant, request.request_id, request.conversation_id, request.frame_id,
        request.created_at, request.token_count, request.summary_seq, request.edit_count,
        request.user_id, request.body_sha256, request.messages, request.recalled,
        request.summary_version
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

-- >>> sql/functions/request/_read_answer.sql
-- _read_answer: what a provider's response says, in its own format.
-- in: the whole response, or the message in it
-- errors: PC050
create or replace function convo._read_answer(format text, response json) returns convo._answer
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    readable jsonb;
    source text;
    answers jsonb;
    hidden text[];
    reason text;
    answer convo._answer;
begin
    begin
        readable := convo._readable(_read_answer.response);
    exception when numeric_value_out_of_range then
        perform convo._fail('PC050', '{"reason": "a number out of range"}');
    end;
    source := convo._answer_format(readable);
    answers := coalesce(readable -> 'choices', readable -> 'candidates');
    reason := case
        when readable is null then 'missing'
        when jsonb_typeof(readable) not in ('object', 'array') then 'not an object'
        when readable ->> 'type' = 'error'
            or jsonb_typeof(readable -> 'error') = 'object'
            or readable ->> 'status' in ('failed', 'cancelled')
            then 'an error, not an answer: see fail_request'
        when source <> _read_answer.format then 'a response of another format'
        when jsonb_typeof(readable -> 'output') <> 'array'
            or jsonb_typeof(answers) <> 'array'
            or answers = '[]'
            or readable = '{}'
            or _read_answer.format = 'openai'
            and jsonb_typeof(answers #> '{0,message}') is distinct from 'object'
            and answers is not null
            or source = 'gemini' and answers is null and not readable ? 'parts'
            then 'there is no answer in it'
        when jsonb_array_length(answers) > 1
            then 'it has several answers: give the message to keep'
    end;
    if reason is not null then
        perform convo._fail('PC050', jsonb_strip_nulls(jsonb_build_object(
            'reason', reason, 'expected', _read_answer.format,
            'format', case when source <> _read_answer.format then source end
        )));
    end if;

    hidden := convo._hide_escapes(_read_answer.response::text);
    answer := case _read_answer.format
        when 'openai' then convo._openai_answer(hidden[1]::json, readable)
        when 'openai_responses'
            then convo._openai_responses_answer(hidden[1]::json, readable)
        when 'anthropic' then convo._anthropic_answer(hidden[1]::json, readable)
        else convo._gemini_answer(hidden[1]::json, readable)
    end;
    answer.messages := convo._show_escapes(answer.messages::text, hidden[2:]);
    answer.model := nullif(left(answer.model, 255), '');
    answer.usage := convo._show_escapes(answer.usage::text, hidden[2:]);
    return answer;
end
$$;

comment on function convo._read_answer(text, json) is
'What a provider''s response says, in its own format.';
revoke execute on function convo._read_answer(text, json) from public;
grant execute on function convo._read_answer(text, json) to convo_app, convo_service;
-- <<< sql/functions/request/_read_answer.sql

reset role;

set local role convo_owner;
insert into convo.schema_migration (track, version, name)
values ('core', 6, '0006_summary_versions');
reset role;

-- migrate:down
