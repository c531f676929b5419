-- memory: what is known about a user, by key.
create table convo.memory (
    tenant_id text collate "C" not null,
    user_id text collate "C" not null,
    key text collate "C" not null,
    value text not null,
    version integer not null default 1,
    source_conversation_id uuid,
    created_at timestamptz(3) not null,
    updated_at timestamptz(3) not null,
    last_accessed_at timestamptz(3) not null,
    expires_at timestamptz(3),
    constraint memory_pkey primary key (tenant_id, user_id, key),
    constraint memory_tenant_id_check check (length(tenant_id) between 1 and 255),
    constraint memory_user_id_check check (length(user_id) between 1 and 255),
    constraint memory_key_check check (length(key) between 1 and 255),
    constraint memory_value_check check (length(value) between 1 and 8192),
    constraint memory_version_check check (version > 0)
);

-- Contexts hold the newest accessed.
create index memory_last_accessed_at_idx
on convo.memory (tenant_id, user_id, last_accessed_at);

comment on table convo.memory is
'What is known about a user, by key. Older versions are in table memory_revision.';
comment on column convo.memory.tenant_id is 'The tenant.';
comment on column convo.memory.user_id is 'Whom it is about, and whose it is.';
comment on column convo.memory.key is 'What it is, at most 255 characters.';
comment on column convo.memory.value is 'The text, at most 8,192 characters.';
comment on column convo.memory.version is '1, and one more with each new value.';
comment on column convo.memory.source_conversation_id is
'The conversation that the value came from, which may be gone.';
comment on column convo.memory.created_at is 'When the key was first remembered.';
comment on column convo.memory.updated_at is 'When the value or its end last changed.';
comment on column convo.memory.last_accessed_at is
'When it was last remembered anew or sent to a model, to the minute.';
comment on column convo.memory.expires_at is
'From when on it is not known any more; null: it stays.';
comment on index convo.memory_last_accessed_at_idx is 'A user''s memories by last use.';
