-- _is_sent: whether a part goes out at all.
-- Not a blank text, but for one that its own format takes; nor the reasoning and the
-- special parts of other formats.
-- in: the part, the format asked for, whether it is of that format, its bytes there
create function convo._is_sent(
    part jsonb, format text, is_native boolean, raw text
) returns boolean
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    return case _is_sent.part ->> 'kind'
        when 'text' then not convo._is_blank(_is_sent.part ->> 'text')
            or _is_sent.is_native and (
                _is_sent.format like 'openai%'
                -- Gemini signs empty texts.
                or coalesce(_is_sent.raw ~ '"thought(S|_s)ignature"', false)
            )
        when 'reasoning' then _is_sent.is_native
        when 'other' then _is_sent.is_native
        else true
    end;
end
$$;

comment on function convo._is_sent(jsonb, text, boolean, text) is
'Whether a part goes out at all.';
revoke execute on function convo._is_sent(jsonb, text, boolean, text) from public;
grant execute on function convo._is_sent(jsonb, text, boolean, text)
to convo_app, convo_service, convo_reader;
