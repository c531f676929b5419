-- _openai_message: an OpenAI chat message of blocks that belong together.
create function convo._openai_message(blocks convo._render_block[]) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    result constant convo._render_block := _openai_message.blocks[1];
    contents text[];
    calls text;
    content text;
begin
    if result.kind = 'result' then
        return format(
            '{"role":"tool","tool_call_id":%s,"content":%s}',
            to_json(result.call_id), to_json(convo._result_text(result.content))
        );
    end if;
    select
        array_agg(convo._openai_content(b.content)) filter (where b.kind <> 'call'),
        string_agg(
            case
                when b.content ? 'input' then format(
                    '{"id":%s,"type":"custom","custom":{"name":%s,"input":%s}}',
                    to_json(b.call_id), convo._call_name(b.content),
                    b.content -> 'input'
                )
                else format(
                    '{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}',
                    to_json(b.call_id), convo._call_name(b.content),
                    b.content -> 'arguments'
                )
            end,
            ','
        ) filter (where b.kind = 'call')
    into contents, calls
    from unnest(_openai_message.blocks) as b;
    if cardinality(contents) = 1 and contents[1]::json ->> 'type' = 'text' then
        content := contents[1]::json ->> 'text';
    end if;
    return format(
        '{"role":"%s","content":%s%s}', result.role,
        case
            when contents is null then 'null'
            when content is not null then to_json(content)::text
            else '[' || array_to_string(contents, ',') || ']'
        end,
        ',"tool_calls":[' || calls || ']'
    );
end
$$;

comment on function convo._openai_message(convo._render_block[]) is
'An OpenAI chat message of blocks that belong together.';
revoke execute on function convo._openai_message(convo._render_block[]) from public;
grant execute on function convo._openai_message(convo._render_block[])
to convo_app, convo_service, convo_reader;
