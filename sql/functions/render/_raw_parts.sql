-- _raw_parts: the parts of an Anthropic or Gemini message, byte for byte.
-- A content that is a string is a text block.
create function convo._raw_parts(format text, payload json) returns text[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    hidden constant text[] := convo._hide_escapes(_raw_parts.payload::text);
    parts constant json := hidden[1]::json -> case _raw_parts.format
        when 'anthropic' then 'content' else 'parts'
    end;
begin
    if json_typeof(parts) = 'string' then
        return array[convo._show_escapes(
            '{"type":"text","text":' || parts::text || '}', hidden[2:]
        )];
    end if;
    return array(
        select convo._show_escapes(p.part::text, hidden[2:])
        from json_array_elements(parts) with ordinality as p (part, n)
        order by p.n
    );
end
$$;

comment on function convo._raw_parts(text, json) is
'The parts of an Anthropic or Gemini message, byte for byte.';
revoke execute on function convo._raw_parts(text, json) from public;
grant execute on function convo._raw_parts(text, json)
to convo_app, convo_service, convo_reader;
