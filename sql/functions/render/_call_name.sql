-- _call_name: the name of another maker's call, as OpenAI and Anthropic take it.
-- They refuse what Gemini allows: dots, colons, more than 64 characters.
create function convo._call_name(call jsonb) returns json
language sql immutable parallel safe
return to_json(left(
    regexp_replace(_call_name.call ->> 'name', '[^a-zA-Z0-9_-]', '_', 'g'), 64
));

comment on function convo._call_name(jsonb) is
'The name of another maker''s call, as OpenAI and Anthropic take it.';
revoke execute on function convo._call_name(jsonb) from public;
grant execute on function convo._call_name(jsonb)
to convo_app, convo_service, convo_reader;
