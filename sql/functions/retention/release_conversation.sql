-- release_conversation: ends a legal hold.
-- in: the reason, for the audit trail
-- errors: PC001, PC012, 22023
-- since: 0.1.0
create function convo.release_conversation(conversation_id uuid, reason text)
returns convo.conversation_record
language sql
begin atomic
    select convo._set_hold(
        release_conversation.conversation_id, false, release_conversation.reason
    );
end;

comment on function convo.release_conversation(uuid, text) is
'Ends a legal hold. What is due is purged with the next run.';
revoke execute on function convo.release_conversation(uuid, text) from public;
grant execute on function convo.release_conversation(uuid, text) to convo_service;
