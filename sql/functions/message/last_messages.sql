-- last_messages: the newest N live messages, oldest of them first.
-- out: rows in order of seq; none when the conversation isn't there or the caller's
-- errors: PC030, 22023; over 10,000 is 10,000
-- since: 0.1.0
create function convo.last_messages(conversation_id uuid, message_limit integer)
returns setof convo.message_record
language sql stable rows 20
begin atomic
    select m.*
    from (
        select
            s.seq,
            s.role,
            s.content,
            s.tokens,
            s.is_estimated,
            s.created_at,
            s.revision,
            s.model,
            s.payload,
            s.format,
            s.metadata,
            s.group_seq,
            s.deleted_at
        from convo.message as s
        where s.tenant_id = (select convo._require_tenant())
            and s.conversation_id = last_messages.conversation_id
            and s.deleted_at is null
        order by s.seq desc
        limit convo._size('message_limit', last_messages.message_limit, 10000)
    ) as m
    order by m.seq;
end;

comment on function convo.last_messages(uuid, integer) is
'The newest N live messages of a conversation, oldest of them first.';
revoke execute on function convo.last_messages(uuid, integer) from public;
grant execute on function convo.last_messages(uuid, integer)
to convo_app, convo_service, convo_reader;
