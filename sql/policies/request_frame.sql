-- request_frame: as the conversations they belong to.
alter table convo.request_frame enable row level security;
alter table convo.request_frame force row level security;

create policy request_frame_tenant on convo.request_frame
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy request_frame_tenant on convo.request_frame is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy request_frame_own on convo.request_frame
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy request_frame_own on convo.request_frame is
'An application acts for one user.';

create policy request_frame_service on convo.request_frame
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy request_frame_service on convo.request_frame is
'Workers and support act for all users of the tenant.';

create policy request_frame_reader on convo.request_frame
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy request_frame_reader on convo.request_frame is
'Reports read the tenant.';

create policy request_frame_backup on convo.request_frame
for select to convo_backup using (true);
comment on policy request_frame_backup on convo.request_frame is
'A dump has every row.';

grant select, insert on convo.request_frame to convo_app, convo_service;
grant update (user_id) on convo.request_frame to convo_service;
grant select on convo.request_frame to convo_reader, convo_backup;
