-- _group_messages: which group each message of a batch belongs to.
-- A result belongs to the nearest call before it with its id that has no result yet, in
-- the batch or stored before; its group is the call's. Anything else is its own group.
-- in: the conversation, the batch, the seq of its first message
-- out: a group_seq for each message
create function convo._group_messages(
    conversation_id uuid, messages convo._parsed_message[], first_seq integer
) returns integer[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    groups integer[] := '{}';
    open_ids text[];
    open_groups integer[];
    position integer;
    message convo._parsed_message;
    group_seq integer;
begin
    select array_agg(o.call_id), array_agg(o.group_seq) into open_ids, open_groups
    from convo._open_calls(_group_messages.conversation_id, array(
        select r.id
        from unnest(_group_messages.messages) as m
        cross join unnest(m.result_ids) as r (id)
    )) as o;

    foreach message in array _group_messages.messages loop
        group_seq := _group_messages.first_seq + cardinality(groups);
        if message.result_ids is not null then
            select max(o.n) into position
            from unnest(open_ids) with ordinality as o (id, n)
            where o.id = message.result_ids[1];
            if position is not null then
                group_seq := open_groups[position];
                open_ids[position] := null;
            end if;
        end if;
        open_ids := open_ids || message.call_ids;
        open_groups := open_groups
            || array_fill(group_seq, array[coalesce(cardinality(message.call_ids), 0)]);
        groups := groups || group_seq;
    end loop;
    return groups;
end
$$;

comment on function convo._group_messages(uuid, convo._parsed_message[], integer) is
'The group_seq of each message of a batch: results join their call.';
revoke execute on function convo._group_messages(
    uuid, convo._parsed_message[], integer
) from public;
grant execute on function convo._group_messages(
    uuid, convo._parsed_message[], integer
) to convo_app, convo_service;
