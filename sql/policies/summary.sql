-- summary: as the conversations they belong to; written once.
alter table convo.summary enable row level security;
alter table convo.summary force row level security;

create policy summary_tenant on convo.summary
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy summary_tenant on convo.summary is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy summary_own on convo.summary
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy summary_own on convo.summary is
'An application acts for one user.';

create policy summary_service on convo.summary
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy summary_service on convo.summary is
'Workers and support act for all users of the tenant.';

create policy summary_reader on convo.summary
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy summary_reader on convo.summary is
'Reports read the tenant.';

create policy summary_backup on convo.summary
for select to convo_backup using (true);
comment on policy summary_backup on convo.summary is
'A dump has every row.';

grant select, insert on convo.summary to convo_app, convo_service;
grant update (dropped_at) on convo.summary to convo_app, convo_service;
grant update (user_id) on convo.summary to convo_service;
grant select on convo.summary to convo_reader, convo_backup;
