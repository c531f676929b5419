-- idempotency_key: as the conversations they belong to; written once.
alter table convo.idempotency_key enable row level security;
alter table convo.idempotency_key force row level security;

create policy idempotency_key_tenant on convo.idempotency_key
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy idempotency_key_tenant on convo.idempotency_key is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy idempotency_key_own on convo.idempotency_key
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy idempotency_key_own on convo.idempotency_key is
'An application acts for one user.';

create policy idempotency_key_service on convo.idempotency_key
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy idempotency_key_service on convo.idempotency_key is
'Workers and support act for all users of the tenant.';

create policy idempotency_key_reader on convo.idempotency_key
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy idempotency_key_reader on convo.idempotency_key is
'Reports read the tenant.';

create policy idempotency_key_backup on convo.idempotency_key
for select to convo_backup using (true);
comment on policy idempotency_key_backup on convo.idempotency_key is
'A dump has every row.';

grant select, insert on convo.idempotency_key to convo_app, convo_service;
grant update (user_id) on convo.idempotency_key to convo_service;
grant select on convo.idempotency_key to convo_reader, convo_backup;
