-- store_embedding: keeps what a message means to a model, as a vector.
-- The same message and model again replaces it. It is of the revision that was claimed,
-- else of the present one. The first embedding of a model in a tenant says how long all
-- of them are.
-- in: embedding: 1 to 16,000 finite numbers, not all 0
-- errors: 0A000, PC001, PC012, PC002 not there or deleted, 22023
-- since: 0.1.0
create function convo.store_embedding(
    conversation_id uuid, seq integer, model text, embedding real[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform convo._require_tenant();
    perform convo._require_vector();
    perform convo._store_embedding(
        store_embedding.conversation_id, store_embedding.seq, store_embedding.model,
        store_embedding.embedding
    );
end
$$;

comment on function convo.store_embedding(uuid, integer, text, real[]) is
'Keeps what a message means to a model, as a vector, instead of an earlier one of the '
'same model. Needs the vector track.';
revoke execute on function convo.store_embedding(uuid, integer, text, real[])
from public;
grant execute on function convo.store_embedding(uuid, integer, text, real[])
to convo_app, convo_service;
