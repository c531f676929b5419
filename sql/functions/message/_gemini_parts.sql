-- _gemini_parts: a message of the Gemini format as parts.
-- in: the message, or a functionResponse with parts of its own, cleaned by _readable
-- out: an array, see _openai_parts; what isn't valid is a part that lacks a member
create function convo._gemini_parts(message jsonb) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if jsonb_typeof(_gemini_parts.message -> 'parts') is distinct from 'array' then
        return '[]';
    end if;
    return (
        select coalesce(jsonb_agg(
            jsonb_strip_nulls(case
                when jsonb_typeof(p.part -> 'text') <> 'null' then jsonb_build_object(
                    'kind', case
                        when p.part -> 'thought' = 'true' then 'reasoning' else 'text'
                    end,
                    'text', p.part -> 'text'
                )
                when p.media is not null then convo._gemini_media(p.media)
                when p.call is not null then jsonb_build_object(
                    'kind', 'call',
                    'id', coalesce(nullif(p.call -> 'id', '""'), p.call -> 'name'),
                    'name', p.call -> 'name',
                    'arguments', case
                        when p.call -> 'args' is null then '{}'
                        when jsonb_typeof(p.call -> 'args') = 'object'
                            then (p.call -> 'args')::text
                    end
                )
                when p.response is not null then convo._gemini_response(p.response)
                when jsonb_typeof(p.part) = 'object'
                    and jsonb_strip_nulls(p.part - 'thought') <> '{}'
                    then '{"kind": "other"}'
                else '{}'
            end)
            order by p.n
        ), '[]')
        from (
            select
                e.part, e.n,
                coalesce(
                    convo._gemini_member(e.part, 'inlineData'),
                    convo._gemini_member(e.part, 'fileData')
                ) as media,
                convo._gemini_member(e.part, 'functionCall') as call,
                convo._gemini_member(e.part, 'functionResponse') as response
            from jsonb_array_elements(_gemini_parts.message -> 'parts')
                with ordinality as e (part, n)
        ) as p
    );
end
$$;

comment on function convo._gemini_parts(jsonb) is
'A message of the Gemini format as parts.';
revoke execute on function convo._gemini_parts(jsonb) from public;
grant execute on function convo._gemini_parts(jsonb)
to convo_app, convo_service, convo_reader;
