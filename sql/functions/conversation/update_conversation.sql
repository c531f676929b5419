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
