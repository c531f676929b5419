-- _split_parameters: the parameters of a request without their tools, and the tools.
-- Tools are long and change rarely, so they are stored apart.
-- in: a JSON object; the members that hold the context itself can't be in it
-- out: the members, byte for byte and without the braces around them, and the tools;
--      null where there are none
-- errors: 22023
create function convo._split_parameters(parameters json) returns text[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    reserved constant text[] := array[
        'model', 'messages', 'input', 'system', 'contents', 'systemInstruction',
        'system_instruction'
    ];
    hidden text[];
    object json;
    others text;
    found text;
begin
    if _split_parameters.parameters is null then
        return array[null, null];
    elsif json_typeof(_split_parameters.parameters) <> 'object' then
        perform convo._fail(
            '22023', '{"argument": "parameters", "reason": "not an object"}'
        );
    end if;
    hidden := convo._hide_escapes(_split_parameters.parameters::text);
    object := hidden[1]::json;
    select k.key into found
    from json_object_keys(object) as k (key)
    where k.key = any (reserved)
    limit 1;
    if found is not null then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'parameters', 'member', found,
            'reason', 'it is made of the conversation and the other arguments'
        ));
    end if;
    others := convo._json_without(object, array['tools'])::text;
    return array[
        nullif(convo._show_escapes(
            substr(others, 2, length(others) - 2), hidden[2:]
        ), ''),
        convo._show_escapes((object -> 'tools')::text, hidden[2:])
    ];
end
$$;

comment on function convo._split_parameters(json) is
'The parameters of a request without their tools, and the tools.';
revoke execute on function convo._split_parameters(json) from public;
grant execute on function convo._split_parameters(json) to convo_app, convo_service;
