-- embedding_progress: which conversations have nothing left to embed.
-- Its row has the conversation's state when a claim found nothing missing: as long as it
-- is the same, no claim looks into the conversation again.
create table convo.embedding_progress (
    tenant_id text collate "C" not null,
    conversation_id uuid not null,
    model text collate "C" not null,
    last_seq integer not null,
    updated_at timestamptz(3) not null,
    constraint embedding_progress_pkey primary key (tenant_id, conversation_id, model),
    constraint embedding_progress_conversation_fkey
    foreign key (tenant_id, conversation_id)
    references convo.conversation (tenant_id, conversation_id) on delete cascade,
    constraint embedding_progress_model_check check (length(model) between 1 and 255)
);

comment on table convo.embedding_progress is
'Which conversations have nothing left to embed, by model.';
comment on column convo.embedding_progress.tenant_id is 'The tenant.';
comment on column convo.embedding_progress.conversation_id is 'The conversation.';
comment on column convo.embedding_progress.model is 'The model.';
comment on column convo.embedding_progress.last_seq is
'The conversation''s last_seq when nothing was missing.';
comment on column convo.embedding_progress.updated_at is
'The conversation''s updated_at when nothing was missing.';
