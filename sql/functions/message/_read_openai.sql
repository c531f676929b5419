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
    -- No calls: some providers write [] for it.
    calls constant jsonb := nullif(nullif(message -> 'tool_calls', 'null'), '[]');
    role constant text := message ->> 'role';
    part_reason text;
    has_bad_call boolean;
    reason text;
    parsed convo._parsed_message;
begin
    -- Sub-selects stand alone: within an expression each would start an executor, also
    -- where there is nothing to look at.
    if jsonb_typeof(content) = 'array' then
        part_reason := convo._parts_reason(
            'user', convo._openai_content_parts(content)
        );
    end if;
    if jsonb_typeof(calls) = 'array' then
        has_bad_call := exists (
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
        );
        parsed.call_ids := array(
            select c.call ->> 'id'
            from jsonb_array_elements(calls) with ordinality as c (call, n)
            order by c.n
        );
    end if;
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
        when part_reason is not null then part_reason
        when jsonb_typeof(message -> 'refusal') not in ('string', 'null')
            then 'refusal is not a string'
        when role = 'tool' and (
            coalesce(message ->> 'tool_call_id', '') = ''
            or jsonb_typeof(message -> 'tool_call_id') <> 'string'
        ) then 'tool_call_id is missing or not a string'
        when role = 'function' and (
            coalesce(message ->> 'name', '') = ''
            or jsonb_typeof(message -> 'name') <> 'string'
        ) then 'name is missing or not a string'
        when role <> 'assistant'
            and coalesce(calls, nullif(message -> 'function_call', 'null')) is not null
            then 'only an assistant message has calls'
        when jsonb_typeof(calls) <> 'array' then 'tool_calls is not an array'
        when has_bad_call then 'a tool call has no id, name or arguments'
        when jsonb_typeof(message -> 'function_call') <> 'null' and (
            coalesce(message #>> '{function_call,name}', '') = ''
            or jsonb_typeof(message #> '{function_call,arguments}')
                is distinct from 'string'
        ) then 'function_call is not valid'
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
    if message #>> '{function_call,name}' is not null and calls is null then
        parsed.call_ids := array['function_call:' || (message #>> '{function_call,name}')];
    end if;
    parsed.result_ids := case role
        when 'tool' then array[message ->> 'tool_call_id']
        when 'function' then array['function_call:' || (message ->> 'name')]
    end;
    parsed.tokens := coalesce(convo.estimate_tokens(parsed.content), 0)
        + convo._estimate_openai_parts(message);
    parsed.is_empty := parsed.result_ids is not null
        or parsed.call_ids is null
        and convo._is_blank(parsed.content)
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
