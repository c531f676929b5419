-- idempotency_key: which append stored which messages, so that a retry stores nothing.
create table convo.idempotency_key (
    tenant_id text collate "C" not null,
    conversation_id uuid not null,
    key text collate "C" not null,
    user_id text collate "C" not null,
    first_seq integer not null,
    last_seq integer not null,
    sha256 bytea not null,
    created_at timestamptz(3) not null,
    constraint idempotency_key_pkey primary key (tenant_id, conversation_id, key),
    constraint idempotency_key_conversation_fkey
    foreign key (tenant_id, conversation_id, user_id)
    references convo.conversation (tenant_id, conversation_id, user_id)
    on delete cascade deferrable,
    constraint idempotency_key_key_check check (length(key) between 1 and 255),
    constraint idempotency_key_seq_check check (
        first_seq > 0 and last_seq >= first_seq - 1
    ),
    constraint idempotency_key_sha256_check check (length(sha256) = 32)
);

comment on table convo.idempotency_key is
'Keys that writers gave with an append, each with the messages it stored.';
comment on column convo.idempotency_key.tenant_id is 'The tenant.';
comment on column convo.idempotency_key.conversation_id is 'The conversation.';
comment on column convo.idempotency_key.key is 'The writer''s key.';
comment on column convo.idempotency_key.user_id is 'The owner of the conversation.';
comment on column convo.idempotency_key.first_seq is 'The first message stored.';
comment on column convo.idempotency_key.last_seq is
'The last message stored; one less than first_seq if there was none.';
comment on column convo.idempotency_key.sha256 is
'Hash of what was to be stored, so that other content is refused.';
comment on column convo.idempotency_key.created_at is 'When it was used first.';
