-- tombstone: each user their own; written when a conversation goes.
alter table convo.tombstone enable row level security;
alter table convo.tombstone force row level security;

create policy tombstone_tenant on convo.tombstone
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy tombstone_tenant on convo.tombstone is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy tombstone_own on convo.tombstone
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy tombstone_own on convo.tombstone is
'An application acts for one user.';

create policy tombstone_service on convo.tombstone
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy tombstone_service on convo.tombstone is
'Workers and support act for all users of the tenant.';

create policy tombstone_reader on convo.tombstone
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy tombstone_reader on convo.tombstone is
'Reports read the tenant.';

create policy tombstone_backup on convo.tombstone
for select to convo_backup using (true);
comment on policy tombstone_backup on convo.tombstone is
'A dump has every row.';

create policy tombstone_purge on convo.tombstone
for insert to convo_maintainer with check (true);
comment on policy tombstone_purge on convo.tombstone is
'The purge leaves a tombstone for each conversation.';

create policy tombstone_search on convo.tombstone
for select to convo_search using (true);
comment on policy tombstone_search on convo.tombstone is
'convo_private._has_tombstone asks whether an id was ever used.';

grant select, insert on convo.tombstone to convo_app, convo_service;
grant select on convo.tombstone to convo_reader, convo_search, convo_backup;
grant insert on convo.tombstone to convo_maintainer;
