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
