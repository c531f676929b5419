-- _nearest_embeddings: the messages whose embeddings are nearest by cosine, nearest first.
-- Exact for a user and within a conversation: over those rows and no others. Across a
-- tenant an HNSW index serves where somebody made one (docs/embeddings.md): it is on an
-- expression that has the dimension in its type, and serves only a query with the same
-- text. That is why this one statement is dynamic. What goes into its text is an integer
-- and the name of pgvector's schema, quoted. Planned for its values each time, it also
-- sees which partial index fits.
-- Messages are looked up nearest first and only until there are enough, so what has been
-- edited or deleted costs a look-up, no place.
-- errors: 22023 when there is no such model, or the embedding isn't one of its length
create function convo._nearest_embeddings(
    embedding real[], model text, within_id uuid, page_size integer
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
    is_wide constant boolean := _nearest_embeddings.within_id is null
        and (pg_has_role('convo_service', 'usage') or pg_has_role('convo_reader', 'usage'));
    pgvector record;
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
    select n.nspname, e.extversion into pgvector
    from pg_catalog.pg_extension as e
    inner join pg_catalog.pg_namespace as n on e.extnamespace = n.oid
    where e.extname = 'vector';
    -- An index goes on until it has found enough of the tenant's rows, from 0.8 on.
    if is_wide and string_to_array(pgvector.extversion, '.')::integer[] >= '{0,8}' then
        perform set_config('hnsw.iterative_scan', 'strict_order', true);
    end if;
    return query execute format(
        $query$
        select c.conversation_id, c.seq, (1 - c.distance)::real
        from (
            select
                e.conversation_id, e.seq, e.revision,
                -- $6 is known when this is planned; a sum is in no index
                case when $6 then e.distance else e.distance + 0 end as distance
            from (
                select
                    i.*,
                    i.embedding::%1$s.vector(%2$s)
                        operator(%1$s.<=>) $1::%1$s.vector(%2$s) as distance
                from convo.embedding as i
            ) as e
            where e.tenant_id = $2
                and e.model = $3
                and e.dimension = %2$s
                and e.embedding is not null
                and ($4 is null or e.conversation_id = $4)
            order by distance
            limit (select 2147483647) -- see token_window: may stop early
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
        quote_ident(pgvector.nspname), size
    )
    using
        _nearest_embeddings.embedding, tenant, _nearest_embeddings.model,
        _nearest_embeddings.within_id, _nearest_embeddings.page_size, is_wide;
end
$$;

comment on function convo._nearest_embeddings(real[], text, uuid, integer) is
'The messages whose embeddings are nearest by cosine, nearest first.';
revoke execute on function convo._nearest_embeddings(real[], text, uuid, integer)
from public;
grant execute on function convo._nearest_embeddings(real[], text, uuid, integer)
to convo_app, convo_service, convo_reader;
