-- _search_candidates: the messages that fit a query best, without their text.
-- The score of a message is (own + 0.2 * least(1, 15 / norm^2) * before) * 1.5 for a
-- user's, else * 1, where own and before are sums over the terms found in it and in the
-- message before it: ln(1 + messages / messages with the term) ^ 1.1 * times / norm. So
-- a message counts with the turn before it, the shorter the more. times is 1 for a word
-- that is there once and at most 1.42, for the beginnings of words at most 1.25.
-- The fences (a limit the planner can't see through) make it read each conversation once
-- by the primary key, and its words out of line once, not once a term.
-- in: conversation_id null: every conversation that the caller may see
-- errors: PC030, 22023; over 1,000 is 1,000
create function convo._search_candidates(
    query text, conversation_id uuid, page_size integer
) returns table (conversation_id uuid, seq integer, score real)
language sql stable rows 20
begin atomic
    with scope as materialized (
        select
            c.tenant_id,
            c.conversation_id,
            c.message_count
        from convo.conversation as c
        where c.tenant_id = (select convo._require_tenant())
            and c.conversation_id = _search_candidates.conversation_id
        union all
        select
            c.tenant_id,
            c.conversation_id,
            c.message_count
        from convo.conversation as c
        where c.tenant_id = (select convo._require_tenant())
            and _search_candidates.conversation_id is null
    ),

    term as materialized (
        select t.* from convo._search_terms(_search_candidates.query) as t
    ),

    any_term as materialized (
        select string_agg(t.gate::text, ' | ')::tsquery as gate from term as t
    ),

    -- A row a message and term found in it; one with nulls for a message without any.
    hit as materialized (
        select
            c.conversation_id,
            m.seq,
            m.norm,
            m.role_weight,
            h.*
        from scope as c
        cross join
            lateral (
                select
                    s.seq,
                    case when s.role = 'user' then 1.5 else 1 end as role_weight,
                    w.words,
                    w.norm
                from convo.message as s
                cross join any_term as g
                cross join
                    lateral (
                        -- setweight gives a copy that is not out of line
                        select
                            case
                                when s.words @@ g.gate then setweight(s.words, 'D')
                            end as words,
                            greatest(1, s.words_norm) as norm
                        where s.words is not null
                        union all
                        select
                            n.words,
                            n.norm
                        from convo._search_words(s.content) as n
                        where s.words is null
                    ) as w
                where s.tenant_id = c.tenant_id
                    and s.conversation_id = c.conversation_id
                    and s.deleted_at is null
                    and s.content is not null
                limit (select 2147483647)
            ) as m
        left join lateral (
            select
                t.term,
                o.one * ts_rank(o.even, m.words, t.gate) as gate,
                o.one * ts_rank(o.even, m.words, t.five) as five,
                o.one * ts_rank(o.even, m.words, t.seven) as seven,
                o.one * ts_rank(o.even, m.words, t.whole) as whole
            from term as t
            cross join (
                select
                    1.6449341 as one,
                    '{1, 1, 1, 1}'::real[] as even
            ) as o
            where m.words is not null and m.words @@ t.gate
            limit (select 2147483647)
        ) as h on true
    ),

    weight as materialized (
        select
            t.term,
            t.gate_weight * power(ln(1 + n.messages / c.gate), 1.1) as gate,
            coalesce(power(ln(1 + n.messages / nullif(c.five, 0)), 1.1), 0) as five,
            coalesce(power(ln(1 + n.messages / nullif(c.seven, 0)), 1.1), 0) as seven,
            coalesce(power(ln(1 + n.messages / nullif(c.whole, 0)), 1.1), 0) as whole
        from (
            select
                h.term,
                count(*) as gate,
                count(*) filter (where h.five > 0) as five,
                count(*) filter (where h.seven > 0) as seven,
                count(*) filter (where h.whole > 0) as whole
            from hit as h
            group by h.term
        ) as c
        inner join term as t on t.term = c.term
        cross join (
            select sum(o.message_count)::double precision as messages from scope as o
        ) as n
    ),

    own as (
        select
            h.conversation_id,
            h.seq,
            h.norm,
            h.role_weight,
            coalesce(sum(
                w.gate * least(1.25, h.gate)
                + w.five * least(1.25, coalesce(h.five, 0))
                + w.seven * least(1.25, coalesce(h.seven, 0))
                + w.whole * least(1.42, coalesce(h.whole, 0))
            ), 0) / h.norm as score
        from hit as h
        left join weight as w on w.term = h.term
        group by h.conversation_id, h.seq, h.norm, h.role_weight
    ),

    scored as (
        select
            o.conversation_id,
            o.seq,
            o.role_weight * (
                o.score + 0.2 * least(1, 15 / o.norm ^ 2) * coalesce(
                    lag(o.score) over (partition by o.conversation_id order by o.seq), 0
                )
            ) as score
        from own as o
    )

    select
        s.conversation_id,
        s.seq,
        s.score::real as score
    from scored as s
    where s.score > 0
    order by s.score desc, s.conversation_id asc, s.seq desc
    limit convo._size('page_size', _search_candidates.page_size, 1000);
end;

comment on function convo._search_candidates(text, uuid, integer) is
'The messages that fit a query best, best first, without their text.';
revoke execute on function convo._search_candidates(text, uuid, integer) from public;
grant execute on function convo._search_candidates(text, uuid, integer)
to convo_app, convo_service, convo_reader;
