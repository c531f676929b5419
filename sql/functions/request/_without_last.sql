-- _without_last: a JSON array without its last element, the others byte for byte.
create function convo._without_last(elements json) returns text
language sql immutable parallel safe
return (
    select '[' || coalesce(string_agg(e.element::text, ',' order by e.n), '') || ']'
    from json_array_elements(_without_last.elements) with ordinality as e (element, n)
    where e.n < json_array_length(_without_last.elements)
);

comment on function convo._without_last(json) is
'A JSON array without its last element, the others byte for byte.';
revoke execute on function convo._without_last(json) from public;
grant execute on function convo._without_last(json) to convo_app, convo_service;
