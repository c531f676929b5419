-- summary: what earlier messages said, in short; each covers the ones before it too.
create table convo.summary (
    tenant_id text collate "C" not null,
    conversation_id uuid not null,
    through_seq integer not null,
    user_id text collate "C" not null,
    content text not null,
    tokens integer not null,
    model text,
    created_at timestamptz(3) not null,
    version integer not null default 1,
    dropped_at timestamptz(3),
    constraint summary_pkey
    primary key (tenant_id, conversation_id, through_seq, version),
    constraint summary_conversation_fkey
    foreign key (tenant_id, conversation_id, user_id)
    references convo.conversation (tenant_id, conversation_id, user_id)
    on delete cascade deferrable,
    constraint summary_through_seq_check check (through_seq > 0),
    constraint summary_content_check check (
        content ~ '\S' and octet_length(content) <= 1048576
    ),
    constraint summary_tokens_check check (tokens >= 0),
    constraint summary_model_check check (length(model) between 1 and 255)
);

comment on table convo.summary is
'Progressive summaries, append-only. Messages that they cover are never touched.';
comment on column convo.summary.tenant_id is 'The tenant.';
comment on column convo.summary.conversation_id is 'The conversation.';
comment on column convo.summary.through_seq is
'It covers every message whose group_seq is this or less.';
comment on column convo.summary.user_id is 'The owner of the conversation.';
comment on column convo.summary.content is 'The text, at most 1 MiB.';
comment on column convo.summary.tokens is 'Its tokens, given or estimated.';
comment on column convo.summary.model is 'The model that wrote it.';
comment on column convo.summary.created_at is 'When it was saved.';
comment on column convo.summary.version is
'1, and one more where one of the same messages was written anew: the last one counts.';
comment on column convo.summary.dropped_at is
'When it was put out of use, since messages that it covers were cleared. Requests that '
'it was sent with still replay.';
