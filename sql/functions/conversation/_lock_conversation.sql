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
