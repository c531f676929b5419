-- _replace_openai_text: an OpenAI chat message with other text.
-- in: the message, without escapes that json_each fails on; the text as a JSON string
create function convo._replace_openai_text(message json, text_value text) returns json
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    new_content text := _replace_openai_text.text_value;
    result json := _replace_openai_text.message;
begin
    if json_typeof(result -> 'content') = 'array' then
        select '[' || string_agg(
            case
                when p.place is null then p.part::text
                when p.part ->> 'type' = 'text' then convo._json_set(
                    p.part, 'text', _replace_openai_text.text_value
                )::text
                else '{"type":"text","text":' || _replace_openai_text.text_value || '}'
            end,
            ',' order by p.n
        ) || ']'
        into new_content
        from (
            select
                e.part, e.n,
                case when e.part ->> 'type' in ('text', 'refusal') then
                    row_number() over (
                        partition by e.part ->> 'type' in ('text', 'refusal')
                        order by e.n
                    )
                end as place
            from json_array_elements(result -> 'content') with ordinality as e (part, n)
        ) as p
        where p.place is null or p.place = 1;
    end if;
    if result ->> 'refusal' is not null then
        result := convo._json_set(result, 'refusal', 'null');
    end if;
    return convo._json_set(result, 'content', new_content);
end
$$;

comment on function convo._replace_openai_text(json, text) is
'An OpenAI chat message with other text.';
revoke execute on function convo._replace_openai_text(json, text) from public;
grant execute on function convo._replace_openai_text(json, text)
to convo_app, convo_service;
