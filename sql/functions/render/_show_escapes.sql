-- _show_escapes: JSON text as it was before _hide_escapes.
create function convo._show_escapes(hidden text, marks text[]) returns text
language sql immutable parallel safe
return replace(
    replace(_show_escapes.hidden, _show_escapes.marks[2], '\u'),
    _show_escapes.marks[1], '\\'
);

comment on function convo._show_escapes(text, text[]) is
'JSON text as it was before _hide_escapes.';
revoke execute on function convo._show_escapes(text, text[]) from public;
grant execute on function convo._show_escapes(text, text[])
to convo_app, convo_service, convo_reader;
