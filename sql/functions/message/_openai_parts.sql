-- _openai_parts: an OpenAI chat message as parts, the form between all formats.
-- in: a message that _read_openai took, cleaned by _readable
-- out: an array in the order of the message; each part has a kind:
--      text (text), image, file, audio (media_type and data, url or id; name, detail),
--      call (id, name, arguments or input as text), result (id, name, parts, is_error),
--      reasoning (text), other (what only its own format can carry)
create function convo._openai_parts(message jsonb) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant jsonb := _openai_parts.message;
    parts jsonb := convo._openai_content_parts(source -> 'content');
begin
    if source ->> 'role' in ('tool', 'function') then
        return jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
            'kind', 'result',
            'id', case source ->> 'role'
                when 'tool' then source ->> 'tool_call_id'
                else 'function_call:' || (source ->> 'name')
            end,
            'name', source -> 'name', 'parts', parts, 'is_error', false
        )));
    end if;
    if parts = '[]' and source ->> 'refusal' is not null then
        parts := jsonb_build_array(jsonb_build_object(
            'kind', 'text', 'text', source -> 'refusal'
        ));
    end if;
    if jsonb_typeof(source -> 'audio') = 'object' then
        parts := parts || '[{"kind": "other"}]';
    end if;
    return parts || (
        select
            coalesce(jsonb_agg(
                jsonb_strip_nulls(jsonb_build_object(
                    'kind', 'call', 'id', c.id, 'name', c.target -> 'name',
                    'arguments', c.target -> 'arguments', 'input', c.target -> 'input'
                ))
                order by c.n
            ), '[]')
        from (
            select
                t.n, t.call ->> 'id' as id,
                coalesce(t.call -> 'function', t.call -> 'custom') as target
            from jsonb_path_query(source, '$.tool_calls[*] ? (@ != null)')
                with ordinality as t (call, n)
            union all
            -- The older function calls have no ids: their name stands for one.
            select
                1, 'function_call:' || (source #>> '{function_call,name}'),
                source -> 'function_call'
            where source #>> '{function_call,name}' is not null
                and coalesce(source -> 'tool_calls', 'null') in ('null', '[]')
        ) as c
    );
end
$$;

comment on function convo._openai_parts(jsonb) is
'An OpenAI chat message as parts, the form between all formats.';
revoke execute on function convo._openai_parts(jsonb) from public;
grant execute on function convo._openai_parts(jsonb)
to convo_app, convo_service, convo_reader;
