-- _set_hold: puts a conversation on legal hold or releases it, and notes who and why.
-- No activity: it moves neither its place in the list nor its retention.
-- errors: PC001, PC012, 22023 without a reason
create function convo._set_hold(conversation_id uuid, is_on_hold boolean, reason text)
returns convo.conversation_record
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    result convo.conversation_record;
begin
    if coalesce(length(_set_hold.reason), 0) not between 1 and 1000 then
        perform convo._fail('22023', jsonb_build_object(
            'argument', 'reason', 'minimum_length', 1, 'maximum_length', 1000
        ));
    end if;
    perform convo._require_tenant();
    if not convo_private._mark_hold(
        _set_hold.conversation_id, _set_hold.is_on_hold, _set_hold.reason
    ) then
        perform convo._fail_not_found(_set_hold.conversation_id);
    end if;
    select r.* into result from convo.get_conversation(_set_hold.conversation_id) as r;
    return result;
end
$$;

comment on function convo._set_hold(uuid, boolean, text) is
'Puts a conversation on legal hold or releases it, and notes who and why.';
revoke execute on function convo._set_hold(uuid, boolean, text) from public;
grant execute on function convo._set_hold(uuid, boolean, text) to convo_service;
