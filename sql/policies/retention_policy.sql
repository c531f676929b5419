-- retention_policy: workers set their tenant's, the purge reads all.
alter table convo.retention_policy enable row level security;
alter table convo.retention_policy force row level security;

create policy retention_policy_tenant on convo.retention_policy
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy retention_policy_tenant on convo.retention_policy is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy retention_policy_service on convo.retention_policy
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy retention_policy_service on convo.retention_policy is
'Workers and support act for all users of the tenant.';

create policy retention_policy_reader on convo.retention_policy
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy retention_policy_reader on convo.retention_policy is
'Reports read the tenant.';

create policy retention_policy_backup on convo.retention_policy
for select to convo_backup using (true);
comment on policy retention_policy_backup on convo.retention_policy is
'A dump has every row.';

create policy retention_policy_purge on convo.retention_policy
for select to convo_maintainer using (max_age is not null);
comment on policy retention_policy_purge on convo.retention_policy is
'The purge reads the rules that can make something due.';

grant select, insert on convo.retention_policy to convo_service;
grant update (max_age, basis, action) on convo.retention_policy to convo_service;
grant select on convo.retention_policy to convo_reader, convo_maintainer, convo_backup;
