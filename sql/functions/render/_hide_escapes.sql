-- _hide_escapes: JSON text that the functions of json can take apart.
-- They fail on \u0000 and on half surrogate pairs, so what begins an escape is hidden
-- behind marks that occur nowhere; but for the escapes of ASCII, with which the name of
-- a member can be written.
-- in: the text, and another one that the marks mustn't occur in
-- out: the text, and the two marks, for _show_escapes
create function convo._hide_escapes(raw text, other text default '') returns text[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    -- no text holds its own hash
    mark constant text := chr(57344) || md5(_hide_escapes.raw || _hide_escapes.other);
    marks constant text[] := array[mark || 'a', mark || 'b'];
begin
    if strpos(_hide_escapes.raw, e'\\') = 0 then
        return array[_hide_escapes.raw] || marks;
    end if;
    return array[regexp_replace(
        replace(_hide_escapes.raw, e'\\\\', marks[1]), e'\\\\u(?!00[2-7])', marks[2], 'g'
    )] || marks;
end
$$;

comment on function convo._hide_escapes(text, text) is
'JSON text without the escapes that the functions of json fail on.';
revoke execute on function convo._hide_escapes(text, text) from public;
grant execute on function convo._hide_escapes(text, text)
to convo_app, convo_service, convo_reader;
