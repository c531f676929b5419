-- _openai_text: the text of the content of an OpenAI chat message; null if it has none.
create function convo._openai_text(content jsonb) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if jsonb_typeof(_openai_text.content) = 'string' then
        return _openai_text.content #>> '{}';
    elsif jsonb_typeof(_openai_text.content) = 'array' then
        return (
            select
                string_agg(
                    coalesce(p.part ->> 'text', p.part ->> 'refusal'), e'\n' order by p.n
                )
            from jsonb_array_elements(_openai_text.content) with ordinality as p (part, n)
            where p.part ->> 'type' in ('text', 'refusal')
        );
    end if;
    return null;
end
$$;

comment on function convo._openai_text(jsonb) is
'The text of the content of an OpenAI chat message, parts joined by line feeds.';
revoke execute on function convo._openai_text(jsonb) from public;
grant execute on function convo._openai_text(jsonb) to convo_app, convo_service;
