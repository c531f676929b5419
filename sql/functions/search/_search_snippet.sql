-- _search_snippet: the part of a text that fits a query best, its words marked.
-- Up to 240 characters around the first of the query's words that is in it, longest
-- words first; U+27E6 and U+27E7 (white square brackets) stand around each hit, three
-- dots for what was cut off. Cuts fall between words where there are any near.
-- in: the text, and the query's words as _search_tokens gives them
create function convo._search_snippet(content text, words text[]) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    text_read constant text := left(_search_snippet.content, 32768);
    word text;
    place integer := 0;
    start integer := 1;
    snippet text;
begin
    foreach word in array _search_snippet.words loop
        place := regexp_instr(text_read, word, 1, 1, 0, 'i');
        exit when place > 0;
    end loop;
    if place > 80 then
        start := place - 80;
        -- from the next word on, where one begins before the hit
        start := start + coalesce(
            length(substring(substr(text_read, start, 60) from e'^\\S*\\s+')), 0
        );
    end if;
    snippet := substr(text_read, start, 240);
    if start + 240 <= length(_search_snippet.content) then
        snippet := regexp_replace(snippet, e'\\s+\\S{0,60}$', '') || '...';
    end if;
    if start > 1 then
        -- never begins with a mark that belongs to the character before
        snippet := '...' || regexp_replace(
            snippet, e'^[\\u0300-\\u036f\\u200d\\ufe00-\\ufe0f\\U0001f3fb-\\U0001f3ff]+', ''
        );
    end if;
    if place > 0 then
        snippet := regexp_replace(
            snippet, '(' || array_to_string(_search_snippet.words, '|') || ')',
            e'\u27e6\\1\u27e7', 'gi'
        );
    end if;
    return snippet;
end
$$;

comment on function convo._search_snippet(text, text[]) is
'The part of a text that fits a query best, with the query''s words marked.';
revoke execute on function convo._search_snippet(text, text[]) from public;
grant execute on function convo._search_snippet(text, text[])
to convo_app, convo_service, convo_reader;
