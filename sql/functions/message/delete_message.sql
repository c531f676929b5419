-- delete_message: softly deletes a message: it leaves every list, window and context.
-- Its seq stays taken and its versions are kept. Once is as good as twice.
-- errors: PC001, PC012, PC002
-- locks: the conversation row, until the transaction ends
-- since: 0.1.0
create function convo.delete_message(conversation_id uuid, seq integer)
returns convo.message_record
language sql
begin atomic
    select convo._set_deleted(delete_message.conversation_id, delete_message.seq, true);
end;

comment on function convo.delete_message(uuid, integer) is
'Softly deletes a message: it leaves every list, window and context.';
revoke execute on function convo.delete_message(uuid, integer) from public;
grant execute on function convo.delete_message(uuid, integer)
to convo_app, convo_service;
