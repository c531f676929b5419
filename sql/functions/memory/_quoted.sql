-- _quoted: a text as a JSON string on one line, whatever counts as a line end.
create function convo._quoted(content text) returns text
language sql immutable parallel safe
return replace(
    replace(
        replace(to_json(_quoted.content)::text, chr(133), e'\\u0085'),
        chr(8232), e'\\u2028'
    ),
    chr(8233), e'\\u2029'
);

comment on function convo._quoted(text) is
'A text as a JSON string on one line, whatever counts as a line end.';
revoke execute on function convo._quoted(text) from public;
grant execute on function convo._quoted(text) to convo_app, convo_service, convo_reader;
