-- _json_without: a JSON object without some of its members, the others as they are.
create function convo._json_without(object json, names text[]) returns json
language sql immutable parallel safe
return (
    select
        coalesce(
            '{' || string_agg(
                to_json(m.key)::text || ':' || m.value::text, ',' order by m.n
            ) || '}',
            '{}'
        )
    from json_each(_json_without.object) with ordinality as m (key, value, n)
    where array_position(_json_without.names, m.key) is null
)::json;

comment on function convo._json_without(json, text[]) is
'A JSON object without some of its members, the others as they are.';
revoke execute on function convo._json_without(json, text[]) from public;
grant execute on function convo._json_without(json, text[])
to convo_app, convo_service;
