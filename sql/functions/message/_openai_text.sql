-- _openai_text: the text of the content of an OpenAI chat message; null if it has none.
create function convo._openai_text(content jsonb) returns text
language sql immutable parallel safe
return case jsonb_typeof(_openai_text.content)
    when 'string' then _openai_text.content #>> '{}'
    when 'array' then (
        select
            string_agg(
                coalesce(p.part ->> 'text', p.part ->> 'refusal'), e'\n' order by p.n
            )
        from jsonb_array_elements(_openai_text.content) with ordinality as p (part, n)
        where p.part ->> 'type' in ('text', 'refusal')
    )
end;

comment on function convo._openai_text(jsonb) is
'The text of the content of an OpenAI chat message, parts joined by line feeds.';
revoke execute on function convo._openai_text(jsonb) from public;
grant execute on function convo._openai_text(jsonb) to convo_app, convo_service;
