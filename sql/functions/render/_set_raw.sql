-- _set_raw: the bytes of a JSON object with one member set, the rest as it is.
create function convo._set_raw(raw text, name text, value text) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    hidden constant text[] := convo._hide_escapes(_set_raw.raw);
begin
    return convo._show_escapes(
        convo._json_set(
            hidden[1]::json, _set_raw.name, to_json(_set_raw.value)::text
        )::text,
        hidden[2:]
    );
end
$$;

comment on function convo._set_raw(text, text, text) is
'The bytes of a JSON object with one member set.';
revoke execute on function convo._set_raw(text, text, text) from public;
grant execute on function convo._set_raw(text, text, text)
to convo_app, convo_service, convo_reader;
