-- _fused_candidates: the messages that fit a query best, by words and by meaning.
-- Reciprocal rank fusion: a message gets 1 / (10 + its place) from each of the two
-- lists. A message that one list doesn't have gets nothing from it, and where one list
-- is empty the order is the other's. A constant of 60, which is common, can end below
-- the better list, since it hardly tells the first places apart. As in the list by
-- words, the user's own messages come a little before what was answered to them.
-- in: an embedding of the query and its model; null: by words alone
create function convo._fused_candidates(
    query text, embedding real[], model text, within_id uuid, page_size integer
) returns table (conversation_id uuid, seq integer, score real)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    pool constant integer := greatest(200, _fused_candidates.page_size);
begin
    if _fused_candidates.embedding is null then
        return query
        select c.conversation_id, c.seq, c.score
        from convo._search_candidates(
            _fused_candidates.query, _fused_candidates.within_id,
            _fused_candidates.page_size
        ) as c;
        return;
    end if;
    return query
    select f.conversation_id, f.seq, sum(f.score)::real
    from (
        select w.conversation_id, w.seq, 1.0 / (10 + w.ordinality) as score
        from convo._search_candidates(
            _fused_candidates.query, _fused_candidates.within_id, pool
        ) with ordinality as w
        union all
        select
            n.conversation_id,
            n.seq,
            1.0 / (10 + row_number() over (
                order by n.score * case m.role when 'user' then 1.1 else 1 end desc
            ))
        from convo._nearest_embeddings(
            _fused_candidates.embedding, _fused_candidates.model,
            _fused_candidates.within_id, pool
        ) as n
        cross join lateral (
            select l.role
            from convo.message as l
            where l.tenant_id = tenant
                and l.conversation_id = n.conversation_id
                and l.seq = n.seq
            limit 1
        ) as m
    ) as f
    group by f.conversation_id, f.seq
    order by sum(f.score) desc, f.conversation_id, f.seq desc
    limit _fused_candidates.page_size;
end
$$;

comment on function convo._fused_candidates(text, real[], text, uuid, integer) is
'The messages that fit a query best, by words and by meaning, best first.';
revoke execute on function convo._fused_candidates(text, real[], text, uuid, integer)
from public;
grant execute on function convo._fused_candidates(text, real[], text, uuid, integer)
to convo_app, convo_service, convo_reader;
