-- message_revisions: all versions of a message, oldest first, the current one last.
-- out: rows whose created_at is when that version was written; none when the message
--      isn't there or the caller's; a deleted message still has its versions
-- errors: PC030
-- since: 0.1.0
create function convo.message_revisions(conversation_id uuid, seq integer)
returns setof convo.message_record
language sql stable rows 3
begin atomic
    select
        m.seq,
        m.role,
        v.content,
        v.tokens,
        v.is_estimated,
        v.created_at,
        v.revision,
        m.model,
        v.payload,
        m.format,
        m.metadata,
        m.group_seq,
        m.deleted_at
    from convo.message as m
    inner join (
        select
            r.tenant_id,
            r.conversation_id,
            r.seq,
            r.revision,
            r.content,
            r.payload,
            r.tokens,
            r.is_estimated,
            r.created_at
        from convo.message_revision as r
        union all
        select
            c.tenant_id,
            c.conversation_id,
            c.seq,
            c.revision,
            c.content,
            c.payload,
            c.tokens,
            c.is_estimated,
            coalesce(c.edited_at, c.created_at)
        from convo.message as c
    ) as v
        on v.tenant_id = m.tenant_id
            and v.conversation_id = m.conversation_id
            and v.seq = m.seq
    where m.tenant_id = (select convo._require_tenant())
        and m.conversation_id = message_revisions.conversation_id
        and m.seq = message_revisions.seq
    order by v.revision;
end;

comment on function convo.message_revisions(uuid, integer) is
'All versions of a message, oldest first, the current one last.';
revoke execute on function convo.message_revisions(uuid, integer) from public;
grant execute on function convo.message_revisions(uuid, integer)
to convo_app, convo_service, convo_reader;
