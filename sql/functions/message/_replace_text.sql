-- _replace_text: a payload with other text, and all other values byte for byte.
-- Of several text parts the first takes the new text, and the others go. Reasoning and
-- signatures go too: they vouch for the old text.
-- The functions that take json apart fail on \u0000 and on half surrogate pairs, so
-- what begins an escape is hidden meanwhile, behind characters that occur nowhere; but
-- for the escapes of ASCII, with which the name of a member can be written.
-- out: null for null, so for a plain text message
create function convo._replace_text(format text, payload json, content text)
returns json
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    raw constant text := _replace_text.payload::text;
    marks constant text[] := array(
        select chr(c.n)
        from generate_series(57344, 63743) as c (n) -- private use
        where strpos(raw, chr(c.n)) = 0 and strpos(_replace_text.content, chr(c.n)) = 0
        order by c.n
        limit 2
    );
    hidden constant json := regexp_replace(
        replace(raw, '\\', marks[1]), '\\u(?!00[2-7])', marks[2], 'g'
    );
    text_value constant text := to_json(_replace_text.content)::text;
begin
    return replace(
        replace(
            case _replace_text.format
                when 'openai' then convo._replace_openai_text(hidden, text_value)
                when 'openai_responses'
                    then convo._replace_responses_text(hidden, text_value)
                when 'anthropic' then convo._replace_anthropic_text(hidden, text_value)
                when 'gemini' then convo._replace_gemini_text(hidden, text_value)
            end::text,
            marks[2], '\u'
        ),
        marks[1], '\\'
    );
end
$$;

comment on function convo._replace_text(text, json, text) is
'A payload with other text, and all other values byte for byte.';
revoke execute on function convo._replace_text(text, json, text) from public;
grant execute on function convo._replace_text(text, json, text)
to convo_app, convo_service;
