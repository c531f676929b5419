-- hold_conversation: puts a conversation on legal hold.
-- It can be written to, but neither deleted nor purged until it is released.
-- in: the reason, for the audit trail
-- errors: PC001, PC012, 22023
-- since: 0.1.0
create function convo.hold_conversation(conversation_id uuid, reason text)
returns convo.conversation_record
language sql
begin atomic
    select convo._set_hold(
        hold_conversation.conversation_id, true, hold_conversation.reason
    );
end;

comment on function convo.hold_conversation(uuid, text) is
'Puts a conversation on legal hold: neither deleted nor purged until it is released.';
revoke execute on function convo.hold_conversation(uuid, text) from public;
grant execute on function convo.hold_conversation(uuid, text) to convo_service;
