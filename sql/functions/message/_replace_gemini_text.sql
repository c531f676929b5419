-- _replace_gemini_text: a Gemini message with other text.
-- Thoughts go, and so do signatures. Without text of its own its first functionResponse
-- takes the text, and the response of others is empty.
-- in: the message, without escapes that json_each fails on; the text as a JSON string
create function convo._replace_gemini_text(message json, text_value text) returns json
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    signatures constant text[] := array['thoughtSignature', 'thought_signature'];
    has_text constant boolean := exists (
        select
        from json_array_elements(_replace_gemini_text.message -> 'parts') as e (part)
        where e.part ->> 'text' is not null
            and e.part ->> 'thought' is distinct from 'true'
    );
    parts text;
begin
    select '[' || coalesce(string_agg(
        case
            when p.kind = 'text' then convo._json_set(
                p.part, 'text', _replace_gemini_text.text_value
            )::text
            when p.kind = 'other' or has_text then p.part::text
            else convo._json_set(p.part, p.kind, convo._json_set(
                p.part -> p.kind, 'response', case
                    when p.place = 1
                        then '{"output":' || _replace_gemini_text.text_value || '}'
                    else '{}'
                end
            )::text)::text
        end,
        ',' order by p.n
    ), '') || ']'
    into parts
    from (
        select
            case
                when coalesce(s.part -> signatures[1], s.part -> signatures[2]) is null
                    then s.part
                else convo._json_without(s.part, signatures)
            end as part,
            s.kind, s.n, row_number() over (
                partition by s.kind in ('other', 'text'), s.kind = 'text' order by s.n
            ) as place
        from (
            select e.part, e.n, case
                when e.part ->> 'thought' = 'true' then 'thought'
                when e.part ->> 'text' is not null then 'text'
                when e.part ->> 'functionResponse' is not null then 'functionResponse'
                when e.part ->> 'function_response' is not null then 'function_response'
                else 'other'
            end as kind
            from json_array_elements(_replace_gemini_text.message -> 'parts')
                with ordinality as e (part, n)
        ) as s
        where s.kind <> 'thought'
    ) as p
    where p.part::text <> '{}' and (p.kind <> 'text' or p.place = 1);
    return convo._json_set(_replace_gemini_text.message, 'parts', parts);
end
$$;

comment on function convo._replace_gemini_text(json, text) is
'A Gemini message with other text.';
revoke execute on function convo._replace_gemini_text(json, text) from public;
grant execute on function convo._replace_gemini_text(json, text)
to convo_app, convo_service;
