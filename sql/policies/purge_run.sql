-- purge_run: the purge writes it, a tenant sees its own.
alter table convo.purge_run enable row level security;
alter table convo.purge_run force row level security;

create policy purge_run_tenant on convo.purge_run
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy purge_run_tenant on convo.purge_run is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy purge_run_service on convo.purge_run
for select to convo_service
using (tenant_id = (select convo.current_tenant_id()));
comment on policy purge_run_service on convo.purge_run is
'Workers and support act for all users of the tenant.';

create policy purge_run_reader on convo.purge_run
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy purge_run_reader on convo.purge_run is
'Reports read the tenant.';

create policy purge_run_backup on convo.purge_run
for select to convo_backup using (true);
comment on policy purge_run_backup on convo.purge_run is
'A dump has every row.';

create policy purge_run_purge on convo.purge_run
for insert to convo_maintainer with check (true);
comment on policy purge_run_purge on convo.purge_run is
'The purge logs its batches.';

grant select on convo.purge_run to convo_service, convo_reader, convo_backup;
grant insert on convo.purge_run to convo_maintainer;
