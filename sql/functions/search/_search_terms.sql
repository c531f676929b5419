-- _search_terms: what a query looks for.
-- A word is looked for at several depths, as whatever begins with its first 3, 5 and 7
-- letters and as itself, so that other forms of it count too but less; and in the ends of
-- compounds. What two words of a query share counts once. A pair of characters is looked
-- for, and each character alone. gate is the
-- widest of them: what doesn't match it matches none.
-- in: at most 64 words and 192 pieces of it are looked for
-- out: gate_weight is 0 where the gate is another depth or its whole
create function convo._search_terms(query text)
returns table (
    term integer, gate tsquery, gate_weight real, five tsquery, seven tsquery,
    whole tsquery
)
language sql immutable parallel safe rows 10
begin atomic
    with token as materialized (
        select
            t.words,
            t.pieces
        from convo._search_tokens(_search_terms.query) as t
    ),

    word as (
        select
            left(w.word, 64) as word,
            min(w.place) as place
        from token as t
        cross join lateral unnest(t.words) with ordinality as w (word, place)
        where w.word <> ''
        group by left(w.word, 64)
        order by min(w.place)
        limit 64
    ),

    piece as (
        select
            left(p.word, 64) as word,
            min(p.place) as place
        from token as t
        cross join lateral unnest(t.pieces) with ordinality as p (word, place)
        where p.word <> ''
        group by left(p.word, 64)
        order by min(p.place)
        limit 192
    ),

    term as (
        select
            quote_literal(left(w.word, 3))
            || case when length(w.word) >= 3 then ':*' else '' end as gate,
            case
                when length(w.word) >= 3
                    and row_number() over (partition by left(w.word, 3)) = 1 then 1.0
                else 0
            end as gate_weight,
            case
                when length(w.word) >= 5
                    and row_number() over (partition by left(w.word, 5)) = 1
                    then left(w.word, 5)
            end as five,
            case
                when length(w.word) >= 7
                    and row_number() over (partition by left(w.word, 7)) = 1
                    then left(w.word, 7)
            end as seven,
            w.word as whole
        from word as w
        union all
        select distinct
            quote_literal('-' || left(w.word, 8)) || ':*',
            1,
            null,
            null,
            null
        from word as w
        where length(w.word) >= 4
        union all
        -- a pair (U+2190 and above), and its first character, once
        select
            quote_literal(left(p.word, 1)) || ':*',
            case
                when row_number() over (partition by left(p.word, 1)) = 1 then 0.7
                else 0
            end,
            null,
            null,
            case when length(p.word) = 2 then p.word end
        from piece as p
        where ascii(p.word) >= 8592
        union all
        -- a triple, or an Arabic word or part of one; what is shorter by its beginning
        select
            quote_literal(p.word) || case when length(p.word) < 3 then ':*' else '' end,
            (length(p.word) < 3)::integer,
            null,
            null,
            case when length(p.word) >= 3 then p.word end
        from piece as p
        where ascii(p.word) < 8592
    )

    select
        row_number() over ()::integer as term,
        t.gate::tsquery as gate,
        t.gate_weight::real as gate_weight,
        (quote_literal(t.five) || ':*')::tsquery as five,
        (quote_literal(t.seven) || ':*')::tsquery as seven,
        quote_literal(t.whole)::tsquery as whole
    from term as t;
end;

comment on function convo._search_terms(text) is
'What a query looks for: its words at several depths, and pieces.';
revoke execute on function convo._search_terms(text) from public;
grant execute on function convo._search_terms(text)
to convo_app, convo_service, convo_reader;
