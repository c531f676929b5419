-- list_conversations: a page of conversations, newest activity first.
-- in: before_at and before_id: updated_at and id of the last row of the page before
-- errors: PC030, 22023
-- since: 0.1.0
create function convo.list_conversations(
    before_at timestamptz default null,
    before_id uuid default null,
    include_archived boolean default false,
    page_size integer default 30
) returns setof convo.conversation_record
language sql stable rows 30
begin atomic
    select
        c.conversation_id,
        c.user_id,
        c.title,
        p.content as system_prompt,
        c.retention_class,
        c.policy,
        c.last_seq,
        c.message_count,
        c.token_total,
        c.metadata,
        c.created_at,
        c.updated_at,
        c.archived_at,
        c.is_on_hold,
        c.forked_from,
        c.forked_at_seq
    from (
        select
            s.tenant_id,
            s.conversation_id,
            s.user_id,
            s.title,
            s.system_prompt_sha256,
            s.retention_class,
            s.policy,
            s.last_seq,
            s.message_count,
            s.token_total,
            s.metadata,
            s.created_at,
            s.updated_at,
            s.archived_at,
            s.is_on_hold,
            s.forked_from,
            s.forked_at_seq
        from convo.conversation as s
        where s.tenant_id = (select convo._require_tenant())
            and (list_conversations.include_archived or s.archived_at is null)
            and (
                num_nonnulls(
                    list_conversations.before_at, list_conversations.before_id
                ) = 0
                or s.updated_at < list_conversations.before_at
                or s.updated_at = list_conversations.before_at
                and s.conversation_id < list_conversations.before_id
            )
        order by s.updated_at desc, s.conversation_id desc
        limit convo._size('page_size', list_conversations.page_size, 1000)
    ) as c
    left join convo.prompt as p
        on p.tenant_id = c.tenant_id
            and p.user_id = c.user_id
            and p.sha256 = c.system_prompt_sha256
    order by c.updated_at desc, c.conversation_id desc;
end;

comment on function convo.list_conversations(timestamptz, uuid, boolean, integer) is
'A page of the caller''s conversations, newest activity first. The next page: give '
'updated_at and conversation_id of the last row.';
revoke execute on function convo.list_conversations(
    timestamptz, uuid, boolean, integer
) from public;
grant execute on function convo.list_conversations(timestamptz, uuid, boolean, integer)
to convo_app, convo_service, convo_reader;
