-- _json_set: a JSON object with one member set, the others as they are and in order.
-- in: the object, the name, the value as JSON text
create function convo._json_set(object json, name text, value text) returns json
language sql immutable parallel safe
return (
    select
        '{' || concat_ws(
            ',',
            string_agg(
                to_json(m.key)::text || ':' || case
                    when m.key = _json_set.name then _json_set.value else m.value::text
                end,
                ',' order by m.n
            ),
            case
                when bool_and(m.key <> _json_set.name) is not false
                    then to_json(_json_set.name)::text || ':' || _json_set.value
            end
        ) || '}'
    from json_each(_json_set.object) with ordinality as m (key, value, n)
)::json;

comment on function convo._json_set(json, text, text) is
'A JSON object with one member set, the others as they are and in order.';
revoke execute on function convo._json_set(json, text, text) from public;
grant execute on function convo._json_set(json, text, text) to convo_app, convo_service;
