-- _read_messages: reads one message or an array of them.
-- in: the format, the JSON, and tokens for each (null, or null for one: estimated)
-- errors: 22023, PC050
create function convo._read_messages(format text, messages json, tokens integer[])
returns convo._parsed_message[]
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    batch json := _read_messages.messages;
    element json;
    parsed convo._parsed_message[] := '{}';
    message convo._parsed_message;
begin
    if batch is null then
        perform convo._fail('22023', '{"argument": "messages", "reason": "missing"}');
    end if;
    perform convo._require_format(_read_messages.format);
    if json_typeof(batch) <> 'array' then
        batch := json_build_array(batch);
    end if;
    -- json_array_elements splits an array without touching a byte of its elements.
    for element in select e.value from json_array_elements(batch) as e loop
        message := convo._read_message(
            _read_messages.format, element, cardinality(parsed)
        );
        message.tokens := coalesce(
            _read_messages.tokens[cardinality(parsed) + 1], message.tokens
        );
        parsed := parsed || message;
    end loop;
    if cardinality(_read_messages.tokens) <> cardinality(parsed)
        or array_ndims(_read_messages.tokens) > 1
        or array_lower(_read_messages.tokens, 1) <> 1
        or 0 > any (_read_messages.tokens)
    then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'tokens', 'length', cardinality(parsed), 'minimum', 0
        ));
    end if;
    return parsed;
end
$$;

comment on function convo._read_messages(text, json, integer[]) is
'Reads one message of a provider''s format or an array of them.';
revoke execute on function convo._read_messages(text, json, integer[]) from public;
grant execute on function convo._read_messages(text, json, integer[])
to convo_app, convo_service;
