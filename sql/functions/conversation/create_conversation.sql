-- create_conversation: makes a conversation and gives its id.
-- in: everything may be left out; user_id only where the context names no user
-- out: the id; a caller that gives the id of its own conversation gets it back unchanged
-- errors: PC012 the id was the caller's and deleted, PC013 it is another user's,
--         22023, 42501 an application for another user, 23514 too long
-- since: 0.1.0
create function convo.create_conversation(
    title text default null,
    system_prompt text default null,
    metadata jsonb default '{}',
    conversation_id uuid default null,
    retention_class text default 'standard',
    policy text default null,
    user_id text default null
) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    owner constant text := coalesce(
        create_conversation.user_id, convo.current_user_id()
    );
    id constant uuid := coalesce(create_conversation.conversation_id, convo._uuid_v7());
    instant constant timestamptz(3) := clock_timestamp();
begin
    if coalesce(owner, '') = '' then
        perform convo._fail('22023', '{"argument": "user_id", "reason": "missing"}');
    elsif owner <> coalesce(convo.current_user_id(), '')
        and not pg_has_role('convo_service', 'usage')
    then
        perform convo._fail('42501', '{"argument": "user_id"}');
    elsif jsonb_typeof(create_conversation.metadata) <> 'object' then
        perform convo._fail(
            '22023', '{"argument": "metadata", "reason": "not an object"}'
        );
    end if;
    insert into convo.conversation (
        tenant_id, conversation_id, user_id, title, retention_class, policy, metadata,
        created_at, updated_at
    )
    values (
        tenant, id, owner, nullif(create_conversation.title, ''),
        coalesce(nullif(create_conversation.retention_class, ''), 'standard'),
        nullif(create_conversation.policy, ''),
        coalesce(create_conversation.metadata, '{}'), instant, instant
    )
    on conflict do nothing;
    if not found and exists (
        select
        from convo.conversation as c
        where c.tenant_id = tenant and c.conversation_id = id and c.user_id = owner
    ) then
        return id;
    end if;
    -- Looked up after the insert, which waits for a deletion that is still going on.
    if not found
        or create_conversation.conversation_id is not null
        and convo_private._has_tombstone(id)
    then
        perform convo._fail(
            case
                when exists (
                    select
                    from convo.tombstone as t
                    where t.tenant_id = tenant
                        and t.conversation_id = id
                        and t.user_id = owner
                ) then 'PC012'
                else 'PC013'
            end,
            jsonb_build_object('conversation_id', id)
        );
    end if;
    -- The prompt comes last: whoever held it while waiting for that deletion would
    -- deadlock with it, since a deletion collects its prompt.
    if create_conversation.system_prompt <> '' then
        update convo.conversation as c
        set system_prompt_sha256 = convo._store_prompt(
            owner, create_conversation.system_prompt
        )
        where c.tenant_id = tenant and c.conversation_id = id;
    end if;
    return id;
end
$$;

comment on function convo.create_conversation(
    text, text, jsonb, uuid, text, text, text
) is
'Makes a conversation and gives its id. With an id of the caller''s choice it is '
'idempotent: the owner of that id gets it back, unchanged.';
revoke execute on function convo.create_conversation(
    text, text, jsonb, uuid, text, text, text
) from public;
grant execute on function convo.create_conversation(
    text, text, jsonb, uuid, text, text, text
) to convo_app, convo_service;
