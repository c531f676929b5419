-- _stale_seq: the first message that changed since a summary of it was saved, or null.
-- For a summary that comes into use again: the mark that it may have had is gone, so the
-- times tell. A message that was restored has none.
create function convo._stale_seq(conversation_id uuid, through_seq integer)
returns integer
language sql stable
begin atomic
    select min(m.seq)
    from convo.summary as s
    inner join convo.message as m
        on m.tenant_id = s.tenant_id
            and m.conversation_id = s.conversation_id
            and m.group_seq <= s.through_seq
    where s.tenant_id = (select convo._require_tenant())
        and s.conversation_id = _stale_seq.conversation_id
        and s.through_seq = _stale_seq.through_seq
        and s.version = (
            select max(v.version)
            from convo.summary as v
            where v.tenant_id = s.tenant_id
                and v.conversation_id = s.conversation_id
                and v.through_seq = s.through_seq
        )
        and m.role <> 'system'
        and greatest(m.created_at, m.edited_at, m.deleted_at) > s.created_at;
end;

comment on function convo._stale_seq(uuid, integer) is
'The first message that changed since a summary of it was saved, or null.';
revoke execute on function convo._stale_seq(uuid, integer) from public;
grant execute on function convo._stale_seq(uuid, integer) to convo_app, convo_service;
