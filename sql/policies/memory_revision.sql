-- memory_revision: as the memories they belong to; written once.
alter table convo.memory_revision enable row level security;
alter table convo.memory_revision force row level security;

create policy memory_revision_tenant on convo.memory_revision
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy memory_revision_tenant on convo.memory_revision is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy memory_revision_own on convo.memory_revision
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy memory_revision_own on convo.memory_revision is
'An application acts for one user.';

create policy memory_revision_service on convo.memory_revision
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy memory_revision_service on convo.memory_revision is
'Workers and support act for all users of the tenant.';

create policy memory_revision_reader on convo.memory_revision
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy memory_revision_reader on convo.memory_revision is
'Reports read the tenant.';

create policy memory_revision_backup on convo.memory_revision
for select to convo_backup using (true);
comment on policy memory_revision_backup on convo.memory_revision is
'A dump has every row.';

grant select, insert on convo.memory_revision to convo_app, convo_service;
grant select on convo.memory_revision to convo_reader, convo_backup;
