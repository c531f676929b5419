-- context_policy: workers set their tenant's, applications read them.
alter table convo.context_policy enable row level security;
alter table convo.context_policy force row level security;

create policy context_policy_tenant on convo.context_policy
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy context_policy_tenant on convo.context_policy is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy context_policy_app on convo.context_policy
for select to convo_app
using (
    tenant_id = (select convo.current_tenant_id())
    and (select convo.current_user_id()) is not null
);
comment on policy context_policy_app on convo.context_policy is
'Applications read the policies of the tenant that they act for a user of.';

create policy context_policy_reader on convo.context_policy
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy context_policy_reader on convo.context_policy is
'Reports read the tenant.';

create policy context_policy_service on convo.context_policy
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy context_policy_service on convo.context_policy is
'Workers set the policies of their tenant.';

create policy context_policy_backup on convo.context_policy
for select to convo_backup using (true);
comment on policy context_policy_backup on convo.context_policy is
'A dump has every row.';

grant select on convo.context_policy to convo_app, convo_reader, convo_backup;
grant select, insert, delete on convo.context_policy to convo_service;
grant update (
    strategy, token_budget, message_limit, step_tokens, message_overhead, start_on_user,
    pin_last_user, open_calls, summary_placement, summary_threshold, summary_share,
    memory_limit, recall_limit
) on convo.context_policy to convo_service;
