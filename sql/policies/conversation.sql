-- conversation: each user their own, workers their tenant, the purge what is due.
alter table convo.conversation enable row level security;
alter table convo.conversation force row level security;

create policy conversation_tenant on convo.conversation
as restrictive for all to convo_app, convo_service, convo_reader
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy conversation_tenant on convo.conversation is
'The fence: no rule beside it lets anyone cross the tenant.';

create policy conversation_own on convo.conversation
for all to convo_app
using (user_id = (select convo.current_user_id()))
with check (user_id = (select convo.current_user_id()));
comment on policy conversation_own on convo.conversation is
'An application acts for one user.';

create policy conversation_service on convo.conversation
for all to convo_service
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy conversation_service on convo.conversation is
'Workers and support act for all users of the tenant.';

create policy conversation_reader on convo.conversation
for select to convo_reader
using (tenant_id = (select convo.current_tenant_id()));
comment on policy conversation_reader on convo.conversation is
'Reports read the tenant.';

create policy conversation_backup on convo.conversation
for select to convo_backup using (true);
comment on policy conversation_backup on convo.conversation is
'A dump has every row.';

create policy conversation_hold on convo.conversation
as restrictive for delete to public using (not is_on_hold);
comment on policy conversation_hold on convo.conversation is
'On legal hold: nobody deletes it, whatever their role.';

create policy conversation_purge_select on convo.conversation
for select to convo_maintainer using (
    exists (
        select
        from convo.retention_policy as r
        where r.tenant_id = conversation.tenant_id
            and r.retention_class = conversation.retention_class
            and (
                case r.basis
                    when 'activity' then conversation.updated_at
                    else conversation.created_at
                end
            ) < statement_timestamp() - r.max_age
    )
);
comment on policy conversation_purge_select on convo.conversation is
'The purge sees what is due, held ones too, to count them.';

create policy conversation_purge_lock on convo.conversation
for update to convo_maintainer using (
    not is_on_hold and exists (
        select
        from convo.retention_policy as r
        where r.tenant_id = conversation.tenant_id
            and r.retention_class = conversation.retention_class
            and (
                case r.basis
                    when 'activity' then conversation.updated_at
                    else conversation.created_at
                end
            ) < statement_timestamp() - r.max_age
    )
) with check (false);
comment on policy conversation_purge_lock on convo.conversation is
'The purge locks rows but changes none.';

create policy conversation_purge_delete on convo.conversation
for delete to convo_maintainer using (
    not is_on_hold and exists (
        select
        from convo.retention_policy as r
        where r.tenant_id = conversation.tenant_id
            and r.retention_class = conversation.retention_class
            and (
                case r.basis
                    when 'activity' then conversation.updated_at
                    else conversation.created_at
                end
            ) < statement_timestamp() - r.max_age
    )
);
comment on policy conversation_purge_delete on convo.conversation is
'The purge deletes what is due and not held.';

create policy conversation_search_select on convo.conversation
for select to convo_search
using (tenant_id = (select convo.current_tenant_id()));
comment on policy conversation_search_select on convo.conversation is
'convo_private._mark_hold finds it.';

create policy conversation_search_update on convo.conversation
for update to convo_search
using (tenant_id = (select convo.current_tenant_id()))
with check (tenant_id = (select convo.current_tenant_id()));
comment on policy conversation_search_update on convo.conversation is
'convo_private._mark_hold holds and releases, and nobody else does.';

grant select, delete on convo.conversation to convo_app, convo_service;
grant insert (
    tenant_id, conversation_id, user_id, title, system_prompt_sha256, retention_class,
    policy, last_seq, message_count, token_total, body_count, body_tokens,
    summary_through_seq, metadata, created_at, updated_at, archived_at, forked_from,
    forked_at_seq, edit_count
) on convo.conversation to convo_app, convo_service;
grant update (
    title, system_prompt_sha256, retention_class, policy, last_seq, message_count,
    token_total, body_count, body_tokens, summary_through_seq, metadata, updated_at,
    archived_at, edit_count, summary_due_over, summary_leased_until, stale_seq,
    changed_seq
) on convo.conversation to convo_app, convo_service;
grant update (user_id) on convo.conversation to convo_service;
grant select on convo.conversation to convo_reader, convo_backup;
-- Keys, times and counts, no title or metadata. The purge's row locks need an UPDATE
-- grant, on one column that no rule lets it change.
grant select (
    tenant_id, conversation_id, user_id, system_prompt_sha256, retention_class,
    last_seq, is_on_hold, created_at, updated_at
), update (archived_at), delete on convo.conversation to convo_maintainer;
grant select (tenant_id, conversation_id), update (is_on_hold)
on convo.conversation to convo_search;
