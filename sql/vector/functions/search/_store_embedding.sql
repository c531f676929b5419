-- _store_embedding: what store_embedding does, with the vector track.
-- A worker's claim says which revision the embedding is of: where the message was edited
-- since, it is stored for the old one, is not found, and the message is claimed again.
create function convo._store_embedding(
    conversation_id uuid, seq integer, model text, embedding real[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    tenant constant text := convo._require_tenant();
    size constant integer := cardinality(_store_embedding.embedding);
    fault constant text := convo._embedding_fault(_store_embedding.embedding);
    expected integer;
    message record;
begin
    if fault is not null then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'embedding', 'reason', fault
        ));
    elsif coalesce(length(_store_embedding.model), 0) not between 1 and 255 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'model', 'minimum_length', 1, 'maximum_length', 255
        ));
    end if;
    select m.user_id, m.revision into message
    from convo.message as m
    where m.tenant_id = tenant
        and m.conversation_id = _store_embedding.conversation_id
        and m.seq = _store_embedding.seq
        and m.deleted_at is null;
    if not found then
        if not exists (
            select
            from convo.conversation as c
            where c.tenant_id = tenant
                and c.conversation_id = _store_embedding.conversation_id
        ) then
            perform convo._fail_not_found(_store_embedding.conversation_id);
        end if;
        perform convo._fail('PC002', jsonb_build_object(
            'conversation_id', _store_embedding.conversation_id,
            'seq', _store_embedding.seq
        ));
    end if;

    expected := convo_private._model_dimension(_store_embedding.model, size);
    if expected <> size then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'embedding', 'dimension', size, 'expected', expected
        ));
    end if;
    insert into convo.embedding as e (
        tenant_id, conversation_id, seq, model, user_id, revision, dimension, embedding
    )
    values (
        tenant, _store_embedding.conversation_id, _store_embedding.seq,
        _store_embedding.model, message.user_id, message.revision, size,
        _store_embedding.embedding
    )
    on conflict on constraint embedding_pkey do update
    set revision = case
            when e.embedding is null then e.revision else excluded.revision
        end,
        dimension = excluded.dimension,
        embedding = excluded.embedding,
        claimed_until = null;
end
$$;

comment on function convo._store_embedding(uuid, integer, text, real[]) is
'What store_embedding does, with the vector track.';
revoke execute on function convo._store_embedding(uuid, integer, text, real[])
from public;
grant execute on function convo._store_embedding(uuid, integer, text, real[])
to convo_app, convo_service;
