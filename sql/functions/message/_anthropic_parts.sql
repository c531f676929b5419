-- _anthropic_parts: a message of the Anthropic format as parts.
-- in: the message, or {"content": ...} of a tool result, cleaned by _readable
-- out: an array, see _openai_parts; what isn't valid is a part that lacks a member
create function convo._anthropic_parts(message jsonb) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    content constant jsonb := _anthropic_parts.message -> 'content';
begin
    if jsonb_typeof(content) = 'string' then
        return jsonb_build_array(jsonb_build_object('kind', 'text', 'text', content));
    elsif jsonb_typeof(content) is distinct from 'array' then
        return '[]';
    end if;
    return (
        select coalesce(jsonb_agg(
            jsonb_strip_nulls(case b.block ->> 'type'
                when 'text' then jsonb_build_object(
                    'kind', 'text', 'text', b.block -> 'text'
                )
                when 'image' then '{"kind": "image"}'
                    || convo._anthropic_source(b.block -> 'source')
                when 'document' then case b.block #>> '{source,type}'
                    when 'content' then '{"kind": "other"}'
                    else jsonb_build_object(
                        'kind', 'file', 'name', b.block -> 'title'
                    ) || convo._anthropic_source(b.block -> 'source')
                end
                when 'tool_use' then jsonb_build_object(
                    'kind', 'call', 'id', b.block -> 'id', 'name', b.block -> 'name',
                    'arguments', case
                        when jsonb_typeof(b.block -> 'input') = 'object'
                            then (b.block -> 'input')::text
                    end
                )
                when 'tool_result' then jsonb_build_object(
                    'kind', 'result', 'id', b.block -> 'tool_use_id',
                    'parts', convo._anthropic_parts(b.block),
                    'is_error', coalesce(b.block -> 'is_error' = 'true', false)
                )
                when 'thinking' then jsonb_build_object(
                    'kind', 'reasoning', 'text', b.block -> 'thinking'
                )
                when 'redacted_thinking' then '{"kind": "reasoning", "text": ""}'
                else case
                    when jsonb_typeof(b.block -> 'type') = 'string'
                        then '{"kind": "other"}'::jsonb
                    else '{}'
                end
            end)
            order by b.n
        ), '[]')
        from jsonb_array_elements(content) with ordinality as b (block, n)
    );
end
$$;

comment on function convo._anthropic_parts(jsonb) is
'A message of the Anthropic format as parts.';
revoke execute on function convo._anthropic_parts(jsonb) from public;
grant execute on function convo._anthropic_parts(jsonb)
to convo_app, convo_service, convo_reader;
