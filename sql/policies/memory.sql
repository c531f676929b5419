-- memory: each user their own.
alter table convo.memory enable row level security;
alter table convo.memory force row level security;

create policy memory_tenant on convo.memory
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy memory_tenant on convo.memory is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy memory_own on convo.memory
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy memory_own on convo.memory is
'An application acts for one user.';

create policy memory_service on convo.memory
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy memory_service on convo.memory is
'Workers and support act for all users of the tenant.';

create policy memory_reader on convo.memory
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy memory_reader on convo.memory is
'Reports read the tenant.';

create policy memory_backup on convo.memory
for select to convo_backup using (true);
comment on policy memory_backup on convo.memory is
'A dump has every row.';

grant select, insert, delete on convo.memory to convo_app, convo_service;
grant update (
    value, version, source_conversation_id, updated_at, last_accessed_at, expires_at
) on convo.memory to convo_app, convo_service;
grant select on convo.memory to convo_reader, convo_backup;
