-- _mark_hold: sets or lifts a legal hold, and notes who and why.
-- SECURITY DEFINER, so that no role can change a hold without a trace.
-- out: whether there is such a conversation in the tenant of the context
create function convo_private._mark_hold(
    conversation_id uuid, is_on_hold boolean, reason text
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    update convo.conversation as c
    set is_on_hold = _mark_hold.is_on_hold
    where c.tenant_id = convo.current_tenant_id()
        and c.conversation_id = _mark_hold.conversation_id;
    if not found then
        return false;
    end if;
    perform convo_private._audit(
        case when _mark_hold.is_on_hold then 'hold' else 'release' end,
        _mark_hold.conversation_id, _mark_hold.reason
    );
    return true;
end
$$;

comment on function convo_private._mark_hold(uuid, boolean, text) is
'Sets or lifts a legal hold in the context''s tenant, and notes who and why.';
revoke execute on function convo_private._mark_hold(uuid, boolean, text) from public;
grant execute on function convo_private._mark_hold(uuid, boolean, text)
to convo_service;
