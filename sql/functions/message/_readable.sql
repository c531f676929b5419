-- _readable: a payload as jsonb, for reading its parts.
-- jsonb can't hold \u0000 or half of a surrogate pair, so U+FFFD stands for them. An
-- escaped backslash is written as \u005c first: then every \u left is an escape.
-- errors: those of the cast: 22003 a number out of range, 54001 nested too deeply
create function convo._readable(payload json) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    cleaned text := _readable.payload::text;
begin
    if strpos(cleaned, e'\\u') > 0 then
        cleaned := replace(cleaned, e'\\\\', e'\\u005c');
        cleaned := replace(cleaned, e'\\u0000', e'\\ufffd');
        cleaned := regexp_replace(
            cleaned,
            e'\\\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\\\u[dD][c-fC-F])', e'\\\\ufffd', 'g'
        );
        cleaned := regexp_replace(
            cleaned,
            e'(?<!\\\\u[dD][89abAB][0-9a-fA-F]{2})\\\\u[dD][c-fC-F][0-9a-fA-F]{2}',
            e'\\\\ufffd', 'g'
        );
    end if;
    return cleaned::jsonb;
end
$$;

comment on function convo._readable(json) is
'A payload as jsonb, with U+FFFD for what jsonb can''t hold.';
revoke execute on function convo._readable(json) from public;
grant execute on function convo._readable(json)
to convo_app, convo_service, convo_reader, convo_maintainer, convo_search;
