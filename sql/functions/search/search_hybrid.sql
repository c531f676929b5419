-- search_hybrid: messages that fit a query by its words and by its meaning.
-- Where nothing has its words it is search_similar, and where nothing is embedded yet
-- search_messages.
-- in: conversation_id null: every conversation that the caller may see; embedding: of
--     the query, by that model
-- out: best first; the snippet as in search_messages
-- errors: 0A000, PC030, 22023 (no such model, another length); over 1,000 is 1,000
-- since: 0.1.0
create function convo.search_hybrid(
    query text,
    embedding real[],
    model text,
    conversation_id uuid default null,
    page_size integer default 20
) returns setof convo.search_record
language plpgsql stable rows 20
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    patterns constant text[] := convo._search_patterns(search_hybrid.query);
begin
    perform convo._require_vector();
    return query
    select
        f.conversation_id, f.seq, m.role, convo._search_snippet(m.content, patterns),
        f.score, m.created_at
    from convo._fused_candidates(
        search_hybrid.query, coalesce(search_hybrid.embedding, '{}'),
        search_hybrid.model, search_hybrid.conversation_id,
        convo._size('page_size', search_hybrid.page_size, 1000)
    ) with ordinality as f
    cross join lateral (
        select m.role, m.content, m.created_at
        from convo.message as m
        where m.tenant_id = tenant
            and m.conversation_id = f.conversation_id
            and m.seq = f.seq
        limit 1
    ) as m
    order by f.ordinality;
end
$$;

comment on function convo.search_hybrid(text, real[], text, uuid, integer) is
'Messages that fit a query by its words and by its meaning, best first: reciprocal '
'rank fusion of search_messages and search_similar. Needs the vector track.';
revoke execute on function convo.search_hybrid(text, real[], text, uuid, integer)
from public;
grant execute on function convo.search_hybrid(text, real[], text, uuid, integer)
to convo_app, convo_service, convo_reader;
