-- _search_candidates: the messages that fit a query best, without their text.
-- Two readings of the scope's rows: one counts how many messages have each term, one
-- scores them. score = (own + before * least(1, 15 / norm^2) * 0.2) * 1.5 for a user's
-- message, where own and before are the sums over the terms of a message and of the one
-- before it: sum of ln(1 + messages / messages with the term) ^ 1.1 * occurrences / norm;
-- occurrences are those of ts_rank, 1 for one and 1.64 for very many.
-- The fences (a limit the planner can't see through) make it read each conversation by
-- the primary key, in order, and read its words out of line once, not once a term.
-- in: conversation_id null: every conversation that the caller may see
-- errors: PC030, 22023; over 1,000 is 1,000
create function convo._search_candidates(
    query text, conversation_id uuid, page_size integer
) returns table (conversation_id uuid, seq integer, score real)
language sql stable rows 20
begin atomic
    with term as materialized (
        select t.* from convo._search_terms(_search_candidates.query) as t
    ),

    scope as materialized (
        select c.tenant_id, c.conversation_id, c.message_count
        from convo.conversation as c
        where c.tenant_id = (select convo._require_tenant())
            and c.conversation_id = _search_candidates.conversation_id
        union all
        select c.tenant_id, c.conversation_id, c.message_count
        from convo.conversation as c
        where c.tenant_id = (select convo._require_tenant())
            and _search_candidates.conversation_id is null
    ),

    counted as (
        select
            h.term,
            count(*) as gate,
            count(*) filter (where h.has_five) as five,
            count(*) filter (where h.has_seven) as seven,
            count(*) filter (where h.has_whole) as whole
        from scope as c
        cross join lateral (
            select setweight(s.words, 'D') as words
            from convo.message_search as s
            where s.tenant_id = c.tenant_id and s.conversation_id = c.conversation_id
            limit (select 2147483647)
        ) as s
        cross join lateral (
            select
                t.term,
                s.words @@ t.five as has_five,
                s.words @@ t.seven as has_seven,
                s.words @@ t.whole as has_whole
            from term as t
            where s.words @@ t.gate
        ) as h
        group by h.term
    ),

    weight as materialized (
        select
            t.*,
            t.gate_weight * power(ln(1 + n.messages / c.gate), 1.1) as at_gate,
            coalesce(power(ln(1 + n.messages / nullif(c.five, 0)), 1.1), 0) as at_five,
            coalesce(power(ln(1 + n.messages / nullif(c.seven, 0)), 1.1), 0) as at_seven,
            coalesce(power(ln(1 + n.messages / nullif(c.whole, 0)), 1.1), 0) as at_whole
        from term as t
        join counted as c on c.term = t.term
        cross join (
            select sum(o.message_count)::double precision as messages from scope as o
        ) as n
    ),

    scored as (
        select
            c.conversation_id,
            s.seq,
            (
                s.own + 0.2 * least(1, 15 / (s.norm * s.norm))
                    * coalesce(lag(s.own) over (
                        partition by c.conversation_id order by s.seq
                    ), 0)
            ) * case when s.is_from_user then 1.5 else 1 end as score
        from scope as c
        cross join lateral (
            select
                m.seq,
                m.norm,
                m.is_from_user,
                (
                    select coalesce(sum(
                        w.at_gate * least(1.25, o.one * ts_rank(o.even, m.words, w.gate))
                            + case
                                when w.five is null then 0
                                else w.at_five
                                    * least(1.25, o.one * ts_rank(o.even, m.words, w.five))
                            end
                            + case
                                when w.seven is null then 0
                                else w.at_seven
                                    * least(1.25, o.one * ts_rank(o.even, m.words, w.seven))
                            end
                            + case
                                when w.whole is null then 0
                                else w.at_whole * o.one * ts_rank(o.even, m.words, w.whole)
                            end
                    ), 0)
                    from weight as w
                    cross join (
                        select
                            1.6449341 as one, '{1, 1, 1, 1}'::real[] as even
                    ) as o
                    where m.words @@ w.gate
                ) / m.norm as own
            from (
                select
                    r.seq, r.norm, r.is_from_user, setweight(r.words, 'D') as words
                from convo.message_search as r
                where r.tenant_id = c.tenant_id
                    and r.conversation_id = c.conversation_id
                order by r.seq
                limit (select 2147483647)
            ) as m
        ) as s
    )

    select s.conversation_id, s.seq, s.score::real
    from scored as s
    where s.score > 0
    order by s.score desc, s.conversation_id, s.seq desc
    limit convo._size('page_size', _search_candidates.page_size, 1000);
end;

comment on function convo._search_candidates(text, uuid, integer) is
'The messages that fit a query best, best first, without their text.';
revoke execute on function convo._search_candidates(text, uuid, integer) from public;
grant execute on function convo._search_candidates(text, uuid, integer)
to convo_app, convo_service, convo_reader;
