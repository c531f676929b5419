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
