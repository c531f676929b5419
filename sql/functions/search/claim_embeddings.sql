-- claim_embeddings: messages without an embedding of a model, for one of many workers.
-- A claimed one is given to nobody else for 10 minutes; if it isn't stored by then, it
-- comes back, so what a worker that died had is not lost. System messages and blank ones
-- are left out. Commit before the embeddings are made.
-- in: a name for the model; how many
-- out: conversation by conversation, oldest message first; none: nothing is left to do
-- errors: 0A000, PC030, 22023; over 1,000 is 1,000
-- locks: the messages it gives, until the transaction ends
-- since: 0.1.0
create function convo.claim_embeddings(model text, page_size integer default 100)
returns table (conversation_id uuid, seq integer, revision integer, content text)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    perform convo._require_tenant();
    perform convo._require_vector();
    return query
    select c.conversation_id, c.seq, c.revision, c.content
    from convo._claim_embeddings(
        claim_embeddings.model, claim_embeddings.page_size
    ) as c;
end
$$;

comment on function convo.claim_embeddings(text, integer) is
'Messages of the tenant without an embedding of a model, new and edited ones, for one '
'of many workers. Needs the vector track.';
revoke execute on function convo.claim_embeddings(text, integer) from public;
grant execute on function convo.claim_embeddings(text, integer) to convo_service;
