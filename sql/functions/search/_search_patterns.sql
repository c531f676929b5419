-- _search_patterns: regular expressions for the words of a query, longest first.
-- They hold letters and digits only, so whatever a user types is harmless in them. A
-- word of 5 letters or more stands for all that begin with its first 5, and its first 8
-- for the rest of a compound. The pieces of a run are found one after the other.
-- in: at most 64 words and 192 pieces of it are used
create function convo._search_patterns(query text) returns text[]
language sql immutable parallel safe
begin atomic
    with token as materialized (
        select
            t.words,
            t.pieces
        from convo._search_tokens(_search_patterns.query) as t
    ),

    piece as (
        select
            p.word,
            ascii(p.word) between 1536 and 2303 as is_arabic
        from token as t
        cross join lateral unnest(t.pieces[:192]) as p (word)
        where p.word <> '' and ascii(p.word) <> 1600
    )

    select
        coalesce(
            array_agg(p.pattern order by length(p.pattern) desc, p.pattern asc), '{}'
        )
    from (
        select distinct
            case
                when length(w.word) >= 5
                    then e'(?:\\m' || left(w.word, 5) || '|' || left(w.word, 8)
                        || e')\\w*'
                else '(?<![[:alnum:]])' || w.word || '(?![[:alnum:]])'
            end as pattern
        from token as t
        cross join lateral unnest(t.words[:64]) as w (word)
        where w.word <> ''
        union
        select left(w.word, 8) || e'\\w*'
        from piece as w
        where w.is_arabic and length(w.word) > 1
        union all
        select
            coalesce(
                '(?:' || string_agg(w.word, '|') filter (where length(w.word) > 1)
                || ')+(?:' || string_agg(w.word, '|') || ')?',
                '(?:' || string_agg(w.word, '|') || ')+'
            )
        from piece as w
        where not w.is_arabic
    ) as p
    where p.pattern is not null;
end;

comment on function convo._search_patterns(text) is
'Regular expressions for the words of a query, longest first.';
revoke execute on function convo._search_patterns(text) from public;
grant execute on function convo._search_patterns(text)
to convo_app, convo_service, convo_reader;
