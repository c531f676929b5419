-- _claim_embeddings: what claim_embeddings does, with the vector track.
-- Looks into the conversations that changed since nothing was missing in them, and
-- leaves out messages that another claim holds at this moment. The claims themselves
-- are rows without a vector; one that ends unfulfilled is given out again.
create function convo._claim_embeddings(model text, page_size integer)
returns table (conversation_id uuid, seq integer, revision integer, content text)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    instant constant timestamptz(3) := clock_timestamp();
    room integer := convo._size('page_size', _claim_embeddings.page_size, 1000);
    claimed integer;
    changed record;
begin
    if coalesce(length(_claim_embeddings.model), 0) not between 1 and 255 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'model', 'minimum_length', 1, 'maximum_length', 255
        ));
    end if;
    for changed in
        select c.conversation_id, c.user_id, c.last_seq, c.updated_at
        from convo.conversation as c
        left join convo.embedding_progress as p
            on p.tenant_id = c.tenant_id
                and p.conversation_id = c.conversation_id
                and p.model = _claim_embeddings.model
        where c.tenant_id = tenant
            and (p.last_seq, p.updated_at) is distinct from (c.last_seq, c.updated_at)
        order by c.conversation_id
    loop
        exit when room = 0;
        return query
        with missing as materialized (
            select m.seq, m.revision, m.content
            from convo.message as m
            left join convo.embedding as e
                on e.tenant_id = m.tenant_id
                    and e.conversation_id = m.conversation_id
                    and e.seq = m.seq
                    and e.model = _claim_embeddings.model
                    and e.revision = m.revision
            where m.tenant_id = tenant
                and m.conversation_id = changed.conversation_id
                and m.deleted_at is null
                and m.role <> 'system'
                and case
                    when e.claimed_until is null and e.seq is not null
                        or e.claimed_until > instant then false
                    else not convo._is_blank(m.content) -- which may be megabytes
                end
            order by m.seq
            limit room
            for no key update of m skip locked
        ),

        claim as (
            insert into convo.embedding as e (
                tenant_id, conversation_id, seq, model, user_id, revision, claimed_until
            )
            select
                tenant, changed.conversation_id, m.seq, _claim_embeddings.model,
                changed.user_id, m.revision, instant + '10 min'
            from missing as m
            on conflict on constraint embedding_pkey do update
            set revision = excluded.revision,
                dimension = null,
                embedding = null,
                claimed_until = excluded.claimed_until
            -- unless it was claimed or stored since this statement began
            where e.revision < excluded.revision or e.claimed_until <= instant
            returning e.seq
        )

        select changed.conversation_id, m.seq, m.revision, m.content
        from missing as m
        inner join claim as k on m.seq = k.seq;
        get diagnostics claimed = row_count;
        room := room - claimed;

        if claimed = 0 then
            insert into convo.embedding_progress as p (
                tenant_id, conversation_id, model, last_seq, updated_at
            )
            select
                tenant, changed.conversation_id, _claim_embeddings.model,
                changed.last_seq, changed.updated_at
            where not exists (
                select
                from convo.message as m
                left join convo.embedding as e
                    on e.tenant_id = m.tenant_id
                        and e.conversation_id = m.conversation_id
                        and e.seq = m.seq
                        and e.model = _claim_embeddings.model
                        and e.revision = m.revision
                where m.tenant_id = tenant
                    and m.conversation_id = changed.conversation_id
                    and m.deleted_at is null
                    and m.role <> 'system'
                    and case
                        when e.claimed_until is null and e.seq is not null then false
                        else not convo._is_blank(m.content)
                    end
            )
            on conflict on constraint embedding_progress_pkey do update
            set last_seq = excluded.last_seq, updated_at = excluded.updated_at;
        end if;
    end loop;
end
$$;

comment on function convo._claim_embeddings(text, integer) is
'What claim_embeddings does, with the vector track.';
revoke execute on function convo._claim_embeddings(text, integer) from public;
grant execute on function convo._claim_embeddings(text, integer) to convo_service;
