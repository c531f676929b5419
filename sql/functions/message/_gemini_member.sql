-- _gemini_member: a member of a Gemini object, written in camel or in snake case.
-- in: the object, the name in camel case
-- out: null also for a JSON null
create function convo._gemini_member(object jsonb, name text) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return coalesce(
        nullif(_gemini_member.object -> _gemini_member.name, 'null'),
        nullif(_gemini_member.object -> lower(
            regexp_replace(_gemini_member.name, '([A-Z])', e'_\\1', 'g')
        ), 'null')
    );
end
$$;

comment on function convo._gemini_member(jsonb, text) is
'A member of a Gemini object, in camel or snake case.';
revoke execute on function convo._gemini_member(jsonb, text) from public;
grant execute on function convo._gemini_member(jsonb, text)
to convo_app, convo_service, convo_reader;
