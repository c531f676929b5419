-- tombstone: ids of conversations that are gone, so that no late writer revives them.
create table convo.tombstone (
    tenant_id text collate "C" not null,
    conversation_id uuid not null,
    user_id text collate "C" not null,
    deleted_at timestamptz(3) not null default clock_timestamp(),
    constraint tombstone_pkey primary key (tenant_id, conversation_id),
    constraint tombstone_tenant_id_check check (length(tenant_id) between 1 and 255),
    constraint tombstone_user_id_check check (length(user_id) between 1 and 255)
);

comment on table convo.tombstone is
'Ids of deleted and purged conversations. An id is never used again.';
comment on column convo.tombstone.tenant_id is 'The tenant.';
comment on column convo.tombstone.conversation_id is 'The id.';
comment on column convo.tombstone.user_id is 'The last owner.';
comment on column convo.tombstone.deleted_at is 'When it was deleted.';
