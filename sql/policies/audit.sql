-- audit: _audit writes it, a tenant sees its own.
alter table convo.audit enable row level security;
alter table convo.audit force row level security;

create policy audit_tenant on convo.audit
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy audit_tenant on convo.audit is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy audit_service on convo.audit
for select to convo_service
using (tenant_id = (select convo.current_tenant_id()));
comment on policy audit_service on convo.audit is
'Workers and support act for all users of the tenant.';

create policy audit_reader on convo.audit
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy audit_reader on convo.audit is
'Reports read the tenant.';

create policy audit_backup on convo.audit
for select to convo_backup using (true);
comment on policy audit_backup on convo.audit is
'A dump has every row.';

create policy audit_search on convo.audit
for insert to convo_search
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy audit_search on convo.audit is
'convo_private._audit writes, within the tenant of the context.';

grant select on convo.audit to convo_service, convo_reader, convo_backup;
grant insert on convo.audit to convo_search;
