-- _newest_user_seq: the seq of the newest live user message that says something, or null.
create function convo._newest_user_seq(conversation convo.conversation)
returns integer
language sql stable
begin atomic
    select m.seq
    from convo.message as m
    where m.tenant_id = (_newest_user_seq.conversation).tenant_id
        and m.conversation_id = (_newest_user_seq.conversation).conversation_id
        and m.role = 'user'
        and m.deleted_at is null
        and not m.is_empty
    order by m.seq desc
    limit 1;
end;

comment on function convo._newest_user_seq(convo.conversation) is
'The seq of the newest live user message that says something, or null.';
revoke execute on function convo._newest_user_seq(convo.conversation) from public;
grant execute on function convo._newest_user_seq(convo.conversation)
to convo_app, convo_service, convo_reader;
