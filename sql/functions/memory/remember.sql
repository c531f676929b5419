-- remember: keeps facts about the user of the context, by key.
-- A key that is there gets the new value, and its old version is kept. The same value
-- again changes nothing but when it ends. What has expired is removed first.
-- in: [{"key", "value", "expires_at"?}]; ones without key or value are left out, of
--     several with one key the last counts; the conversation that they come from
-- out: the memories, in order of their keys
-- errors: PC030 (also without a user), 22023 (DETAIL: index, reason), 23514 too long
-- locks: the memories, until the transaction ends
-- since: 0.1.0
create function convo.remember(
    facts json, source_conversation_id uuid default null
) returns setof convo.memory_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    owner constant text := convo._require_user();
    tenant constant text := convo.current_tenant_id();
    fact record;
    keys text[] := '{}';
begin
    -- In the order of keys, here and below, so that two writers never wait for each other.
    perform
    from convo.memory as m
    where m.tenant_id = tenant
        and m.user_id = owner
        and m.expires_at <= statement_timestamp()
    order by m.key
    for update;
    delete from convo.memory as m
    where m.tenant_id = tenant
        and m.user_id = owner
        and m.expires_at <= statement_timestamp();
    for fact in
        select f.key, f.value, f.expires_at
        from convo._read_facts(remember.facts) as f
        order by f.key collate "C"
    loop
        perform convo._store_memory(
            tenant, owner, fact.key, fact.value, fact.expires_at,
            remember.source_conversation_id
        );
        keys := keys || fact.key;
    end loop;
    return query
    select
        m.key,
        m.value,
        m.version,
        m.source_conversation_id,
        m.created_at,
        m.updated_at,
        m.last_accessed_at,
        m.expires_at
    from convo.memory as m
    where m.tenant_id = tenant and m.user_id = owner and m.key = any (keys)
    order by m.key;
end
$$;

comment on function convo.remember(json, uuid) is
'Keeps facts about the user of the context, by key: an array of {key, value, '
'expires_at}. A new value for a key is a new version, and the old one is kept.';
revoke execute on function convo.remember(json, uuid) from public;
grant execute on function convo.remember(json, uuid) to convo_app, convo_service;
