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
