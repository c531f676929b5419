-- _read_openai: reads a message of the OpenAI chat completions format.
-- in: the message, and its place in the batch for the error
-- errors: PC050
create function convo._read_openai(payload json, index integer)
returns convo._parsed_message
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    message constant jsonb := convo._readable(_read_openai.payload);
    content constant jsonb := nullif(message -> 'content', 'null');
    calls constant jsonb := nullif(message -> 'tool_calls', 'null');
    role constant text := message ->> 'role';
    reason text;
    parsed convo._parsed_message;
begin
    reason := case
        when jsonb_typeof(message) <> 'object' then 'not an object'
        when jsonb_typeof(message -> 'role') is distinct from 'string'
            then 'role is not a string'
        when role not in (
            'system', 'developer', 'user', 'assistant', 'tool', 'function'
        ) then 'unknown role'
        when content is null and role <> 'assistant' then 'content is missing'
        when jsonb_typeof(content) not in ('string', 'array')
            then 'content is neither a string nor an array'
        when content = '[]' then 'content is empty'
        when jsonb_typeof(content) = 'array' and exists (
            select
            from jsonb_array_elements(content) as p (part)
            where jsonb_typeof(p.part -> 'type') is distinct from 'string'
                or p.part ->> 'type' in ('text', 'refusal')
                and jsonb_typeof(p.part -> (p.part ->> 'type')) is distinct from 'string'
        ) then 'a content part is not valid'
        when role = 'tool' and coalesce(message ->> 'tool_call_id', '') = ''
            then 'tool_call_id is missing'
        when role = 'function' and coalesce(message ->> 'name', '') = ''
            then 'name is missing'
        when role <> 'assistant' and calls is not null
            then 'only an assistant message has tool_calls'
        when jsonb_typeof(calls) <> 'array' or calls = '[]'
            then 'tool_calls is not an array of calls'
        when calls is not null and exists (
            select
            from jsonb_array_elements(calls) as c (call)
            cross join lateral (
                values (coalesce(c.call -> 'function', c.call -> 'custom'))
            ) as f (target)
            where coalesce(c.call ->> 'id', '') = ''
                or jsonb_typeof(c.call -> 'id') <> 'string'
                or coalesce(f.target ->> 'name', '') = ''
                or coalesce(
                    jsonb_typeof(f.target -> 'arguments'),
                    jsonb_typeof(f.target -> 'input')
                ) is distinct from 'string'
        ) then 'a tool call has no id, name or arguments'
        when jsonb_typeof(message -> 'function_call') not in ('object', 'null')
            or message #>> '{function_call,name}' = ''
            or jsonb_typeof(message -> 'function_call') = 'object'
            and jsonb_typeof(message #> '{function_call,arguments}')
                is distinct from 'string'
            then 'function_call is not valid'
    end;
    if reason is not null then
        perform convo._fail('PC050', jsonb_build_object(
            'index', _read_openai.index, 'reason', reason
        ));
    end if;

    parsed.role := case role
        when 'developer' then 'system'
        when 'function' then 'tool'
        else role
    end;
    parsed.content := coalesce(convo._openai_text(content), message ->> 'refusal');
    parsed.payload := _read_openai.payload;
    -- The older function calls have no ids: their name stands for one.
    parsed.call_ids := case
        when calls is not null then array(
            select c.call ->> 'id'
            from jsonb_array_elements(calls) with ordinality as c (call, n)
            order by c.n
        )
        when message #>> '{function_call,name}' is not null
            then array['function_call:' || (message #>> '{function_call,name}')]
    end;
    parsed.result_ids := case role
        when 'tool' then array[message ->> 'tool_call_id']
        when 'function' then array['function_call:' || (message ->> 'name')]
    end;
    parsed.tokens := coalesce(convo.estimate_tokens(parsed.content), 0)
        + convo._estimate_openai_parts(message);
    parsed.is_empty := coalesce(parsed.content !~ '\S', true)
        and coalesce(parsed.call_ids, parsed.result_ids) is null
        and jsonb_path_exists(
            message, '$.content[*] ? (@.type != "text" && @.type != "refusal")'
        ) is not true;
    return parsed;
end
$$;

comment on function convo._read_openai(json, integer) is
'Reads a message of the OpenAI chat completions format.';
revoke execute on function convo._read_openai(json, integer) from public;
grant execute on function convo._read_openai(json, integer)
to convo_app, convo_service;
