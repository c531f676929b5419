-- message_search: as the messages they belong to.
alter table convo.message_search enable row level security;
alter table convo.message_search force row level security;

create policy message_search_tenant on convo.message_search
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy message_search_tenant on convo.message_search is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy message_search_own on convo.message_search
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy message_search_own on convo.message_search is
'An application acts for one user.';

create policy message_search_service on convo.message_search
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy message_search_service on convo.message_search is
'Workers and support act for all users of the tenant.';

create policy message_search_reader on convo.message_search
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy message_search_reader on convo.message_search is
'Reports read the tenant.';

create policy message_search_backup on convo.message_search
for select to convo_backup using (true);
comment on policy message_search_backup on convo.message_search is
'A dump has every row.';

grant select, insert, delete on convo.message_search to convo_app, convo_service;
grant update (norm, words) on convo.message_search to convo_app, convo_service;
grant update (user_id) on convo.message_search to convo_service;
grant select on convo.message_search to convo_reader, convo_backup;
