-- memory_revision: what memories said before.
create table convo.memory_revision (
    tenant_id text collate "C" not null,
    user_id text collate "C" not null,
    key text collate "C" not null,
    version integer not null,
    value text not null,
    source_conversation_id uuid,
    created_at timestamptz(3) not null,
    expires_at timestamptz(3),
    constraint memory_revision_pkey primary key (tenant_id, user_id, key, version),
    constraint memory_revision_memory_fkey foreign key (tenant_id, user_id, key)
    references convo.memory (tenant_id, user_id, key) on delete cascade,
    constraint memory_revision_version_check check (version > 0),
    constraint memory_revision_value_check check (length(value) between 1 and 8192)
);

comment on table convo.memory_revision is
'Superseded versions of memories; the current one is in table memory.';
comment on column convo.memory_revision.tenant_id is 'The tenant.';
comment on column convo.memory_revision.user_id is 'Whose memory it is.';
comment on column convo.memory_revision.key is 'The memory.';
comment on column convo.memory_revision.version is 'The version, from 1.';
comment on column convo.memory_revision.value is 'The text of that version.';
comment on column convo.memory_revision.source_conversation_id is
'The conversation that it came from, which may be gone.';
comment on column convo.memory_revision.created_at is
'When that version was written.';
comment on column convo.memory_revision.expires_at is
'When that version would have ended.';
