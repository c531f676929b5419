-- list_messages: a page of live messages, always oldest first.
-- in: after_seq: the page that follows it; else the page before before_seq; neither: the
--     newest page
-- out: rows in order of seq; none when the conversation isn't there or the caller's
-- errors: PC030, 22023; over 1,000 is 1,000
-- since: 0.1.0
create function convo.list_messages(
    conversation_id uuid,
    before_seq integer default null,
    after_seq integer default null,
    page_size integer default 30
) returns setof convo.message_record
language sql stable rows 30
begin atomic
    select m.*
    from (
        (
            select
                f.seq,
                f.role,
                f.content,
                f.tokens,
                f.is_estimated,
                f.created_at,
                f.revision,
                f.model,
                f.payload,
                f.format,
                f.metadata,
                f.group_seq,
                f.deleted_at
            from convo.message as f
            where f.tenant_id = (select convo._require_tenant())
                and f.conversation_id = list_messages.conversation_id
                and f.deleted_at is null
                and f.seq > list_messages.after_seq
                and f.seq < coalesce(list_messages.before_seq, 2147483647)
            order by f.seq
            limit convo._size('page_size', list_messages.page_size, 1000)
        )
        union all
        (
            select
                b.seq,
                b.role,
                b.content,
                b.tokens,
                b.is_estimated,
                b.created_at,
                b.revision,
                b.model,
                b.payload,
                b.format,
                b.metadata,
                b.group_seq,
                b.deleted_at
            from convo.message as b
            where b.tenant_id = (select convo._require_tenant())
                and b.conversation_id = list_messages.conversation_id
                and b.deleted_at is null
                and list_messages.after_seq is null
                and b.seq < coalesce(list_messages.before_seq, 2147483647)
            order by b.seq desc
            limit convo._size('page_size', list_messages.page_size, 1000)
        )
    ) as m
    order by m.seq;
end;

comment on function convo.list_messages(uuid, integer, integer, integer) is
'A page of live messages, oldest first: the one after after_seq, else the one before '
'before_seq, else the newest.';
revoke execute on function convo.list_messages(uuid, integer, integer, integer)
from public;
grant execute on function convo.list_messages(uuid, integer, integer, integer)
to convo_app, convo_service, convo_reader;
