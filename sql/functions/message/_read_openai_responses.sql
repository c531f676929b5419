-- _read_openai_responses: reads an item of the OpenAI responses format.
-- in: the item, and its place in the batch for the error
-- errors: PC050
create function convo._read_openai_responses(payload json, index integer)
returns convo._parsed_message
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    item constant jsonb := convo._readable(_read_openai_responses.payload);
    -- A message may leave its type out.
    item_type constant text := coalesce(item ->> 'type', 'message');
    role constant text := case
        when item ->> 'role' = 'developer' then 'system'
        when item_type = 'message' or item ->> 'role' in ('system', 'user', 'assistant')
            then item ->> 'role'
        when item_type ~ '_call_output$' then 'tool'
        else 'assistant'
    end;
    part_name constant text := case
        when item_type = 'message' then 'content'
        when role = 'tool' then 'output'
    end;
    parts jsonb;
    reason text;
begin
    reason := case
        when jsonb_typeof(item) <> 'object' then 'not an object'
        when jsonb_typeof(item -> 'type') not in ('string', 'null')
            then 'type is not a string'
        when jsonb_typeof(item -> 'role') not in ('string', 'null')
            or item_type = 'message' and role is null
            then 'role is not a string'
        when role not in ('system', 'user', 'assistant', 'tool')
            or item_type = 'message' and role = 'tool'
            then 'unknown role'
        when item_type = 'message' and coalesce(item -> 'content', '[]') = '[]'
            and role <> 'assistant'
            or item ->> part_name is null and part_name is not null
            then part_name || ' is missing or empty'
        when jsonb_typeof(item -> part_name) not in ('string', 'array')
            and (part_name = 'content' or jsonb_typeof(item -> part_name) <> 'object')
            then part_name || ' is neither a string nor an array'
    end;
    if reason is null then
        parts := convo._openai_responses_parts(item);
        reason := convo._parts_reason(role, parts);
    end if;
    if reason is not null then
        perform convo._fail('PC050', jsonb_build_object(
            'index', _read_openai_responses.index, 'reason', reason
        ));
    end if;
    return convo._parsed_message(role, parts, _read_openai_responses.payload);
end
$$;

comment on function convo._read_openai_responses(json, integer) is
'Reads an item of the OpenAI responses format.';
revoke execute on function convo._read_openai_responses(json, integer) from public;
grant execute on function convo._read_openai_responses(json, integer)
to convo_app, convo_service;
