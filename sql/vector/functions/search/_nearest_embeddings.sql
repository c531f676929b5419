-- _nearest_embeddings: the messages whose embeddings are nearest by cosine, nearest first.
-- Exact, over the rows of the caller's scope and no others, unless somebody made an HNSW
-- index for the tenant and model (docs/embeddings.md): such an index is on an expression
-- that has the dimension in its type, and serves only a query with the same text. That
-- is why this one statement is dynamic. What goes into its text is an integer and the
-- name of pgvector's schema, quoted. Planned for its values each time, it also sees
-- which partial index fits.
-- Messages are looked up nearest first and only until there are enough, so what has been
-- edited or deleted costs a look-up, no place.
-- errors: 22023 when there is no such model, or the embedding isn't one of its length
create function convo._nearest_embeddings(
    embedding real[], model text, conversation_id uuid, page_size integer
) returns table (conversation_id uuid, seq integer, score real)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    size constant integer := cardinality(_nearest_embeddings.embedding);
    fault constant text := convo._embedding_fault(_nearest_embeddings.embedding);
    expected integer;
    home name;
begin
    if fault is not null then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'embedding', 'reason', fault
        ));
    end if;
    select d.dimension into expected
    from convo.embedding_model as d
    where d.tenant_id = tenant and d.model = _nearest_embeddings.model;
    if not found then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'model', 'reason', 'no embedding of it was ever stored'
        ));
    elsif expected <> size then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'embedding', 'dimension', size, 'expected', expected
        ));
    end if;
    select n.nspname into home
    from pg_catalog.pg_extension as e
    inner join pg_catalog.pg_namespace as n on e.extnamespace = n.oid
    where e.extname = 'vector';
    -- so that an index goes on until it has found enough rows of this scope; unknown to
    -- pgvector before 0.8, and before its first use in a session
    if current_setting('hnsw.iterative_scan', true) is distinct from 'strict_order' then
        perform set_config('hnsw.iterative_scan', 'strict_order', true);
    end if;
    return query execute format(
        $query$
        select c.conversation_id, c.seq, (1 - c.distance)::real
        from (
            select
                e.conversation_id, e.seq, e.revision,
                e.embedding::%1$I.vector(%2$s)
                    operator(%1$I.<=>) $1::%1$I.vector(%2$s) as distance
            from convo.embedding as e
            where e.tenant_id = $2
                and e.model = $3
                and e.dimension = %2$s
                and e.embedding is not null
                and ($4 is null or e.conversation_id = $4)
            order by
                e.embedding::%1$I.vector(%2$s)
                    operator(%1$I.<=>) $1::%1$I.vector(%2$s)
        ) as c
        cross join lateral (
            select
            from convo.message as m
            where m.tenant_id = $2
                and m.conversation_id = c.conversation_id
                and m.seq = c.seq
                and m.revision = c.revision
                and m.deleted_at is null
            limit 1
        ) as m
        order by c.distance
        limit $5
        $query$,
        home, size
    )
    using
        _nearest_embeddings.embedding, tenant, _nearest_embeddings.model,
        _nearest_embeddings.conversation_id, _nearest_embeddings.page_size;
end
$$;

comment on function convo._nearest_embeddings(real[], text, uuid, integer) is
'The messages whose embeddings are nearest by cosine, nearest first.';
revoke execute on function convo._nearest_embeddings(real[], text, uuid, integer)
from public;
grant execute on function convo._nearest_embeddings(real[], text, uuid, integer)
to convo_app, convo_service, convo_reader;
