-- _result_text: the text of a result.
create function convo._result_text(result jsonb) returns text
language sql immutable parallel safe
return (
    select coalesce(string_agg(p.part ->> 'text', e'\n' order by p.n), '')
    from jsonb_array_elements(_result_text.result -> 'parts')
        with ordinality as p (part, n)
);

comment on function convo._result_text(jsonb) is
'The text of a result, parts joined by line feeds.';
revoke execute on function convo._result_text(jsonb) from public;
grant execute on function convo._result_text(jsonb)
to convo_app, convo_service, convo_reader;
