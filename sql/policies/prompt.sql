-- prompt: each user their own; deleted when nothing refers to it.
alter table convo.prompt enable row level security;
alter table convo.prompt force row level security;

create policy prompt_tenant on convo.prompt
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy prompt_tenant on convo.prompt is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy prompt_own on convo.prompt
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy prompt_own on convo.prompt is
'An application acts for one user.';

create policy prompt_service on convo.prompt
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy prompt_service on convo.prompt is
'Workers and support act for all users of the tenant.';

create policy prompt_reader on convo.prompt
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy prompt_reader on convo.prompt is
'Reports read the tenant.';

create policy prompt_backup on convo.prompt
for select to convo_backup using (true);
comment on policy prompt_backup on convo.prompt is
'A dump has every row.';

create policy prompt_purge_select on convo.prompt
for select to convo_maintainer using (
    not exists (
        select
        from convo.conversation as c
        where c.tenant_id = prompt.tenant_id
            and c.user_id = prompt.user_id
            and c.system_prompt_sha256 = prompt.sha256
    )
);
comment on policy prompt_purge_select on convo.prompt is
'The purge finds prompts by key.';

create policy prompt_purge_delete on convo.prompt
for delete to convo_maintainer using (
    not exists (
        select
        from convo.conversation as c
        where c.tenant_id = prompt.tenant_id
            and c.user_id = prompt.user_id
            and c.system_prompt_sha256 = prompt.sha256
    )
);
comment on policy prompt_purge_delete on convo.prompt is
'The purge drops prompts that lost their last conversation; foreign keys keep others.';

grant select, insert, delete on convo.prompt to convo_app, convo_service;
-- Row locks need an UPDATE grant; created_at is the column that matters least.
grant update (created_at) on convo.prompt to convo_app, convo_service;
grant select on convo.prompt to convo_reader, convo_backup;
grant select (tenant_id, user_id, sha256), delete on convo.prompt to convo_maintainer;
