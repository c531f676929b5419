-- _mark_changed: notes that a message changed while a worker may be summarising it.
-- The text that the worker saves then doesn't know of it, so it is stale at once.
-- in: the conversation, locked; the first message that changed
create function convo._mark_changed(conversation convo.conversation, seq integer)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
    if (_mark_changed.conversation).summary_leased_until is not null then
        update convo.conversation as c
        set changed_seq = least(c.changed_seq, _mark_changed.seq)
        where c.tenant_id = (_mark_changed.conversation).tenant_id
            and c.conversation_id = (_mark_changed.conversation).conversation_id;
    end if;
end
$$;

comment on function convo._mark_changed(convo.conversation, integer) is
'Notes that a message changed while a worker may be summarising it.';
revoke execute on function convo._mark_changed(convo.conversation, integer)
from public;
grant execute on function convo._mark_changed(convo.conversation, integer)
to convo_app, convo_service;
