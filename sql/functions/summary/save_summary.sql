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
