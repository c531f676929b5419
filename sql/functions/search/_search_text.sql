-- _search_text: a text as search compares it.
-- Lower case, compatibility forms and accents folded (NFKC), the humps of camelCase
-- words apart beside the word itself. At most 32,768 characters.
create function convo._search_text(content text) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    folded text := left(_search_text.content, 32768);
begin
    if folded ~ '[a-z][A-Z]' then
        folded := concat_ws(
            ' ', folded, (
                select string_agg(
                    regexp_replace(h.hump[1], '([a-z])([A-Z])', e'\\1 \\2', 'g'), ' '
                )
                from regexp_matches(
                    folded, '[A-Za-z0-9]*[a-z][A-Z][A-Za-z0-9]*', 'g'
                ) as h (hump)
            )
        );
    end if;
    folded := lower(folded);
    if octet_length(folded) > length(folded) then
        -- Accents, Arabic vowel signs and the marks that choose a picture's style.
        folded := normalize(regexp_replace(
            normalize(folded, nfkd),
            e'[\\u0300-\\u036f\\u0640\\u064b-\\u0655\\u0670\\u200d\\ufe00-\\ufe0f]+', '', 'g'
        ), nfkc);
    end if;
    return left(folded, 32768);
end
$$;

comment on function convo._search_text(text) is
'A text as search compares it: lower case, accents and compatibility forms folded.';
revoke execute on function convo._search_text(text) from public;
grant execute on function convo._search_text(text)
to convo_app, convo_service, convo_reader;
