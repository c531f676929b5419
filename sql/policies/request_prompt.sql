-- request_prompt: as the conversations they belong to.
alter table convo.request_prompt enable row level security;
alter table convo.request_prompt force row level security;

create policy request_prompt_tenant on convo.request_prompt
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy request_prompt_tenant on convo.request_prompt is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy request_prompt_own on convo.request_prompt
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy request_prompt_own on convo.request_prompt is
'An application acts for one user.';

create policy request_prompt_service on convo.request_prompt
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy request_prompt_service on convo.request_prompt is
'Workers and support act for all users of the tenant.';

create policy request_prompt_reader on convo.request_prompt
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy request_prompt_reader on convo.request_prompt is
'Reports read the tenant.';

create policy request_prompt_backup on convo.request_prompt
for select to convo_backup using (true);
comment on policy request_prompt_backup on convo.request_prompt is
'A dump has every row.';

create policy request_prompt_purge on convo.request_prompt
for select to convo_maintainer using (
    exists (
        select
        from convo.conversation as c
        where c.tenant_id = request_prompt.tenant_id
            and c.conversation_id = request_prompt.conversation_id
    )
);
comment on policy request_prompt_purge on convo.request_prompt is
'The purge finds the texts of what is due.';

grant select, insert on convo.request_prompt to convo_app, convo_service;
grant update (user_id) on convo.request_prompt to convo_service;
grant select on convo.request_prompt to convo_reader, convo_backup;
grant select (tenant_id, conversation_id, user_id, sha256)
on convo.request_prompt to convo_maintainer;
