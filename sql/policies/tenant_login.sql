-- tenant_login: the owner manages it; a login sees its own row, which context needs.
alter table convo_private.tenant_login enable row level security;
alter table convo_private.tenant_login force row level security;

create policy tenant_login_owner on convo_private.tenant_login
for all to convo_owner using (true) with check (true);
comment on policy tenant_login_owner on convo_private.tenant_login is
'The owner says which login is pinned to which tenant.';

create policy tenant_login_self on convo_private.tenant_login
for select using (role_name = session_user);
comment on policy tenant_login_self on convo_private.tenant_login is
'A session reads the rule for its own login.';

create policy tenant_login_backup on convo_private.tenant_login
for select to convo_backup using (true);
comment on policy tenant_login_backup on convo_private.tenant_login is
'A dump has every row.';

grant select on convo_private.tenant_login
to convo_app, convo_service, convo_reader, convo_maintainer, convo_search, convo_backup;
