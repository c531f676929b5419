-- _turn_message: a message of a format in which user and assistant take turns.
-- in: the format, the role, the JSON texts of its blocks or parts
create function convo._turn_message(format text, role text, contents text) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if _turn_message.format = 'anthropic' then
        return format(
            '{"role":"%s","content":[%s]}', _turn_message.role, _turn_message.contents
        );
    end if;
    return format(
        '{"role":"%s","parts":[%s]}',
        replace(_turn_message.role, 'assistant', 'model'), _turn_message.contents
    );
end
$$;

comment on function convo._turn_message(text, text, text) is
'A message of a format in which user and assistant take turns.';
revoke execute on function convo._turn_message(text, text, text) from public;
grant execute on function convo._turn_message(text, text, text)
to convo_app, convo_service, convo_reader;
