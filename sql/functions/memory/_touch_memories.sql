-- _touch_memories: notes that memories were sent to a model.
-- At most once a minute each, and not those that somebody holds: which are the last
-- accessed ones hangs on no less than that, and a context is made many times a minute.
create function convo._touch_memories(tenant_id text, user_id text, keys text[])
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    instant constant timestamptz(3) := clock_timestamp();
begin
    with due as materialized (
        select m.key
        from convo.memory as m
        where m.tenant_id = _touch_memories.tenant_id
            and m.user_id = _touch_memories.user_id
            and m.key = any (_touch_memories.keys)
            and m.last_accessed_at < instant - interval '1 minute'
        for no key update skip locked
    )

    update convo.memory as m
    set last_accessed_at = instant
    from due as d
    where m.tenant_id = _touch_memories.tenant_id
        and m.user_id = _touch_memories.user_id
        and m.key = d.key;
end
$$;

comment on function convo._touch_memories(text, text, text[]) is
'Notes that memories were sent to a model, at most once a minute each.';
revoke execute on function convo._touch_memories(text, text, text[]) from public;
grant execute on function convo._touch_memories(text, text, text[])
to convo_app, convo_service;
