-- message_revision: as the conversations they belong to; written once.
alter table convo.message_revision enable row level security;
alter table convo.message_revision force row level security;

create policy message_revision_tenant on convo.message_revision
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy message_revision_tenant on convo.message_revision is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy message_revision_own on convo.message_revision
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy message_revision_own on convo.message_revision is
'An application acts for one user.';

create policy message_revision_service on convo.message_revision
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy message_revision_service on convo.message_revision is
'Workers and support act for all users of the tenant.';

create policy message_revision_reader on convo.message_revision
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy message_revision_reader on convo.message_revision is
'Reports read the tenant.';

create policy message_revision_backup on convo.message_revision
for select to convo_backup using (true);
comment on policy message_revision_backup on convo.message_revision is
'A dump has every row.';

grant select, insert on convo.message_revision to convo_app, convo_service;
grant update (user_id) on convo.message_revision to convo_service;
grant select on convo.message_revision to convo_reader, convo_backup;
