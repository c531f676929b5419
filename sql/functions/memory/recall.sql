-- recall: what is known about the user of the context, last accessed first.
-- Only reads: it is no access itself.
-- errors: PC030 (also without a user), 22023; over 1,000 is 1,000
-- since: 0.1.0
create function convo.recall(page_size integer default 15)
returns setof convo.memory_record
language plpgsql stable rows 15
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    owner constant text := convo._require_user();
    tenant constant text := convo.current_tenant_id();
    size constant integer := convo._size('page_size', recall.page_size, 1000);
begin
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
    where m.tenant_id = tenant
        and m.user_id = owner
        and coalesce(m.expires_at > statement_timestamp(), true)
    order by m.last_accessed_at desc, m.key asc
    limit size;
end
$$;

comment on function convo.recall(integer) is
'What is known about the user of the context, last accessed first; it only reads.';
revoke execute on function convo.recall(integer) from public;
grant execute on function convo.recall(integer)
to convo_app, convo_service, convo_reader;
