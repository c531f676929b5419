-- search_similar: messages that mean nearly the same as an embedding.
-- Exact within what the caller may see; see docs/embeddings.md for an index.
-- in: conversation_id null: every conversation that the caller may see
-- out: nearest first; score is the cosine, 1 for the same direction
-- errors: 0A000, PC030, 22023 (no such model, another length); over 1,000 is 1,000
-- since: 0.1.0
create function convo.search_similar(
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
begin
    perform convo._require_vector();
    return query
    select
        f.conversation_id, f.seq, m.role, convo._search_snippet(m.content, '{}'), f.score,
        m.created_at
    from convo._nearest_embeddings(
        search_similar.embedding, search_similar.model, search_similar.conversation_id,
        convo._size('page_size', search_similar.page_size, 1000)
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

comment on function convo.search_similar(real[], text, uuid, integer) is
'Messages that mean nearly the same as an embedding, nearest first. score is the '
'cosine, the snippet is the beginning. Needs the vector track.';
revoke execute on function convo.search_similar(real[], text, uuid, integer)
from public;
grant execute on function convo.search_similar(real[], text, uuid, integer)
to convo_app, convo_service, convo_reader;
