-- embedding: what a message means to a model, as a vector.
-- A row without one is a claim: a worker is about to store it. It belongs to a revision,
-- and is found only while the message still has that one.
create table convo.embedding (
    tenant_id text collate "C" not null,
    conversation_id uuid not null,
    seq integer not null,
    model text collate "C" not null,
    user_id text collate "C" not null,
    revision integer not null,
    dimension integer,
    embedding vector,
    claimed_until timestamptz(3),
    constraint embedding_pkey primary key (tenant_id, conversation_id, seq, model),
    -- deferrable for transfer_conversation, which changes both sides
    constraint embedding_conversation_fkey
    foreign key (tenant_id, conversation_id, user_id)
    references convo.conversation (tenant_id, conversation_id, user_id)
    on delete cascade deferrable,
    constraint embedding_seq_check check (seq > 0),
    constraint embedding_model_check check (length(model) between 1 and 255),
    constraint embedding_revision_check check (revision > 0),
    constraint embedding_dimension_check check (
        (embedding is null) = (dimension is null)
        and (embedding is null) = (claimed_until is not null)
        and dimension = vector_dims(embedding)
    ),
    constraint embedding_embedding_check check (pg_column_size(embedding) <= 65536)
);

-- In the row as long as it fits a page: a search reads them all.
alter table convo.embedding alter column embedding set storage main;

-- An exact search reads one user's rows of one model, a service's the tenant's.
create index embedding_model_user_id_idx
on convo.embedding (tenant_id, model, user_id)
where embedding is not null;

comment on table convo.embedding is
'What messages mean to models, as vectors. Never found once the message has changed.';
comment on column convo.embedding.tenant_id is 'The tenant.';
comment on column convo.embedding.conversation_id is 'The conversation.';
comment on column convo.embedding.seq is 'The message.';
comment on column convo.embedding.model is 'The model that made it.';
comment on column convo.embedding.user_id is 'The owner of the conversation.';
comment on column convo.embedding.revision is 'The revision of the message it is of.';
comment on column convo.embedding.dimension is 'Its length.';
comment on column convo.embedding.embedding is 'The vector; null while claimed.';
comment on column convo.embedding.claimed_until is
'When the claim of a worker ends; null once it is stored.';
comment on index convo.embedding_model_user_id_idx is
'Embeddings of one model, by owner.';
