-- _search_tokens: the words of a text, and the pieces of what has no word boundaries.
-- Scripts that are written without spaces are cut into overlapping pieces: pairs of
-- characters for Chinese, Japanese and pictures, triples for Thai and its neighbours; the
-- end of a run leaves shorter pieces, so each character begins one. Where other words
-- grow on to a word it is cut too: Korean into pairs, Arabic into fours (marked by
-- U+0640, which _search_text takes out of texts) beside the word without its article.
-- out: words and pieces in order, repeats too, and empty strings between
create function convo._search_tokens(
    content text, out words text[], out pieces text[]
)
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    folded text := convo._search_text(_search_tokens.content);
    pairs constant text := e'\\u2190-\\u2bff\\u3005-\\u3007\\u3021-\\u3029\\u3031-\\u3035'
        || e'\\u303b\\u3040-\\u30fa\\u30fc-\\u312f\\u31a0-\\u31bf\\u31f0-\\u31ff'
        || e'\\u3400-\\u4dbf\\u4e00-\\u9fff\\uac00-\\ud7a3\\uf900-\\ufaff'
        || e'\\U0001f000-\\U0001faff\\U00020000-\\U0003ffff';
    triples constant text := e'\\u0e01-\\u0e4e\\u0e50-\\u0e59\\u0e81-\\u0edf\\u0f40-\\u0fbc'
        || e'\\u1000-\\u1049\\u1050-\\u109f\\u1780-\\u17d3\\u17dc-\\u17e9';
    arabic constant text := e'\\u0620-\\u064a\\u066e-\\u06d3\\u06d5-\\u06ff\\u0750-\\u077f'
        || e'\\u08a0-\\u08ff';
    -- ASCII, Latin 1, a few of other scripts, general, CJK, variants, tags
    punctuation constant text := e'\\u0001-/:-`{-\\u00a9\\u00ab-\\u00b4\\u00b6-\\u00b9'
        || e'\\u00bb-\\u00bf\\u00d7\\u00f7\\u037e\\u0387\\u055a-\\u055f\\u0589\\u058a\\u05be'
        || e'\\u05c0\\u05c3\\u05f3\\u05f4\\u0600-\\u061f\\u066a-\\u066d\\u06d4\\u0964\\u0965'
        || e'\\u0e4f\\u0e5a-\\u0e80\\u0f00-\\u0f3f\\u104a-\\u104f\\u1360-\\u1368\\u1680'
        || e'\\u17d4-\\u17db\\u1800-\\u180f\\u2000-\\u2070\\u207a-\\u218f\\u2e00-\\u2e7f'
        || e'\\u3000-\\u3004\\u3008-\\u3020\\u3030\\u303d-\\u303f\\u30fb\\ud800-\\uf8ff'
        || e'\\ufe10-\\ufe6f\\ufeff\\uff00-\\uffff\\U000e0000-\\U0010ffff';
    part text;
begin
    if octet_length(folded) = length(folded) then
        words := string_to_array(regexp_replace(folded, '[^a-z0-9]+', ' ', 'g'), ' ');
        return;
    end if;
    if folded ~ ('[' || pairs || ']') then
        part := regexp_replace(folded, '[^' || pairs || ']+', ' ', 'g');
        pieces := pieces
            || string_to_array(regexp_replace(part, e'(\\S{2})', e'\\1 ', 'g'), ' ');
        part := regexp_replace(part, e'(^| )\\S', ' ', 'g');
        pieces := pieces
            || string_to_array(regexp_replace(part, e'(\\S{2})', e'\\1 ', 'g'), ' ');
    end if;
    if folded ~ ('[' || triples || ']') then
        part := regexp_replace(folded, '[^' || triples || ']+', ' ', 'g');
        for i in 1..3 loop
            pieces := pieces
                || string_to_array(regexp_replace(part, e'(\\S{3})', e'\\1 ', 'g'), ' ');
            part := regexp_replace(part, e'(^| )\\S', ' ', 'g');
        end loop;
    end if;
    if folded ~ ('[' || arabic || ']') then
        part := regexp_replace(folded, '[^' || arabic || ']+', ' ', 'g');
        pieces := pieces || array(
            select chr(1600) || substr(w.word, p.start, 4)
            from unnest(string_to_array(part, ' ')) as w (word)
            cross join lateral generate_series(
                1, greatest(1, least(length(w.word), 64) - 3)
            ) as p (start)
            where w.word <> ''
        );
        -- without article, and what stands before it
        part := regexp_replace(
            part, e'(^| )[\\u0648\\u0641\\u0628\\u0643\\u0644]?\\u0627\\u0644(?=\\S{3})',
            ' ', 'g'
        );
        pieces := pieces || string_to_array(part, ' ');
    end if;
    words := string_to_array(
        regexp_replace(
            folded, '[' || punctuation || pairs || triples || arabic || ']+', ' ', 'g'
        ), ' '
    );
end
$$;

comment on function convo._search_tokens(text) is
'The words of a text, and the pieces of what has no word boundaries.';
revoke execute on function convo._search_tokens(text) from public;
grant execute on function convo._search_tokens(text)
to convo_app, convo_service, convo_reader;
