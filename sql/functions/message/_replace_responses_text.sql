-- _replace_responses_text: an item of the OpenAI responses format with other text.
-- Annotations and log probabilities go: they are about the old text.
-- in: the item, without escapes that json_each fails on; the text as a JSON string
create function convo._replace_responses_text(item json, text_value text) returns json
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    source constant json := _replace_responses_text.item;
    part_name constant text := case
        when source ->> 'type' ~ '_output$' then 'output' else 'content'
    end;
    old_value constant json := source -> part_name;
    text_types constant text[] := array['text', 'input_text', 'output_text', 'refusal'];
    new_value text := _replace_responses_text.text_value;
begin
    if source ->> 'type' = 'shell_call_output' then
        new_value := '[' || convo._json_set(
            convo._json_set(
                old_value -> 0, 'stdout', _replace_responses_text.text_value
            ),
            'stderr', '""'
        )::text || ']';
    elsif json_typeof(old_value) = 'array' then
        select '[' || string_agg(
            case
                when p.place is null then p.part::text
                when p.part ->> 'type' in ('output_text', 'refusal')
                    then '{"type":"output_text","text":' || new_value
                        || ',"annotations":[]}'
                else convo._json_set(p.part, 'text', new_value)::text
            end,
            ',' order by p.n
        ) || ']'
        into new_value
        from (
            select
                e.part, e.n,
                case when e.part ->> 'type' = any (text_types) then
                    row_number() over (
                        partition by e.part ->> 'type' = any (text_types) order by e.n
                    )
                end as place
            from json_array_elements(old_value) with ordinality as e (part, n)
        ) as p
        where p.place is null or p.place = 1;
    end if;
    return convo._json_set(source, part_name, new_value);
end
$$;

comment on function convo._replace_responses_text(json, text) is
'An item of the OpenAI responses format with other text.';
revoke execute on function convo._replace_responses_text(json, text) from public;
grant execute on function convo._replace_responses_text(json, text)
to convo_app, convo_service;
