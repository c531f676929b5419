-- _due_conversations: what the tenants' retention rules say is due.
-- in: the ones on hold or the others; the most of each rule (null: all)
create function convo._due_conversations(is_on_hold boolean, page_size integer)
returns table (tenant_id text, conversation_id uuid, last_seq integer)
language sql stable
begin atomic
    select
        c.tenant_id,
        c.conversation_id,
        c.last_seq
    from convo.retention_policy as r
    cross join lateral (
        select
            s.tenant_id,
            s.conversation_id,
            s.last_seq
        from convo.conversation as s
        where s.tenant_id = r.tenant_id
            and s.retention_class = r.retention_class
            -- what is due by activity was created before that, too: the index helps
            and s.created_at < statement_timestamp() - r.max_age
            and (
                r.basis = 'creation'
                or s.updated_at < statement_timestamp() - r.max_age
            )
            and s.is_on_hold = _due_conversations.is_on_hold
        order by s.created_at
        limit _due_conversations.page_size
    ) as c;
end;

comment on function convo._due_conversations(boolean, integer) is
'What the tenants'' retention rules say is due, on hold or not.';
revoke execute on function convo._due_conversations(boolean, integer) from public;
grant execute on function convo._due_conversations(boolean, integer)
to convo_maintainer;
