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
    texts bytea[];
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
    texts := array(
        select r.sha256
        from convo.request_prompt as r
        where r.tenant_id = tenant and r.conversation_id = old.conversation_id
        union
        select old.system_prompt_sha256
    );
    delete from convo.conversation as c
    where c.tenant_id = tenant and c.conversation_id = old.conversation_id;
    insert into convo.tombstone (tenant_id, conversation_id, user_id)
    values (tenant, old.conversation_id, old.user_id)
    on conflict do nothing; -- by direct SQL, before its time
    perform convo._collect_prompt(tenant, old.user_id, t.sha256)
    from unnest(texts) as t (sha256);
    return true;
end
$$;

comment on function convo.delete_conversation(uuid) is
'Removes a conversation and all that belongs to it, for good. Gives whether there was '
'one. A tombstone stays, so that a late writer brings nothing back.';
revoke execute on function convo.delete_conversation(uuid) from public;
grant execute on function convo.delete_conversation(uuid) to convo_app, convo_service;
