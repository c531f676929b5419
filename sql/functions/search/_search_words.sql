-- _search_words: a text as a tsvector, and what its scores are divided by.
-- A word that occurs 2, 3 or more times has as many positions, up to 4: ts_rank counts
-- them. Long words have their ends in it too, marked with a hyphen, so that a part of a
-- compound finds it. Never fails: what it takes of a text stays below the limits of a
-- tsvector.
-- out: no row for a text without words
create function convo._search_words(content text)
returns table (words tsvector, norm real)
language sql immutable parallel safe rows 1
begin atomic
    with token as materialized (
        select t.words, t.pieces from convo._search_tokens(_search_words.content) as t
    ),

    word as (
        select left(w.word, 64) as word, count(*) as times, false as is_piece
        from token as t
        cross join lateral unnest(t.words) as w (word)
        where w.word <> ''
        group by left(w.word, 64)
        union all
        select left(p.word, 64), count(*), true
        from token as t
        cross join lateral unnest(t.pieces) as p (word)
        where p.word <> ''
        group by left(p.word, 64)
    ),

    ending as (
        select distinct '-' || substr(w.word, e.start) as word
        from word as w
        cross join lateral generate_series(4, length(w.word) - 3) as e (start)
        where length(w.word) between 10 and 40 and w.word !~ '[0-9]' and not w.is_piece
        limit 2000
    )

    select
        string_agg(
            quote_literal(w.word) || ':' || left('1,2,3,4', 2 * least(w.times, 4)::int - 1),
            ' '
        )::tsvector
            || array_to_tsvector(array(select e.word from ending as e)) as words,
        sqrt(
            count(*) filter (where not w.is_piece)
            + power(count(*) filter (where w.is_piece), 0.7)
        )::real as norm
    from word as w
    having count(*) > 0;
end;

comment on function convo._search_words(text) is
'A text as a tsvector, and what its scores are divided by.';
revoke execute on function convo._search_words(text) from public;
grant execute on function convo._search_words(text)
to convo_app, convo_service, convo_reader;
