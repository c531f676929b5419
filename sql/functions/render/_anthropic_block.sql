-- _anthropic_block: a part as a content block of the Anthropic format.
create function convo._anthropic_block(block convo._render_block) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    part constant jsonb := (_anthropic_block.block).content;
    id constant json := to_json((_anthropic_block.block).call_id);
    contents text;
begin
    if (_anthropic_block.block).kind = 'call' then
        return format(
            '{"type":"tool_use","id":%s,"name":%s,"input":%s}',
            id, convo._call_name(part), convo._arguments_object(part)
        );
    elsif (_anthropic_block.block).kind = 'result' then
        select string_agg(convo._anthropic_content(p.part), ',' order by p.n)
        into contents
        from jsonb_array_elements(part -> 'parts') with ordinality as p (part, n);
        return format(
            '{"type":"tool_result","tool_use_id":%s%s%s}', id,
            ',"content":[' || contents || ']',
            case when part -> 'is_error' = 'true' then ',"is_error":true' end
        );
    end if;
    return convo._anthropic_content(part);
end
$$;

comment on function convo._anthropic_block(convo._render_block) is
'A part as a content block of the Anthropic format.';
revoke execute on function convo._anthropic_block(convo._render_block) from public;
grant execute on function convo._anthropic_block(convo._render_block)
to convo_app, convo_service, convo_reader;
