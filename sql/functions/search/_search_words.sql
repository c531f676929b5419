-- _search_words: a text as a tsvector, and what its scores are divided by.
-- Words and pieces have their positions, which ts_rank counts. Long words have their
-- ends in it too, marked with a hyphen, so that a part of a compound finds it. Never
-- fails: what it takes of a text stays below the limits of a tsvector. Pieces overlap,
-- so there are many of them: they count less in the norm.
create function convo._search_words(content text)
returns table (words tsvector, norm real)
language plpgsql immutable parallel safe rows 1
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    token constant record := convo._search_tokens(_search_words.content);
    pieces tsvector;
    endings text[];
begin
    select
        string_agg(left(w.word, 64) || ':' || w.place, ' ')::tsvector,
        array_agg(w.word) filter (where length(w.word) between 10 and 40)
    into words, endings
    from unnest(token.words) with ordinality as w (word, place)
    where w.word <> '';
    if token.pieces is not null then
        select string_agg(left(p.word, 64) || ':' || p.place, ' ')::tsvector into pieces
        from unnest(token.pieces) with ordinality as p (word, place)
        where p.word <> '';
    end if;
    words := coalesce(words, '');
    pieces := coalesce(pieces, '');
    norm := sqrt(greatest(1, length(words) + length(pieces) ^ 0.7));
    words := words || pieces;
    if endings is not null then
        words := words || array_to_tsvector(array(
            select '-' || substr(w.word, e.start)
            from unnest(endings) as w (word)
            cross join lateral generate_series(4, length(w.word) - 3) as e (start)
            where w.word !~ '[0-9]'
            limit 2000
        ));
    end if;
    return next;
end
$$;

comment on function convo._search_words(text) is
'A text as a tsvector, and what its scores are divided by.';
revoke execute on function convo._search_words(text) from public;
grant execute on function convo._search_words(text)
to convo_app, convo_service, convo_reader;
