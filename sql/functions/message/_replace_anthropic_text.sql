-- _replace_anthropic_text: an Anthropic message, or a tool result, with other text.
-- Thinking goes with its signatures, and so do citations, which are about the old text.
-- Without text of its own its first result takes the text, and that of others goes.
-- in: the message, without escapes that json_each fails on; the text as a JSON string,
--     or null for none
create function convo._replace_anthropic_text(message json, text_value text)
returns json
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant json := _replace_anthropic_text.message;
    blocks constant json := source -> 'content';
    taker text;
    new_blocks text;
begin
    if json_typeof(blocks) = 'string' then
        if _replace_anthropic_text.text_value is null then
            return convo._json_without(source, '{content}');
        end if;
        return convo._json_set(source, 'content', _replace_anthropic_text.text_value);
    elsif json_typeof(blocks) is distinct from 'array' then
        return source;
    end if;
    taker := case
        when exists (
            select
            from json_array_elements(blocks) as e (block)
            where e.block ->> 'type' = 'text'
        ) then 'text'
        else 'tool_result'
    end;
    select '[' || coalesce(string_agg(
        case
            when b.kind <> taker then b.block::text
            when taker = 'text' then convo._json_set(
                convo._json_without(b.block, '{citations}'), 'text',
                _replace_anthropic_text.text_value
            )::text
            else convo._replace_anthropic_text(b.block, case
                when b.place = 1 then _replace_anthropic_text.text_value
            end)::text
        end,
        ',' order by b.n
    ), '') || ']'
    into new_blocks
    from (
        select e.block, e.n, k.kind, row_number() over (
            partition by k.kind order by e.n
        ) as place
        from json_array_elements(blocks) with ordinality as e (block, n)
        cross join lateral (
            select case
                when e.block ->> 'type' = 'tool_result'
                    and json_typeof(e.block -> 'content') is distinct from 'string'
                    and jsonb_path_exists(
                        (e.block -> 'content')::jsonb, '$[*] ? (@.type == "text")'
                    ) is not true
                    then 'result without text'
                else e.block ->> 'type'
            end as kind
        ) as k
    ) as b
    where b.kind not in ('text', 'thinking', 'redacted_thinking')
        or b.kind = 'text' and b.place = 1
        and _replace_anthropic_text.text_value is not null;
    return convo._json_set(source, 'content', new_blocks);
end
$$;

comment on function convo._replace_anthropic_text(json, text) is
'An Anthropic message, or a tool result, with other text.';
revoke execute on function convo._replace_anthropic_text(json, text) from public;
grant execute on function convo._replace_anthropic_text(json, text)
to convo_app, convo_service;
