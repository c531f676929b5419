-- _open_calls: the newest stored calls that wait for a result, by id.
-- in: the ids of the results that came in, an id as often as it has results
-- out: one row an open call, at most as many for an id as results came, oldest first
create function convo._open_calls(conversation_id uuid, result_ids text[])
returns table (call_id text, group_seq integer)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
begin
    return query
    select o.call_id, o.group_seq
    from (
        select r.id, count(*) as results
        from unnest(_open_calls.result_ids) as r (id)
        group by r.id
    ) as w
    cross join lateral (
        select w.id as call_id, m.group_seq, m.seq
        from convo.message as m
        -- once for each of its calls with this id that has no result
        cross join generate_series(
            1,
            cardinality(array_positions(m.call_ids, w.id)) - (
                select coalesce(sum(cardinality(array_positions(a.result_ids, w.id))), 0)
                from convo.message as a
                where a.tenant_id = tenant
                    and a.conversation_id = _open_calls.conversation_id
                    and a.group_seq = m.group_seq
                    and a.deleted_at is null
                    and a.role <> 'system'
            )
        )
        where m.tenant_id = tenant
            and m.conversation_id = _open_calls.conversation_id
            and m.call_ids @> array[w.id]
            and m.deleted_at is null
        order by m.seq desc
        limit w.results
    ) as o
    order by o.seq;
end
$$;

comment on function convo._open_calls(uuid, text[]) is
'The newest stored calls that wait for a result, by id, oldest first.';
revoke execute on function convo._open_calls(uuid, text[]) from public;
grant execute on function convo._open_calls(uuid, text[]) to convo_app, convo_service;
