-- _group_messages: which group each message of a batch belongs to.
-- A result belongs to the nearest call before it with its id that has no result yet, in
-- the batch or stored before; its group is the call's, of several results the first's.
-- An item of the responses format that follows reasoning or a call directly was made
-- with it, and joins its group. Anything else is its own group.
-- in: the conversation, the format, the batch, the seq of its first message
-- out: a group_seq for each message
create function convo._group_messages(
    conversation_id uuid,
    format text,
    messages convo._parsed_message[],
    first_seq integer
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
    -- the group that an assistant's item joins which comes next
    begun integer;
    result_id text;
begin
    select array_agg(o.call_id), array_agg(o.group_seq) into open_ids, open_groups
    from convo._open_calls(_group_messages.conversation_id, array(
        select r.id
        from unnest(_group_messages.messages) as m
        cross join unnest(m.result_ids) as r (id)
    )) as o;
    if _group_messages.format = 'openai_responses'
        and _group_messages.messages[1].role = 'assistant'
    then
        begun := convo._begun_group(_group_messages.conversation_id);
    end if;

    foreach message in array _group_messages.messages loop
        group_seq := null;
        foreach result_id in array coalesce(message.result_ids, '{}') loop
            select max(o.n) into position
            from unnest(open_ids) with ordinality as o (id, n)
            where o.id = result_id;
            if position is not null then
                group_seq := coalesce(group_seq, open_groups[position]);
                open_ids[position] := null;
            end if;
        end loop;
        if message.role = 'assistant' then
            group_seq := begun;
        end if;
        group_seq := coalesce(
            group_seq, _group_messages.first_seq + cardinality(groups)
        );
        begun := case
            when _group_messages.format = 'openai_responses'
                and message.role = 'assistant'
                and (
                    begun is not null or message.call_ids is not null
                    or message.is_empty and message.content is null
                )
                then group_seq
        end;
        open_ids := open_ids || message.call_ids;
        open_groups := open_groups
            || array_fill(group_seq, array[coalesce(cardinality(message.call_ids), 0)]);
        groups := groups || group_seq;
    end loop;
    return groups;
end
$$;

comment on function convo._group_messages(
    uuid, text, convo._parsed_message[], integer
) is
'The group_seq of each message of a batch: results join their call.';
revoke execute on function convo._group_messages(
    uuid, text, convo._parsed_message[], integer
) from public;
grant execute on function convo._group_messages(
    uuid, text, convo._parsed_message[], integer
) to convo_app, convo_service;
