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
