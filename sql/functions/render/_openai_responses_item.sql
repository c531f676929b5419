-- _openai_responses_item: an item of the OpenAI responses format.
-- in: a call, a result or a text of the assistant; or all that a user's or system
--     message holds
create function convo._openai_responses_item(blocks convo._render_block[])
returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    block constant convo._render_block := _openai_responses_item.blocks[1];
    is_custom constant boolean := coalesce(block.call ? 'input', false);
    contents json;
begin
    if block.kind = 'call' then
        return json_build_object(
            'type', case
                when is_custom then 'custom_tool_call' else 'function_call'
            end,
            'call_id', block.call_id,
            'name', convo._call_name(block.call),
            case when is_custom then 'input' else 'arguments' end,
            coalesce(block.call ->> 'input', block.call ->> 'arguments')
        )::text;
    end if;
    select json_agg(convo._openai_responses_content(p.part)::json) into contents
    from (
        select r.part
        from jsonb_array_elements(block.content -> 'parts') as r (part)
        where block.kind = 'result'
        union all
        select b.content
        from unnest(_openai_responses_item.blocks) as b
        where block.kind <> 'result'
    ) as p;
    -- texts alone are a string
    if block.kind = 'result' and not exists (
        select
        from json_array_elements(contents) as c (part)
        where c.part ->> 'type' <> 'input_text'
    ) then
        contents := to_json(convo._result_text(block.content));
    elsif json_array_length(contents) = 1
        and contents #>> '{0,type}' = 'input_text'
    then
        contents := contents #> '{0,text}';
    end if;
    if block.kind = 'result' then
        return json_build_object(
            'type', case
                when is_custom then 'custom_tool_call_output'
                else 'function_call_output'
            end,
            'call_id', block.call_id,
            'output', contents
        )::text;
    end if;
    return json_build_object('role', block.role, 'content', contents)::text;
end
$$;

comment on function convo._openai_responses_item(convo._render_block[]) is
'An item of the OpenAI responses format.';
revoke execute on function convo._openai_responses_item(convo._render_block[])
from public;
grant execute on function convo._openai_responses_item(convo._render_block[])
to convo_app, convo_service, convo_reader;
