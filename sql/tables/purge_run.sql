-- purge_run: what each batch of the purge removed, by tenant.
create table convo.purge_run (
    tenant_id text collate "C" not null,
    purge_run_id uuid not null,
    conversations integer not null,
    messages bigint not null,
    started_at timestamptz(3) not null,
    finished_at timestamptz(3) not null,
    constraint purge_run_pkey primary key (tenant_id, purge_run_id),
    constraint purge_run_tenant_id_check check (length(tenant_id) between 1 and 255)
);

comment on table convo.purge_run is
'A row a batch and tenant that lost conversations to the purge. Counts only.';
comment on column convo.purge_run.tenant_id is 'The tenant.';
comment on column convo.purge_run.purge_run_id is 'The batch.';
comment on column convo.purge_run.conversations is 'Conversations purged.';
comment on column convo.purge_run.messages is 'Messages purged with them.';
comment on column convo.purge_run.started_at is 'When the batch began.';
comment on column convo.purge_run.finished_at is 'When it was done.';
