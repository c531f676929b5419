-- transfer_conversation: gives a conversation to another user of the tenant.
-- errors: PC001, PC012, 22023
-- locks: the conversation row, FOR UPDATE
-- since: 0.1.0
create function convo.transfer_conversation(conversation_id uuid, to_user_id text)
returns convo.conversation_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    old constant convo.conversation := convo._lock_conversation(
        transfer_conversation.conversation_id
    );
    -- the vector track's table: plpgsql looks it up when a statement runs, so what
    -- stands in the branches need not be there
    has_embeddings constant boolean := to_regclass('convo.embedding') is not null;
    prompt text;
    texts bytea[];
    result convo.conversation_record;
begin
    if coalesce(length(transfer_conversation.to_user_id), 0) not between 1 and 255 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'to_user_id', 'minimum_length', 1, 'maximum_length', 255
        ));
    end if;
    -- those who prepare a request hold it FOR KEY SHARE: after them
    perform
    from convo.conversation as c
    where c.tenant_id = old.tenant_id and c.conversation_id = old.conversation_id
    for update;
    texts := array(
        select r.sha256
        from convo.request_prompt as r
        where r.tenant_id = old.tenant_id and r.conversation_id = old.conversation_id
        union
        select old.system_prompt_sha256
    );
    select r.system_prompt into prompt
    from convo.get_conversation(old.conversation_id) as r;

    set constraints
        convo.message_conversation_fkey,
        convo.message_revision_conversation_fkey,
        convo.summary_conversation_fkey,
        convo.idempotency_key_conversation_fkey,
        convo.request_conversation_fkey,
        convo.request_frame_conversation_fkey,
        convo.request_prompt_conversation_fkey deferred;
    if has_embeddings then
        set constraints convo.embedding_conversation_fkey deferred;
    end if;
    update convo.conversation as c
    set user_id = transfer_conversation.to_user_id,
        system_prompt_sha256 = convo._store_prompt(
            transfer_conversation.to_user_id, prompt
        )
    where c.tenant_id = old.tenant_id and c.conversation_id = old.conversation_id;
    update convo.message as m
    set user_id = transfer_conversation.to_user_id
    where m.tenant_id = old.tenant_id and m.conversation_id = old.conversation_id;
    update convo.message_revision as r
    set user_id = transfer_conversation.to_user_id
    where r.tenant_id = old.tenant_id and r.conversation_id = old.conversation_id;
    update convo.summary as s
    set user_id = transfer_conversation.to_user_id
    where s.tenant_id = old.tenant_id and s.conversation_id = old.conversation_id;
    update convo.idempotency_key as k
    set user_id = transfer_conversation.to_user_id
    where k.tenant_id = old.tenant_id and k.conversation_id = old.conversation_id;
    update convo.request as r
    set user_id = transfer_conversation.to_user_id
    where r.tenant_id = old.tenant_id and r.conversation_id = old.conversation_id;
    update convo.request_frame as f
    set user_id = transfer_conversation.to_user_id
    where f.tenant_id = old.tenant_id and f.conversation_id = old.conversation_id;
    perform convo._store_prompt(transfer_conversation.to_user_id, p.content)
    from convo.prompt as p
    where p.tenant_id = old.tenant_id
        and p.user_id = old.user_id
        and p.sha256 = any (texts);
    update convo.request_prompt as r
    set user_id = transfer_conversation.to_user_id
    where r.tenant_id = old.tenant_id and r.conversation_id = old.conversation_id;
    set constraints
        convo.message_conversation_fkey,
        convo.message_revision_conversation_fkey,
        convo.summary_conversation_fkey,
        convo.idempotency_key_conversation_fkey,
        convo.request_conversation_fkey,
        convo.request_frame_conversation_fkey,
        convo.request_prompt_conversation_fkey immediate;
    if has_embeddings then
        update convo.embedding as e
        set user_id = transfer_conversation.to_user_id
        where e.tenant_id = old.tenant_id and e.conversation_id = old.conversation_id;
        set constraints convo.embedding_conversation_fkey immediate;
    end if;

    perform convo._collect_prompt(old.tenant_id, old.user_id, t.sha256)
    from unnest(texts) as t (sha256);
    perform convo_private._audit('transfer', old.conversation_id, null);
    select r.* into result from convo.get_conversation(old.conversation_id) as r;
    return result;
end
$$;

comment on function convo.transfer_conversation(uuid, text) is
'Gives a conversation, with all that belongs to it, to another user of the tenant.';
revoke execute on function convo.transfer_conversation(uuid, text) from public;
grant execute on function convo.transfer_conversation(uuid, text) to convo_service;
