-- _begun_group: the group that an item of the responses format joins which comes next.
-- out: the group of the newest live message, if it is reasoning, a call, or an item
--      that joined one of them, in this format; else null
create function convo._begun_group(conversation_id uuid) returns integer
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    last convo.message;
begin
    select m.* into last
    from convo.message as m
    where m.tenant_id = tenant
        and m.conversation_id = _begun_group.conversation_id
        and m.deleted_at is null
    order by m.seq desc
    limit 1;
    if last.format = 'openai_responses' and last.role = 'assistant' and (
        last.group_seq < last.seq or last.call_ids is not null
        or last.is_empty and last.content is null
    ) then
        return last.group_seq;
    end if;
    return null;
end
$$;

comment on function convo._begun_group(uuid) is
'The group that an item of the responses format joins which comes next, or null.';
revoke execute on function convo._begun_group(uuid) from public;
grant execute on function convo._begun_group(uuid) to convo_app, convo_service;
