-- get_conversation: one conversation.
-- out: a row, or none when it isn't there or isn't the caller's
-- errors: PC030
-- since: 0.1.0
create function convo.get_conversation(conversation_id uuid)
returns setof convo.conversation_record
language sql stable rows 1
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
    from convo.conversation as c
    left join convo.prompt as p
        on p.tenant_id = c.tenant_id
            and p.user_id = c.user_id
            and p.sha256 = c.system_prompt_sha256
    where c.tenant_id = (select convo._require_tenant())
        and c.conversation_id = get_conversation.conversation_id;
end;

comment on function convo.get_conversation(uuid) is
'One conversation, or no row when it isn''t there or isn''t the caller''s.';
revoke execute on function convo.get_conversation(uuid) from public;
grant execute on function convo.get_conversation(uuid)
to convo_app, convo_service, convo_reader;
