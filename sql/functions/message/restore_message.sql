-- restore_message: brings a softly deleted message back to its place.
-- errors: PC001, PC012, PC002
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create function convo.restore_message(conversation_id uuid, seq integer)
returns convo.message_record
language sql
begin atomic
    select convo._set_deleted(
        restore_message.conversation_id, restore_message.seq, false
    );
end;

comment on function convo.restore_message(uuid, integer) is
'Brings a softly deleted message back to its place.';
revoke execute on function convo.restore_message(uuid, integer) from public;
grant execute on function convo.restore_message(uuid, integer)
to convo_app, convo_service;
