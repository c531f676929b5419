-- _replace_text: a payload with other text, and all other values byte for byte.
-- Of several text parts the first takes the new text, and the others go. Reasoning and
-- signatures go too: they vouch for the old text.
-- out: null for null, so for a plain text message
create function convo._replace_text(format text, payload json, content text)
returns json
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    hidden constant text[] := convo._hide_escapes(
        _replace_text.payload::text, _replace_text.content
    );
    message constant json := hidden[1];
    text_value constant text := to_json(_replace_text.content)::text;
begin
    return convo._show_escapes(
        case _replace_text.format
            when 'openai' then convo._replace_openai_text(message, text_value)
            when 'openai_responses'
                then convo._replace_responses_text(message, text_value)
            when 'anthropic' then convo._replace_anthropic_text(message, text_value)
            when 'gemini' then convo._replace_gemini_text(message, text_value)
        end::text,
        hidden[2:]
    );
end
$$;

comment on function convo._replace_text(text, json, text) is
'A payload with other text, and all other values byte for byte.';
revoke execute on function convo._replace_text(text, json, text) from public;
grant execute on function convo._replace_text(text, json, text)
to convo_app, convo_service;
