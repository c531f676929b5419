-- usage: recorded with a request, and never changed.
alter table convo.usage enable row level security;
alter table convo.usage force row level security;

create policy usage_tenant on convo.usage
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy usage_tenant on convo.usage is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy usage_own on convo.usage
for select to convo_app
using (user_id = (select convo.current_user_id()));
comment on policy usage_own on convo.usage is
'An application acts for one user.';

create policy usage_own_insert on convo.usage
for insert to convo_app
with check (
    user_id = (select convo.current_user_id())
    and exists (
        select
        from convo.request as r
        where r.tenant_id = usage.tenant_id
            and r.request_id = usage.request_id
            and r.conversation_id = usage.conversation_id
    )
);
comment on policy usage_own_insert on convo.usage is
'What a request of the user cost, and nothing else.';

create policy usage_service on convo.usage
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy usage_service on convo.usage is
'Workers and support act for all users of the tenant.';

create policy usage_reader on convo.usage
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy usage_reader on convo.usage is
'Reports read the tenant.';

create policy usage_backup on convo.usage
for select to convo_backup using (true);
comment on policy usage_backup on convo.usage is
'A dump has every row.';

grant select, insert on convo.usage to convo_app, convo_service;
grant select on convo.usage to convo_reader, convo_backup;
