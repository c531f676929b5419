-- _rewind_summary: goes back to the newest summary of what is before a message.
-- When everything from there on was deleted, a summary of it must not tell it, now or
-- when another one is dropped.
-- in: the conversation, locked; the first message that was deleted
create function convo._rewind_summary(
    conversation convo.conversation, from_seq integer
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
    covered_seq integer;
begin
    select coalesce(max(s.through_seq), 0) into covered_seq
    from convo.summary as s
    where s.tenant_id = (_rewind_summary.conversation).tenant_id
        and s.conversation_id = (_rewind_summary.conversation).conversation_id
        and s.through_seq < _rewind_summary.from_seq
        and s.dropped_at is null;
    update convo.summary as s
    set dropped_at = clock_timestamp()
    where s.tenant_id = (_rewind_summary.conversation).tenant_id
        and s.conversation_id = (_rewind_summary.conversation).conversation_id
        and s.through_seq > covered_seq
        and s.dropped_at is null;
    update convo.conversation as c
    set summary_through_seq = covered_seq,
        body_count = b.messages,
        body_tokens = b.tokens,
        summary_due_over = 9223372036854775807,
        stale_seq = convo._stale_seq(
            (_rewind_summary.conversation).conversation_id, covered_seq
        )
    from (
        select count(*) as messages, coalesce(sum(m.tokens), 0) as tokens
        from convo.message as m
        where m.tenant_id = (_rewind_summary.conversation).tenant_id
            and m.conversation_id = (_rewind_summary.conversation).conversation_id
            and m.group_seq > covered_seq
            and m.deleted_at is null
            and m.role <> 'system'
    ) as b
    where c.tenant_id = (_rewind_summary.conversation).tenant_id
        and c.conversation_id = (_rewind_summary.conversation).conversation_id;
end
$$;

comment on function convo._rewind_summary(convo.conversation, integer) is
'Goes back to the newest summary of what is before a message.';
revoke execute on function convo._rewind_summary(convo.conversation, integer)
from public;
grant execute on function convo._rewind_summary(convo.conversation, integer)
to convo_app, convo_service;
