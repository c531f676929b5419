-- _read_gemini: reads a message of the Gemini format, in camel or snake case.
-- The system instruction, which the format keeps apart, comes with the role system.
-- in: the message, and its place in the batch for the error
-- errors: PC050
create function convo._read_gemini(payload json, index integer)
returns convo._parsed_message
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    message constant jsonb := convo._readable(_read_gemini.payload);
    -- A message without a role is a user's.
    role constant text := coalesce(message ->> 'role', 'user');
    parts jsonb;
    reason text;
begin
    reason := case
        when jsonb_typeof(message) <> 'object' then 'not an object'
        when jsonb_typeof(message -> 'role') not in ('string', 'null')
            then 'role is not a string'
        when role not in ('system', 'user', 'model', 'function') then 'unknown role'
        -- A model may answer with nothing.
        when coalesce(message ->> 'parts', '[]') = '[]' and role <> 'model'
            then 'parts is missing or empty'
        when jsonb_typeof(message -> 'parts') not in ('array', 'null')
            then 'parts is not an array'
        when role = 'function' and not jsonb_path_exists(
            message, '$.parts[*] ? (exists (@.functionResponse)
                || exists (@.function_response))'
        ) then 'a function message has no functionResponse'
    end;
    if reason is null then
        parts := convo._gemini_parts(message);
        reason := convo._parts_reason(
            case role when 'model' then 'assistant' else role end, parts
        );
    end if;
    if reason is not null then
        perform convo._fail('PC050', jsonb_build_object(
            'index', _read_gemini.index, 'reason', reason
        ));
    end if;
    return convo._parsed_message(
        case role when 'model' then 'assistant' else role end, parts,
        _read_gemini.payload
    );
end
$$;

comment on function convo._read_gemini(json, integer) is
'Reads a message of the Gemini format.';
revoke execute on function convo._read_gemini(json, integer) from public;
grant execute on function convo._read_gemini(json, integer)
to convo_app, convo_service;
