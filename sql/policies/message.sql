-- message: as the conversations they belong to.
alter table convo.message enable row level security;
alter table convo.message force row level security;

create policy message_tenant on convo.message
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy message_tenant on convo.message is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy message_own on convo.message
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy message_own on convo.message is
'An application acts for one user.';

create policy message_service on convo.message
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy message_service on convo.message is
'Workers and support act for all users of the tenant.';

create policy message_reader on convo.message
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy message_reader on convo.message is
'Reports read the tenant.';

create policy message_backup on convo.message
for select to convo_backup using (true);
comment on policy message_backup on convo.message is
'A dump has every row.';

grant select, insert on convo.message to convo_app, convo_service;
grant update (
    content, payload, tokens, is_estimated, is_empty, revision, edited_at, deleted_at,
    words, words_norm
) on convo.message to convo_app, convo_service;
grant update (user_id) on convo.message to convo_service;
grant select on convo.message to convo_reader, convo_backup;
