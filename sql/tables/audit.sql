-- audit: who held, released and transferred what, and why; written by _audit alone.
create table convo.audit (
    tenant_id text collate "C" not null,
    audit_id uuid not null,
    action text not null,
    conversation_id uuid not null,
    reason text,
    acted_by text not null,
    acted_at timestamptz(3) not null,
    constraint audit_pkey primary key (tenant_id, audit_id),
    constraint audit_action_check check (action in ('hold', 'release', 'transfer')),
    constraint audit_reason_check check (length(reason) between 1 and 1000),
    constraint audit_acted_by_check check (length(acted_by) <= 320),
    constraint audit_tenant_id_check check (length(tenant_id) between 1 and 255)
);

comment on table convo.audit is
'Administrative acts on conversations. Ids and reasons, no content.';
comment on column convo.audit.tenant_id is 'The tenant.';
comment on column convo.audit.audit_id is 'UUID version 7, so in order of time.';
comment on column convo.audit.action is 'hold, release or transfer.';
comment on column convo.audit.conversation_id is 'The conversation, which may be gone.';
comment on column convo.audit.reason is 'The reason given, at most 1,000 characters.';
comment on column convo.audit.acted_by is
'The login, and the user it acted for where one was set: login/user.';
comment on column convo.audit.acted_at is 'When.';
