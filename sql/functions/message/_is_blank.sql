-- _is_blank: whether a text is null, empty or white space only, in any script.
create function convo._is_blank(content text) returns boolean
language sql immutable parallel safe
return coalesce(
    _is_blank.content !~ (
        '[^\s\u001c-\u001f\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f'
        '\u3000]'
    ),
    true
);

comment on function convo._is_blank(text) is
'Whether a text is null, empty or white space only.';
revoke execute on function convo._is_blank(text) from public;
grant execute on function convo._is_blank(text)
to convo_app, convo_service, convo_reader;
