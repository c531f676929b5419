-- request: as the conversations they belong to.
alter table convo.request enable row level security;
alter table convo.request force row level security;

create policy request_tenant on convo.request
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy request_tenant on convo.request is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy request_own on convo.request
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy request_own on convo.request is
'An application acts for one user.';

create policy request_service on convo.request
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy request_service on convo.request is
'Workers and support act for all users of the tenant.';

create policy request_reader on convo.request
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy request_reader on convo.request is
'Reports read the tenant.';

create policy request_backup on convo.request
for select to convo_backup using (true);
comment on policy request_backup on convo.request is
'A dump has every row.';

grant select, insert on convo.request to convo_app, convo_service;
grant update (
    finished_at, first_answer_seq, last_answer_seq, response_sha256, error
) on convo.request to convo_app, convo_service;
grant update (user_id) on convo.request to convo_service;
grant select on convo.request to convo_reader, convo_backup;
