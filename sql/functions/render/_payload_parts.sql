-- _payload_parts: a message of any format as parts, see _openai_parts.
create function convo._payload_parts(format text, payload json) returns jsonb
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    message constant jsonb := convo._readable(_payload_parts.payload);
begin
    return case _payload_parts.format
        when 'openai' then convo._openai_parts(message)
        when 'openai_responses' then convo._openai_responses_parts(message)
        when 'anthropic' then convo._anthropic_parts(message)
        when 'gemini' then convo._gemini_parts(message)
    end;
end
$$;

comment on function convo._payload_parts(text, json) is
'A message of any format as parts.';
revoke execute on function convo._payload_parts(text, json) from public;
grant execute on function convo._payload_parts(text, json)
to convo_app, convo_service, convo_reader;
