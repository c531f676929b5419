-- _arguments_object: the arguments of a call as the text of a JSON object.
-- Text that isn't one, as models write it at times, is its member input.
create function convo._arguments_object(call jsonb) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    arguments constant text := coalesce(
        _arguments_object.call ->> 'arguments', _arguments_object.call ->> 'input'
    );
begin
    if convo._is_blank(arguments) then
        return '{}';
    elsif json_typeof(arguments::json) = 'object' then
        return arguments;
    end if;
    return json_build_object('input', arguments)::text;
exception when invalid_text_representation or statement_too_complex then
    return json_build_object('input', arguments)::text;
end
$$;

comment on function convo._arguments_object(jsonb) is
'The arguments of a call as the text of a JSON object.';
revoke execute on function convo._arguments_object(jsonb) from public;
grant execute on function convo._arguments_object(jsonb)
to convo_app, convo_service, convo_reader;
