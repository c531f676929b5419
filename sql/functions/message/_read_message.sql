-- _read_message: reads a message of a format that is known.
-- in: the format, the message, its place in the batch for the error
-- errors: PC050
create function convo._read_message(format text, payload json, index integer)
returns convo._parsed_message
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    raw constant text := _read_message.payload::text;
    is_deep constant text := 'nested over 1000 levels';
begin
    -- A limit of its own, far from where the stack ends: what is stored can be read on
    -- any server, also inside the functions that render it.
    if octet_length(raw) > 2000
        and octet_length(raw) - octet_length(replace(replace(raw, '[', ''), '{', ''))
            > 1000
        and jsonb_path_exists(convo._readable(_read_message.payload), '$.**{1001}')
    then
        perform convo._fail('PC050', jsonb_build_object(
            'index', _read_message.index, 'reason', is_deep
        ));
    end if;
    return case _read_message.format
        when 'openai'
            then convo._read_openai(_read_message.payload, _read_message.index)
        when 'openai_responses' then convo._read_openai_responses(
            _read_message.payload, _read_message.index
        )
        when 'anthropic'
            then convo._read_anthropic(_read_message.payload, _read_message.index)
        when 'gemini'
            then convo._read_gemini(_read_message.payload, _read_message.index)
    end;
-- what json takes and jsonb doesn't
exception when statement_too_complex or numeric_value_out_of_range then
    perform convo._fail('PC050', jsonb_build_object(
        'index', _read_message.index,
        'reason', case sqlstate
            when '54001' then is_deep else 'a number is out of range'
        end
    ));
end
$$;

comment on function convo._read_message(text, json, integer) is
'Reads a message of any format that is known.';
revoke execute on function convo._read_message(text, json, integer) from public;
grant execute on function convo._read_message(text, json, integer)
to convo_app, convo_service;
