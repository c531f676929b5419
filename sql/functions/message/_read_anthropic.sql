-- _read_anthropic: reads a message of the Anthropic format.
-- The system text, which the format keeps apart, comes as a message of role system.
-- in: the message, and its place in the batch for the error
-- errors: PC050
create function convo._read_anthropic(payload json, index integer)
returns convo._parsed_message
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    message constant jsonb := convo._readable(_read_anthropic.payload);
    role constant text := message ->> 'role';
    parts jsonb;
    reason text;
begin
    reason := case
        when jsonb_typeof(message) <> 'object' then 'not an object'
        when jsonb_typeof(message -> 'role') is distinct from 'string'
            then 'role is not a string'
        when role not in ('system', 'user', 'assistant') then 'unknown role'
        when message ->> 'content' is null then 'content is missing'
        when jsonb_typeof(message -> 'content') not in ('string', 'array')
            then 'content is neither a string nor an array'
        -- A model may answer with nothing.
        when message -> 'content' = '[]' and role <> 'assistant'
            then 'content is empty'
        when exists (
            select
            from jsonb_path_query(
                    message, '$.content[*] ? (@.type == "tool_result").content'
                ) as r (content)
            where jsonb_typeof(r.content) not in ('string', 'array', 'null')
        ) then 'the content of a result is neither a string nor an array'
    end;
    if reason is null then
        parts := convo._anthropic_parts(message);
        reason := convo._parts_reason(role, parts);
    end if;
    if reason is not null then
        perform convo._fail('PC050', jsonb_build_object(
            'index', _read_anthropic.index, 'reason', reason
        ));
    end if;
    return convo._parsed_message(role, parts, _read_anthropic.payload);
end
$$;

comment on function convo._read_anthropic(json, integer) is
'Reads a message of the Anthropic format.';
revoke execute on function convo._read_anthropic(json, integer) from public;
grant execute on function convo._read_anthropic(json, integer)
to convo_app, convo_service;
