-- _audit: notes an administrative act in the audit trail.
-- SECURITY DEFINER, so that no role can write the trail but through the functions.
create function convo_private._audit(
    action text, conversation_id uuid, reason text
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    insert into convo.audit (
        tenant_id, audit_id, action, conversation_id, reason, acted_by, acted_at
    )
    values (
        convo.current_tenant_id(), convo._uuid_v7(), _audit.action,
        _audit.conversation_id, _audit.reason,
        concat_ws('/', session_user, convo.current_user_id()), clock_timestamp()
    );
end
$$;

comment on function convo_private._audit(text, uuid, text) is
'Notes an administrative act in the audit trail of the context''s tenant.';
revoke execute on function convo_private._audit(text, uuid, text) from public;
grant execute on function convo_private._audit(text, uuid, text) to convo_service;
