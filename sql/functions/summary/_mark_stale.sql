-- _mark_stale: notes that a message changed under the summary in use.
-- Of several the first counts. Writers hold the conversation's lock, so no clock has to
-- say which came first, the summary or the change.
-- in: the conversation, locked; the message
create function convo._mark_stale(conversation convo.conversation, seq integer)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    update convo.conversation as c
    set stale_seq = least(c.stale_seq, _mark_stale.seq)
    where c.tenant_id = (_mark_stale.conversation).tenant_id
        and c.conversation_id = (_mark_stale.conversation).conversation_id;
end
$$;

comment on function convo._mark_stale(convo.conversation, integer) is
'Notes that a message changed under the summary in use.';
revoke execute on function convo._mark_stale(convo.conversation, integer) from public;
grant execute on function convo._mark_stale(convo.conversation, integer)
to convo_app, convo_service;
