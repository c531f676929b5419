-- _store_memory: keeps one fact about a user, and the version that it replaces.
create function convo._store_memory(
    tenant_id text,
    user_id text,
    key text,
    value text,
    expires_at timestamptz,
    source_conversation_id uuid
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    instant constant timestamptz(3) := clock_timestamp();
    old convo.memory;
begin
    loop
        insert into convo.memory as m (
            tenant_id, user_id, key, value, source_conversation_id, created_at,
            updated_at, last_accessed_at, expires_at
        )
        values (
            _store_memory.tenant_id, _store_memory.user_id, _store_memory.key,
            _store_memory.value, _store_memory.source_conversation_id, instant, instant,
            instant, _store_memory.expires_at
        )
        on conflict do nothing;
        if found then
            return;
        end if;
        select m.* into old
        from convo.memory as m
        where m.tenant_id = _store_memory.tenant_id
            and m.user_id = _store_memory.user_id
            and m.key = _store_memory.key
        for no key update;
        exit when found; -- else it was forgotten in between
    end loop;
    if old.value = _store_memory.value then
        update convo.memory as m
        set expires_at = _store_memory.expires_at,
            updated_at = instant
        where m.tenant_id = old.tenant_id
            and m.user_id = old.user_id
            and m.key = old.key
            and m.expires_at is distinct from _store_memory.expires_at::timestamptz(3);
        return;
    end if;
    insert into convo.memory_revision (
        tenant_id, user_id, key, version, value, source_conversation_id, created_at,
        expires_at
    )
    values (
        old.tenant_id, old.user_id, old.key, old.version, old.value,
        old.source_conversation_id, old.updated_at, old.expires_at
    );
    update convo.memory as m
    set value = _store_memory.value,
        version = old.version + 1,
        source_conversation_id = _store_memory.source_conversation_id,
        updated_at = instant,
        last_accessed_at = greatest(old.last_accessed_at, instant),
        expires_at = _store_memory.expires_at
    where m.tenant_id = old.tenant_id and m.user_id = old.user_id and m.key = old.key;
end
$$;

comment on function convo._store_memory(text, text, text, text, timestamptz, uuid) is
'Keeps one fact about a user, and the version that it replaces.';
revoke execute on function convo._store_memory(
    text, text, text, text, timestamptz, uuid
) from public;
grant execute on function convo._store_memory(
    text, text, text, text, timestamptz, uuid
) to convo_app, convo_service;
